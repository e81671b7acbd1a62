"""What a push costs: one row into a full window, and batches over a great many partitions.

    python benchmarks/push.py [--quick] [row] [partitions]

*row*: microseconds for a push of one row (an Arrow table), the median of many, for every family with the algorithm
that is chosen for it, when the window holds 10³, 10⁴ and 10⁵ rows.

*partitions*: rows a second once the windows are full, of TopK over 10⁵ partitions in batches of 10⁵ rows, for every
kind of window, and of the other families over 10⁴ partitions in batches of 10⁴ rows. Beside it, in the same run, what
one monitor for each partition takes, on a sample of the partitions.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from _measure import keep, show

import skyband as sb

QUICK = "--quick" in sys.argv
PARTS = [argument for argument in sys.argv[1:] if argument in ("row", "partitions")]
WINDOWS = (1000, 10_000) if QUICK else (1000, 10_000, 100_000)
PUSHES = 300 if QUICK else 2000
TARGET_ROW = 150  # µs
OBJECTS, OTHERS = (10_000, 1000) if QUICK else (100_000, 10_000)  # partitions
FULL = 40  # rows in the window of each partition
SAMPLE = 100  # partitions with a monitor of their own
BATCHES = 3 if QUICK else 8  # that are measured, after those that fill the windows
TARGET_OBJECTS, TARGET_OTHERS = 1_000_000, 100_000  # rows/s

Make = Callable[[sb.Window, tuple[str, ...]], Any]
FAMILIES: dict[str, Make] = {
    "objects": lambda window, by: sb.TopK(k=5, order_by="x DESC", window=window, partition_by=by),
    "nearest": lambda window, by: sb.Nearest(k=5, to={"x": 0.5, "y": 0.5}, window=window, partition_by=by),
    "pairs": lambda window, by: sb.TopKPairs(k=5, order_by="abs(a.x - b.x)", window=window, partition_by=by),
    "dominating": lambda window, by: sb.TopKDominating(k=5, dimensions={"x": "max", "y": "max"}, window=window,
                                                       partition_by=by),
    "groups": lambda window, by: sb.TopKGroups(k=5, id="group", value="x", window=window, partition_by=by),
    "groups, once": lambda window, by: sb.TopKGroups(k=5, id="group", stream="source", value="x", window=window,
                                                     partition_by=by),
}  # fmt: skip


def windows(rows: int, second: int = 1) -> Iterator[tuple[str, sb.Window]]:
    """Every kind of window that holds so many rows, of which ``second`` come in a second."""
    seconds, slide = rows // second, max(1, rows // 10)
    yield "count, every arrival", sb.last(rows)
    yield "count, hopping", sb.last(rows, every=slide)
    yield "time, every arrival", sb.last(f"{seconds} seconds")
    yield "time, hopping", sb.last(f"{seconds} seconds", every=f"{max(1, seconds // 10)} seconds")


def table(first: int, count: int, partitions: int = 1, second: int = 1) -> pa.Table:
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    ts = pa.array(number * 1_000_000 // (second * partitions), pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "p": rng.integers(0, partitions, count), "id": number, "x": rng.random(count),
                     "y": rng.random(count), "group": rng.integers(0, 100, count),
                     "source": rng.integers(0, 3, count)})  # fmt: skip


def one_row(make: Make, window: sb.Window, rows: int) -> float:
    """Median microseconds of a push."""
    monitor, step = sb.Monitor(make(window, ())), 10_000
    filling = rows + rows // 5
    for start in range(0, filling, step):
        monitor.push(table(start, min(step, filling - start)))
    coming = table(filling, PUSHES + 200)
    taken = []
    for i in range(coming.num_rows):
        row = coming.slice(i, 1)
        start_time = time.perf_counter()
        monitor.push(row)
        taken.append(time.perf_counter() - start_time)
    return float(np.median(taken[200:])) * 1e6


def measure_rows() -> list[dict[str, Any]]:
    found = []
    for family, make in FAMILIES.items():
        names = [name for name, _ in windows(WINDOWS[0])]
        for place, name in enumerate(names):
            if family != "objects" and place > 1:
                continue
            took = [one_row(make, [w for _, w in windows(rows)][place], rows) for rows in WINDOWS]
            found.append({"family": family, "window": name, **{f"{n:,} rows": t for n, t in
                          zip(WINDOWS, took, strict=True)}, "target": TARGET_ROW,
                          "met": "yes" if max(took) <= TARGET_ROW else "no"})  # fmt: skip
    return found


def rate(make: Make, window: sb.Window, partitions: int, second: int) -> float:
    """Rows a second once the windows are full."""
    monitor, batch = sb.Monitor(make(window, ("p",))), partitions
    filling = FULL + FULL // 4
    for i in range(filling):
        monitor.push(table(i * batch, batch, partitions, second))
    seconds = 0.0
    for i in range(filling, filling + BATCHES):
        coming = table(i * batch, batch, partitions, second)
        start = time.perf_counter()
        monitor.push(coming)
        seconds += time.perf_counter() - start
    return BATCHES * batch / seconds


def one_each(make: Make, window: sb.Window, partitions: int, second: int) -> float:
    """Rows a second of a monitor for each partition, on a sample of them, with the batches cut up beforehand."""
    monitors = [sb.Monitor(make(window, ())) for _ in range(SAMPLE)]
    seconds, count, filling = 0.0, 0, FULL + FULL // 4
    for i in range(filling + BATCHES):
        # As many rows for each partition in the same time as where there are more of them.
        coming = table(i * SAMPLE, SAMPLE, SAMPLE, second)
        order = np.argsort(coming["p"].to_numpy(), kind="stable")
        cuts = np.searchsorted(coming["p"].to_numpy()[order], np.arange(SAMPLE + 1))
        parts = [coming.take(pa.array(order[a:b])) for a, b in pairwise(cuts)]
        start = time.perf_counter()
        for monitor, part in zip(monitors, parts, strict=True):
            if part.num_rows:
                monitor.push(part)
        if i >= filling:
            seconds += time.perf_counter() - start
            count += SAMPLE
    return count / seconds


def measure_partitions() -> list[dict[str, Any]]:
    found = []
    for family, make in FAMILIES.items():
        partitions, target = (OBJECTS, TARGET_OBJECTS) if family == "objects" else (OTHERS, TARGET_OTHERS)
        for place, (name, window) in enumerate(windows(FULL)):
            if family != "objects" and place > 1:
                continue
            ours, alone = rate(make, window, partitions, 1), one_each(make, window, partitions, 1)
            found.append({"family": family, "window": name, "partitions": partitions, "rows/s": int(ours),
                          "one monitor each": int(alone), "times": ours / alone, "target": target,
                          "met": "yes" if ours >= target else "no"})  # fmt: skip
    return found


def main() -> None:
    warnings.simplefilter("ignore", sb.DataWarning)
    parts: dict[str, list[dict[str, Any]]] = {}
    if not PARTS or "row" in PARTS:
        parts["row"] = measure_rows()
        show("One row into a full window, µs (median)", parts["row"])
    if not PARTS or "partitions" in PARTS:
        parts["partitions"] = measure_partitions()
        show("Batches of as many rows as there are partitions", parts["partitions"])
    if not (QUICK or PARTS):
        keep("push", **parts)


if __name__ == "__main__":
    main()
