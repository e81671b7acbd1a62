"""Which algorithm for objects assembled from several streams."""

from typing import cast

from skyband.plan.rules import Choice, Rule, named
from skyband.queries import Query, TopKIncomplete
from skyband.queries.incomplete import ADDITIVE


def _sums_of_panes(queries: tuple[Query, ...]) -> Choice | None:
    query = cast(TopKIncomplete, queries[0])
    if not query.window.hopping or query.occurrences != "many" or query.aggregate not in ADDITIVE:
        return None
    return "panes", "windows hop and amounts add up: partial sums by pane, windows as differences of panes", {}


def _default(queries: tuple[Query, ...]) -> Choice | None:
    return "sla", "it is exact for every window and aggregate, whatever comes", {}


RULES: tuple[Rule, ...] = (named, _sums_of_panes, _default)
