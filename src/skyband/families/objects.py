"""The family of objects: rankings of single rows by a score, nearest neighbours among them."""

from collections.abc import Sequence

from skyband.expressions import scoring
from skyband.families.family import Choice, Family, named, shared
from skyband.query import Query, TopK


def _hopping(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].window.hopping:
        return None
    return "mintopk", "windows hop: the minimal set of candidates, folded in pane by pane", {}


def _approximate(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].error or queries[0].window.time:
        return None
    return "pa", f"an error of {queries[0].error:g} is allowed: only objects with a fair chance are kept", {}


def _partitioned(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].partition_by:
        return None
    reason = "every partition has a window that moves with every arrival: a band for each, all of them in one pool"
    return "ra", reason + _unused_error(queries), {}


def _late(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].window.late:
        return None
    return "scase", "rows may come late: the staircase drops those that cannot matter" + _unused_error(queries), {}


def _every_arrival(queries: tuple[Query, ...]) -> Choice | None:
    reason = "the window moves with every arrival: the fastest exact algorithm for it"
    return "rapf", reason + _unused_error(queries), {}


def _unused_error(queries: tuple[Query, ...]) -> str:
    """The words that say why an allowed error is not made use of; none if no error is allowed."""
    if not queries[0].error:
        return ""
    return (f"; an error of {queries[0].error:g} is allowed, but how many objects a time window holds is not known, "
            "which pa(fewest=…, most=…) needs")  # fmt: skip


class Objects(Family):
    """Rankings of rows by a score that Spark can compute by itself."""

    name = "objects"
    queries = (TopK,)
    rules = (named, shared, _hopping, _approximate, _partitioned, _late, _every_arrival)
    sharing = "scase"

    def looks_at(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        return ()  # Spark computes the score

    def scored(self, query: Query) -> scoring.Score | None:
        assert isinstance(query, TopK)
        return scoring.compile_order(query.order_by)

    def carried(self, query: Query, column: str) -> Query:
        return query.but(order_by=f'"{column}" {"DESC" if query.descending else "ASC"}')
