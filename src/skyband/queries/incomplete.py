"""Objects assembled from several streams, each of which tells only a part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from skyband import scoring
from skyband.expressions import find_column
from skyband.measures import Measure, Measured
from skyband.queries.base import Query, Ties
from skyband.windows import Window

Aggregate = Literal["sum", "count", "mean", "max", "min", "product"]


@dataclass(frozen=True)
class TopKIncomplete(Query):
    """The k objects with the largest totals, though every stream reports only a part of each object.

    Args:
        k: how many.
        id: the column that names the object.
        window: see :func:`skyband.last`.
        stream: the column that names the stream; None: there is only one.
        value: the column (or an SQL expression) that holds the amount; None: each row counts for 1.
        aggregate: how the parts that are valid now make up the score.
        occurrences: ``"once"``: of each stream only the newest value of an object counts; ``"many"``: the amounts of a
            stream add up.
        weights: of the streams, for a weighted sum; 1 where none is given.
        partition_by, where, ties, error, algorithm, name: as in :class:`TopK`.
    """

    family: ClassVar[str] = "incomplete"

    k: int
    id: str
    window: Window
    stream: str | None = None
    value: str | None = None
    aggregate: Aggregate = "sum"
    occurrences: Literal["once", "many"] = "once"
    weights: Mapping[str, float] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    where: str | None = None
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        self.check()

    def measure(self) -> Measure:
        return AmountMeasure(self.id, self.stream, self.value)

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        return [scoring.compile_item(scoring.quoted(self.id))]

    def describe(self) -> str:
        return f"top {self.k} {self.id} by {self.aggregate} of {self.value or 'rows'}"


class AmountMeasure(Measure):
    """An amount for each row; tags: the object and the stream."""

    def __init__(self, id: str, stream: str | None, value: str | None) -> None:
        self.tags = ((id,), *(((stream,),) if stream else ()))
        self.value = None if value is None else scoring.compile_order(value)

    def evaluate(self, table: pa.Table) -> Measured:
        score = np.ones(table.num_rows) if self.value is None else self.value.evaluate(table)
        return Measured(score, np.empty((score.size, 0)))

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        tags = [find_column(name, names) for group in self.tags for name in group]
        return tuple(dict.fromkeys([*(self.value.needs(names) if self.value else ()), *tags]))
