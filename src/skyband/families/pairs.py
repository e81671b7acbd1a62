"""The family of pairs: rankings of pairs of objects by a score of two."""

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

LARGE = 50_000  # objects: in windows from about this size on, TA looks at so few pairs that its lists are worth keeping


def _global(queries: tuple[Query, ...]) -> Choice | None:
    query = queries[0]
    assert isinstance(query, TopKPairs)
    chromatic = query.terms.tags or query.window.late
    if query.window.time or query.window.extent < LARGE or chromatic or not _is_global(query):
        return None
    return "ta", ("the score rises or falls with the difference of each column, and the window is large: most pairs "
                  "need not be looked at"), {}  # fmt: skip


def _is_global(query: TopKPairs) -> bool:
    """Whether the score is a global function (Shen et al., TKDE 2014, section 5.2), as TA needs.

    The types of the columns are not known yet, so it is assumed that they are numbers.
    """
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
    """Rankings of pairs of rows. If a ranking is spread over cells, any two rows meet in exactly one cell."""

    name = "pairs"
    queries = (TopKPairs,)
    rules = (named, shared, _global, _any)
    sharing = "scase"
    looks_back = True  # a score that is not compiled is computed from the columns
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
        """The least number of groups whose pairs, and the groups by themselves, are as many cells as there are tasks.

        >>> [Pairs().groups(tasks) for tasks in (1, 2, 3, 4, 8, 200)]
        [1, 2, 2, 3, 4, 20]
        """
        return math.ceil((math.sqrt(8 * tasks + 1) - 1) / 2)

    def cells(self, groups: int) -> list[tuple[int, ...]]:
        """A cell for each pair of groups, and for each group by itself.

        >>> Pairs().cells(2)
        [(0,), (0, 1), (1,)]
        """
        return [tuple(sorted({i, j})) for i, j in combinations_with_replacement(range(groups), 2)]

    def across(self, query: Query, group: str) -> Query:
        assert isinstance(query, TopKPairs)
        return query.but(different=(group, *(query.different or ())))  # pairs within a group are found in another cell
