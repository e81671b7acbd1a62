"""Which algorithm for groups of rows, and for objects assembled from several streams."""

from typing import cast

from skyband.algorithms.groups.approx import Approx
from skyband.engine.planner.rules import Choice, Rule, named
from skyband.query import Query, TopKGroups


def _panes(queries: tuple[Query, ...]) -> Choice | None:
    query = cast(TopKGroups, queries[0])
    if not query.window.hopping or query.asked is None:
        return None
    return "panes", "windows hop: rows of a group are brought together pane by pane, panes enter and leave", {}


def _other_aggregates(queries: tuple[Query, ...]) -> Choice | None:
    query = cast(TopKGroups, queries[0])
    if query.asked is None or query.adds_up:
        return None
    return "tally", "it is over all rows of a group: rows that come and expire enter and leave its aggregates", {}


def _approximate(queries: tuple[Query, ...]) -> Choice | None:
    """It saves memory, not time: in windows of 10,000 rows it takes twice as long as SLA, and a 13th of the memory."""
    query = cast(TopKGroups, queries[0])
    error = query.error
    if not query.sketched:
        return None
    reason = (f"an error of {error:g} is allowed, and it saves memory, though no time: objects are dropped that will "
              "hardly be reported by more streams")  # fmt: skip
    return "approx", reason, Approx.implied(query)


def _promised(queries: tuple[Query, ...]) -> Choice | None:
    query = cast(TopKGroups, queries[0])
    if not query.promises:
        return None
    return "eaa", (f"no stream reports an object more than {query.most} times, and its values have bounds: "
                   "objects are dropped that cannot reach the top k any more"), {}  # fmt: skip


def _sums(queries: tuple[Query, ...]) -> Choice | None:
    if cast(TopKGroups, queries[0]).asked is None:
        return None
    return "tally", "it is over all rows of a group: rows that come and expire enter and leave its sum", {}


def _default(queries: tuple[Query, ...]) -> Choice | None:
    return "sla", "it is exact for every window and aggregate, whatever comes", {}


RULES: tuple[Rule, ...] = (named, _panes, _other_aggregates, _promised, _approximate, _sums, _default)
