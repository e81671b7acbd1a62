"""Which algorithm for top-k pairs."""

import pyarrow as pa

from skyband.algorithms.pairs.compiler import compiled
from skyband.algorithms.pairs.monotone import recognised
from skyband.engine.planner.rules import Choice, Rule, named
from skyband.errors import QueryError
from skyband.query import Query, TopKPairs

LARGE = 50_000  # objects: from about here on TA meets so few of them that its lists pay


def _shared(queries: tuple[Query, ...]) -> Choice | None:
    if len(queries) == 1:
        return None
    return "scase", f"{len(queries)} queries share their scores: one K-skyband serves every k and window length", {}


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


RULES: tuple[Rule, ...] = (named, _shared, _global, _any)
