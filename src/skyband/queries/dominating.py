"""Top-k dominating points: the objects that are better than most others in every respect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from skyband import scoring
from skyband.errors import QueryError
from skyband.measures import Measure, Measured
from skyband.queries.base import Fixed, Query, Ties
from skyband.windows import Window


@dataclass(frozen=True)
class TopKDominating(Query):
    """The k objects of a sliding window that dominate most others.

    An object dominates another one if it is at least as good in every dimension and better in one. Its score is the
    number of objects in the window that it dominates; equal points do not dominate each other.

    Args:
        k: how many.
        dimensions: the columns that count (or SQL expressions over them), each with ``"min"`` (smaller is better) or
            ``"max"``.
        window: see :func:`skyband.last`.
        policy: ``"exact"``, or ``"adaptive"``: approximate answers while the stream comes too fast for exact ones.
        partition_by, where, select, ties, error, algorithm, name: as in :class:`TopK`.
    """

    family: ClassVar[str] = "dominating"

    k: int
    dimensions: Mapping[str, Literal["min", "max"]]
    window: Window
    policy: Literal["exact", "adaptive"] = "exact"
    partition_by: tuple[str, ...] = ()
    where: str | None = None
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        self.check()
        if not isinstance(self.dimensions, Mapping) or not self.dimensions:
            raise QueryError(f'dimensions={self.dimensions!r} must map columns to "min" or "max"')
        object.__setattr__(self, "dimensions", Fixed(self.dimensions))
        for column, sense in self.dimensions.items():
            if sense not in ("min", "max"):
                raise QueryError(f'dimensions: {column!r} is {sense!r}; it must be "min" or "max"')
        if self.policy not in ("exact", "adaptive"):
            raise QueryError(f'policy={self.policy!r} is unknown; it is "exact" or "adaptive"')
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
        self.dimensions = [
            scoring.compile_order(f"{column} {'ASC' if sense == 'min' else 'DESC'}")
            for column, sense in dimensions.items()
        ]

    def evaluate(self, table: pa.Table) -> Measured:
        columns = [d.evaluate(table) * (-1.0 if d.descending else 1.0) for d in self.dimensions]
        points = np.stack(columns, axis=1)
        return Measured(np.where(np.isnan(points).any(axis=1), np.nan, 0.0), points)

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for d in self.dimensions for name in d.needs(names)))
