"""Helpers for testing your own queries on Spark.

They turn tables into streams of micro-batches and answers into tables, and compare Spark with the engine.
"""

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
    """A static DataFrame of a table's rows; times without a time zone stay without one."""
    return spark.createDataFrame(table, _schema(table))


def write_batches(batches: Sequence[pa.Table], directory: str | Path, first: int = 0) -> None:
    """Writes each table as a Parquet file, for :func:`files`, which reads them in the same order.

    The files are numbered from ``first`` on.
    """
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, first):
        file = place / f"{number:06}.parquet"
        pq.write_table(batch, file)
        os.utime(file, (1_600_000_000 + number,) * 2)  # Spark takes files in the order of their times


def files(spark: SparkSession, directory: str | Path, together: int = 1) -> DataFrame:
    """A streaming DataFrame of the Parquet files in a directory; each micro-batch takes ``together`` files."""
    schema = _schema(pq.read_schema(min(Path(directory).glob("*.parquet"))).empty_table())
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", together).parquet(str(directory))


def stream(spark: SparkSession, batches: Sequence[pa.Table], directory: str | Path | None = None) -> DataFrame:
    """A streaming DataFrame in which each table is one micro-batch.

    Args:
        spark: the session.
        batches: the tables; at least one, all with the same columns.
        directory: where the tables are written; by default a temporary directory.
    """
    place = tempfile.mkdtemp(prefix="skyband-stream-") if directory is None else directory
    write_batches(batches, place)
    return files(spark, place)


def collect(df: DataFrame, mode: str = "append", checkpoint: str | Path | None = None) -> list[pa.Table]:
    """Runs a streaming DataFrame until its source has no more rows; returns the output of each micro-batch."""
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
    """Raises an ``AssertionError`` unless Spark gives the same rows as the engine.

    Spark gets the batches once as one static DataFrame and once as a stream.

    Args:
        spark: the session.
        query: one query, or a list of them.
        batches: the rows, in the order of event time: only in that order must Spark and the engine agree.
        options: those of :func:`skyband.spark.run`.
    """
    whole = pa.concat_tables(batches)
    assert_same_rows(run(frame(spark, whole), query, **options).toArrow(), answer(query, [whole]))
    assert_same_rows(pa.concat_tables(collect(run(stream(spark, batches), query, **options))),
                     answer(query, batches, flush=False))  # fmt: skip


def _schema(table: pa.Table) -> StructType:
    return from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
