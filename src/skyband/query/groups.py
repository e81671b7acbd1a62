"""The query that ranks groups of rows: by an aggregate of their rows, or by what several streams say about each."""

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
LARGE = 10_000  # in windows of as many rows and more, holding fewer of them is worth taking twice the time


@dataclass(frozen=True, repr=False)
class TopKGroups(Query):
    """Ranks groups of rows of a sliding window by an aggregate of their rows, and gives the k best.

    It answers two kinds of question, told apart by ``occurrences``:

    - ``"many"``: SQL's ``GROUP BY``. The score of a group is an aggregate over all its rows in the window.
    - ``"once"``: a group is an object of which several streams each report one value. A newer value of a stream
      replaces its older one, and the score is an aggregate of the values that the streams report now. A stream that
      has not reported the object adds nothing to a sum, count, mean or max. In a min, a product or a function it counts
      as the smallest value: ``bounds[0]``, or 0 if that is not given.

    A group is ranked while at least one of its rows is in the window and its score is not NULL.

    Args:
        k: how many groups to give.
        id: the column, or columns, that name the group; the answer shows them after the score.
        window: see :func:`skyband.last`.
        stream: the column that tells which stream a row is from; None if there is only one stream.
        value: the column or SQL expression that is aggregated; None if each row counts for 1.
        aggregate: ``"sum"``, ``"count"``, ``"mean"``, ``"min"``, ``"max"``, ``"product"`` or ``"count_distinct"`` (the
            last with ``"many"`` only). Or a Python function: it is given an array with a row for each object and a
            column for each stream, in the order of ``streams``, and returns a score for each object. With ``"many"``
            the columns hold the sum of each stream's amounts. The function must be monotone: its result must never
            fall when a value rises. This is not checked.
        occurrences: ``"many"`` if all rows of a group count, ``"once"`` if only the newest value of each stream does.
            By default ``"many"`` without ``stream``, and ``"once"`` with it.
        streams: how many streams there are (one more is an error), or their names (rows of others are invalid). A
            function needs the names; mean, min and product with ``"once"`` need one of the two.
        weights: factors by which the values of streams, by name, are multiplied in a sum or mean; 1 for the others.
        bounds: a promise: the smallest and the largest value. A row outside is invalid. For a sum or count, and for a
            mean with ``"once"``, the smallest must be 0.
        most: a promise: while an object is in the window, no stream sends more than this many rows about it. With it,
            ``bounds`` and ``streams``, the algorithm ``"eaa"`` can drop objects that cannot reach the top k any more.
        order: ``"desc"`` for the largest score first, ``"asc"`` for the smallest (``"many"`` only). Of equal scores the
            group with the newest row comes first, either way.
        outputs: more columns for the answer: a mapping from their names to aggregates of the group's rows, such as
            ``{"n": "count(*)"}`` (``"many"`` only). The aggregates are ``count(*)``, ``count(e)``,
            ``count(distinct e)``, ``sum(e)``, ``mean(e)``, ``min(e)``, ``max(e)`` and ``product(e)``, each of an SQL
            expression ``e``. ``weights`` do not apply to them.
        having: an SQL condition over aggregates, outputs and ``score``. Groups for which it is not true are not ranked
            (``"many"`` only).
        select: the columns of ``id`` that the answer shows; by default all.
        partition_by, where, ties, error, algorithm, name: as in :class:`TopK`.

    >>> import skyband as sb
    >>> hosts = sb.TopKGroups(k=1, id="host", value="bytes", window=sb.last(4, every=4))
    >>> monitor = sb.Monitor(hosts)
    >>> answer = monitor.push({"host": ["a", "b", "a", "c"], "bytes": [10, 25, 20, 5]})
    >>> answer.select(["rank", "score", "host"]).to_pylist()
    [{'rank': 1, 'score': 30.0, 'host': 'a'}]
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
        """The aggregates over all rows of a group; None if the score is made of one value for each stream."""
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
    def coded(self) -> bool:
        """Whether streams are told apart by codes, since their names are not known beforehand."""
        return self.stream is not None and not isinstance(self.streams, tuple)

    @property
    def adds_up(self) -> bool:
        """Whether all that is asked for is the largest sums or counts of rows."""
        return self.asked is not None and self.asked.alone and self.descending and self.aggregate in ("sum", "count")

    @property
    def beyond_sums(self) -> str:
        """The options that ask for more than the largest sums or counts of rows, as they were written."""
        given = {"aggregate": self.aggregate not in ("sum", "count"), "order": not self.descending,
                 "outputs": bool(self.outputs), "having": self.having is not None}  # fmt: skip
        asked = [f"{name}={getattr(self, name)!r}" for name, beyond in given.items() if beyond]
        return ", ".join([f"occurrences={self.occurrences!r}", *asked])

    @property
    def largest(self) -> float | None:
        """The largest amount that a row may have, before weights; None if it is unknown."""
        if self.value is None or self.aggregate == "count":
            return 1.0
        return None if self.bounds is None else self.bounds[1]

    @property
    def promises(self) -> bool:
        """Whether enough is promised to know how high an object may still rise, and that it cannot fall meanwhile."""
        if self.most is None or self.width is None or self.largest is None:
            return False
        return self.most == 1 if self.occurrences == "once" else self.bounds is None or self.bounds[0] >= 0

    @property
    def sketched(self) -> bool:
        """Whether the approximate algorithm answers; it keeps hashes of ids in its sketches.

        If an error is allowed, it is taken only where it saves memory: in large windows whose rows would all be held.
        """
        if self.algorithm != "auto":
            return self.algorithm_call()[0] == "approx"
        large = self.window.time or self.window.extent >= LARGE
        exactly = self.asked is not None and (self.window.hopping or not self.adds_up)
        return self.error > 0 and large and not self.promises and not exactly

    @property
    def low(self) -> float:
        """The value that a stream counts for that has not reported an object."""
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
