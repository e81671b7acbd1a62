"""Objects assembled from several streams, each of which tells only a part."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband import scoring
from skyband.errors import QueryError
from skyband.expressions import find_column
from skyband.measures import Floats, Measure, Measured
from skyband.queries.base import Fixed, Query, names
from skyband.windows import Window

Aggregate = Literal["sum", "count", "mean", "max", "min", "product"]
Occurrences = Literal["once", "many"]

AGGREGATES = ("sum", "count", "mean", "max", "min", "product")
ADDITIVE = ("sum", "count", "mean")  # an absent stream adds nothing
LARGE = 10_000  # rows in a window from which on it is worth twice the time to hold fewer of them
LARGEST = 1e300  # larger amounts are left out: with them a sum could leave the range of a double


@dataclass(frozen=True, repr=False)
class TopKIncomplete(Query):
    """The k objects with the largest totals, though every stream reports only a part of each object.

    A row tells the value of one object in one stream. An object is ranked while at least one of its rows is in the
    window; its score is a monotone aggregate of what its streams say now. A stream that says nothing about it counts
    as the smallest value: nothing for a sum, count or mean, ``bounds[0]`` (0 unless declared) for the others.

    Args:
        k: how many.
        id: the column that names the object; it is the one column of the answer beside the score.
        window: see :func:`skyband.last`.
        stream: the column that names the stream; None: there is only one.
        value: the column (or an SQL expression) that holds the amount; None: each row counts for 1.
        aggregate: how the values of the streams make up the score: ``"sum"``, ``"count"``, ``"mean"`` (over all
            ``streams``), ``"max"``, ``"min"``, ``"product"``; or a function of an array (a row for each object, a
            column for each stream, in the order of ``streams``) that returns their scores. Handing over a function
            declares it monotone: it never falls when a value rises.
        occurrences: ``"once"``: of each stream only the newest value of an object counts; ``"many"``: the amounts of a
            stream add up. By default ``"many"`` if there is one stream only, else ``"once"``.
        streams: how many streams there are, or their names (rows of others are then invalid). Mean, min, product and
            functions need it.
        weights: factors of the streams by name, for a weighted sum or mean; 1 where none is given.
        bounds: the smallest and the largest value a row may have; rows outside are invalid. With a sum, count or mean
            the smallest must be 0.
        most: a promise: as long as an object is in the window, no stream sends more than this many rows about it.
            ``"eaa"`` needs it (and ``bounds`` and ``streams``) to tell who cannot reach the top k any more.
        select: the id, or None for the same.
        partition_by, where, ties, error, algorithm, name: as in :class:`TopK`.
    """

    family: ClassVar[str] = "incomplete"
    functions: ClassVar[tuple[str, ...]] = ("aggregate",)
    naming: ClassVar[Mapping[str, bool]] = {"partition_by": True, "id": True, "stream": False}

    k: int
    id: str
    window: Window
    stream: str | None = None
    value: str | None = None
    aggregate: Aggregate | Callable[[Floats], Floats] = "sum"
    occurrences: Occurrences | None = None
    streams: int | tuple[str, ...] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        self.check()
        for column in ("id", "stream", "value"):
            given = getattr(self, column)
            if not (isinstance(given, str) and given) and (given is not None or column == "id"):
                raise QueryError(f"{column}={given!r} must be a column name")
        if self.amount is not None:
            scoring.compile_order(self.amount)
        if self.select not in (None, (self.id,)):
            raise QueryError(f"select={self.select!r}: an object is assembled from many rows, so its id is all that "
                             f"the answer can show; leave select out or give select=({self.id!r},)")  # fmt: skip
        if self.occurrences not in (None, "once", "many"):
            raise QueryError(f'occurrences={self.occurrences!r} is unknown; it is "once" or "many"')
        if self.occurrences is None:
            object.__setattr__(self, "occurrences", "many" if self.stream is None else "once")
        self._check_streams()
        self._check_aggregate()
        self._check_bounds()

    def measure(self) -> Measure:
        return AmountMeasure(self)

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        return [scoring.compile_item(scoring.quoted(self.id))]

    def describe(self) -> str:
        how = self.aggregate if isinstance(self.aggregate, str) else "a Python function"
        parts = f", {self.occurrences} per {self.stream}" if self.stream else ""
        return f"top {self.k} {self.id} by {'weighted ' if self.weights else ''}{how} of {self.value or 'rows'}{parts}"

    @property
    def amount(self) -> scoring.Labelled | None:
        """The expression of a row's value."""
        return None if self.value is None else scoring.Labelled(self.value, f"value={self.value!r}")

    @property
    def calls_back(self) -> bool:
        return callable(self.aggregate)

    @property
    def width(self) -> int | None:
        """How many streams there are, if that is known."""
        if self.stream is None:
            return 1
        return len(self.streams) if isinstance(self.streams, tuple) else self.streams

    @property
    def adds_up(self) -> bool:
        """Whether the score is a sum over all rows, whatever their stream."""
        return self.occurrences == "many" and self.aggregate in ADDITIVE

    @property
    def largest(self) -> float | None:
        """The largest amount that a row may have, before weights; None: unknown."""
        if self.value is None or self.aggregate == "count":
            return 1.0
        return None if self.bounds is None else self.bounds[1]

    @property
    def promises(self) -> bool:
        """Whether enough is declared to tell how high an object may still rise, and that it cannot fall before."""
        if self.most is None or self.width is None or self.largest is None:
            return False
        return self.most == 1 if self.occurrences == "once" else self.bounds is None or self.bounds[0] >= 0

    @property
    def sketched(self) -> bool:
        """Whether the answer is approximate: ids are then hashed for the sketches.

        An error that is allowed makes it so only where that saves memory: in large windows of which all must be held.
        """
        if self.algorithm != "auto":
            return self.algorithm_call()[0] == "approx"
        large = self.window.time or self.window.extent >= LARGE
        return self.error > 0 and large and not self.promises and not (self.window.hopping and self.adds_up)

    @property
    def low(self) -> float:
        """What a stream that says nothing about an object counts for."""
        return 0.0 if self.bounds is None or self.aggregate in ADDITIVE else self.bounds[0]

    def _check_streams(self) -> None:
        given: Any = self.streams
        if given is not None and self.stream is None:
            raise QueryError(f"streams={given!r} has no meaning without stream=, the column that names the stream")
        if isinstance(given, bool) or (hasattr(given, "__index__") and int(given) < 1):
            raise QueryError(f"streams={given!r} must be a number of streams, at least 1, or their names")
        if hasattr(given, "__index__"):
            object.__setattr__(self, "streams", int(given))
        elif given is not None:
            listed = given if isinstance(given, str) or not isinstance(given, Sequence) else tuple(map(str, given))
            object.__setattr__(self, "streams", names(listed, "streams"))
        if not isinstance(self.weights, Mapping):
            raise QueryError(f"weights={self.weights!r} must be a mapping from the names of streams to numbers")
        object.__setattr__(self, "weights", Fixed({str(name): weight for name, weight in self.weights.items()}))
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= LARGEST:
                raise QueryError(f"weights: {name!r} has {weight!r}; a weight is a number, at least 0")
            if isinstance(self.streams, tuple) and name not in self.streams:
                raise QueryError(f"weights: {name!r} is none of the streams {', '.join(self.streams)}")
        if self.weights and (self.stream is None or self.aggregate not in ("sum", "mean")):
            raise QueryError(f"weights={self.weights!r} go with stream= and aggregate='sum' or 'mean', not with "
                             f"aggregate={self.aggregate!r}")  # fmt: skip

    def _check_aggregate(self) -> None:
        if not callable(self.aggregate) and self.aggregate not in AGGREGATES:
            raise QueryError(f"aggregate={self.aggregate!r} is unknown; it is one of {', '.join(AGGREGATES)}, or a "
                             "monotone function of an array with a column for each stream")  # fmt: skip
        if self.width is None and self.aggregate not in ("sum", "count", "max"):
            raise QueryError(f"aggregate={self.aggregate!r} needs streams=, the number of streams or their names: "
                             "a stream that says nothing about an object counts too")  # fmt: skip
        if callable(self.aggregate) and self.stream is not None and not isinstance(self.streams, tuple):
            raise QueryError("a function for aggregate needs the names of the streams, in the order of its columns: "
                             f"streams=(...), not {self.streams!r}")  # fmt: skip

    def _check_bounds(self) -> None:
        most: Any = self.most
        if most is not None and (isinstance(most, bool) or not hasattr(most, "__index__") or int(most) < 1):
            raise QueryError(f"most={most!r} must be a whole number, at least 1")
        if self.bounds is None:
            return
        pair: Any = self.bounds
        plain = isinstance(pair, Sequence) and len(pair) == 2 and all(
            isinstance(end, int | float) and not isinstance(end, bool) and abs(end) <= LARGEST for end in pair
        )  # fmt: skip
        if not plain or not pair[0] < pair[1]:
            raise QueryError(f"bounds={pair!r} must be the smallest and the largest value, for instance (0, 1)")
        object.__setattr__(self, "bounds", (float(pair[0]), float(pair[1])))
        if self.aggregate in ADDITIVE and pair[0] != 0:
            raise QueryError(f"bounds={pair!r}: with {self.aggregate!r} an absent stream adds nothing, so the smallest "
                             f"value must be 0; shift the values: value='{self.value} - {pair[0]}'")  # fmt: skip
        if self.aggregate == "product" and pair[0] < 0:
            raise QueryError(f"bounds={pair!r}: a product is monotone only for values from 0 on")


