"""Top-k dominating points: the objects that are better than most others in every respect."""

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
    """The k objects of a sliding window that dominate most others.

    An object dominates another one if it is at least as good in every dimension and better in one. Its score is the
    number of objects in the window that it dominates; equal points do not dominate each other.

    Args:
        k: how many.
        dimensions: the columns that count (or SQL expressions over them), each with ``"min"`` (smaller is better) or
            ``"max"``. What is the name of a column, however odd, is that column; all else is an expression.
        window: see :func:`skyband.last`.
        policy: ``"exact"``, or ``"adaptive"``: approximate answers while the stream comes too fast for exact ones.
        error: 0 is exact; so is any other, since no approximate algorithm was found to cost less. For ``ahba``, if
            ``algorithm`` or ``policy`` asks for it, the share by which samples may be off, and how probable that is.
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
    """A point for each row, turned so that smaller is better in every dimension."""

    def __init__(self, dimensions: Mapping[str, str]) -> None:
        self.dimensions = dict(dimensions)
        self._expressions = {text: _expression(text) for text in dimensions}
        self._columns = {text: _column(text) for text in dimensions}

    def evaluate(self, table: pa.Table) -> Measured:
        columns = {}
        for text, sense in self.dimensions.items():
            value = self._dimension(text, table.column_names).evaluate(table)
            columns[text] = 0.0 - value if sense == "max" else value + 0.0  # so that there is no -0
        points = np.stack([columns[text] for text in sorted(columns)], axis=1)  # equal queries keep equal states
        return Measured(np.where(np.isnan(points).any(axis=1), np.nan, 0.0), points)

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(name for text in self.dimensions for name in self._dimension(text, names).needs(names))
        )

    def _dimension(self, text: str, names: Sequence[str]) -> scoring.Score:
        """The column of that name, if there is one; else the expression."""
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
    """What the text says as an expression, or why it is none: then it can only be the name of a column."""
    try:
        return scoring.compile_order(scoring.Labelled(f"({text})", f"dimensions: {text!r}"))
    except QueryError as wrong:
        return QueryError(f"{wrong}; nor is it a column of the stream")
