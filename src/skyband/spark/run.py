"""``run``: a query put to a DataFrame, streaming or static."""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DateType, NumericType, StructType, TimestampNTZType, TimestampType

from skyband import scoring
from skyband.errors import QueryError
from skyband.expressions import find_column
from skyband.layout import Layout
from skyband.queries import Query, TopK
from skyband.spark.job import PART, PASSES, SCORE, TIE, TIME, Emit, Job
from skyband.spark.operator import Merger, merge_all, unpack
from skyband.spark.pack import PACKED, packer
from skyband.spark.session import configure
from skyband.spark.shard import MERGED

METRICS = "skyband"


def run(
    df: DataFrame,
    query: Query | Sequence[Query],
    emit: Emit = "final",
    *,
    arrival: str | None = None,
    shards: int | None = None,
    chunks: int | None = None,
) -> DataFrame:
    """The continuous ranking of a streaming DataFrame, or the same rows at once for a static one.

    Args:
        df: streaming or static.
        query: one query, or a list: then the answer has a first column ``query``.
        emit: ``"final"``: every hopping window once, when the watermark passes its end; every change of the top k
            for windows that move with every arrival (``"changes"`` says the same). For the append mode of a sink.
            ``"latest"``: after each micro-batch the ranking as it stands of the partitions it touched, k rows each,
            with no score where there are fewer; for the update mode, and a sink that overwrites by partition and
            rank.
        arrival: an integer column that tells the order of arrival, for objects that tie in score and event time; by
            default the first integer column of the DataFrame, and then the content of the row.
        shards: how many tasks share the state; by default ``spark.sql.shuffle.partitions``, and 1 for a query
            without ``partition_by``. A checkpoint keeps the number it was begun with.
        chunks: pieces of each shard's state, so that a batch rewrites only those it touches; 16 by default.

    The counts of each micro-batch (``seen``, ``late``, ``invalid``), the state held (``candidates``, ``bytes``) and
    the time spent (``prune_ms``, ``merge_ms``) are in the query's progress, as the observed metrics ``skyband``.
    """
    configure(df.sparkSession)
    if isinstance(query, Sequence):
        return _several(df, query, emit, arrival, shards, chunks)
    topk = query.lower()
    if emit not in ("final", "changes", "latest"):
        raise QueryError(f'emit={emit!r} is unknown; it is "final", "changes" or "latest"')
    if emit == "changes" and topk.window.hopping:
        raise QueryError('emit="changes" is for windows that move with every arrival; a hopping window gives "final" '
                         'or "latest"')  # fmt: skip
    schema = to_arrow_schema(df.schema, timezone="UTC")
    job = _job(topk, schema, emit, df, shards, chunks)
    packed = _prepared(df, topk, schema, job, arrival).mapInArrow(
        packer(job, lambda: TaskContext.get().partitionId()),  # type: ignore[union-attr]
        from_arrow_schema(PACKED),
    )
    merged = from_arrow_schema(MERGED)
    if df.isStreaming:
        answers = packed.groupBy("shard").transformWithState(
            Merger(job), merged, outputMode="Update" if emit == "latest" else "Append", timeMode="None"
        )
    else:
        answers = packed.groupBy("shard").applyInArrow(merge_all(job), merged)
    totals = [F.sum(name).alias(name) for name in MERGED.names if name != "data"]
    answers = answers.observe(METRICS if topk.name is None else f"{METRICS} {topk.name}", *totals)
    answer = _answer_schema(job)
    rows = answers.where("data IS NOT NULL").select("data").mapInArrow(unpack, from_arrow_schema(answer))
    return rows.select(*_restored(rows, topk, df.schema))


def _several(
    df: DataFrame, queries: Sequence[Query], emit: Emit, arrival: str | None, shards: int | None, chunks: int | None
) -> DataFrame:
    if not queries:
        raise QueryError("run needs at least one query")
    names = [q.lower().name or f"q{i}" for i, q in enumerate(queries)]
    if len(set(names)) != len(names):
        raise QueryError(f"query names must differ: {', '.join(names)}")
    parts = []
    for name, query in zip(names, queries, strict=True):
        answer = run(df, query, emit, arrival=arrival, shards=shards, chunks=chunks)
        parts.append(answer.select(F.lit(name).alias("query"), "*"))
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _job(
    query: TopK, schema: pa.Schema, emit: Emit, df: DataFrame, shards: int | None, chunks: int | None
) -> Job:
    for name in (*query.partition_by, *([query.window.on] if query.window.on else [])):
        find_column(name, schema.names, quoted=True)
    layout = Layout(query, schema, scoring.compile_order(query.order_by))
    travelling = [field for field in schema if field.name in layout.columns | set(query.partition_by)]
    if shards is None:
        shards = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1) if query.partition_by else 1
    if not query.partition_by:
        shards = chunks = 1
    return Job(query, pa.schema(travelling), emit, shards, chunks or 16)