class AmountMeasure(Measure):
    """An amount for each row, with its stream's weight in it; tags: the object (in its partition), and the stream.

    Where the streams are named, the place of a row's stream among them is a column of ``values`` instead. Where the
    answer is approximate, the last column of ``values`` is a hash of the id.
    """

    def __init__(self, query: TopKIncomplete) -> None:
        self.query = query
        self.named = isinstance(query.streams, tuple)
        objects = tuple(dict.fromkeys((*query.partition_by, query.id)))
        self.tags = (objects, *(((query.stream,),) if query.stream and not self.named else ()))
        self.value = None if query.amount is None else scoring.compile_order(query.amount)

    def evaluate(self, table: pa.Table) -> Measured:
        query = self.query
        amount = np.ones(table.num_rows) if self.value is None else self.value.evaluate(table)
        good = np.abs(amount) <= LARGEST  # false for NaN
        if query.bounds is not None:
            good &= (amount >= query.bounds[0]) & (amount <= query.bounds[1])
        elif query.aggregate == "product":
            good &= amount >= 0
        values: list[np.ndarray[Any, Any]] = []
        if query.aggregate == "count":
            amount = np.ones(amount.size)
        amount = np.where(good, amount, np.nan)
        if self.named:
            place = self._places(table, cast(tuple[str, ...], query.streams))
            amount[place < 0] = np.nan
            values.append(place)
        if query.weights:
            place = self._places(table, tuple(query.weights))
            amount = amount * np.array([*query.weights.values(), 1.0])[place]  # -1, no weight given, is the last: 1
        if query.sketched:
            values.append(self._hashes(table))
        columns = np.stack(values, axis=1).astype(np.float64) if values else np.empty((amount.size, 0))
        return Measured(amount, columns)

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        found = [find_column(name, names) for group in self.tags for name in group]
        found += [find_column(self.query.stream, names)] if self.query.stream else []
        return tuple(dict.fromkeys([*(self.value.needs(names) if self.value else ()), *found]))

    def _hashes(self, table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
        """48 bits of each id, the same on every machine and in every run."""
        column = table.column(find_column(self.query.id, table.column_names)).combine_chunks()
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column, null_encoding="encode")
        digests = [
            hashlib.blake2b(repr(value).encode(), digest_size=6).digest() for value in coded.dictionary.to_pylist()
        ]
        hashes = np.array([int.from_bytes(digest) for digest in [*digests, bytes(6)]])
        return hashes[np.asarray(pc.fill_null(coded.indices, len(digests)), np.int64)]

    def _places(self, table: pa.Table, listed: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Where the stream of each row stands in a list of names; -1: nowhere."""
        assert self.query.stream is not None
        column = table.column(find_column(self.query.stream, table.column_names))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        text = column.cast(kind).cast(pa.string())
        found = pc.index_in(text, value_set=pa.array(listed, pa.string()))
        return np.asarray(pc.fill_null(found, -1), np.int64)
