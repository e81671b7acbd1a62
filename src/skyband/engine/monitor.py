"""The monitor: answers a query, or several, over a stream of batches, in this process."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from skyband.engine import planner as plan
from skyband.engine.columns import Batch, Columns, Types, as_table, given_types
from skyband.engine.losses import Losses
from skyband.engine.pipeline import Coming, Pipeline
from skyband.engine.reader import Known
from skyband.errors import DataWarning, QueryError, StateError
from skyband.families import from_spec
from skyband.query import Query, lowered, names_of
from skyband.query.windows import Duration, Length, duration, spell, whole
from skyband.storage import codec as state
from skyband.storage.tables import table_from_bytes, table_to_bytes


@dataclass(frozen=True)
class Stats:
    """Counts of the rows that a monitor has seen, and of what it holds.

    Attributes:
        seen: rows pushed so far.
        late: rows left out because they came too late.
        invalid: rows left out because they have no score or event time, for instance because a value is NULL or NaN.
        candidates: objects held because they are, or may still come to be, in an answer.
        bytes: memory held: the algorithm's arrays, the columns of the objects held, the partitions.
    """

    seen: int
    late: int
    invalid: int
    candidates: int
    bytes: int


class Monitor:
    """Answers one or more continuous queries over a stream that is pushed to it batch by batch.

    >>> import skyband as sb
    >>> m = sb.Monitor(sb.TopK(k=2, order_by="price DESC", window=sb.last(4, every=2)))
    >>> m.push({"id": [1, 2, 3, 4], "price": [5.0, 9.0, 7.0, 1.0]}).select(["window_end", "rank", "id"]).to_pydict()
    {'window_end': [2, 2, 4, 4], 'rank': [1, 2, 1, 2], 'id': [2, 1, 2, 3]}
    >>> m.top(k=1, last=2)["id"].to_pylist()
    [3]

    Args:
        query: one query, or a list of them. Queries that differ only in k, window length and ties share one state.
        schema: the types of some or all columns, which then never change: a ``pyarrow.Schema``, or a mapping from names
            to types such as ``"int64"``. The type of any other column is settled by its first value that is not NULL.
            After that it may only widen without loss, from smaller integers to larger ones for instance, or from
            integers to floats; any other change of type is refused.
    """

    def __init__(self, query: Query | Sequence[Query], schema: Types | None = None) -> None:
        self.several = isinstance(query, list | tuple)
        self.queries = lowered(query)
        self.names = names_of(self.queries)
        self.plans = plan.plans(self.queries)
        self.pipelines = [Pipeline(p) for p in self.plans]
        self._columns = Columns(given=given_types(schema))
        self._losses = Losses(self.queries[0].window.on)
        self._flushed = False

    def push(self, batch: Batch) -> pa.Table:
        """Take in the next rows of the stream, and return the answer rows that they bring about.

        With a hopping window these are the rankings of the windows that close with this batch. With a window that moves
        at every arrival they are changes: who entered the top k (``+``) and who left it (``-``).

        The first batch says which columns there are. Later batches must have them too, in any order; columns that they
        have beside these are ignored. A batch that is refused with an error changes nothing.

        Args:
            batch: the rows: a dict of arrays, or anything with the Arrow PyCapsule interface (a table, record batch or
                reader of PyArrow, a DataFrame of pandas or polars, a relation of DuckDB, …). A reader is read to its
                end.
        """
        if self._flushed:
            raise StateError("flush() has ended this stream; build a new Monitor for another one")
        table, columns = self._columns.fit(as_table(batch))
        if self.several and self._columns.schema is None:
            for query in self.queries:
                query.check_beside_others(table.column_names)
        coming, columns = self._prepared(table, columns)
        with self._all_or_nothing():
            both = zip(self.pipelines, coming, strict=True)
            answer = self._together(self._placed([pipeline.take_in(batch) for pipeline, batch in both]))
        self._columns = columns
        for warning in self._losses.found(*self._counts()):
            warnings.warn(warning, DataWarning, stacklevel=2)
        return answer

    def flush(self) -> pa.Table:
        """End the stream: close the windows of time that are still open, and return their rankings."""
        with self._all_or_nothing():
            self._flushed = True
            return self._together(self._placed([pipeline.flush() for pipeline in self.pipelines]))

    def top(self, k: int | None = None, last: Length | None = None, *, query: str | None = None) -> pa.Table:
        """The ranking as it stands: of the newest window, or of a shorter one that ends with it.

        >>> import skyband as sb
        >>> few = sb.TopK(k=1, order_by="x", window=sb.last(2), name="few")
        >>> m = sb.Monitor([few, sb.TopK(k=3, order_by="x", window=sb.last(9), name="many")])
        >>> answer = m.push({"x": [3, 1, 2]})
        >>> m.top(k=2)["query"].to_pylist(), m.top(query="many", k=2, last=1)["x"].to_pylist()
        (['few', 'many', 'many'], [2])

        Args:
            k: how many ranks, at most the query's k; by default the query's k. Of several queries each gives up to its
                own k.
            last: the length of the shorter window, at most that of the query's: a number of objects, or a duration. Of
                several queries each goes back up to its own extent.
            query: the name of the one query that is wanted, with its own k and extent for limits; all by default.
        """
        asked = [place for place, name in enumerate(self.names) if query in (None, name)]
        if not asked:
            raise QueryError(f"query={query!r} is none of the queries; they are called {', '.join(self.names)}")
        limits = [self.queries[place] for place in asked]
        wanted = None if k is None else _up_to(k, max(each.k for each in limits), len(limits) > 1)
        lengths = {place: None if last is None else _length(last, self.queries[place]) for place in asked}
        if last is not None:
            _check_reach(last, lengths, limits)
        found = {}
        for pipeline, shared in zip(self.pipelines, self.plans, strict=True):
            for each, place in zip(pipeline.queries, shared.places, strict=True):
                if place in lengths:
                    length = lengths[place]
                    reach = None if length is None else min(length, each.window.extent)
                    found[place] = pipeline.top(each, min(wanted or each.k, each.k), reach)
        nothing = pa.table({"rank": pa.array([], pa.int32()), "score": pa.array([], pa.float64())})
        return self._together({place: nothing if table is None else table for place, table in found.items()})

    @property
    def stats(self) -> Stats:
        """How many rows were seen and left out, and how much is held."""
        return Stats(
            *self._counts(),
            sum(p.algorithm.candidates for p in self.pipelines),
            sum(p.nbytes for p in self.pipelines),
        )

    def dumps(self) -> bytes:
        """The whole state as bytes, from which :meth:`loads` builds a monitor that goes on."""
        metas: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, pipeline in enumerate(self.pipelines):
            meta, part = pipeline.save()
            metas.append(meta)
            arrays |= {f"{i}.{name}": array for name, array in part.items()}
        meta = {"several": self.several, "flushed": self._flushed, "pipelines": metas,
                "queries": [q.spec() for q in self.queries], "open": sorted(self._columns.open)}  # fmt: skip
        arrays["given"] = table_to_bytes(pa.schema([*self._columns.given.items()]).empty_table())
        return state.pack(meta, arrays)

    @classmethod
    def loads(cls, blob: bytes, query: Query | Sequence[Query] | None = None) -> "Monitor":
        """A monitor that goes on from a saved state.

        Args:
            blob: what :meth:`dumps` returned.
            query: the query, or the list of them, that the saved monitor answered. It may be left out, since the blob
                contains it, unless it has a Python function.
        """
        meta, arrays = state.unpack(blob)
        if "pipelines" not in meta or "queries" not in meta:
            raise StateError("a saved skyband state, but not of a Monitor")
        if query is None:
            queries = [from_spec(spec) for spec in meta["queries"]]
            monitor = cls(queries if meta["several"] else queries[0])
        else:
            monitor = cls(query)
            saved, given = ([state.fingerprint(s) for s in specs]
                            for specs in (meta["queries"], [q.spec() for q in monitor.queries]))  # fmt: skip
            if saved != given:
                raise StateError(f"the state belongs to another query: {meta['queries']}")
        monitor._flushed = meta["flushed"]
        for i, (pipeline, part) in enumerate(zip(monitor.pipelines, meta["pipelines"], strict=True)):
            prefix = f"{i}."
            pipeline.restore(part, {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})
        given = table_from_bytes(arrays["given"]).schema
        monitor._columns = Columns(monitor.pipelines[0].intake.schema, frozenset(meta["open"]), given_types(given))
        monitor._losses = Losses(monitor.queries[0].window.on, monitor._counts())
        return monitor

    def __repr__(self) -> str:
        asked = list(self.queries) if self.several else self.queries[0]
        return f"Monitor({asked!r}, seen={self.stats.seen}, candidates={self.stats.candidates})"

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Every array of the state with its name, for those who want to inspect or measure it."""
        for i, pipeline in enumerate(self.pipelines):
            for name, array in pipeline.arrays():
                yield f"{i}.{name}", array

    def check(self) -> None:
        """Assert that the state is consistent; for tests."""
        for pipeline in self.pipelines:
            pipeline.algorithm.check()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undoes a batch that fails half-way: a Python function may raise while the algorithm takes the batch in."""
        before = self.dumps() if any(query.calls_back for query in self.queries) else None
        try:
            yield
        except QueryError:
            if before is not None:
                former = Monitor.loads(before, self.queries if self.several else self.queries[0])
                self.pipelines, self._flushed = former.pipelines, former._flushed
            raise

    def _prepared(self, table: pa.Table, columns: Columns) -> tuple[list[Coming], Columns]:
        """The batch for each pipeline, if none refuses it: a batch that one refuses is taken in by none."""
        try:
            known: Known = {}
            return [pipeline.prepare(table, known) for pipeline in self.pipelines], columns
        except QueryError:
            if not columns.open:
                raise
            table, columns = columns.untyped(table)  # what has no value yet may be refused for its type only then
            known = {}
            return [pipeline.prepare(table, known) for pipeline in self.pipelines], columns

    def _counts(self) -> tuple[int, int, int]:
        """Rows seen, late and invalid."""
        intakes = [pipeline.intake for pipeline in self.pipelines]
        return intakes[0].seen, max(intake.late for intake in intakes), max(intake.invalid for intake in intakes)

    def _placed(self, tables: list[list[pa.Table]]) -> dict[int, pa.Table]:
        """What the pipelines gave, by the place of the query; nothing before the first batch."""
        pairs = zip(self.plans, tables, strict=True)
        return {place: table for plan, part in pairs for place, table in zip(plan.places, part, strict=False)}

    def _together(self, tables: dict[int, pa.Table]) -> pa.Table:
        """The tables of some queries, by their places, as one."""
        if not self.several:
            return tables.get(0, pa.table({}))
        named = [table.add_column(0, "query", pa.array([self.names[place]] * table.num_rows, pa.string()))
                 for place, table in sorted(tables.items())]  # fmt: skip
        return pa.concat_tables(named, promote_options="default") if named else pa.table({})


def _up_to(k: int, most: int, several: bool) -> int:
    count = whole(k)
    if count is None or not 1 <= count <= most:
        whose = "the largest k of the queries" if several else "the k of the query"
        raise QueryError(f"k={k!r} must be a whole number from 1 to {most}, {whose}")
    return count


def _check_reach(last: Length, lengths: Mapping[int, int | None], queries: Sequence[Query]) -> None:
    window = max((query.window for query in queries), key=lambda window: window.extent)
    words = spell if window.time else str
    for length in lengths.values():
        if length is not None and not 1 <= length <= window.extent:
            whose = "the longest extent of the windows" if len(queries) > 1 else "the extent of the window"
            raise QueryError(f"last={words(length)} must be from 1 to {words(window.extent)}, {whose}")


def _length(last: Length, query: Query) -> int:
    if query.window.time:
        if not isinstance(last, Duration):
            raise QueryError(f'last={last!r} must be a duration such as "5 minutes", as the window is one')
        return duration(last, "last")
    if (count := whole(last)) is None:
        raise QueryError(f"last={last!r} must be a number of objects, as the window is one")
    return count
