"""Reads and writes streams by short names such as ``parquet:PATH`` or ``rate:``, as the command line takes them."""

import glob
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType

from skyband.csvfiles import File, Reader, reader
from skyband.errors import SkybandError
from skyband.query import Query
from skyband.query.windows import duration
from skyband.spark.worker import settling

FILES = ("parquet", "csv", "json")
# Times to the microsecond: by default Spark cuts them off at milliseconds, without a word.
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TIMES = {"timestampFormat": f"{_TIME}XXX", "timestampNTZFormat": _TIME}
_WRITING: dict[str, dict[str, Any]] = {"csv": {"header": True, **_TIMES}, "json": _TIMES}
_RATE = 1000  # rows a second of ``rate:``

Take = Callable[[int, pa.Table], None]


@dataclass(frozen=True)
class Place:
    """A source or a sink: where rows come from, or where the answer goes.

    Attributes:
        kind: the part before the first colon, such as ``parquet``.
        rest: the part after it: a path, a host and port, or a number.
    """

    kind: str
    rest: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.rest}"

    @property
    def path(self) -> str:
        """The path of its files; a path on this machine is without ``file:``."""
        return re.sub(r"^file:/+", "/", self.rest)

    @property
    def remote(self) -> bool:
        """Whether it is in a file system that only Spark can look into."""
        return re.match(r"\w+:/", self.path) is not None

    def checkpoint(self, named: str | None) -> "Place | None":
        """The directory of the checkpoint: the one that is named, or ``_checkpoint`` within the answer, or None."""
        if named is None and self.kind in FILES:
            named = f"{self.rest.rstrip('/')}/_checkpoint"
        return None if named is None else Place("parquet", named)


def source(text: str) -> Place:
    """Parses what ``--from`` says; refuses a place that no stream can come from, before Spark is started.

    >>> source("socket:localhost:9999")
    Place(kind='socket', rest='localhost:9999')
    """
    place = Place(*text.partition(":")[::2])
    if place.kind in FILES:
        if not place.rest:
            raise SkybandError(f"--from {text!r} names no path; write {place.kind}:PATH")
        if not place.remote and not glob.glob(place.path):
            raise SkybandError(f"--from {text!r}: there is nothing at {place.path}")
    elif place.kind == "rate":
        if place.rest and not (place.rest.isdecimal() and int(place.rest)):
            raise SkybandError(f"--from {text!r}: write rate: or rate:ROWS, the number of rows a second")
    elif place.kind == "socket":
        host, _, port = place.rest.rpartition(":")
        if not host or not port.isdecimal():
            raise SkybandError(f"--from {text!r}: write socket:HOST:PORT")
    else:
        raise SkybandError(f"--from {text!r} is unknown; it is parquet:PATH, csv:PATH, json:PATH, rate: or "
                           "socket:HOST:PORT")  # fmt: skip
    return place


def sink(text: str) -> Place:
    """Parses what ``--to`` says.

    >>> sink("console")
    Place(kind='console', rest='')
    """
    place = Place(*text.partition(":")[::2])
    if place.kind in ("console", "memory") and not place.rest:
        return place
    if place.kind in FILES and place.rest:
        return place
    raise SkybandError(f"--to {text!r} is unknown; it is console, memory:, parquet:PATH, csv:PATH or json:PATH")


def read(spark: SparkSession, place: Place, query: Query, files: int | None = None, delimiter: str = ",") -> DataFrame:
    """A streaming DataFrame of the rows of a source.

    Args:
        spark: the session.
        place: the source, from :func:`source`. If it is files, those that are there now tell the columns.
        query: the query. Its event-time column is turned into timestamps if it is text.
        files: how many new files a micro-batch takes at most.
        delimiter: the character between the fields of CSV, which is read by the rules of :mod:`skyband.csvfiles`.
    """
    if place.kind == "rate":
        return spark.readStream.format("rate").option("rowsPerSecond", place.rest or _RATE).load()
    if place.kind == "socket":
        host, _, port = place.rest.rpartition(":")
        reader = spark.readStream.format("socket").option("host", host).option("port", port)
        return reader.option("includeTimestamp", True).load()
    options: dict[str, Any] = {}
    path = place.path
    if not place.remote and Path(path).is_file():  # Spark's file source knows directories and globs only
        options["pathGlobFilter"] = re.sub(r"([][*?{}\\])", r"\\\1", Path(path).name)
        path = str(Path(path).parent)
    if files is not None:
        options["maxFilesPerTrigger"] = files
    lines = place.kind == "csv"
    kind = "binaryFile" if lines else place.kind
    try:
        there = spark.read.format(kind).options(**options).load(path)
    except AnalysisException as error:
        raise SkybandError(f"--from {str(place)!r}: there are no {place.kind} files to take the columns from "
                           f"({str(error).splitlines()[0]})") from None  # fmt: skip
    stream = spark.readStream.format(kind).options(**options).schema(there.schema).load(path)
    return _csv(stream, there, place, query, delimiter) if lines else _timed(stream, there, place, query)


