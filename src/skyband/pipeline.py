"""One algorithm at work on a stream: reads batches, keeps the columns of what is held, writes out what happened."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.intake import Batch, Intake, Ready, as_table
from skyband.keys import Keys
from skyband.layout import Layout, Written
from skyband.objects.base import Algorithm, Emission, Ints, Rankings
from skyband.plan import Plan
from skyband.queries import TopK
from skyband.store import RowStore, table_from_bytes, table_to_bytes
from skyband.windows import spell


class Pipeline:
    """The way of a stream through one algorithm, for one query or several that share it."""

    def __init__(self, plan: Plan, intake: type[Intake] = Intake) -> None:
        self.plan = plan
        self.queries: tuple[TopK, ...] = plan.queries
        self.algorithm: Algorithm = plan.algorithm(*plan.queries, **plan.options)
        self.intake = intake(plan.queries[0])
        self.store: RowStore | None = None
        self.layouts: tuple[Layout, ...] = ()

    def check_batch(self, table: pa.Table) -> None:
        """Raises what :meth:`push` would raise, and changes nothing."""
        if self.store is None:
            trial = Pipeline(self.plan, type(self.intake))
            trial._begin(table.schema)
            trial.intake.evaluate(table)
        else:
            self.intake.evaluate(table)

    def push(self, batch: Batch) -> list[pa.Table]:
        """What the batch brought about, a table for each query."""
        table = as_table(batch)
        if self.store is None:
            self._begin(table.schema)
        return self._advance(self.intake.read(table))

    def flush(self) -> list[pa.Table]:
        """What the end of the stream brings about."""
        tables = []
        if (ready := self.intake.finish()) is not None:
            tables.append(self._advance(ready))
        events = self.algorithm.finish()
        if self.store is not None:
            tables.append(self._written(events, self.store.table.slice(0, 0), self.intake.accepted))
        return [pa.concat_tables(parts) for parts in zip(*tables, strict=True)] if tables else []

    def top(self, query: TopK, k: int | None, last: int | None) -> pa.Table | None:
        """The ranking of one of the queries as it stands; None before the first batch."""
        wanted = query.k if k is None else k
        if not 1 <= wanted <= query.k:
            raise QueryError(f"k={k!r} must be from 1 to {query.k}, the k of the query")
        if last is not None:
            self._check_last(query, last)
        if self.store is None:
            return None
        event = self.algorithm.result(query, wanted, last)
        written = self._sorted(event, np.zeros_like(event.end))
        rows = self.store.take(written.number, self.store.table.slice(0, 0), self.intake.accepted)
        return self.layouts[self.queries.index(query)].snapshot(written, rows)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield from self.algorithm.arrays()
        yield from self.intake.arrays()

    @property
    def nbytes(self) -> int:
        return self.algorithm.nbytes + self.intake.nbytes + (self.store.nbytes if self.store else 0)

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state as JSON values and arrays."""
        intake = self.intake
        meta = {name: getattr(intake, name) for name in ("seen", "late", "invalid", "newest", "accepted")}
        arrays = {f"algorithm.{name}": array for name, array in self.algorithm.arrays()}
        arrays |= {f"intake.{name}": array for name, array in intake.arrays()}
        if intake.schema is not None and self.store is not None:
            arrays["schema"] = table_to_bytes(intake.schema.empty_table())
            arrays["store.number"] = self.store.number
            arrays["store.table"] = table_to_bytes(self.store.table)
            arrays |= {"keys": table_to_bytes(intake.keys.rows)} if intake.keys is not None else {}
            arrays |= {"held": table_to_bytes(intake.held)} if intake.held is not None else {}
        return meta, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what :meth:`save` gave."""
        intake = self.intake
        for name in ("seen", "late", "invalid", "newest", "accepted"):
            setattr(intake, name, meta[name])
        prefix = "algorithm."
        self.algorithm.restore({n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})
        intake.counts, intake.highest = arrays["intake.counts"], arrays["intake.highest"]
        if "schema" in arrays:
            self._begin(table_from_bytes(arrays["schema"]).schema)
            self.store = RowStore(table_from_bytes(arrays["store.table"]), arrays["store.number"])
            if "keys" in arrays:
                intake.keys = Keys(table_from_bytes(arrays["keys"]))
            if "held" in arrays:
                intake.held = table_from_bytes(arrays["held"])

    def _advance(self, ready: Ready) -> list[pa.Table]:
        assert self.store is not None
        columns = ready.table.select(self.store.table.column_names)
        events = self.algorithm.update(ready.rows, ready.frontier)
        tables = self._written(events, columns, ready.rows.n0)
        self.store.keep(self.algorithm.held(ready.rows.n0), columns, ready.rows.n0)
        if self.store.number.size > 2 * self.algorithm.candidates + 16:
            self.store.drop_all_but(self.algorithm.held())
        self._forget_partitions()
        return tables

    def _begin(self, schema: pa.Schema) -> None:
        """The first batch tells which columns there are, and so what is written and what must be kept."""
        empty = self.intake.fit(schema)
        self.layouts = tuple(Layout(query, empty.schema, self.intake.score) for query in self.queries)
        needed = {name for layout in self.layouts for name in layout.columns}
        names = [name for name in empty.column_names if name in needed]
        self.store = RowStore(empty.select(names), np.empty(0, np.int64))

    def _written(self, events: Sequence[Emission], columns: pa.Table, first: int) -> list[pa.Table]:
        assert self.store is not None
        tables = []
        for layout, event in zip(self.layouts, events, strict=True):
            if isinstance(event, Rankings):
                written = self._sorted(event, event.end if layout.query.window.time else event.trigger)
                tables.append(layout.rankings(written, self.store.take(written.number, columns, first)))
            else:
                rows = self.store.take(event.number, columns, first)
                tables.append(layout.changes(event, rows, self._keys(event.key)))
        return tables

    def _keys(self, key: Ints) -> pa.Table | None:
        return None if self.intake.keys is None else self.intake.keys.rows.take(pa.array(key))

    def _sorted(self, event: Rankings, by: Ints) -> Written:
        """Blocks in the order in which they are written: ``by``, then the values of the partition columns."""
        size = np.diff(event.offset)
        number, score = event.number, event.score
        order = np.arange(by.size)
        if self.intake.keys is not None:
            order = np.lexsort((self.intake.keys.rank()[event.key], by))
        if (np.diff(order) != 1).any():
            start = np.repeat(event.offset[order] - np.append(0, np.cumsum(size[order])[:-1]), size[order])
            rows = np.arange(number.size) + start
            number, score = number[rows], score[rows]
        size = size[order]
        return Written(event.end[order], self._keys(np.repeat(event.key[order], size)), size, number, score)

    def _forget_partitions(self) -> None:
        """Drops the codes of partitions that have nothing left, once they are the most."""
        keys = self.intake.keys
        if keys is None or not self.intake.window.time or len(keys) < 1024:
            return
        alive = self.algorithm.keys()
        if len(keys) > 2 * alive.size:
            self.algorithm.rekey(self.intake.rekey(alive))

    def _check_last(self, query: TopK, last: int) -> None:
        window = query.window
        words = spell if window.time else str
        if not 1 <= last <= window.extent:
            raise QueryError(f"last={words(last)} must be from 1 to {words(window.extent)}, the extent of the window")
        if window.hopping and not self.algorithm.any_last and (window.extent - last) % window.slide:
            raise QueryError(f"last={words(last)}: algorithm {self.algorithm.name!r} knows the windows that are whole "
                             f"slides ({words(window.slide)}) shorter than {words(window.extent)}; for any other take "
                             "algorithm='scase'")  # fmt: skip
