"""What the rest of skyband asks of a family of queries.

A family is a kind of ranking: of objects, of pairs, of dominating points, of groups. It is one object, and all that is
particular to it is an answer that the object gives; nothing outside :mod:`skyband.families` asks which family it has.
"""

import importlib
import pkgutil
from abc import ABC
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple

import pyarrow as pa

from skyband.algorithms.contract import Algorithm, Floats, Ints
from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query import Query

Choice = tuple[str, str, dict[str, float]]  # the algorithm, the reason, its options
Rule = Callable[[tuple[Query, ...]], Choice | None]


class Added(NamedTuple):
    """Rows that stand for others. A sum that takes more than a double is told in two of them."""

    group: Ints
    amount: Floats
    position: Ints  # the newest
    arrival: Ints


class Chosen(NamedTuple):
    """An algorithm for some queries, with its options, and why it was taken."""

    algorithm: type[Algorithm]
    reason: str
    options: dict[str, float]


def named(queries: tuple[Query, ...]) -> Choice | None:
    """The algorithm that the query asks for: the first rule of every family."""
    name, options = queries[0].algorithm_call()
    return None if name == "auto" else (name, "the query names it", options)


def shared(queries: tuple[Query, ...]) -> Choice | None:
    """The algorithm for queries that can share one state; for families in which ``scase`` does that."""
    if len(queries) == 1:
        return None
    return "scase", f"{len(queries)} queries share their scores: one K-skyband serves every k and window length", {}


class Family(ABC):
    """One family. What a method does by default is right for most; :mod:`.pairs` is one that differs.

    Attributes:
        name: what it is called; its algorithms are in the package ``skyband.algorithms.<name>``.
        queries: the kinds of query that its algorithms see.
        rules: which algorithm answers a query; the first rule that has an answer decides.
        shares: whether queries that differ in k and window only may share one state.
        looks_back: whether an algorithm asks for the columns of the objects it holds.
        size: how many objects a row of the answer is made of.
        rounds: whether the parts of a ranking that is spread have to ask each other.
    """

    name: ClassVar[str]
    queries: ClassVar[tuple[type[Query], ...]]
    rules: ClassVar[tuple[Rule, ...]]
    shares: ClassVar[bool] = False
    looks_back: ClassVar[bool] = False
    size: ClassVar[int] = 1
    rounds: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)  # as they come back from another process

    def __hash__(self) -> int:
        return hash(type(self))

    # --- which algorithm ----------------------------------------------------------------------------------------------

    def algorithms(self) -> dict[str, type[Algorithm]]:
        """Every algorithm of the family, by name; a new module in its package is found by itself."""
        return found_in(f"skyband.algorithms.{self.name}")

    def choose(self, queries: tuple[Query, ...]) -> Chosen:
        """An algorithm for queries that share a state."""
        name, reason, options = next(choice for rule in self.rules if (choice := rule(queries)) is not None)
        found = self.algorithms()
        if name not in found:
            raise QueryError(f"algorithm={name!r} is unknown; there are {', '.join(found)}")
        kind = queries[0].window.kind
        if kind not in found[name].serves:
            able = [other for other, algorithm in found.items() if kind in algorithm.serves]
            raise QueryError(f"algorithm={name!r} cannot serve a window that "
                             f"{'hops' if kind == 'hopping' else 'moves with every arrival'}; "
                             f"these can: {', '.join(able)}")  # fmt: skip
        return Chosen(found[name], reason, options)

    # --- columns of the answer ----------------------------------------------------------------------------------------

    def row(self, objects: Sequence[pa.Table]) -> pa.Table:
        """What an answer may show: the columns of the objects that its rows are made of."""
        (one,) = objects
        return one

    def objects(self, rows: pa.Table) -> list[pa.Table]:
        """The inverse of :meth:`row`."""
        return [rows]

    def spellings(self, column: str) -> set[str]:
        """What :meth:`row` calls a column of the stream."""
        return {column}

    # --- a stream spread over tasks -----------------------------------------------------------------------------------

    def looks_at(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that a task needs to measure its rows."""
        return query.measure().needs(names)

    def travels(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that must go on to the state, beside those of partitions and of the answer."""
        return self.looks_at(query, names)

    def scored(self, query: Query) -> scoring.Score | None:
        """The score of a row, where that is an expression that Spark can compute by itself."""
        return None

    def carried(self, query: Query, column: str) -> Query:
        """The query over rows that carry in ``column`` what the tasks worked out: scores, or what rows add up to."""
        return query

    def adds_up(self, query: Query) -> bool:
        """Whether tasks send, instead of the rows of a group in a pane, what they add up to."""
        return False

    def added(self, group: Ints, pane: Ints, amount: Floats, position: Ints, arrival: Ints) -> Added | None:
        """What the rows of each group and pane add up to; None if that cannot be told in doubles."""
        raise AssertionError("a family whose rows add up must say to what")

    # --- one ranking spread over tasks --------------------------------------------------------------------------------

    def splits(self, query: Query, alone: bool) -> bool:
        """Whether several tasks may work on one ranking over hopping windows of event time, each on a part of its rows.

        ``alone``: no other query is put to the stream with it.
        """
        return False

    def groups(self, tasks: int) -> int:
        """Into how many groups rows fall, so that each of so many tasks gets a cell, or more than one."""
        return tasks

    def cells(self, groups: int) -> list[tuple[int, ...]]:
        """The groups whose rows each cell gets. What the cells find best is put together, and the best of it taken."""
        return [(group,) for group in range(groups)]

    def together(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """Rows that are equal in these columns fall into one group."""
        return (*query.measure().needs(names), str(query.window.on))

    def across(self, query: Query, group: str) -> Query:
        """The query of a cell with the rows of several groups; the column ``group`` tells them apart."""
        raise AssertionError("a family that has such cells must say what is asked of them")


@cache
def found_in(package: str) -> dict[str, type[Algorithm]]:
    """The algorithms in the modules of a package, by name."""
    found: dict[str, type[Algorithm]] = {}
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Algorithm) and "name" in vars(value):
                found[value.name] = value
    return dict(sorted(found.items()))
