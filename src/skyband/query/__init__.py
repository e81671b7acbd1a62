"""The queries: frozen descriptions of what is wanted, checked when they are built.

A query holds no state. :class:`skyband.Monitor` and :func:`skyband.spark.run` answer it over a stream.
"""

from collections.abc import Sequence
from typing import Any

from skyband.errors import QueryError
from skyband.query.base import Query
from skyband.query.dominating import TopKDominating
from skyband.query.groups import TopKGroups
from skyband.query.objects import Nearest, TopK
from skyband.query.pairs import TopKPairs

__all__ = ["Nearest", "Query", "TopK", "TopKDominating", "TopKGroups", "TopKPairs", "lowered", "names_of"]


def lowered(query: Query | Sequence[Query]) -> tuple[Query, ...]:
    """The queries that were given (one, or a list or tuple), each as an algorithm sees it; refuses what is no query."""
    given: list[Any] = list(query) if isinstance(query, list | tuple) else [query]
    if not given:
        raise QueryError("there must be at least one query")
    if bad := [q for q in given if not isinstance(q, Query)]:
        sql = ", and SQL text is not read yet" if isinstance(bad[0], str) else ""
        short = text if len(text := repr(bad[0])) < 80 and "\n" not in text else f"a {type(bad[0]).__name__}"
        raise QueryError(f"{short} is not a query{sql}; build one with sb.TopK(...), sb.Nearest(...), "
                         "sb.TopKPairs(...), sb.TopKDominating(...) or sb.TopKGroups(...)")  # fmt: skip
    return tuple(q.lower() for q in given)


def names_of(queries: Sequence[Query]) -> list[str]:
    """What each of several queries is called in the answer: its name, or q0, q1, … if it has none."""
    names = [query.name or f"q{i}" for i, query in enumerate(queries)]
    if len(set(names)) != len(names):
        raise QueryError(f"query names must differ: {', '.join(names)}")
    return names
