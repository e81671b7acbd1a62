"""A query in a unit test: batches as a stream of micro-batches, its answer as a table, and whether Spark and the
engine agree."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from skyband.query import Query
from skyband.spark.run import run
from skyband.testing import answer, assert_same_rows


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A static DataFrame; times without a time zone stay without."""
    return spark.createDataFrame(table, _schema(table))


def write_batches(batches: Sequence[pa.Table], directory: str | Path, first: int = 0) -> None:
    """Writes tables as Parquet files, which :func:`files` takes one after the other; ``first`` numbers the first."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, first):
        file = place / f"{number:06}.parquet"
        pq.write_table(batch, file)
        os.utime(file, (1_600_000_000 + number,) * 2)  # Spark takes files in the order of their times


def files(spark: SparkSession, directory: str | Path, together: int = 1) -> DataFrame:
    """A streaming DataFrame of a directory of Parquet files; a micro-batch takes so many of them together."""
    schema = _schema(pq.read_schema(min(Path(directory).glob("*.parquet"))).empty_table())
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", together).parquet(str(directory))


def stream(spark: SparkSession, batches: Sequence[pa.Table], directory: str | Path | None = None) -> DataFrame:
    """A streaming DataFrame that takes each of the tables as one micro-batch.

    Args:
        spark: the session.
        batches: at least one, all with the same columns.
        directory: where the tables are written; a temporary one by default.
    """
    place = tempfile.mkdtemp(prefix="skyband-stream-") if directory is None else directory
    write_batches(batches, place)
    return files(spark, place)


def collect(df: DataFrame, mode: str = "append", checkpoint: str | Path | None = None) -> list[pa.Table]:
    """Runs a streaming DataFrame until its source has no more; what each micro-batch put out."""
    tables: dict[int, pa.Table] = {}
    writer = df.writeStream.outputMode(mode).trigger(availableNow=True)
    place = tempfile.mkdtemp(prefix="skyband-checkpoint-") if checkpoint is None else str(checkpoint)
    query = writer.option("checkpointLocation", place).foreachBatch(
        lambda frame, number: tables.__setitem__(number, frame.toArrow())
    ).start()  # fmt: skip
    query.awaitTermination()
    return [tables[number] for number in sorted(tables)]


def assert_same_on_spark(
    spark: SparkSession, query: Query | Sequence[Query], batches: Sequence[pa.Table], **options: Any
) -> None:
    """Raises unless Spark gives the rows of the engine: for the batches as one static DataFrame and as a stream.

    Args:
        spark: the session.
        query: one, or a list.
        batches: in the order of event time, as the engine has to see them to agree.
        options: those of :func:`skyband.spark.run`.
    """
    whole = pa.concat_tables(batches)
    assert_same_rows(run(frame(spark, whole), query, **options).toArrow(), answer(query, [whole]))
    assert_same_rows(pa.concat_tables(collect(run(stream(spark, batches), query, **options))),
                     answer(query, batches, flush=False))  # fmt: skip


def _schema(table: pa.Table) -> StructType:
    return from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