def _prepared(df: DataFrame, query: TopK, schema: pa.Schema, job: Job, arrival: str | None) -> DataFrame:
    """The columns that travel, with scores and positions computed by Spark."""
    score = scoring.compile_order(query.order_by)
    sql = score.spark_sql(schema)
    if sql is None:
        df, sql = _scored_in_python(df, score), SCORE
    columns = [F.col(_quoted(name)) for name in job.schema.names]
    if query.where is not None:
        condition = scoring.compile_condition(query.where).spark_sql(schema)
        if job.query.window.on is not None and not query.window.time:
            columns.append(F.coalesce(F.expr(condition), F.lit(False)).alias(PASSES))
        else:
            df = df.where(condition)
    columns.append(F.expr(sql).cast("double").alias(SCORE))
    columns.append(_position(df.schema, query).alias(TIME))
    columns.append(_tie(df.schema, query, arrival).alias(TIE))
    part = F.lit(0)
    if query.partition_by:
        keys = [F.col(_quoted(name)) for name in query.partition_by]
        part = F.pmod(F.xxhash64(*keys), F.lit(job.shards * job.chunks)).cast("int")
    return df.select(*columns, part.alias(PART))


def _scored_in_python(df: DataFrame, score: scoring.Score) -> DataFrame:
    """A Python function for a score has to be called in Python, with all columns."""
    schema = StructType([*df.schema.fields]).add(SCORE, "double")

    def add(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            table = pa.Table.from_batches([batch])
            yield from table.append_column(SCORE, pa.array(score.evaluate(table))).to_batches()

    return df.mapInArrow(add, schema)


def _position(schema: StructType, query: TopK) -> Column:
    """Microseconds since the epoch, or the number in the sequence."""
    on = query.window.on
    if on is None:
        return F.lit(0).cast("long")
    column, kind = F.col(_quoted(on)), schema[on].dataType
    if not query.window.time:
        if not isinstance(kind, NumericType):
            raise QueryError(f"the sequence column {on!r} is of type {kind.simpleString()}; it must be whole numbers")
        return column.cast("long")
    if isinstance(kind, TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, TimestampNTZType | DateType):
        return F.unix_micros(F.to_utc_timestamp(column.cast("timestamp"), F.current_timezone()))
    if isinstance(kind, NumericType):
        return F.round(column.cast("double") * 1e6).cast("long")
    raise QueryError(f"the event-time column {on!r} is of type {kind.simpleString()}; it must be a timestamp, a date, or "
                     "seconds since the epoch as a number")  # fmt: skip


def _tie(schema: StructType, query: TopK, arrival: str | None) -> Column:
    """What ranks objects that tie in score and event time."""
    integers = ("tinyint", "smallint", "int", "bigint")
    if arrival is None:
        found = [f.name for f in schema if f.dataType.simpleString() in integers and f.name != query.window.on]
        return F.coalesce(F.col(_quoted(found[0])).cast("long"), F.lit(0)) if found else F.lit(0).cast("long")
    find_column(arrival, schema.names, quoted=True)
    if schema[arrival].dataType.simpleString() not in integers:
        raise QueryError(f"arrival={arrival!r} is of type {schema[arrival].dataType.simpleString()}; it must be an "
                         "integer column")  # fmt: skip
    return F.col(_quoted(arrival)).cast("long")


def _answer_schema(job: Job) -> pa.Schema:
    """The columns of the answer, as the engine writes them."""
    from skyband.spark.chunk import Arrived, chunk

    empty = chunk(job, None).take_in(Arrived(None, None, -(1 << 60), -(1 << 60)))
    if job.emit == "latest":
        names = ("window_start", "window_end", "at", "op")
        fields = [field for field in empty.schema if field.name not in names]
        rank = pa.field("rank", pa.int32())
        place = len(job.query.partition_by)
        fields = [f for f in fields if f.name != "rank"]
        return pa.schema([*fields[:place], rank, *fields[place:]])
    return empty.schema


def _restored(rows: DataFrame, query: TopK, schema: StructType) -> list[Column]:
    """Bounds and times as the event-time column has them."""
    kind = schema[query.window.on].dataType if query.window.time and query.window.on else None
    columns = []
    for name in rows.columns:
        column = F.col(_quoted(name))
        if name in ("window_start", "window_end", "at") and kind is not None:
            if isinstance(kind, TimestampNTZType):
                column = F.from_utc_timestamp(column, F.current_timezone()).cast("timestamp_ntz")
            elif isinstance(kind, NumericType):
                column = (F.unix_micros(column) / 1e6).cast("double")
        columns.append(column.alias(name))
    return columns


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
