"""``run``: answers a query over a Spark DataFrame, streaming or static."""

from collections.abc import Sequence
from itertools import chain, islice

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr
from pyspark.sql.functions import sum as total
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from skyband import families
from skyband.engine.columns import check_free
from skyband.engine.reader import Intake
from skyband.engine.writer import Layout
from skyband.errors import QueryError
from skyband.expressions import find_column, scoring
from skyband.query import Query, lowered, names_of
from skyband.spark.session import check, own_interpreter
from skyband.spark.stages.job import Emit, Job, cell_names, shard_names
from skyband.spark.stages.pack import PACKED, packer
from skyband.spark.stages.rounds import PROPOSED, counting, proposing
from skyband.spark.state.operator import Operator, answer_schema, at_once, merging, unpacker
from skyband.spark.state.shard import COUNTS, MERGED, Step
from skyband.spark.worker import settling

METRICS = "skyband"
CHUNKS = 16


@own_interpreter()
def run(
    df: DataFrame,
    query: Query | Sequence[Query],
    emit: Emit = "final",
    *,
    arrival: str | None = None,
    shards: int | None = None,
    chunks: int | None = None,
    metrics: str | None = None,
) -> DataFrame:
    """Answers a query over a Spark DataFrame: a streaming one gives a stream of rankings, a static one all at once.

    Args:
        df: the rows to rank; streaming or static.
        query: one query, or a list of them; the answer of a list has a first column ``query``.
        emit: what the answer tells. ``"final"``: the ranking of every hopping window, once, when the watermark has
            passed its end; for a window that moves with every arrival, every change of the top k (``"changes"`` means
            the same). Write it in append mode. ``"latest"``: after each micro-batch, the ranking as it stands, for
            every partition that the batch touched. It always has k rows, without a score where there are fewer objects.
            Write it in update mode, to a sink that overwrites by partition and rank. Of a static DataFrame, it is the
            ranking at the end.
        arrival: an integer column by which objects are ranked that tie in score and event time; the larger number is
            the newer object. By default the first integer column that is not in ``partition_by``. If there is none,
            the content of the rows decides. Only for windows of event time, as others have no such ties.
        shards: how many tasks share the state; by default ``spark.sql.shuffle.partitions``. Only for queries with
            ``partition_by``, and for those whose one ranking can be spread over tasks (docs/spark.md lists them). A
            checkpoint keeps the number it was begun with.
        chunks: into how many pieces the state of each shard is cut, 16 by default. A micro-batch rewrites only the
            pieces that it touches. Only for queries with ``partition_by``; the others have one piece.
        metrics: the name of the observed metrics, by default ``skyband``; two rankings in one streaming query need two
            names.

    The progress of the streaming query has counts of each micro-batch, as the observed metrics ``skyband``: ``seen``
    (rows that passed ``where``), ``late`` and ``invalid`` (of all queries together), ``candidates`` and ``bytes`` (the
    state held), ``prune_ms`` and ``merge_ms`` (milliseconds spent, of all tasks together).

    A streaming query goes on from its checkpoint only with the query it was begun with. An exception are top-k objects:
    their query may also have a lower k or a shorter window. If the window moves with every arrival, the answer then
    begins with the changes that lead from the old ranking to the new one.

    The rows of a micro-batch have no order. So the answer may differ from that of :class:`skyband.Monitor`:

    - Hopping windows: a row is late when its pane (one of the equal slices that windows are made of) has closed.
    - Windows of event time that move with every arrival take rows in the order of event time, each one as soon as the
      watermark has passed it.
    - Count windows without a sequence column take rows in the order of Spark's tasks.
    - Hopping windows over a sequence column count a number that comes twice as two objects, so each must come once.
      With ``"latest"`` they do not wait for smaller numbers that are missing.
    """
    several, queries = isinstance(query, list | tuple), lowered(query)
    if several:
        queries = tuple(q.but(name=name) for q, name in zip(queries, names_of(queries), strict=True))
    for each in queries:
        _check(each, emit)
    if not isinstance(df, DataFrame):
        raise QueryError(f"run takes a Spark DataFrame, not {type(df).__name__}; skyband.Monitor takes tables")
    check(df.sparkSession, df.isStreaming)
    inputs = _Inputs(df, emit, arrival)
    if several:
        for each in queries:
            each.check_beside_others(inputs.schema.names)
    jobs = inputs.jobs(queries, shards, chunks)
    _check_use(jobs, df.isStreaming, arrival, shards, chunks, metrics)
    packed = inputs.prepared().mapInArrow(settling(packer(jobs, [*inputs.columns], _task)), from_arrow_schema(PACKED))
    mode = "Update" if emit == "latest" else "Append"
    if jobs[0].rounds:
        proposed = _stateful(packed, proposing(jobs[0]), PROPOSED, mode)
        answers = _stateful(proposed, counting(jobs[0]), MERGED, mode)
    else:
        answers = _stateful(packed, merging(jobs), MERGED, mode)
    if df.isStreaming:  # nobody would see the metrics of a static one, and Spark refuses to use a name twice
        answers = answers.observe(metrics or METRICS, *(total(name).alias(name) for name in COUNTS))
    try:
        schema = from_arrow_schema(answer_schema(jobs, several), prefer_timestamp_ntz=True)
    except pa.ArrowTypeError as error:
        raise QueryError(f"the answers of these queries have columns of one name but different types; name them apart "
                         f"with select ({error})") from None  # fmt: skip
    answers = answers.where("data IS NOT NULL").select("shard", "data")
    if any(job.spread for job in jobs):  # the answers of the cells of one ranking must meet in one task
        answers = answers.repartition(1)
    return answers.mapInArrow(settling(unpacker(jobs, several)), schema)


