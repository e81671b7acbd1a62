"""What the benchmarks share: timing, tables, and results kept beside the script."""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
console = Console(width=110)


def best_of(run: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    run()
    return min(_seconds(run) for _ in range(times))


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def scan(scores: "np.ndarray[Any, np.dtype[np.float64]]") -> float:
    """Seconds that ``numpy.max`` takes over the array: the baseline, measured in the same run."""
    return best_of(lambda: np.max(scores), 7)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints the rows as a table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in rows[0]:
        table.add_column(name, justify="right" if isinstance(rows[0][name], int | float) else "left")
    for row in rows:
        table.add_row(*(f"{v:,.4g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v)
                        for v in row.values()))  # fmt: skip
    console.print(table)


def keep(name: str, **parts: list[dict[str, Any]]) -> None:
    """Writes raw results beside the scripts, with the machine they come from."""
    RESULTS.mkdir(exist_ok=True)
    machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version(),
               "numpy": np.__version__}  # fmt: skip
    (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine, **parts}, indent=1) + "\n")
