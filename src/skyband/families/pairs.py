"""Top-k pairs: a score for every two objects of the window."""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import pyarrow as pa

from skyband.algorithms.pairs.compiler import compiled
from skyband.algorithms.pairs.monotone import recognised
from skyband.errors import QueryError
from skyband.families.family import Choice, Family, named, shared
from skyband.query import Query, TopKPairs
from skyband.query.sides import SIDES, beside

LARGE = 50_000  # objects: from about here on TA meets so few of them that its lists pay


def _global(queries: tuple[Query, ...]) -> Choice | None:
    query = queries[0]
    assert isinstance(query, TopKPairs)
    chromatic = query.terms.tags or query.window.late
    if query.window.time or query.window.extent < LARGE or chromatic or not _is_global(query):
        return None
    return "ta", ("the score rises or falls with the difference of each column, and the window is large: most pairs "
                  "need not be looked at"), {}  # fmt: skip


def _is_global(query: TopKPairs) -> bool:
    """Whether the score is a global function, if its columns are numbers; which they are is known only later."""
    sources = [source for source in (query.terms.score, query.terms.condition) if source is not None]
    names = dict.fromkeys(name[2:] for source in sources for name in source.columns or ())
    try:
        fitted = query.terms.fit(pa.schema([(name, pa.float64()) for name in names]))
    except QueryError:
        return False
    return recognised(fitted) is not None and compiled(fitted) is not None


def _any(queries: tuple[Query, ...]) -> Choice | None:
    return "scase", "it takes any score: one K-skyband, and a staircase that most new pairs do not pass", {}


class Pairs(Family):
    """Rankings of pairs of rows. Two rows meet in one cell exactly, of those that share a ranking."""

    name = "pairs"
    queries = (TopKPairs,)
    rules = (named, shared, _global, _any)
    shares = True
    looks_back = True  # a score that is not compiled is that of columns
    size = 2

    def row(self, objects: Sequence[pa.Table]) -> pa.Table:
        return beside(*objects)

    def objects(self, rows: pa.Table) -> list[pa.Table]:
        sides = [rows.select([name for name in rows.column_names if name.startswith(side)]) for side in SIDES]
        names = [name.removeprefix(SIDES[0]) for name in sides[0].column_names]
        return [side.rename_columns(names) for side in sides]

    def spellings(self, column: str) -> set[str]:
        return {side + column for side in SIDES}

    def splits(self, query: Query, alone: bool) -> bool:
        return True

    def groups(self, tasks: int) -> int:
        """So many that each two of them, and each by itself, make a cell for a task.

        >>> [Pairs().groups(tasks) for tasks in (1, 2, 3, 4, 8, 200)]
        [1, 2, 2, 3, 4, 20]
        """
        return math.ceil((math.sqrt(8 * tasks + 1) - 1) / 2)

    def cells(self, groups: int) -> list[tuple[int, ...]]:
        """Each two groups, and each by itself.

        >>> Pairs().cells(2)
        [(0,), (0, 1), (1,)]
        """
        return [tuple(sorted({i, j})) for i, j in combinations_with_replacement(range(groups), 2)]

    def across(self, query: Query, group: str) -> Query:
        assert isinstance(query, TopKPairs)
        return query.but(different=(group, *(query.different or ())))  # those within a group have a cell of their own
