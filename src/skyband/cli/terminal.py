"""Standard output and standard error of the program, and how it shows on them what is going on."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from skyband.cli import interrupt

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.query import Query

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_SAY = 10.0  # seconds between two lines about how things are where there is no terminal


@contextmanager
def step(console: Console, text: str, hint: str = "") -> Iterator[None]:
    """Says what is being done and how long it may take; on a terminal also, at the end, how long it took."""
    began = monotonic()
    announced = f"{text} [dim]({hint})[/] …" if hint else f"{text} …"
    if not console.is_terminal:
        console.print(announced)
        yield
        return
    with console.status(announced):
        yield
    console.print(f"[green]✓[/] {text} [dim]({monotonic() - began:.1f} s)[/]")


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C, or a request to terminate, sets; a second Ctrl-C ends the program at once."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with interrupt.asking(stop):
            yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def line(first: str) -> Iterator[Callable[[str], None]]:
    """Shows the progress: on a terminal in a line kept up to date, else in a line on standard error now and then."""
    if not err.is_terminal:
        yield _now_and_then()
        return
    # One console must do both where rows are shown on the same terminal, or the line would be left between them.
    console = out if out.is_terminal else err
    spinner = Spinner("dots", first)
    with Live(spinner, console=console, transient=True, redirect_stdout=out.is_terminal, refresh_per_second=8):
        yield lambda text: spinner.update(text=text)


def _now_and_then() -> Callable[[str], None]:
    due = monotonic() + _SAY

    def say(text: str) -> None:
        nonlocal due
        if monotonic() >= due:
            err.print(text, soft_wrap=True)
            due = monotonic() + _SAY  # and not at once again where a step has taken long

    return say


def left_out(late: int, invalid: int) -> None:
    """Says why rows were left out, if any were."""
    if late:
        err.print("Rows that come later than --late allows are left out.", style="dim")
    if invalid:
        err.print("Rows without a score or an event time are invalid, and left out.", style="dim")


class Answers:
    """Shows the rows of an answer as they come, or all at the end: tables on a terminal, tab-separated lines elsewhere.

    Args:
        query: the query that is answered.
        at_end: whether to wait for the end.
    """

    def __init__(self, query: "Query", at_end: bool = False) -> None:
        self._partition_by = query.partition_by
        self._at_end = at_end
        self._kept: list[pa.Table] = []
        self._header = True

    def add(self, rows: "pa.Table") -> None:
        from skyband.cli.dashboard import in_order

        if self._at_end:
            self._kept.append(rows)
        else:
            self._show(in_order(rows, self._partition_by))

    def end(self) -> None:
        if self._kept:
            import pyarrow as pa

            self._at_end = False
            self.add(pa.concat_tables(self._kept))

    def _show(self, rows: "pa.Table") -> None:
        from skyband.cli.dashboard import SHOWN, as_lines, as_table

        if not rows.num_rows:
            return
        if not out.is_terminal:
            for line in as_lines(rows, self._header):
                print(line, file=out.file)  # as it is: rich would turn tabs into spaces
            out.file.flush()
            self._header = False
            return
        out.print(as_table(rows))
        if rows.num_rows > SHOWN:
            out.print(f"[dim]the last {SHOWN} of {rows.num_rows:,} rows; a pipe or --to gets them all[/]")
