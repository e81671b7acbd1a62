"""Which algorithm for top-k objects."""

from skyband.engine.planner.rules import Choice, Rule, named
from skyband.query import Query


def _shared(queries: tuple[Query, ...]) -> Choice | None:
    if len(queries) == 1:
        return None
    return "scase", f"{len(queries)} queries share their scores: one K-skyband serves every k and window length", {}


def _hopping(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].window.hopping:
        return None
    return "mintopk", "windows hop: the minimal set of candidates, folded in pane by pane", {}


def _approximate(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].error or queries[0].window.time:
        return None
    return "pa", f"an error of {queries[0].error:g} is allowed: only objects with a fair chance are kept", {}


def _late(queries: tuple[Query, ...]) -> Choice | None:
    if not queries[0].window.late:
        return None
    return "scase", "rows may come late: the staircase drops those that cannot matter" + _unused_error(queries), {}


def _every_arrival(queries: tuple[Query, ...]) -> Choice | None:
    reason = "the window moves with every arrival: the fastest exact algorithm for it"
    return "rapf", reason + _unused_error(queries), {}


def _unused_error(queries: tuple[Query, ...]) -> str:
    """Why an error that is allowed is not made use of."""
    if not queries[0].error:
        return ""
    return (f"; an error of {queries[0].error:g} is allowed, but how many objects a time window holds is not known, "
            "which pa(fewest=…, most=…) needs")  # fmt: skip


RULES: tuple[Rule, ...] = (
    named, _shared, _hopping, _approximate, _late, _every_arrival,
)  # fmt: skip
