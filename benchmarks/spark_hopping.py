"""Hopping windows on Spark, beside the same source read and discarded, and Spark's own hopping windows.

    python benchmarks/spark_hopping.py [--quick]

20 M rows of Parquet in five micro-batches, k = 100, a window of ten and of a hundred slides, two cores. The native
plan, ``groupBy(window(ts, W, S)).agg(max_by(row, price, k))``, copies every row into every window, so it gets fewer
rows; what is compared is rows a second. Ours and the discarded stream take turns, and are measured when Java has
compiled what it will. Ours shuffles into one partition, since one ranking is in one place; Spark's own plan has one for
each core.
"""

import sys

import numpy as np
import pyarrow as pa
from _measure import console, keep, show
from _spark import files, measure, side_by_side, stream, two_cores
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
from skyband.spark import run

QUICK = "--quick" in sys.argv
ROWS = 2_000_000 if QUICK else 20_000_000
NATIVE = {10: ROWS // 10, 100: ROWS // 50}
K = 100
WINDOW = 100  # seconds
GAP = 100  # microseconds from row to row
RUNS, WARM_UP = 4, 4
PARTITIONS = "spark.sql.shuffle.partitions"
TARGETS = {10: (0.4, 8), 100: (0.4, 60)}  # of noop, of the native plan


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    time = 1_700_000_000_000_000 + number * GAP + rng.integers(0, GAP, count)
    return pa.table({"id": number, "ts": pa.array(time, pa.timestamp("us", "UTC")), "price": rng.random(count)})


def query(slide: int) -> sb.TopK:
    return sb.TopK(k=K, order_by="price DESC", window=sb.last(f"{WINDOW} seconds", every=f"{slide} seconds"))


def native(df: DataFrame, slide: int) -> DataFrame:
    window = F.window("ts", f"{WINDOW} seconds", f"{slide} seconds")
    best = F.expr(f"max_by(struct(price, id, ts), price, {K})")
    return df.withWatermark("ts", "0 seconds").groupBy(window).agg(best)


def main() -> None:
    spark = two_cores()
    source = stream(spark, files("hopping", ROWS, rows))
    spark.conf.set(PARTITIONS, 1)
    streams = {"noop": source, **{str(ratio): run(source, query(WINDOW // ratio)) for ratio in TARGETS}}
    measured = side_by_side(streams, RUNS, WARM_UP)
    noop = measured["noop"]["rows/s"]
    console.print(f"read and discarded: {noop / 1e6:.2f} M rows/s")
    spark.conf.set(PARTITIONS, 2)
    found = []
    for ratio, (of_noop, of_native) in TARGETS.items():
        given = stream(spark, files("hopping", NATIVE[ratio], rows))
        theirs = measure(native(given, WINDOW // ratio), 2, warm_up=1)["rows/s"]
        speed = measured[str(ratio)]["rows/s"]
        met = speed >= of_noop * noop and speed >= of_native * theirs
        found.append({"win/slide": ratio, "M rows/s": speed / 1e6, "of noop": speed / noop, "target": of_noop,
                      "native M rows/s": theirs / 1e6, "native rows": NATIVE[ratio], "x native": speed / theirs,
                      "target x": of_native, "met": "yes" if met else "no"})  # fmt: skip
    stages = [{"win/slide": name, "s a batch": each["seconds"], "around it, s": each["around"],
               "pruning, core-s": each.get("prune_ms", 0.0), "merging, core-s": each.get("merge_ms", 0.0),
               "held": each.get("candidates", 0), "state, bytes": each.get("bytes", 0)}
              for name, each in measured.items()]  # fmt: skip
    show(f"Top {K} over hopping windows, {ROWS:,} rows", found)
    show("Where the time goes, and the state", stages)
    if not QUICK:
        keep("spark_hopping", noop=[{"M rows/s": noop / 1e6}], speed=found, stages=stages)
    spark.stop()


if __name__ == "__main__":
    main()
