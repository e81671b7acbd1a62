"""One window spread over the shards of Spark: pairs and dominating points, beside the engine in this process.

    python benchmarks/spark_spread.py [--quick]

A window of 100,000 objects that hops ten times. That the rows are those of the engine is checked in the same run.
What is shown is the whole run, from the first file to the last window, on two cores, with kernels compiled before and
Spark's workers started.
"""

import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from _measure import keep, show
from _spark import two_cores
from pyspark.sql import SparkSession

import skyband as sb
from skyband.query import Query
from skyband.spark import run
from skyband.spark.testing import collect, stream
from skyband.testing import answer, assert_same_rows

QUICK = "--quick" in sys.argv
WINDOW = 10_000 if QUICK else 100_000  # objects
SLIDES = 10  # in a window
ROWS = 2 * WINDOW
GROUPS = 2
SPAN = sb.last("1000 seconds", every=f"{1000 // SLIDES} seconds")
QUERIES: dict[str, Query] = {
    "pairs, closest": sb.TopKPairs(k=20, order_by="abs(a.x - b.x) + abs(a.y - b.y) + abs(a.z - b.z)", window=SPAN,
                                   select=("a.id", "b.id")),
    "dominating": sb.TopKDominating(k=20, dimensions={"x": "min", "y": "min", "z": "min"}, window=SPAN, select=("id",)),
}  # fmt: skip


def rows() -> pa.Table:
    rng = np.random.default_rng(1)
    number = np.arange(ROWS)
    moment = 1_700_000_000_000_000 + number * (1_000_000_000 // WINDOW)
    return pa.table({"id": number, "ts": pa.array(moment, pa.timestamp("us", "UTC")),
                     **{name: rng.random(ROWS) for name in "xyz"}})  # fmt: skip


def on_spark(spark: SparkSession, query: Query, batches: list[pa.Table]) -> tuple[pa.Table, float]:
    """The answer, and the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="skyband-", ignore_cleanup_errors=True) as place:
        source = stream(spark, batches, f"{place}/rows")
        start = time.perf_counter()
        got = collect(run(source, query, shards=GROUPS), checkpoint=f"{place}/state")
        return pa.concat_tables(got), time.perf_counter() - start


def main() -> None:
    spark = two_cores()
    table = rows()
    batches = [table.slice(i, ROWS // 5) for i in range(0, ROWS, ROWS // 5)]
    found = []
    for name, query in QUERIES.items():
        answer(query, [table.slice(0, 100)])  # compiles
        on_spark(spark, query, [table.slice(0, 100)])  # its workers, too
        start = time.perf_counter()
        expected = answer(query, batches, flush=False)
        alone = time.perf_counter() - start
        got, spread = on_spark(spark, query, batches)
        assert_same_rows(got, expected)
        found.append({"query": name, "window": WINDOW, "rows": ROWS, "answers": expected.num_rows,
                      "Spark, rows/s": ROWS / spread, "engine, rows/s": ROWS / alone, "equal": True})  # fmt: skip
    show(f"A window spread over {GROUPS} groups", found)
    if not QUICK:
        keep("spark_spread", speed=found)
    spark.stop()


if __name__ == "__main__":
    main()
