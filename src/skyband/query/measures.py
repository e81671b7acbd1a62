"""Measures: what a ranking takes from each row, which is a score, or numbers and codes from which scores follow."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.expressions import scoring

Floats = NDArray[np.float64]


class Measured(NamedTuple):
    """What a measure took from the rows of a batch.

    Attributes:
        score: the score of each row, larger is better; NaN if the row is invalid. 0 for rankings in which a row has no
            score by itself, such as pairs.
        values: other numbers of each row, one column each; no columns if the score is all that is needed.
    """

    score: Floats
    values: Floats


class Measure(ABC):
    """Takes from the rows of a table what a ranking needs; each family of queries has its own.

    Attributes:
        tags: groups of columns. Each combination of values in a group gets a code; the codes are ``Rows.tags``.
    """

    tags: tuple[tuple[str, ...], ...] = ()

    @abstractmethod
    def evaluate(self, table: pa.Table) -> Measured:
        """Measures each row. The result may share memory with the table: do not write to it."""

    def score_where(self, passes: NDArray[np.bool_], table: pa.Table) -> Floats:
        """The scores of the rows that pass, and NaN for the others, which are not looked at."""
        score = np.full(passes.size, np.nan)
        score[passes] = self.evaluate(table.filter(pa.array(passes))).score
        return score

    def values(self, table: pa.Table) -> Floats:
        """The ``values`` alone, for rows whose scores are known already."""
        return self.evaluate(table).values

    def form(self, schema: pa.Schema) -> object:
        """A key that is equal for schemas under which rows are measured alike, so that they can be ranked together."""
        return None

    def tagged(self, table: pa.Table) -> list[pa.Table]:
        """The values that get codes: for each group of tags its columns, row by row."""
        names = table.schema.names
        return [table.select([scoring.find_column(name, names) for name in tag]) for tag in self.tags]

    def check(self, table: pa.Table, measured: Measured, before: Callable[[], list[pa.Table]]) -> None:
        """Raises if the rows break what the query declares; ``before`` gives the tags of all earlier rows."""
        return None  # most queries declare nothing that could be broken

    @abstractmethod
    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that are needed, those of tags included, spelled as in ``names``."""


class ScoreMeasure(Measure):
    """Takes one score from each row."""

    def __init__(self, order_by: scoring.OrderBy) -> None:
        self.score = scoring.compile_order(order_by)

    def evaluate(self, table: pa.Table) -> Measured:
        score = self.score.evaluate(table)
        return Measured(score if self.score.descending else -score, np.empty((score.size, 0)))

    def values(self, table: pa.Table) -> Floats:
        return np.empty((table.num_rows, 0))

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return self.score.needs(names)
