"""Which algorithm for objects assembled from several streams."""

from skyband.plan.rules import Choice, Rule, named
from skyband.queries import Query


def _default(queries: tuple[Query, ...]) -> Choice | None:
    return "sla", "it is exact for every window", {}


RULES: tuple[Rule, ...] = (named, _default)
