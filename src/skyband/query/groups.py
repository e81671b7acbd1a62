"""Groups of rows: ranked by aggregates of all their rows, or assembled from what several streams tell of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from skyband.errors import QueryError
from skyband.expressions import RESERVED, Call, scoring
from skyband.query.amounts import AmountMeasure
from skyband.query.asked import LARGEST, Asked, asked_of
from skyband.query.base import Fixed, Query, names
from skyband.query.measures import Floats, Measure
from skyband.query.windows import Window

Aggregate = Literal["sum", "count", "mean", "min", "max", "product", "count_distinct"]
Occurrences = Literal["once", "many"]
Order = Literal["desc", "asc"]

AGGREGATES = ("sum", "count", "mean", "min", "max", "product", "count_distinct")
ADDITIVE = ("sum", "count", "mean")  # an absent stream adds nothing
LARGE = 10_000  # rows in a window from which on it is worth twice the time to hold fewer of them


@dataclass(frozen=True, repr=False)
class TopKGroups(Query):
    """The k groups of rows with the largest aggregate, or the k objects of which several streams each tell a part.

    With ``occurrences="many"`` it is SQL's ``GROUP BY``: the aggregate is over all rows of a group in the window,
    whatever stream they came from. With ``"once"`` a stream tells an attribute of an object, and a newer value replaces
    the older one; the score is a monotone aggregate of what the streams say now, and a stream that says nothing counts
    as the smallest value: nothing for a sum, count or mean, ``bounds[0]`` (0 unless declared) for the others. A group
    is ranked while at least one of its rows is in the window and its score is not NULL.

    Args:
        k: how many.
        id: the column that names the group, or several; the answer shows them behind the score.
        window: see :func:`skyband.last`.
        stream: the column that names the stream; None: there is only one.
        value: the column (or an SQL expression) that the aggregate is of; None: each row counts for 1.
        aggregate: ``"sum"``, ``"count"``, ``"mean"``, ``"min"``, ``"max"``, ``"product"``, ``"count_distinct"``
            (``"many"`` only); or a function of an array (a row for each object, a column for each stream, in the order
            of ``streams``) that returns their scores. With ``"many"`` it sees the sum of each stream's amounts. Handing
            over a function declares it monotone: it never falls when a value rises.
        occurrences: ``"once"``: of each stream only the newest value of an object counts; ``"many"``: all rows do. By
            default ``"many"`` if there is one stream only, else ``"once"``.
        streams: how many streams there are (that more come is an error), or their names (rows of others are invalid).
            Functions need the names; with ``"once"`` mean, min and product need one of the two.
        weights: factors of the streams by name, for a weighted sum or mean; 1 where none is given.
        bounds: the smallest and the largest value a row may have; rows outside are invalid. With a sum or count, and
            with a mean of ``"once"``, the smallest must be 0.
        most: a promise: as long as an object is in the window, no stream sends more than this many rows about it.
            ``"eaa"`` needs it (and ``bounds`` and ``streams``) to tell who cannot reach the top k any more.
        order: ``"desc"``: the largest first; ``"asc"``: the smallest (``"many"`` only). Ties: the newest first.
        outputs: further columns of the answer by name, each an aggregate of the group's rows: ``count(*)``,
            ``count(e)``, ``count(distinct e)``, ``sum(e)``, ``mean(e)``, ``min(e)``, ``max(e)``, ``product(e)``
            (``"many"`` only). Weights are in the aggregate ranked by, and in no output.
        having: an SQL condition over aggregates, outputs and ``score``: groups for which it is not true are not ranked
            (``"many"`` only).
        select: the columns of ``id`` that are shown; all by default.
        partition_by, where, ties, error, algorithm, name: as in :class:`TopK`.
    """

    family: ClassVar[str] = "groups"
    functions: ClassVar[tuple[str, ...]] = ("aggregate",)
    naming: ClassVar[Mapping[str, bool]] = {"partition_by": True, "id": True, "stream": False}

    k: int
    id: str | tuple[str, ...]
    window: Window
    stream: str | None = None
    value: str | None = None
    aggregate: Aggregate | Callable[[Floats], Floats] = "sum"
    occurrences: Occurrences | None = None
    streams: int | tuple[str, ...] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    most: int | None = None
    order: Order = "desc"
    outputs: Mapping[str, str] = field(default_factory=dict)
    having: str | None = None

    def __post_init__(self) -> None:
        self.check()
        self._check_columns()
        if self.occurrences not in (None, "once", "many"):
            raise QueryError(f'occurrences={self.occurrences!r} is unknown; it is "once" or "many"')
        if self.occurrences is None:
            object.__setattr__(self, "occurrences", "many" if self.stream is None else "once")
        if self.order not in ("desc", "asc"):
            raise QueryError(f'order={self.order!r} is unknown; it is "desc", the largest first, or "asc"')
        self._check_streams()
        self._check_aggregate()
        self._check_outputs()
        self._check_promises()

    def measure(self) -> Measure:
        return AmountMeasure(self)

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        return [scoring.compile_item(scoring.quoted(name)) for name in self.select or self.ids]

    def describe(self) -> str:
        how = self.aggregate if isinstance(self.aggregate, str) else "a Python function"
        text = f"top {self.k} {', '.join(self.ids)} by {'weighted ' if self.weights else ''}{how}"
        text += f" of {self.value or 'rows'}" + (f", {self.occurrences} per {self.stream}" if self.stream else "")
        text += ", smallest first" if self.order == "asc" else ""
        text += f", with {', '.join(self.outputs)}" if self.outputs else ""
        return text + (f", having {self.having}" if self.having else "")

    @property
    def descending(self) -> bool:
        return self.order == "desc"

    @property
    def computed(self) -> tuple[tuple[str, Any], ...]:
        return () if self.asked is None else self.asked.columns

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that name a group."""
        return (self.id,) if isinstance(self.id, str) else self.id

    @cached_property
    def asked(self) -> Asked | None:
        """The aggregates over all rows of a group; None where a stream's newest value or sum is what counts."""
        if self.occurrences == "once" or not isinstance(self.aggregate, str):
            return None
        if self.value is None and not self.weights:  # each row counts for 1
            return asked_of(Call("count", None), self.outputs, self.having)
        of = scoring.compile_number(self.value or "1", f"value={self.value!r}").sql
        return asked_of(Call(self.aggregate, of, bool(self.weights)), self.outputs, self.having)

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
        """Whether a sum of amounts over all rows is all that is asked for, the largest first."""
        return self.asked is not None and self.asked.alone and self.descending and self.aggregate in ("sum", "count")

    @property
    def beyond_sums(self) -> str:
        """What is asked for beside the largest sums or counts of rows, as it was written."""
        given = {"aggregate": self.aggregate not in ("sum", "count"), "order": not self.descending,
                 "outputs": bool(self.outputs), "having": self.having is not None}  # fmt: skip
        asked = [f"{name}={getattr(self, name)!r}" for name, beyond in given.items() if beyond]
        return ", ".join([f"occurrences={self.occurrences!r}", *asked])

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
        exactly = self.asked is not None and (self.window.hopping or not self.adds_up)
        return self.error > 0 and large and not self.promises and not exactly

    @property
    def low(self) -> float:
        """What a stream that says nothing about an object counts for."""
        return 0.0 if self.bounds is None or self.aggregate in ADDITIVE else self.bounds[0]

    def _check_columns(self) -> None:
        given: Any = self.id
        listed = names(given, "id")
        if not listed:
            raise QueryError(f"id={given!r} must be a column name, or several")
        object.__setattr__(self, "id", given if (given,) == listed else listed)
        for column in ("stream", "value"):
            given = getattr(self, column)
            if given is not None and not (isinstance(given, str) and given):
                raise QueryError(f"{column}={given!r} must be a column name")
        if self.value is not None:
            scoring.compile_number(self.value, f"value={self.value!r}")
        if self.select is not None and not {*self.select} <= {*self.ids}:
            raise QueryError(f"select={self.select!r}: a group has many rows, so beside score and outputs the answer "
                             f"can show its id only; select among {', '.join(self.ids)}, and ask for aggregates of "
                             "other columns with outputs=")  # fmt: skip

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
        if self.occurrences == "once" and self.aggregate == "count_distinct":
            raise QueryError("aggregate='count_distinct' goes over all rows of a group; with occurrences='once' only "
                             "the newest of each stream counts: take occurrences='many'")  # fmt: skip
        apart = self.occurrences == "once" or callable(self.aggregate)  # each stream has a say of its own
        if apart and self.width is None and self.aggregate not in ("sum", "count", "max"):
            raise QueryError(f"aggregate={self.aggregate!r} needs streams=, the number of streams or their names: "
                             "a stream that says nothing about an object counts too")  # fmt: skip
        if callable(self.aggregate) and self.stream is not None and not isinstance(self.streams, tuple):
            raise QueryError("a function for aggregate needs the names of the streams, in the order of its columns: "
                             f"streams=(...), not {self.streams!r}")  # fmt: skip
        if not apart and self.value is None and self.aggregate not in ("sum", "count"):
            raise QueryError(f"aggregate={self.aggregate!r} needs value=, the column or SQL expression that it is of")

    def _check_outputs(self) -> None:
        given: Any = self.outputs
        if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
            raise QueryError(
                f'outputs={given!r} must be a mapping from names to aggregates, such as {{"n": "count(*)"}}'
            )
        if own := [name for name in given if name.lower().startswith(RESERVED)]:
            raise QueryError(f"outputs: {own[0]!r} begins with {' or '.join(map(repr, RESERVED))}, as only columns of "
                             "skyband's own do; give it another name")  # fmt: skip
        object.__setattr__(self, "outputs", Fixed(given))
        if self.asked is None:
            once = self.occurrences == "once"
            for name, value in (("order", self.order != "desc"), ("outputs", given), ("having", self.having)):
                if value:
                    why = ("with occurrences='once' only the newest of each stream counts" if once
                           else "a Python function sees the sums of the streams")  # fmt: skip
                    how = "occurrences='many'" if once else f"one of the aggregates {', '.join(AGGREGATES)}"
                    raise QueryError(f"{name}={getattr(self, name)!r} is for aggregates over all rows of a group, and "
                                     f"{why}; take {how}, or leave {name} out")  # fmt: skip
        own = [*(("window_start", "window_end") if self.window.hopping else ("at", "op")), "rank", "score", "query"]
        for name in given:
            if name in own or name in (*self.partition_by, *self.ids):
                raise QueryError(f"outputs: the answer has a column {name!r} anyway; give this one another name")

    def _check_promises(self) -> None:
        most: Any = self.most
        if most is not None and (isinstance(most, bool) or not hasattr(most, "__index__") or int(most) < 1):
            raise QueryError(f"most={most!r} must be a whole number, at least 1")
        if most is not None and self.asked is not None and not self.adds_up:
            raise QueryError(f"most={most!r} promises how high a sum or count may still rise; it is of no use with "
                             f"{self.beyond_sums}, where every row is needed: leave it out")  # fmt: skip
        if self.bounds is None:
            return
        if self.value is None:
            raise QueryError(f"bounds={self.bounds!r} are those of value=, and there is none: each row counts for 1")
        pair: Any = self.bounds
        plain = isinstance(pair, Sequence) and len(pair) == 2 and all(
            isinstance(end, int | float) and not isinstance(end, bool) and abs(end) <= LARGEST for end in pair
        )  # fmt: skip
        if not plain or not pair[0] < pair[1]:
            raise QueryError(f"bounds={pair!r} must be the smallest and the largest value, for instance (0, 1)")
        object.__setattr__(self, "bounds", (float(pair[0]), float(pair[1])))
        if self.aggregate in (ADDITIVE if self.asked is None else ("sum", "count")) and pair[0] != 0:
            raise QueryError(f"bounds={pair!r}: with {self.aggregate!r} an absent stream adds nothing, so the smallest "
                             f"value must be 0; shift the values: value='{self.value} - {pair[0]}'")  # fmt: skip
        if self.aggregate == "product" and self.asked is None and pair[0] < 0:
            raise QueryError(f"bounds={pair!r}: a product of streams is monotone only for values from 0 on")
