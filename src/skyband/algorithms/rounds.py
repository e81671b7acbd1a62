"""Messages between the parts of a ranking whose windows lie in several parts, and where a part keeps its rows.

A *part* is a task that holds some of the rows of a stream. An algorithm in rounds tells what a part sends to the others
when a window closes, and what it makes of what they send; whoever runs the parts carries the messages.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa

from skyband.algorithms.contract import Ints


class Points(NamedTuple):
    """To the second round of the same part: its new rows, as a column of positions and one for each dimension."""

    part: int
    rows: pa.Table


class Proposal(NamedTuple):
    """To the second round of all parts: the rows of a window that may be among its top k."""

    end: int  # of the window
    part: int  # that proposes them
    rows: pa.Table


class Count(NamedTuple):
    """To the third round: how many of a part's points each row of a proposal dominates."""

    end: int
    part: int  # that proposed the rows
    counts: Ints
    rows: pa.Table | None  # told once, by the part that proposed them


class Scored(NamedTuple):
    """The rows that a part proposed for a window, and how many points of the window each dominates."""

    end: int
    rows: pa.Table
    score: Ints


class Panes(Protocol):
    """Where a part keeps rows by the pane they are in: each pane by itself, so that only those are written that change.

    Attributes:
        sizes: how many rows there are of each pane that has been put and not dropped.
    """

    @property
    def sizes(self) -> Mapping[int, int]: ...
    def get(self, pane: int) -> pa.Table: ...
    def put(self, pane: int, rows: pa.Table) -> None: ...
    def drop(self, pane: int) -> None: ...


class Proposing(Protocol):
    """The first round of a part: takes rows in, and proposes some of them for each window that closes."""

    late: int  # how many rows came too late

    def take(self, rows: pa.Table) -> Points: ...
    def advance(self, frontier: int) -> Iterator[Proposal]: ...


class Counting(Protocol):
    """The second round of a part: answers the proposals of all parts."""

    def take(self, points: Points) -> None: ...
    def count(self, proposals: Iterable[Proposal], frontier: int) -> Iterator[Count]: ...


class Rounds(Protocol):
    """An exact algorithm for windows whose rows lie in several parts."""

    def proposing(self, part: int, panes: Panes, frontier: int) -> Proposing: ...
    def counting(self, part: int, panes: Panes) -> Counting: ...
    def totals(self, counts: Iterable[Count]) -> list[Scored]: ...
