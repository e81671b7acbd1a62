"""The pipeline: one algorithm at work on a stream. It reads batches, keeps rows that are held, and writes answers."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband import families
from skyband.algorithms.contract import Algorithm, Emission, Ints, Rankings
from skyband.engine.columns import retyped
from skyband.engine.partitions import Keys
from skyband.engine.planner import Plan
from skyband.engine.reader import Intake, Known, Prepared, Ready
from skyband.engine.rows import RowStore
from skyband.engine.writer import Layout, Written
from skyband.errors import QueryError
from skyband.query import Query
from skyband.query.windows import spell
from skyband.storage.tables import table_from_arrays, table_from_bytes, table_to_arrays, table_to_bytes

MANY = 1024  # codes: fewer are kept, in use or not


class Kept(NamedTuple):
    """All that a pipeline keeps of the rows themselves, as columns: what has to change when a column's type widens."""

    store: RowStore
    partitions: Keys | None
    tags: tuple[Keys, ...]
    held: pa.Table | None


class Coming(NamedTuple):
    """A batch that can be taken in."""

    schema: pa.Schema | None  # of the stream from now on, if it is another one
    kept: Kept | None  # in its types
    prepared: Prepared


class Pipeline:
    """Takes a stream through one algorithm, for one query or for several that share it."""

    def __init__(self, plan: Plan, intake: type[Intake] = Intake) -> None:
        self.plan = plan
        self.queries: tuple[Query, ...] = plan.queries
        self.family = families.of(plan.queries[0])
        self.algorithm: Algorithm = plan.algorithm(*plan.queries, **plan.options)
        self.intake = intake(plan.queries[0])
        self.store: RowStore | None = None
        self.layouts: tuple[Layout, ...] = ()
        self._looked = {"partitions": 0, "tags": 0}  # rows that had come when it was last seen which codes are in use
        self._nothing: dict[int, pa.Table] = {}  # the answer to each query where nothing happened, once it is known
        self._arriving: tuple[pa.Table, int] | None = None  # the batch at work, and its first number

    def prepare(self, table: pa.Table, known: Known) -> Coming:
        """Evaluates a batch, which may be refused, and changes nothing but ``known``.

        The batch must have the columns of the first one. Their types may have become wider since
        (:class:`skyband.engine.columns.Columns`); the rows that are held are then cast to these types.
        """
        if self._knows(table.schema):
            return Coming(None, None, self.intake.prepare(table, known))
        trial = Pipeline(self.plan, type(self.intake))
        trial._begin(table.schema)
        kept = None if self.store is None else self._retyped(table.schema)
        if kept is not None:
            trial._keep(kept)
        return Coming(table.schema, kept, trial.intake.prepare(table, known))

    def take_in(self, coming: Coming) -> list[pa.Table]:
        """What a batch that has been prepared brings about, a table for each query."""
        if coming.schema is not None:
            self._begin(coming.schema)
        if coming.kept is not None:
            self._keep(coming.kept)
        return self._advance(self.intake.take(coming.prepared))

    def push(self, table: pa.Table) -> list[pa.Table]:
        """What a batch brings about, a table for each query, where no other pipeline takes it in."""
        return self.take_in(self.prepare(table, {}))

    def flush(self) -> list[pa.Table]:
        """Ends the stream; returns the answer that this brings about, a table for each query."""
        tables = []
        if (ready := self.intake.finish()) is not None:
            tables.append(self._advance(ready))
        events = self.algorithm.finish()
        if self.store is not None:
            tables.append(self._written(events, self.store.empty, self.intake.accepted))
        return [pa.concat_tables(parts) for parts in zip(*tables, strict=True)] if tables else []

    def top(self, query: Query, k: int, last: int | None) -> pa.Table | None:
        """The ranking of one of the queries as it stands, within its own limits; None before the first batch."""
        if last is not None:
            self._check_slides(query, last)
        if self.store is None:
            return None
        event = self.algorithm.result(query, k, last)
        written = self._sorted(event, np.zeros_like(event.end))
        rows = self._columns(written.arrival, written.other, self.store.empty, self.intake.accepted)
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
            arrays["store.number"] = self.store.arrival
            arrays |= table_to_arrays(self.store.table, "store.table")
            arrays |= {"partitions": table_to_bytes(intake.partitions.rows)} if intake.partitions is not None else {}
            arrays |= {f"tags.{i}": table_to_bytes(partitions.rows) for i, partitions in enumerate(intake.tags)}
            arrays |= table_to_arrays(intake.held, "held") if intake.held is not None else {}
        return meta, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Goes on from what :meth:`save` gave."""
        intake = self.intake
        for name in ("seen", "late", "invalid", "newest", "accepted"):
            setattr(intake, name, meta[name])
        prefix = "algorithm."
        self.algorithm.restore({n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})
        intake.counts, intake.highest = arrays["intake.counts"], arrays["intake.highest"]
        if "schema" in arrays:
            self._begin(table_from_bytes(arrays["schema"]).schema)
            self._keep(
                Kept(
                    RowStore(table_from_arrays(arrays, "store.table"), arrays["store.number"]),
                    Keys(table_from_bytes(arrays["partitions"])) if "partitions" in arrays else None,
                    tuple(Keys(table_from_bytes(arrays[f"tags.{i}"])) for i in range(len(intake.tags))),
                    table_from_arrays(arrays, "held") if "held.schema" in arrays else None,
                )
            )

    def _advance(self, ready: Ready) -> list[pa.Table]:
        assert self.store is not None
        columns = ready.table.select(self.store.names)
        self._arriving = columns, ready.rows.first_arrival
        events = self.algorithm.update(ready.rows, ready.frontier)
        self._arriving = None
        tables = self._written(events, columns, ready.rows.first_arrival)
        self.store.keep(self.algorithm.held(ready.rows.first_arrival), columns, ready.rows.first_arrival)
        if self.store.size > 2 * self.algorithm.candidates + 16:
            self.store.drop_all_but(self.algorithm.held())
        self._forget_partitions()
        self._forget_tags()
        return tables

    def _begin(self, schema: pa.Schema) -> None:
        """Settles what is written and what must be kept of a row, given the columns of the first batch."""
        empty = self.intake.fit(schema)
        self._nothing = {}
        self.layouts = self._lay_out(empty.schema)
        needed = {name for layout in self.layouts for name in layout.columns}
        if self.family.looks_back:
            needed |= {*self.intake.measure.needs(empty.column_names)}
        names = [name for name in empty.column_names if name in needed]
        self.store = RowStore(empty.select(names), np.empty(0, np.int64))
        self.algorithm.meet(empty.schema, self._look_up)

    def _knows(self, schema: pa.Schema) -> bool:
        return self.intake.schema is not None and schema.equals(self.intake.schema)

    def _keep(self, kept: Kept) -> None:
        self.store, self.intake.partitions, self.intake.tags, self.intake.held = kept

    def _retyped(self, schema: pa.Schema) -> Kept:
        """All that is kept, cast to the types that the columns have from now on; changes nothing itself."""
        assert self.store is not None and self.intake.schema is not None
        intake, before = self.intake, self.intake.schema
        coded = intake.measure.tagged(schema.empty_table())
        if intake.measure.form(schema) != intake.measure.form(before) and self.algorithm.partitions().size:
            name = next(field.name for field in schema if field.type != before.field(field.name).type)
            raise QueryError(f"column {name!r} of a batch is of type {schema.field(name).type}; it was of type "
                             f"{before.field(name).type} before, and the rows that are kept were measured as such: "
                             "give the types from the start, with Monitor(query, schema=...)")  # fmt: skip
        return Kept(
            RowStore(retyped(self.store.table, schema), self.store.arrival),
            None if intake.partitions is None else Keys(retyped(intake.partitions.rows, schema)),
            tuple(Keys(retyped(codes.rows, part.schema)) for codes, part in zip(intake.tags, coded, strict=True)),
            None if intake.held is None else retyped(intake.held, schema),
        )

    def _look_up(self, arrival: Ints) -> pa.Table:
        assert self.store is not None
        columns, first = self._arriving or (self.store.empty, self.intake.accepted)
        return self.store.take(arrival, columns, first)

    def _lay_out(self, schema: pa.Schema) -> tuple[Layout, ...]:
        return tuple(Layout(query, schema) for query in self.queries)

    def _written(self, events: Sequence[Emission], columns: pa.Table, first: int) -> list[pa.Table]:
        assert self.store is not None
        tables = []
        for place, (layout, event) in enumerate(zip(self.layouts, events, strict=True)):
            if not event.arrival.size and place in self._nothing:
                tables.append(self._nothing[place])
                continue
            if isinstance(event, Rankings):
                written = self._sorted(event, event.end if layout.query.window.time else event.trigger)
                rows = self._columns(written.arrival, written.other, columns, first)
                tables.append(layout.rankings(written, rows))
            else:
                rows = self._columns(event.arrival, event.other, columns, first)
                tables.append(layout.changes(event, rows, self._keys(event.partition)))
            if not event.arrival.size:
                self._nothing[place] = tables[-1]
        return tables

    def _columns(self, arrival: Ints, other: Ints, batch: pa.Table, first: int) -> pa.Table:
        """The columns of the objects that each row of an answer is made of: one object, or the two of a pair."""
        assert self.store is not None
        numbers = (arrival, other)[: self.family.size]
        return self.family.row([self.store.take(objects, batch, first) for objects in numbers])

    def _keys(self, partition: Ints) -> pa.Table | None:
        return None if self.intake.partitions is None else self.intake.partitions.take(partition)

    def _sorted(self, event: Rankings, by: Ints) -> Written:
        """Rankings in the order in which they are written: by ``by``, then by the values of the partition columns."""
        size = np.diff(event.offset)
        arrival, score, other, values = event.arrival, event.score, event.other, event.values
        order = np.arange(by.size)
        if self.intake.partitions is not None:
            order = np.lexsort((self.intake.partitions.rank(event.partition), by))
        if (np.diff(order) != 1).any():
            start = np.repeat(event.offset[order] - np.append(0, np.cumsum(size[order])[:-1]), size[order])
            rows = np.arange(arrival.size) + start
            arrival, score, other = arrival[rows], score[rows], other[rows] if other.size else other
            values = values[rows] if values.size else values
        size = size[order]
        partitions = None if self.intake.partitions is None else self._keys(np.repeat(event.partition[order], size))
        return Written(event.end[order], partitions, size, arrival, score, other, values)

    def _forget_partitions(self) -> None:
        """Drops the codes of partitions that hold nothing any more, once they are more than half of all."""
        partitions = self.intake.partitions
        if partitions is None or not self.intake.window.time or not self._may_look("partitions", len(partitions)):
            return
        alive = self.algorithm.partitions()
        if len(partitions) > 2 * alive.size:
            self.algorithm.rekey(self.intake.rekey(alive))

    def _forget_tags(self) -> None:
        """Drops the codes of tags that no row held has any more, once they are more than half of all."""
        tags = self.intake.tags
        if not self._may_look("tags", sum(map(len, tags))):
            return
        alive = self.algorithm.tags()
        if alive and sum(map(len, tags)) > 2 * sum(some.size for some in alive):
            self.algorithm.retag(self.intake.retag(alive))

    def _may_look(self, what: str, codes: int) -> bool:
        """Whether there are many codes, and rows enough have come to pay for a look at all that are in use."""
        accepted = self.intake.accepted
        if codes < MANY or accepted - self._looked[what] < codes // 8:
            return False
        self._looked[what] = accepted
        return True

    def _check_slides(self, query: Query, last: int) -> None:
        window = query.window
        words = spell if window.time else str
        if window.hopping and not self.algorithm.any_last and (window.extent - last) % window.slide:
            able = [name for name, other in self.family.algorithms().items()
                    if other.any_last and other.exact and window.kind in other.serves]  # fmt: skip
            other = f"; any other length is known to {', '.join(able)}" if able else ""
            raise QueryError(f"last={words(last)}: algorithm {self.algorithm.name!r} knows the windows that are whole "
                             f"slides ({words(window.slide)}) shorter than {words(window.extent)}{other}"
                             )  # fmt: skip
