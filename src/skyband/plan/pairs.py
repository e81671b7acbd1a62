"""Which algorithm for top-k pairs."""

from skyband.plan.rules import Choice, Rule, named
from skyband.queries import Query


def _default(queries: tuple[Query, ...]) -> Choice | None:
    return "scase", "it is exact for every window", {}


RULES: tuple[Rule, ...] = (named, _default)
