"""A million partitions on Spark: the top 5 of each over hopping windows.

    python benchmarks/spark_keys.py [--quick]

10 M rows of Parquet in five micro-batches, each as long as a slide; a window is two slides, and every window gives
about four rows for each of a million keys. Two cores.
"""

import sys

import numpy as np
import pyarrow as pa
from _measure import keep, show
from _spark import BATCHES, files, measure, stream, two_cores

import skyband as sb
from skyband.spark import run

QUICK = "--quick" in sys.argv
KEYS = 100_000 if QUICK else 1_000_000
ROWS = 10 * KEYS
SLIDE = 60  # seconds
TARGET = 300_000


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    time = 1_700_000_040_000_000 + number * SLIDE * 1_000_000 // (ROWS // BATCHES)
    return pa.table({"key": rng.integers(0, KEYS, count), "ts": pa.array(time, pa.timestamp("us", "UTC")),
                     "id": number, "price": rng.random(count)})  # fmt: skip


def main() -> None:
    spark = two_cores()
    source = stream(spark, files("keys", ROWS, rows))
    noop = measure(source)["rows/s"]
    window = sb.last(f"{2 * SLIDE} seconds", every=f"{SLIDE} seconds")
    query = sb.TopK(k=5, order_by="price DESC", window=window, partition_by=("key",))
    ours = measure(run(source, query))
    found = [{"keys": KEYS, "rows": ROWS, "rows/s": ours["rows/s"], "target": TARGET,
              "met": "yes" if ours["rows/s"] >= TARGET else "no", "of noop": ours["rows/s"] / noop}]  # fmt: skip
    stages = [{"s a batch": ours["seconds"], "around it, s": ours["around"], "pruning, core-s": ours["prune_ms"],
               "merging, core-s": ours["merge_ms"], "held": ours["candidates"], "state, bytes": ours["bytes"],
               "bytes a key": ours["bytes"] / KEYS}]  # fmt: skip
    show(f"Top 5 of each of {KEYS:,} keys", found)
    show("Where the time goes, and the state", stages)
    if not QUICK:
        keep("spark_keys", speed=found, stages=stages)
    spark.stop()


if __name__ == "__main__":
    main()
