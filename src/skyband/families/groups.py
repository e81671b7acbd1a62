"""The family of groups: groups of rows ranked by an aggregate, and objects assembled from several streams."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.groups.approx import Approx
from skyband.algorithms.groups.partials import SUMS, amounts, merged
from skyband.expressions import find_column
from skyband.families.family import Added, Choice, Family, named
from skyband.query import Query, TopKGroups
from skyband.query.asked import LARGEST


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
    """The rule for an allowed error. It saves memory: in windows of 10,000 rows APPROX takes a 13th of SLA's.

    It saves no time: there it takes twice as long.
    """
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


class Groups(Family):
    """Rankings of groups of rows. Sums and counts are first added up in each task, so that fewer rows travel."""

    name = "groups"
    queries = (TopKGroups,)
    rules = (named, _panes, _other_aggregates, _promised, _approximate, _sums, _default)

    def travels(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        if not self.adds_up(query):
            return self.looks_at(query, names)
        return tuple(find_column(name, names) for name in query.measure().tags[0])  # what tells groups apart

    def carried(self, query: Query, column: str) -> Query:
        if not self.adds_up(query):
            return query
        # The sums contain the weights of streams already.
        return query.but(value=f'"{column}"', aggregate="sum", stream=None, streams=None, weights={}, bounds=None)

    def adds_up(self, query: Query) -> bool:
        """For sums and counts over hopping windows of time, which are made of whole panes.

        If only the number of streams is declared, every row must travel, so that streams can be counted.
        """
        query = cast(TopKGroups, query)
        if query.asked is None or isinstance(query.streams, int):
            return False
        sums = query.asked.alone and query.aggregate in ("sum", "count")
        return sums and query.window.time and self.choose((query,)).algorithm.name == "panes"

    def added(self, group: Ints, pane: Ints, amount: Floats, position: Ints, arrival: Ints) -> Added | None:
        least = int(arrival.min(initial=0))
        parts = merged(amounts(group, pane, amount, position.copy(), arrival - least), SUMS)
        _, high, low = parts.sums
        if np.abs(high).max(initial=0) > LARGEST:  # no amount that a row may have
            return None
        rest = np.flatnonzero(low)
        rows = np.concatenate([np.arange(high.size), rest])
        told = np.concatenate([high, low[rest]])
        return Added(parts.group[rows], told, parts.position[rows], parts.arrival[rows] + least)

    def splits(self, query: Query, alone: bool) -> bool:
        return True

    def together(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        return cast(TopKGroups, query).ids
