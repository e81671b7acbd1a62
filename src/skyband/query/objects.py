"""Top-k objects: every row has a score of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from skyband.expressions import scoring
from skyband.query.base import Fixed, Query
from skyband.query.measures import Measure, ScoreMeasure
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopK(Query):
    """The k best objects of a sliding window.

    Args:
        k: how many.
        order_by: an SQL expression over the columns ending in ``ASC`` (the default, as in SQL) or ``DESC``; or a
            function of a mapping from column name to array that returns an array of scores (smaller is better), or
            the pair ``(function, "DESC")``. It is called with the rows of a batch for which ``where`` is true, and
            never without rows.
        window: see :func:`skyband.last`.
        partition_by: columns whose every combination of values gets windows and a ranking of its own: a tuple, or
            their names in one text with commas between them. A column with a comma in its name is given in a tuple.
        where: an SQL condition; rows for which it is not true are no part of the stream.
        select: the columns of the answer (names, or expressions such as ``"price * 2 AS twice"``), a tuple or
            one text as in SQL: ``"id, price * 2 AS twice"``; all by default.
        ties: ``"newest"`` ranks equal scores newest first and returns exactly k; ``"all"`` also returns every object
            whose score equals the k-th (SQL's ``WITH TIES``).
        error: 0 for exact answers; above 0 an approximate algorithm with this bound may be taken.
        algorithm: ``"auto"``, or the name of an algorithm as in its paper, in lower case, with options in brackets if
            wanted: ``"rapf"``, ``"rapf(buffer=500, gamma=0.5)"``.
        name: what the query is called in the output of several queries at once.
    """

    family: ClassVar[str] = "objects"
    functions: ClassVar[tuple[str, ...]] = ("order_by",)

    k: int
    order_by: scoring.OrderBy
    window: Window

    def __post_init__(self) -> None:
        self.check()
        scoring.compile_order(self.order_by)
        for item in self.select or ():
            scoring.compile_item(item)

    def lower(self) -> "TopK":
        return self

    def measure(self) -> Measure:
        return ScoreMeasure(self.order_by)

    @property
    def descending(self) -> bool:
        return scoring.compile_order(self.order_by).descending

    def repeated(self) -> tuple[str, ...]:
        plain = scoring.compile_order(self.order_by).sql in ("score", '"score"')
        return (*self.partition_by, *(["score"] if plain else []))

    def describe(self) -> str:
        return f"top {self.k} by {self.order_by if isinstance(self.order_by, str) else 'a Python function'}"


@dataclass(frozen=True, repr=False)
class Nearest(Query):
    """The k objects of a sliding window nearest to a point: :class:`TopK` with a distance for a score.

    Args:
        k: how many.
        to: the point, a value for each column that counts.
        window: see :func:`skyband.last`.
        metric: ``"euclidean"``, ``"manhattan"``, ``"chebyshev"``, or a number p from 1 to 16 for any Lp.
        weights: a factor for the difference in some of the columns; 1 where none is given.
        partition_by, where, select, ties, error, algorithm, name: as in :class:`TopK`.

    >>> from skyband.query.windows import last
    >>> Nearest(k=9, to={"x": 0.2, "y": 0.7}, window=last(40_000), metric="manhattan").lower().order_by
    'abs(x - 0.2) + abs(y - 0.7) ASC'
    """

    family: ClassVar[str] = "objects"

    k: int
    to: Mapping[str, float]
    window: Window
    metric: str | float = "euclidean"
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lower()
        object.__setattr__(self, "to", Fixed(self.to))
        object.__setattr__(self, "weights", Fixed(self.weights))

    def lower(self) -> TopK:
        """The object query this one stands for."""
        to = self.to
        if isinstance(to, Mapping):  # sums that are taken in the same order, so that equal queries have equal scores
            to = dict(sorted(to.items(), key=str))
        text = scoring.distance(to, self.metric, self.weights)
        return TopK(
            k=self.k,
            order_by=scoring.Labelled(f"{text} ASC", f"to={dict(self.to)!r}"),
            window=self.window,
            partition_by=self.partition_by,
            where=self.where,
            select=self.select,
            ties=self.ties,
            error=self.error,
            algorithm=self.algorithm,
            name=self.name,
        )

    def measure(self) -> Measure:
        return self.lower().measure()

    def describe(self) -> str:
        return self.lower().describe()
