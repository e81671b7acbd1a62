"""What the rest of skyband asks of a family of queries.

A family is a kind of ranking: of objects, of pairs, of dominating points, of groups. Each is one object, whose methods
say all that is particular to it. Nothing outside :mod:`skyband.families` asks which family it has.
"""

import importlib
import pkgutil
from abc import ABC
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple

import pyarrow as pa

from skyband.algorithms.contract import Algorithm, Floats, Ints
from skyband.algorithms.rounds import Rounds
from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query import Query

Choice = tuple[str, str, dict[str, float]]  # the algorithm, the reason, its options
Rule = Callable[[tuple[Query, ...]], Choice | None]


class Added(NamedTuple):
    """Rows that stand for others, with their sums. A sum that does not fit into one double is split over two rows."""

    group: Ints
    amount: Floats
    position: Ints  # that of the newest row summed
    arrival: Ints


class Chosen(NamedTuple):
    """An algorithm for some queries, with its options, and why it was taken."""

    algorithm: type[Algorithm]
    reason: str
    options: dict[str, float]


def named(queries: tuple[Query, ...]) -> Choice | None:
    """The rule that takes the algorithm that the query names: the first rule of every family."""
    name, options = queries[0].algorithm_call()
    return None if name == "auto" else (name, "the query names it", options)


def shared(queries: tuple[Query, ...]) -> Choice | None:
    """The rule for several queries that share one state, in families where ``scase`` can serve them."""
    if len(queries) == 1:
        return None
    return "scase", f"{len(queries)} queries share their scores: one K-skyband serves every k and window length", {}


class Family(ABC):
    """The base of all families. The default of a method suits most of them; :mod:`.pairs` overrides many.

    Attributes:
        name: its name; its algorithms are in the package ``skyband.algorithms.<name>``.
        queries: the kinds of query that its algorithms see.
        rules: how the algorithm for a query is chosen: the first rule that gives an answer decides.
        sharing: the algorithm that serves queries that differ in k and window only with one state; None if none does.
        looks_back: whether its algorithms ask for the columns of objects that they hold.
        size: how many objects a row of the answer is made of.
    """

    name: ClassVar[str]
    queries: ClassVar[tuple[type[Query], ...]]
    rules: ClassVar[tuple[Rule, ...]]
    sharing: ClassVar[str | None] = None
    looks_back: ClassVar[bool] = False
    size: ClassVar[int] = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)  # a family that comes from another process is another object

    def __hash__(self) -> int:
        return hash(type(self))

    # --- which algorithm ----------------------------------------------------------------------------------------------

    def algorithms(self) -> dict[str, type[Algorithm]]:
        """Every algorithm of the family, by name. Those of a new module in its package are found by themselves."""
        return found_in(f"skyband.algorithms.{self.name}")

    def choose(self, queries: tuple[Query, ...]) -> Chosen:
        """Chooses the algorithm for one query, or for several that share a state."""
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
        """The columns that the answer may show, from the columns of the objects that each of its rows is made of."""
        (one,) = objects
        return one

    def objects(self, rows: pa.Table) -> list[pa.Table]:
        """The inverse of :meth:`row`."""
        return [rows]

    def spellings(self, column: str) -> set[str]:
        """The names that :meth:`row` gives to a column of the stream."""
        return {column}

    # --- a stream spread over tasks -----------------------------------------------------------------------------------

    def looks_at(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that a task needs to measure its rows."""
        return query.measure().needs(names)

    def travels(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that a task must send on to the state, beside those of partitions and of the answer."""
        return self.looks_at(query, names)

    def scored(self, query: Query) -> scoring.Score | None:
        """The score of a row, if it is an expression that Spark can compute by itself; else None."""
        return None

    def carried(self, query: Query, column: str) -> Query:
        """The query over the rows that tasks send: ``column`` has the scores, or the sums, that they computed."""
        return query

    def adds_up(self, query: Query) -> bool:
        """Whether tasks send one sum for each group and pane instead of the rows."""
        return False

    def added(self, group: Ints, pane: Ints, amount: Floats, position: Ints, arrival: Ints) -> Added | None:
        """The sums of the rows of each group and pane; None if doubles cannot hold them."""
        raise AssertionError("a family whose rows add up must say to what")

    # --- one ranking spread over tasks --------------------------------------------------------------------------------

    def splits(self, query: Query, alone: bool) -> bool:
        """Whether one ranking (over hopping windows of event time) may be spread over tasks, each with some rows.

        ``alone``: whether it is the only query over the stream.
        """
        return False

    def rounds(self, query: Query, position: str, tie: str) -> Rounds | None:
        """The algorithm by which the cells ask each other; None if the best of what they find by themselves will do.

        ``position`` and ``tie`` name the columns that tell where a row stands, and the newer of two that stand there.
        """
        return None

    def groups(self, tasks: int) -> int:
        """Into how many groups the rows are divided, so that each of ``tasks`` tasks gets a cell or more."""
        return tasks

    def cells(self, groups: int) -> list[tuple[int, ...]]:
        """For each cell the groups whose rows it gets. The answer is the best of what all cells find."""
        return [(group,) for group in range(groups)]

    def together(self, query: Query, names: Sequence[str]) -> tuple[str, ...]:
        """The columns by whose hash rows are divided into groups: rows that are equal in them stay together."""
        return (*query.measure().needs(names), str(query.window.on))

    def across(self, query: Query, group: str) -> Query:
        """The query for a cell that has rows of several groups; the column ``group`` says which group a row is of."""
        raise AssertionError("a family that has such cells must say what is asked of them")


@cache
def found_in(package: str) -> dict[str, type[Algorithm]]:
    """All algorithms in the modules of a package, by name."""
    found: dict[str, type[Algorithm]] = {}
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Algorithm) and "name" in vars(value):
                found[value.name] = value
    return dict(sorted(found.items()))
