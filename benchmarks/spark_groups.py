"""The groups with most rows in hopping windows, on Spark, beside Spark's own formulation.

    python benchmarks/spark_groups.py [--quick]

    SELECT host, count(*) FROM flows GROUP BY host ORDER BY count(*) DESC LIMIT 20, over 100 s, every 10 s

The native plan counts by window and host, ``groupBy(window(ts, W, S), host).count()``, and takes the 20 largest of each
window with ``max_by``; it copies every row into every window. Both read the same Parquet files in five micro-batches on
two cores; that their rows are equal is checked in the same run.

Then every row brings a new id, 200,000 of them in a window, ten million in all: what is held must not grow.
"""

import sys

import numpy as np
import pyarrow as pa
from _measure import console, keep, show
from _spark import BATCHES, files, measure, stream, two_cores
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
from skyband.spark import run

QUICK = "--quick" in sys.argv
ROWS = 1_000_000 if QUICK else 10_000_000
HOSTS = 20_000
K, WINDOW, SLIDE = 20, 100, 10
GAP = 100  # microseconds from row to row


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    time = 1_700_000_000_000_000 + number * GAP + rng.integers(0, GAP, count)
    host = np.minimum(rng.zipf(1.3, count), HOSTS)
    return pa.table({"id": number, "ts": pa.array(time, pa.timestamp("us", "UTC")), "host": host,
                     "bytes": rng.integers(40, 1500, count)})  # fmt: skip


def new_ids(first: int, count: int) -> pa.Table:
    number = np.arange(first, first + count)
    return pa.table({"ts": pa.array(1_700_000_040_000_000 + number * 600, pa.timestamp("us", "UTC")), "host": number})


def native(df: DataFrame) -> DataFrame:
    window = F.window("ts", f"{WINDOW} seconds", f"{SLIDE} seconds").alias("w")
    if df.isStreaming:
        df = df.withWatermark("ts", "0 seconds")
    counts = df.groupBy(window, "host").count()
    return counts.groupBy("w").agg(F.expr(f"max_by(struct(host, count), count, {K})").alias("best"))


def scores(df: DataFrame) -> list[tuple[object, ...]]:
    """Window ends and counts: hosts that tie come in any order."""
    return sorted(map(tuple, df.collect()))


def main() -> None:
    spark = two_cores()
    directory = files("flows", ROWS, rows)
    source, still = stream(spark, directory), spark.read.parquet(str(directory))
    window = sb.last(f"{WINDOW} seconds", every=f"{SLIDE} seconds")
    queries = {"count(*)": sb.TopKGroups(k=K, id="host", window=window),
               "sum(bytes)": sb.TopKGroups(k=K, id="host", value="bytes", window=window)}  # fmt: skip
    ours = scores(run(still, queries["count(*)"]).select("window_end", "score"))
    theirs = scores(native(still).selectExpr("w.end", "explode(best) b").selectExpr("end", "CAST(b.count AS DOUBLE)"))
    console.print(f"rows equal: {ours == theirs} ({len(ours):,} rows)")
    noop, spark_own = measure(source)["rows/s"], measure(native(source))["rows/s"]
    found = []
    for name, query in queries.items():
        got = measure(run(source, query))
        found.append({"query": name, "M rows/s": got["rows/s"] / 1e6, "of noop": got["rows/s"] / noop,
                      "native M rows/s": spark_own / 1e6, "x native": got["rows/s"] / spark_own,
                      "held": got["candidates"], "state, bytes": got["bytes"]})  # fmt: skip
    show(f"Top {K} groups of {WINDOW} s every {SLIDE} s, {ROWS:,} rows, {HOSTS:,} hosts", found)
    window = sb.last("2 minutes", every="30 seconds")
    got = measure(run(stream(spark, files("ids", ROWS, new_ids)), sb.TopKGroups(k=K, id="host", window=window)))
    growth = [{"ids so far": ROWS // BATCHES * (i + 1), "held": held, "state, bytes": size}
              for i, (held, size) in enumerate(got["sizes"])]  # fmt: skip
    show(f"Every id is new, 200,000 in a window; {got['rows/s']:,.0f} rows/s", growth)
    if not QUICK:
        keep("spark_groups", speed=found, growth=growth, equal=[{"rows": len(ours), "equal": ours == theirs}])
    spark.stop()


if __name__ == "__main__":
    main()