def _stateful(df: DataFrame, step: Step, schema: pa.Schema, mode: str) -> DataFrame:
    """Applies a step to the rows of each shard; if they are a stream, with state."""
    shards, rows = df.groupBy("shard"), from_arrow_schema(schema)
    if df.isStreaming:
        return shards.transformWithState(Operator(step, schema), rows, outputMode=mode, timeMode="None")
    return shards.applyInArrow(at_once(step, schema), rows)


def _task() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _check(query: Query, emit: Emit) -> None:
    if emit not in ("final", "changes", "latest"):
        raise QueryError(f'emit={emit!r} is unknown; it is "final", "changes" or "latest"')
    if emit == "changes" and query.window.hopping:
        raise QueryError('emit="changes" is for windows that move with every arrival; a hopping window gives "final" '
                         'or "latest"')  # fmt: skip
    if emit == "latest" and query.ties == "all":
        raise QueryError('emit="latest" gives exactly k rows, so that a sink can overwrite them by rank; '
                         'it cannot go with ties="all"')  # fmt: skip


def _check_use(
    jobs: Sequence[Job], streaming: bool, arrival: str | None, shards: int | None, chunks: int | None,
    metrics: str | None,
) -> None:  # fmt: skip
    """Refuses options that would make no difference to any of the queries."""
    if arrival is not None and not any(job.query.window.time for job in jobs):
        raise QueryError(
            f"arrival={arrival!r} ranks objects of the same event time, and a count window has none; to "
            f"count objects in the order of a column, name it in the window: sb.last(..., on={arrival!r})"
        )
    if (shards or 1) > 1 and all(len(job.shards) == 1 for job in jobs):
        raise QueryError(f"shards={shards!r}: the ranking is in one place, since it has no partition_by and is of a "
                         "kind that cannot be spread without; leave shards out")  # fmt: skip
    if (chunks or 1) > 1 and not any(job.query.partition_by for job in jobs):
        raise QueryError(f"chunks={chunks!r}: a ranking without partition_by is one piece; leave chunks out")
    if metrics is not None and not (isinstance(metrics, str) and metrics):
        raise QueryError(f"metrics={metrics!r} must be a name for the observed metrics")
    if metrics is not None and not streaming:
        raise QueryError(f"metrics={metrics!r}: only a streaming DataFrame has a progress to tell them in; leave "
                         "metrics out")  # fmt: skip


def spreads(query: Query, emit: Emit, alone: bool) -> bool:
    """Whether several shards can work on one ranking, which needs windows that close in all of them at one moment."""
    window = query.window
    hops = window.time and window.hopping and emit != "latest" and not query.partition_by
    return hops and families.of(query).splits(query, alone)


