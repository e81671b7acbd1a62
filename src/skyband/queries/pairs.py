"""Top-k pairs: a score for every two objects of the window."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from skyband import scoring
from skyband.measures import Measure, Measured
from skyband.queries.base import Query, Ties
from skyband.windows import Window


@dataclass(frozen=True)
class TopKPairs(Query):
    """The k best pairs of objects of a sliding window.

    Each unordered pair is considered once.

    Args:
        k: how many.
        order_by: an SQL expression over the columns of both objects, ``a.`` and ``b.``, ending in ``ASC`` or ``DESC``;
            or a function of two mappings from column name to array.
        window: see :func:`skyband.last`.
        where: an SQL condition over both objects.
        same: columns in which the two objects must agree.
        different: columns in which they must differ.
        partition_by, select, ties, error, algorithm, name: as in :class:`TopK`.
    """

    family: ClassVar[str] = "pairs"
    functions: ClassVar[tuple[str, ...]] = ("order_by",)

    k: int
    order_by: scoring.OrderBy
    window: Window
    where: str | None = None
    same: tuple[str, ...] | None = None
    different: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        self.check()

    def measure(self) -> Measure:
        return PairMeasure()

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        if self.select is None:
            return [scoring.compile_item(f"{scoring.quoted(f'{side}.{name}')} AS {scoring.quoted(f'{side}_{name}')}")
                    for side in "ab" for name in columns]  # fmt: skip
        return [scoring.compile_item(item) for item in self.select]

    @property
    def row_condition(self) -> str | None:
        return None

    @property
    def descending(self) -> bool:
        return scoring.split_order(self.order_by)[1] == "DESC"

    def describe(self) -> str:
        return f"top {self.k} pairs by {self.order_by if isinstance(self.order_by, str) else 'a Python function'}"


class PairMeasure(Measure):
    """The numbers of each row from which the scores of its pairs follow."""

    def evaluate(self, table: pa.Table) -> Measured:
        return Measured(np.zeros(table.num_rows), np.empty((table.num_rows, 0)))

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names)
