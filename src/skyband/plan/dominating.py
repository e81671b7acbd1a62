"""Which algorithm for top-k dominating points."""

from skyband.dominating.ahba import sample_size
from skyband.plan.rules import Choice, Rule, named
from skyband.queries import Query, TopKDominating

LARGEST = 0.2  # beyond this error no guarantee is worth its cost


def _adaptive(queries: tuple[Query, ...]) -> Choice | None:
    query = queries[0]
    if not isinstance(query, TopKDominating) or query.policy != "adaptive":
        return None
    options = {"eps": query.error, "delta": 1 - query.error} if query.error else {}
    return "adaptive", "its policy allows for approximate answers while more comes than the budget", options


def _tiny_error(queries: tuple[Query, ...]) -> Choice | None:
    error, window = queries[0].error, queries[0].window
    if not error or error > LARGEST or window.time or sample_size(error, 1 - error) < window.extent:
        return None
    return "cla", f"samples for an error of {error:g} would hold the whole window, so it is exact at less cost", {}


def _sampled(queries: tuple[Query, ...]) -> Choice | None:
    error = queries[0].error
    if not 0 < error <= LARGEST:
        return None
    return "ahba", f"an error of {error:g} is allowed: samples stand for scores", {"eps": error, "delta": 1 - error}


def _quick(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].error:
        return None
    return "amsa", f"an error of {queries[0].error:g} is allowed: points with low scores are passed over", {}


def _exact(queries: tuple[Query, ...]) -> Choice | None:
    return "cla", "it is the fastest exact one: it counts for few candidates, and bounds the scores of all others", {}


RULES: tuple[Rule, ...] = (named, _adaptive, _tiny_error, _sampled, _quick, _exact)
