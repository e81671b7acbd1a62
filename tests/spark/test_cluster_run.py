"""A stream on a cluster that loses a worker half-way: the answer of the engine."""

import json
import subprocess
import sys
from inspect import cleandoc
from pathlib import Path

import pytest

import skyband as sb
from skyband.datasets import trades
from skyband.spark.testing import write_batches
from skyband.testing import answer, assert_same_rows
from tests.support.spark.cluster import cluster, shipped
from tests.support.spark.sink import written

BATCHES = 10
DRIVER = cleandoc(
    """
    import json, sys, time
    import skyband as sb
    from skyband.spark import run, session
    from skyband.spark.testing import files

    master, settings, here = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    query = sb.TopK(k=3, order_by="price * volume DESC", window=sb.last("10 seconds", every="5 seconds"),
                    partition_by=("symbol",))
    spark = session(master=master, **{"spark.sql.shuffle.partitions": 2, **settings})
    sink = run(files(spark, f"{here}/in"), query, chunks=3).writeStream.format("parquet")
    sink = sink.option("checkpointLocation", f"{here}/checkpoint")
    running = sink.trigger(availableNow=True).start(f"{here}/out")
    done = 0
    while running.isActive:
        if len(running.recentProgress) > done:
            done = len(running.recentProgress)
            print(done, flush=True)
        time.sleep(0.05)
    running.awaitTermination()
    spark.stop()
    """
)


@pytest.mark.slow
def test_a_stream_on_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    table = trades(20_000, seed=5)
    size = table.num_rows // BATCHES
    batches = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    write_batches(batches, tmp_path / "in")
    with cluster(tmp_path) as running:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, running.url, json.dumps(shipped(tmp_path)), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with driver:
            assert driver.stdout is not None
            for line in driver.stdout:
                if int(line) >= BATCHES // 2 and running.workers == 2:
                    running.kill("worker-1")
            assert driver.wait(60) == 0
    query = sb.TopK(k=3, order_by="price * volume DESC", window=sb.last("10 seconds", every="5 seconds"),
                    partition_by=("symbol",))  # fmt: skip
    expected = answer(query, batches, flush=False)
    assert_same_rows(written(tmp_path).cast(expected.schema), expected)  # Spark's files do not name the time zone
