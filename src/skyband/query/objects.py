"""Queries that rank single rows: ``TopK`` by a score, ``Nearest`` by the distance from a point."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from skyband.expressions import scoring
from skyband.query.base import Fixed, Query
from skyband.query.measures import Measure, ScoreMeasure
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopK(Query):
    """Ranks the rows of a sliding window by a score, and gives the k best.

    Args:
        k: how many rows to give.
        order_by: the score: an SQL expression over the columns, ending in ``ASC`` (smallest first; the default, as in
            SQL) or ``DESC`` (largest first). Or a Python function, for ``DESC`` the pair ``(function, "DESC")``. It is
            called with a mapping from column names to arrays and returns an array of scores. It sees only rows for
            which ``where`` is true, and is never called without rows.
        window: the rows that are ranked; see :func:`skyband.last`.
        partition_by: one or more columns. Each combination of their values has windows and a ranking of its own. A
            tuple, or one text with commas between the names; a name that holds a comma must be given in a tuple.
        where: an SQL condition. Rows for which it is not true are ignored, as if they were not in the stream.
        select: the columns that the answer shows: names, or expressions such as ``"price * 2 AS twice"``. A tuple, or
            one text as in SQL, ``"id, price * 2 AS twice"``. By default all columns.
        ties: what to do with equal scores. The newest always comes first. ``"newest"`` gives k rows and no more;
            ``"all"`` also gives every row whose score equals the k-th (SQL's ``WITH TIES``).
        error: 0 for exact answers. Above 0, an approximate algorithm with this bound on its error may be used.
        algorithm: ``"auto"`` to let skyband choose, or the name of an algorithm, in lower case, with options in
            brackets if wanted: ``"rapf"``, ``"rapf(buffer=500, gamma=0.5)"``. docs/algorithms.md lists them.
        name: what the query is called in the answer, if several queries are answered together.

    >>> import skyband as sb
    >>> largest = sb.TopK(k=2, order_by="price * volume DESC", window=sb.last(3, every=3), select="id")
    >>> trades = {"id": [1, 2, 3], "price": [5.0, 2.0, 4.0], "volume": [100, 300, 200]}
    >>> sb.Monitor(largest).push(trades).select(["rank", "score", "id"]).to_pylist()
    [{'rank': 1, 'score': 800.0, 'id': 3}, {'rank': 2, 'score': 600.0, 'id': 2}]
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
    """Ranks the rows of a sliding window by their distance from a point, and gives the k nearest.

    It is :class:`TopK` with a distance as the score.

    Args:
        k: how many rows to give.
        to: the point: a mapping from the columns that count to its value in each of them.
        window: the rows that are ranked; see :func:`skyband.last`.
        metric: how distance is measured: ``"euclidean"``, ``"manhattan"``, ``"chebyshev"``, or a number p from 1 to 16
            for the Lp distance.
        weights: factors for columns, by which the difference in that column is multiplied; 1 for the others.
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
        """The :class:`TopK` query that this one is short for."""
        to = self.to
        if isinstance(to, Mapping):  # always sum in the same order, so that equal queries give equal scores
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