class _Inputs:
    """Collects the columns that the first stage needs, which Spark computes: one that several queries need, once."""

    def __init__(self, df: DataFrame, emit: Emit, arrival: str | None) -> None:
        self.df = df
        self.emit = emit
        self.schema = pa.schema([field.with_nullable(True) for field in to_arrow_schema(df.schema, timezone="UTC")])
        check_free(self.schema.names)
        self.arrival = arrival
        self.columns: dict[str, Column] = {}  # by name
        self.computed: dict[str, str] = {}  # SQL text -> name
        self.condition: str | None = None
        if arrival is not None:
            find_column(arrival, self.schema.names, quoted=True, field="arrival")
            if not pa.types.is_integer(self.schema.field(arrival).type):
                raise QueryError(f"arrival={arrival!r} is of type {self.schema.field(arrival).type}; it must be an "
                                 "integer column")  # fmt: skip

    def prepared(self) -> DataFrame:
        """The DataFrame of the columns that the jobs need, in the order of ``columns``."""
        df = self.df if self.condition is None else self.df.where(self.condition)
        # mapInArrow does not quote the names of columns: it would take a dot for a field of a struct.
        return df.select(*(column.alias(f"c{i}") for i, column in enumerate(self.columns.values())))

    def jobs(self, queries: Sequence[Query], shards: int | None, chunks: int | None) -> tuple[Job, ...]:
        """The job of each query: what the tasks have to know to answer it. Collects the columns that the jobs need."""
        if shards is None:
            shards = int(self.df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        chunks = CHUNKS if chunks is None else chunks
        for name, count in (("shards", shards), ("chunks", chunks)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise QueryError(f"{name}={count!r} must be a whole number, at least 1")
        alone = len(queries) == 1
        kinds = list(map(families.of, queries))
        groups = [kind.groups(shards) if spreads(query, self.emit, alone) else 1
                  for kind, query in zip(kinds, queries, strict=True)]  # fmt: skip
        # A cell with the rows of two groups has the pairs between them, twice as many as there are within one.
        work = [[1] * shards if query.partition_by else [len(cell) for cell in kind.cells(some)]
                for kind, query, some in zip(kinds, queries, groups, strict=True)]  # fmt: skip
        each = list(chain.from_iterable(work))
        names = iter(shard_names(len(each)) if len(set(each)) == 1 else cell_names(each))
        return tuple(
            self._job(query, tuple(islice(names, len(own))), chunks if query.partition_by else 1, some, alone)
            for query, own, some in zip(queries, work, groups, strict=True)
        )

    def _job(self, query: Query, shards: tuple[int, ...], chunks: int, groups: int, alone: bool) -> Job:
        Intake(query).fit(self.schema)  # refuses columns that are not there or of a wrong type, as the engine does
        family, names = families.of(query), self.schema.names
        travelling = {*Layout(query, self.schema).columns, *query.partition_by, *family.travels(query, names)}
        for name in family.looks_at(query, names):
            self._plain(name)
        score = family.scored(query)
        by, parts = query.partition_by, len(shards) * chunks
        if groups > 1:
            by, parts = family.together(query, names), groups
        schema = pa.schema([field for field in self.schema if field.name in travelling])
        for name in schema.names:
            self._plain(name)
        kind = None if query.window.on is None else self.schema.field(query.window.on).type
        return Job(
            query=query,
            family=family,
            schema=schema,
            kind=kind,
            latest=self.emit == "latest",
            shards=shards,
            chunks=chunks,
            score=None if score is None else self._score(score),
            passes=self._passes(query, alone),
            time=None if kind is None else self._time(str(query.window.on), kind, query.window.time),
            tie=self._tie(query),
            part=self._part(by, parts),
            groups=groups,
        )

    def _plain(self, name: str) -> str:
        self.columns[name] = col(_quoted(name))
        return name

    def _compute(self, sql: str) -> str:
        if sql not in self.computed:
            self.computed[sql] = f"_skyband_{len(self.computed)}"
            self.columns[self.computed[sql]] = expr(sql)
        return self.computed[sql]

    def _score(self, score: scoring.Score) -> str | None:
        sql = score.spark_sql(self.schema)
        if sql is None:  # a Python function, which may ask for any column
            for name in self.schema.names:
                self._plain(name)
            return None
        for name in score.needs(self.schema.names):
            if sql == f"CAST({_quoted(name)} AS DOUBLE)" and self.schema.field(name).type == pa.float64():
                return self._plain(name)
        return self._compute(sql)

    def _passes(self, query: Query, alone: bool) -> str | None:
        """The column that tells whether ``where`` is true; None if there is none, or if Spark drops the other rows.

        Spark can do so for a single query that has no need of these rows; it then need not even read them.
        """
        if query.row_condition is None:
            return None
        condition = scoring.compile_condition(query.row_condition).spark_sql(self.schema)
        if alone and (query.window.time or query.window.on is None):
            self.condition = condition
            return None
        return self._compute(f"coalesce({condition}, false)")

    def _time(self, on: str, kind: pa.DataType, time: bool) -> str:
        """The column of positions: microseconds since the epoch, or numbers in the sequence."""
        if not time or pa.types.is_timestamp(kind):
            return self._plain(on)
        if pa.types.is_date(kind):
            return self._compute(f"unix_date({_quoted(on)}) * 86400000000L")
        if pa.types.is_integer(kind):
            return self._compute(f"try_multiply(CAST({_quoted(on)} AS BIGINT), 1000000L)")
        return self._compute(f"try_cast(rint(CAST({_quoted(on)} AS DOUBLE) * 1e6D) AS BIGINT)")

    def _tie(self, query: Query) -> str | None:
        """The column that ranks objects that tie in score and event time; None if there is none."""
        if self.arrival is not None:
            return self._plain(self.arrival)
        taken = {*query.partition_by, query.window.on}
        found = [f.name for f in self.schema if pa.types.is_integer(f.type) and f.name not in taken]
        return self._plain(found[0]) if found else None

    def _part(self, columns: Sequence[str], parts: int) -> str | None:
        if parts == 1:
            return None
        keys = ", ".join(map(_quoted, columns))
        return self._compute(f"CAST(pmod(xxhash64({keys}), {parts}L) AS INT)")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
