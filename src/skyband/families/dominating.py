"""The family of dominating points: objects that are better than most others in every respect.

Approximate algorithms are taken only if the query names one or has the policy for it: in windows that the stream fills,
the fastest of them takes longer than the fastest exact one (``benchmarks/dominating.py --filled``).
"""

from skyband.algorithms.dominating.distributed import Asked
from skyband.algorithms.rounds import Rounds
from skyband.families.family import Choice, Family, named
from skyband.query import Query, TopKDominating

SMALL = 1_000  # in windows of up to so many points, keeping all scores takes no longer than bounding them
MANY = ((14, 100_000), (10, 50_000))  # from so many dimensions on, in windows of up to so many points, CLA may be slow


def _adaptive(queries: tuple[Query, ...]) -> Choice | None:
    query = queries[0]
    if not isinstance(query, TopKDominating) or query.policy != "adaptive":
        return None
    options = {"eps": query.error, "delta": 1 - query.error} if query.error else {}
    return "adaptive", "its policy allows for approximate answers while more comes than the budget", options


def _small(queries: tuple[Query, ...]) -> Choice | None:
    window = queries[0].window
    if window.time or window.extent > SMALL:
        return None
    return (
        "bfa",
        f"the window holds no more than {SMALL:,} points: to keep all scores takes no longer than to bound them",
        {},
    )


def _many_dimensions(queries: tuple[Query, ...]) -> Choice | None:
    query = queries[0]
    assert isinstance(query, TopKDominating)
    d, window = len(query.dimensions), query.window
    if window.time or not any(d >= least and window.extent <= most for least, most in MANY):
        return None
    reason = f"in {d} dimensions few points dominate others, so that bounds hardly tell them apart: all scores are kept"
    return "bfa", reason, {}


def _exact(queries: tuple[Query, ...]) -> Choice | None:
    return "cla", "it counts for few candidates, and bounds the scores of all others", {}


class Dominating(Family):
    """Rankings of points by how many others they dominate."""

    name = "dominating"
    queries = (TopKDominating,)
    rules = (named, _adaptive, _small, _many_dimensions, _exact)

    def splits(self, query: Query, alone: bool) -> bool:
        assert isinstance(query, TopKDominating)  # parts that ask each other are an exact algorithm of their own
        return alone and query.algorithm == "auto" and query.policy == "exact"

    def rounds(self, query: Query, position: str, tie: str) -> Rounds | None:
        return Asked(query, position, tie)