def _csv(stream: DataFrame, there: DataFrame, place: Place, query: Query, delimiter: str) -> DataFrame:
    """The rows of a stream of CSV files, each of which one task reads.

    Spark hands over the bytes of files that only it can open.
    """
    columns = ["path", "content"] if place.remote else ["path"]
    root = str(Path(place.path).resolve())
    now = [_file(row.asDict(), root) for row in there.select(*columns).sort("path").toLocalIterator()]
    if not now:
        raise SkybandError(f"--from {str(place)!r}: there are no csv files to take the columns from")
    found = reader(now, delimiter, query.window.on if query.window.time else None)
    schema = from_arrow_schema(found.schema, prefer_timestamp_ntz=True)
    return stream.select(*columns).mapInArrow(settling(_rows(found, root)), schema)


def _rows(found: Reader, root: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from found.read(_file(row, root))

    return rows


def _file(row: dict[str, Any], root: str) -> File:
    """A file for the reader of CSV, from a row of Spark's list of files."""
    path = Place("csv", row["path"]).path
    below = path.removeprefix(root).lstrip("/") if path.startswith(f"{root}/") else ""
    return File(path, row.get("content") or path, below)


def start(
    answer: DataFrame,
    place: Place,
    take: Take,
    mode: Literal["append", "update"] = "append",
    checkpoint: str | None = None,
    trigger: str | None = None,
    once: bool = False,
) -> StreamingQuery:
    """Starts a stream that writes an answer to a sink.

    Args:
        answer: what :func:`skyband.spark.run` returned.
        place: the sink, from :func:`sink`. Spark writes files itself, each row exactly once; their checkpoint is in
            ``_checkpoint`` beside them unless another is named. To the other sinks ``take`` writes.
        take: called with the number of each micro-batch and its rows. After a crash a batch may come a second time.
        mode: Spark's output mode; ``"update"`` for ``emit="latest"``.
        checkpoint: the directory of the checkpoint, to go on from and to write to.
        trigger: the time between micro-batches, such as ``"10 seconds"``; None for no pause.
        once: whether to stop when all rows that are there now have been taken.
    """
    writer = answer.writeStream.outputMode(mode)
    state = place.checkpoint(checkpoint)
    if place.kind in FILES:
        if mode == "update":
            raise SkybandError(f"--to {str(place)!r} cannot follow --emit latest: files are only added to, and the "
                               "latest ranking replaces the one before; write to console, or emit final")  # fmt: skip
        assert state is not None
        _refuse_leftovers(answer.sparkSession, place, state.path)
        writer = writer.format(place.kind).options(**_WRITING.get(place.kind, {})).option("path", place.path)
    else:
        writer = writer.foreachBatch(lambda frame, number: take(number, frame.toArrow()))
    if state is not None:
        writer = writer.option("checkpointLocation", state.path)
    if once:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=f"{duration(trigger, 'trigger') // 1000} milliseconds")
    return writer.start()


def _timed(stream: DataFrame, there: DataFrame, place: Place, query: Query) -> DataFrame:
    """The stream with its event-time column as timestamps, if it is text.

    A row whose text is no time is invalid, like any row without a time. A column in which no text is a time is refused,
    since it cannot be the one that was meant.
    """
    name = query.window.on
    if not query.window.time or name not in there.columns or not isinstance(there.schema[name].dataType, StringType):
        return stream
    column = col("`" + name.replace("`", "``") + "`")
    time = column.try_cast("timestamp")
    text = there.where(column.isNotNull()).select(column).head()
    if text is not None and there.where(time.isNotNull()).select(column).head() is None:
        raise SkybandError(f"--from {str(place)!r}: {name} = {text[0]!r} is not a time; write times as "
                           "2024-12-31 23:59:59.5, or name the column that has them with --on")  # fmt: skip
    return stream.withColumn(name, time)


def _refuse_leftovers(spark: SparkSession, place: Place, checkpoint: str) -> None:
    """Refuses a directory with another stream's files: Spark would leave out batches whose numbers it has already."""
    if _exists(spark, f"{place.rest}/_spark_metadata") and not _exists(spark, checkpoint):
        raise SkybandError(f"--to {str(place)!r} has the answer of another stream: its checkpoint is not {checkpoint}; "
                           "name that one with --checkpoint, or another directory with --to")  # fmt: skip


def _exists(spark: SparkSession, path: str) -> bool:
    context: Any = spark.sparkContext  # Hadoop is asked, as the path may be in any file system
    where = context._jvm.org.apache.hadoop.fs.Path(path)
    return bool(where.getFileSystem(context._jsc.hadoopConfiguration()).exists(where))
