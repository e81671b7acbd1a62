"""Monitor: put a query, or several, to a stream of batches in this process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from skyband import plan, state
from skyband.errors import QueryError, StateError
from skyband.intake import Batch, as_table
from skyband.pipeline import Pipeline
from skyband.queries import Query, from_spec, lowered, names_of
from skyband.windows import Duration, Length, duration, whole


@dataclass(frozen=True)
class Stats:
    """What a monitor has seen and what it holds.

    Attributes:
        seen: rows pushed.
        late: rows left out because they came too late.
        invalid: rows left out because their score or event time is NULL or NaN.
        candidates: objects held.
        bytes: bytes held: the algorithm's arrays, the columns of the objects held, the partitions.
    """

    seen: int
    late: int
    invalid: int
    candidates: int
    bytes: int


class Monitor:
    """Answers a continuous query over batches as they come.

    >>> import skyband as sb
    >>> m = sb.Monitor(sb.TopK(k=2, order_by="price DESC", window=sb.last(4, every=2)))
    >>> m.push({"id": [1, 2, 3, 4], "price": [5.0, 9.0, 7.0, 1.0]}).select(["window_end", "rank", "id"]).to_pydict()
    {'window_end': [2, 2, 4, 4], 'rank': [1, 2, 1, 2], 'id': [2, 1, 2, 3]}
    >>> m.top(k=1, last=2)["id"].to_pylist()
    [3]

    Args:
        query: one query, or a list of them; queries that differ only in k, window length and ties share one state.
    """

    def __init__(self, query: Query | Sequence[Query]) -> None:
        self.several = isinstance(query, list | tuple)
        self.queries = lowered(query)
        self.names = names_of(self.queries)
        self.plans = plan.plans(self.queries)
        self.pipelines = [Pipeline(p) for p in self.plans]
        self._flushed = False

    def push(self, batch: Batch) -> pa.Table:
        """Take in a batch (Arrow table or record batch, pandas DataFrame, dict of arrays); return what was emitted."""
        if self._flushed:
            raise StateError("flush() has ended this stream; build a new Monitor for another one")
        table = as_table(batch)
        if len(self.pipelines) > 1 or self.pipelines[0].store is None:
            for pipeline in self.pipelines:  # a batch that one query refuses is taken in by none
                pipeline.check_batch(table)
        with self._all_or_nothing():
            return self._together([pipeline.push(table) for pipeline in self.pipelines])

    def flush(self) -> pa.Table:
        """The stream has ended: close the windows that are still open and return them."""
        with self._all_or_nothing():
            self._flushed = True
            return self._together([pipeline.flush() for pipeline in self.pipelines])

    def top(self, k: int | None = None, last: Length | None = None) -> pa.Table:
        """The ranking as it stands: of the newest window, or of a shorter one that ends with it.

        Args:
            k: at most the query's k; its k by default.
            last: a length up to the window's extent: objects, or a duration.
        """
        tables = []
        for pipeline in self.pipelines:
            for query in pipeline.queries:
                length = None if last is None else _length(last, query)
                tables.append([pipeline.top(query, k, length)])
        if any(table is None for part in tables for table in part):
            return pa.table({"rank": pa.array([], pa.int32()), "score": pa.array([], pa.float64())})
        return self._together(tables)

    @property
    def stats(self) -> Stats:
        """Counts of rows seen and left out, and of what is held."""
        first = self.pipelines[0].intake
        return Stats(
            first.seen,
            max(p.intake.late for p in self.pipelines),
            max(p.intake.invalid for p in self.pipelines),
            sum(p.algorithm.candidates for p in self.pipelines),
            sum(p.nbytes for p in self.pipelines),
        )

    def dumps(self) -> bytes:
        """The whole state as bytes, for :meth:`loads`."""
        metas: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, pipeline in enumerate(self.pipelines):
            meta, part = pipeline.save()
            metas.append(meta)
            arrays |= {f"{i}.{name}": array for name, array in part.items()}
        meta = {"several": self.several, "flushed": self._flushed, "pipelines": metas,
                "queries": [q.spec() for q in self.queries]}  # fmt: skip
        return state.pack(meta, arrays)

    @classmethod
    def loads(cls, blob: bytes, query: Query | Sequence[Query] | None = None) -> "Monitor":
        """A monitor that goes on where the one that was dumped stood.

        Args:
            blob: what :meth:`dumps` returned.
            query: the query it belongs to. It is in the blob unless ``order_by`` is a Python function; if given, it
                must be the same one.
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
        return monitor

    def __repr__(self) -> str:
        asked = list(self.queries) if self.several else self.queries[0]
        return f"Monitor({asked!r}, seen={self.stats.seen}, candidates={self.stats.candidates})"

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Every array of the state by name, for those who want to look or count."""
        for i, pipeline in enumerate(self.pipelines):
            for name, array in pipeline.arrays():
                yield f"{i}.{name}", array

    def check(self) -> None:
        """Assert every invariant of the structures within; for tests."""
        for pipeline in self.pipelines:
            pipeline.algorithm.check()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undoes what was begun if it fails: functions of pairs and of streams are called in the midst of it."""
        before = self.dumps() if any(query.calls_back for query in self.queries) else None
        try:
            yield
        except QueryError:
            if before is not None:
                former = Monitor.loads(before, self.queries if self.several else self.queries[0])
                self.pipelines, self._flushed = former.pipelines, former._flushed
            raise

    def _together(self, tables: list[list[pa.Table]]) -> pa.Table:
        flat = [table for part in tables for table in part]
        if not self.several:
            return flat[0] if flat else pa.table({})
        named = {}
        places = [place for plan in self.plans for place in plan.places]
        for place, table in zip(places, flat, strict=False):
            name = self.names[place]
            named[name] = table.add_column(0, "query", pa.array([name] * table.num_rows, pa.string()))
        return pa.concat_tables([named[name] for name in self.names if name in named], promote_options="default")


def _length(last: Length, query: Query) -> int:
    if query.window.time:
        if not isinstance(last, Duration):
            raise QueryError(f'last={last!r} must be a duration such as "5 minutes", as the window is one')
        return duration(last, "last")
    if (count := whole(last)) is None:
        raise QueryError(f"last={last!r} must be a number of objects, as the window is one")
    return count
