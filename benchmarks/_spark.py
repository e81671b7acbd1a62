"""What the Spark benchmarks share: Parquet files made once, and streams measured batch by batch."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from skyband.spark.quiet import quiet_session

BATCHES = 5
FILES = 4  # in a batch
CACHE = Path(tempfile.gettempdir()) / "skyband-benchmarks"


def two_cores() -> SparkSession:
    """A session on two cores; what Java and the workers have to say goes to a file."""
    CACHE.mkdir(exist_ok=True)
    return quiet_session("skyband benchmark", "local[2]", CACHE / "spark.log")


def files(name: str, rows: int, make: Callable[[int, int], pa.Table]) -> Path:
    """A directory of Parquet files with ``rows`` rows; ``make(first, count)`` gives those of one file."""
    directory = CACHE / f"{name}-{rows}"
    if not (directory / "_SUCCESS").exists():
        directory.mkdir(parents=True, exist_ok=True)
        size = rows // (BATCHES * FILES)
        for i in range(BATCHES * FILES):
            file = directory / f"{i:03}.parquet"
            pq.write_table(make(i * size, size), file)
            os.utime(file, (1_600_000_000 + i,) * 2)
        (directory / "_SUCCESS").touch()
    return directory


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    """The files as a stream of :data:`BATCHES` micro-batches."""
    schema = spark.read.parquet(str(directory)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(directory))


def measure(df: DataFrame, runs: int = 1, warm_up: int = 0) -> dict[str, Any]:
    """Runs a stream to its end and throws the answer away; rows a second in the steady state, and where time went."""
    return side_by_side({"": df}, runs, warm_up)[""]


def side_by_side(streams: dict[str, DataFrame], runs: int, warm_up: int) -> dict[str, dict[str, Any]]:
    """:func:`measure` for streams that are to be compared: they take turns, so that all see the same machine.

    Java goes on compiling for many seconds; where a batch takes less than one, give some runs to ``warm_up``. The first
    micro-batch of each run is left out as well: it starts Python workers and loads compiled kernels.
    """
    reports: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in streams}
    for turn in range(warm_up + runs):
        for name, df in streams.items():
            got = _reports(df)
            if turn >= warm_up:
                reports[name].append(got)
    return {name: _summary(some) for name, some in reports.items()}


def _summary(runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """What the reports of some runs of a stream come to.

    A batch takes ``seconds``, of which Spark needs ``around`` for planning and for its logs; ``prune_ms`` and
    ``merge_ms`` (in seconds here) are those of our two stages, of all tasks together. The rest is reading, and the way
    from Java to Python and back. ``sizes`` are the objects and bytes held after each batch.
    """
    steady = [report for reports in runs for report in reports[1:]]
    whole, batch = (sum(report["durationMs"][name] for report in steady) / len(steady) / 1e3
                    for name in ("triggerExecution", "addBatch"))  # fmt: skip
    rows = sum(report["numInputRows"] for report in steady) / len(steady)
    found = {"rows/s": rows / whole, "seconds": whole, "around": whole - batch}
    if counts := steady[-1].get("observedMetrics", {}).get("skyband"):
        found |= {name: sum(r["observedMetrics"]["skyband"][name] for r in steady) / len(steady) / 1e3
                  for name in ("prune_ms", "merge_ms")}  # fmt: skip
        found |= {name: counts[name] for name in ("candidates", "bytes")}
        found["sizes"] = [(r["observedMetrics"]["skyband"]["candidates"], r["observedMetrics"]["skyband"]["bytes"])
                          for r in runs[-1]]  # fmt: skip
    return found


def _reports(df: DataFrame) -> list[dict[str, Any]]:
    """What Spark says of each micro-batch with rows."""
    with tempfile.TemporaryDirectory(prefix="skyband-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        reports = [json.loads(report.json) for report in query.recentProgress]
    return [report for report in reports if report["numInputRows"]]
