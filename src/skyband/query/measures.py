"""What a ranking takes from each row: a score, or the numbers and codes from which scores follow."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.expressions import scoring

Floats = NDArray[np.float64]


class Measured(NamedTuple):
    """The measures of a batch.

    Attributes:
        score: of each row, larger is better; NaN where the row is invalid. Zero where a row alone has no score.
        values: a row of numbers for each row; no columns where the score says it all.
    """

    score: Floats
    values: Floats


class Measure(ABC):
    """Takes the measures of tables.

    Attributes:
        tags: groups of columns; each combination of values of a group is given a code, a column of ``Rows.tags``.
    """

    tags: tuple[tuple[str, ...], ...] = ()

    @abstractmethod
    def evaluate(self, table: pa.Table) -> Measured:
        """The measures of each row. They may share memory with the table: do not write to them."""

    def score_where(self, passes: NDArray[np.bool_], table: pa.Table) -> Floats:
        """The scores of the rows that pass, which are the only ones that are looked at; NaN for the others."""
        score = np.full(passes.size, np.nan)
        score[passes] = self.evaluate(table.filter(pa.array(passes))).score
        return score

    def values(self, table: pa.Table) -> Floats:
        """The ``values`` alone, of rows whose scores are known."""
        return self.evaluate(table).values

    def form(self, schema: pa.Schema) -> object:
        """Equal for schemas under which a row has the same measures, so that rows of both can be ranked together."""
        return None

    def tagged(self, table: pa.Table) -> list[pa.Table]:
        """What is coded: of each group of tags the columns, row by row."""
        return [table.select([scoring.find_column(name, table.column_names) for name in tag]) for tag in self.tags]

    def check(self, table: pa.Table, measured: Measured, before: Callable[[], list[pa.Table]]) -> None:
        """Raises if rows are not what the query declares them to be; ``before`` has the tags of the rows before."""
        return None  # most queries declare nothing that a row could tell

    @abstractmethod
    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that are looked at, tags included, as they are called among ``names``."""


class ScoreMeasure(Measure):
    """One score for each row."""

    def __init__(self, order_by: scoring.OrderBy) -> None:
        self.score = scoring.compile_order(order_by)

    def evaluate(self, table: pa.Table) -> Measured:
        score = self.score.evaluate(table)
        return Measured(score if self.score.descending else -score, np.empty((score.size, 0)))

    def values(self, table: pa.Table) -> Floats:
        return np.empty((table.num_rows, 0))

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return self.score.needs(names)
