"""The query for top-k dominating points: the objects that are better than most others in every respect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query.base import Fixed, Query
from skyband.query.measures import Measure, Measured
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopKDominating(Query):
    """Ranks the objects of a sliding window by how many others they beat in every respect, and gives the k best.

    One object *dominates* another if it is at least as good in every dimension and better in at least one. The score
    of an object is the number of objects in the window that it dominates. Equal objects do not dominate each other.

    Args:
        k: how many objects to give.
        dimensions: a mapping from each column that counts to ``"min"`` if smaller values are better, or ``"max"``. An
            SQL expression may stand in the place of a column; a text that is the name of a column is that column.
        window: see :func:`skyband.last`.
        policy: ``"exact"``; or ``"adaptive"`` for approximate answers while rows come too fast for exact ones.
        error: makes no difference by itself: answers stay exact, since no approximate algorithm was found to cost
            less. It sets the accuracy of the approximate algorithm ``ahba``, which runs only if ``algorithm`` or
            ``policy`` asks for it: how far its estimates may be off, and with what probability they may be further.
        partition_by, where, select, ties, algorithm, name: as in :class:`TopK`.

    >>> import skyband as sb
    >>> query = sb.TopKDominating(k=1, dimensions={"price": "min", "rating": "max"}, window=sb.last(3, every=3))
    >>> monitor = sb.Monitor(query)
    >>> monitor.push({"price": [30, 20, 25], "rating": [4.0, 4.5, 4.5]}).to_pylist()
    [{'window_start': 0, 'window_end': 3, 'rank': 1, 'score': 2.0, 'price': 20, 'rating': 4.5}]
    """

    family: ClassVar[str] = "dominating"

    k: int
    dimensions: Mapping[str, Literal["min", "max"]]
    window: Window
    policy: Literal["exact", "adaptive"] = "exact"

    def __post_init__(self) -> None:
        self.check()
        if not isinstance(self.dimensions, Mapping) or not self.dimensions:
            raise QueryError(f'dimensions={self.dimensions!r} must map columns to "min" or "max"')
        object.__setattr__(self, "dimensions", Fixed(self.dimensions))
        for column, sense in self.dimensions.items():
            if not isinstance(column, str) or not column:
                raise QueryError(f"dimensions: {column!r} is no column and no SQL expression")
            if sense not in ("min", "max"):
                raise QueryError(f'dimensions: {column!r} is {sense!r}; it must be "min" or "max"')
        if not isinstance(self.policy, str) or self.policy not in ("exact", "adaptive"):
            raise QueryError(f'policy={self.policy!r} is unknown; it is "exact" or "adaptive"')
        if self.policy == "adaptive" and (chosen := self.algorithm_call()[0]) not in ("auto", "adaptive"):
            raise QueryError(f'policy="adaptive" stands for algorithm="adaptive", so it cannot go with algorithm='
                             f"{chosen!r}; leave one of them out")  # fmt: skip
        self.measure()
        for item in self.select or ():
            scoring.compile_item(item)

    def measure(self) -> Measure:
        return PointMeasure(self.dimensions)

    def describe(self) -> str:
        return f"top {self.k} dominating in {', '.join(f'{column} ({s})' for column, s in self.dimensions.items())}"


class PointMeasure(Measure):
    """Takes a point from each row, with the signs turned so that smaller is better in every dimension."""

    def __init__(self, dimensions: Mapping[str, str]) -> None:
        self.dimensions = dict(dimensions)
        self._expressions = {text: _expression(text) for text in dimensions}
        self._columns = {text: _column(text) for text in dimensions}

    def evaluate(self, table: pa.Table) -> Measured:
        columns, names = {}, table.schema.names
        for text, sense in self.dimensions.items():
            value = self._dimension(text, names).evaluate(table)
            columns[text] = 0.0 - value if sense == "max" else value + 0.0  # so that there is no -0
        points = np.stack([columns[text] for text in sorted(columns)], axis=1)  # equal queries keep equal states
        return Measured(np.where(np.isnan(points).any(axis=1), np.nan, 0.0), points)

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(name for text in self.dimensions for name in self._dimension(text, names).needs(names))
        )

    def _dimension(self, text: str, names: Sequence[str]) -> scoring.Score:
        """A dimension: the column of that name, if there is one, else the expression."""
        if text in names:
            return self._columns[text]
        found = self._expressions[text]
        if isinstance(found, QueryError):
            raise found
        return found


def _column(text: str) -> scoring.Score:
    """The text as the name of a column."""
    return scoring.compile_order(scoring.Labelled(scoring.quoted(text), f"dimensions: {text!r}"))


def _expression(text: str) -> scoring.Score | QueryError:
    """The text as an expression; or the reason why it is none, in which case it can only be the name of a column."""
    try:
        return scoring.compile_order(scoring.Labelled(f"({text})", f"dimensions: {text!r}"))
    except QueryError as wrong:
        return QueryError(f"{wrong}; nor is it a column of the stream")
