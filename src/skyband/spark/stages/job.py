"""The job: what every task must know to answer a query. It travels to the workers, so it does without pyspark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from skyband.algorithms.contract import NO_CHANGES, NO_RANKINGS, FromPanes
from skyband.engine.planner import Plan, plan_for
from skyband.engine.writer import Layout, Written
from skyband.families import Family, register
from skyband.query import Query
from skyband.query.measures import Measure
from skyband.spark.stages.spread import Local

PLACES = 48  # shards with unequal work are spread evenly over any number of tasks that divides this number

Emit = Literal["final", "changes", "latest"]

# Columns that travel beside the user's own: the score, the position, and the order of objects that tie.
SCORE, TIME, TIE = "_skyband_score", "_skyband_time", "_skyband_tie"
# With a sequence column, tasks send counts of each pane: the pane; how many numbers came, and the highest of them; how
# many of these are objects, and the highest of those.
PANE, COUNT, HIGHEST, VALID, LAST = (f"_skyband_{name}" for name in ("pane", "count", "highest", "valid", "last"))


@dataclass(frozen=True)
class Job:
    """One query over a DataFrame, and how its state is shared.

    Attributes:
        query: the query as the user gave it.
        family: its family. It travels with the job, since a worker may not know a family that is not skyband's own.
        schema: the user's columns that must travel: those of the partitions and of the answer.
        kind: the type of the event-time or sequence column; None if rows count in the order of their arrival.
        latest: whether the ranking as it stands is wanted, instead of final windows or changes.
        shards: the names of the shards, which are numbers; partitions are spread over them by hash.
        chunks: the number of pieces of the state of each shard. A micro-batch rewrites only the pieces it touches.
        score: the column of scores; None if a Python function computes them.
        passes: the column that says whether ``where`` is true; None if every row that comes passes.
        time: the column of positions; None if rows count in the order of their arrival.
        tie: the column that orders objects that tie in score and event time; None if there is none.
        part: the column that says which piece of the state, or which group, a row is for; None if there is only one.
        groups: into how many groups the rows are divided if one ranking is spread over the shards; else 1.
    """

    query: Query
    family: Family
    schema: pa.Schema
    kind: pa.DataType | None
    latest: bool
    shards: tuple[int, ...]
    chunks: int
    score: str | None
    passes: str | None
    time: str | None
    tie: str | None
    part: str | None
    groups: int = 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        register(state["family"])
        self.__dict__.update(state)

    @property
    def spread(self) -> bool:
        """Whether one ranking is spread over several shards (see :mod:`skyband.spark.stages.spread`)."""
        return self.groups > 1

    def crosses(self, shard: int) -> bool:
        """Whether a shard has the rows of several groups, and is to combine rows of different groups only."""
        return self.spread and len(self.family.cells(self.groups)[self.shards.index(shard)]) > 1

    @property
    def rounds(self) -> bool:
        """Whether the shards have to ask each other (see :mod:`skyband.spark.stages.rounds`)."""
        return self.spread and self.family.rounds(self.query, TIME, TIE) is not None

    def places(self, part: int) -> list[tuple[int, int]]:
        """Where the rows of a part go: pairs of a shard and a piece of its state. A group may go to several shards."""
        if not self.spread:
            return [(self.shards[part // self.chunks], part % self.chunks)]
        owners = zip(self.shards, self.family.cells(self.groups), strict=True)
        return [(shard, 0) for shard, groups in owners if part in groups]

    @property
    def pruned(self) -> bool:
        """Whether tasks send only the top k of each pane: for hopping windows, if a row's position is known there."""
        whole = self.query.window.hopping and self.time is not None
        return whole and issubclass(prepare(self).plan.algorithm, FromPanes)

    @cached_property
    def summed(self) -> bool:
        """Whether tasks send only the sums of each group and pane."""
        return self.family.adds_up(self.query)

    @property
    def fewer(self) -> bool:
        """Whether tasks send fewer rows than they get; which rows are late is then decided pane by pane."""
        return self.pruned or self.summed

    @property
    def sequence(self) -> bool:
        """Whether the window goes by a sequence column."""
        return self.time is not None and not self.query.window.time

    def spec(self) -> dict[str, Any]:
        """A description of the job as plain JSON values, saved with the state to tell whose it is."""
        columns = [[field.name, str(field.type)] for field in self.schema]
        return {"query": self.query.spec(), "columns": columns, "on": str(self.kind), "arrival": self.tie,
                "latest": self.latest, "shards": len(self.shards), "chunks": self.chunks,
                "groups": self.groups, **({"cells": list(self.shards)} if self.spread else {})}  # fmt: skip


class Prepared(NamedTuple):
    """What follows from a job: it takes too long to compute for every batch."""

    query: Query  # over the rows that travel, which have their position and, for objects, their score
    measure: Measure  # that of the user's query
    plan: Plan
    across: Plan  # for a shard that crosses groups
    layout: Layout
    local: Layout  # the form of a shard's answer: that of the query, unless the ranking is spread
    travelling: pa.Schema
    answer: pa.Schema


@lru_cache(maxsize=256)
def prepare(job: Job) -> Prepared:
    """Prepares a job, once in each process: Spark uses its Python workers again and again."""
    query = job.query
    changes: dict[str, Any] = {} if job.kind is None else {"window": replace(query.window, on=TIME)}
    if query.row_condition is not None:
        changes["where"] = None
    placed = job.family.carried(query.but(**changes), SCORE)
    own = pa.schema([(SCORE, pa.float64()), (TIME, job.kind or pa.int64()), (TIE, pa.int64())])
    layout = Layout(placed, pa.schema([*job.schema, *own]), job.schema.names)
    group = [pa.field(job.part, pa.int32())] if job.spread and job.part else []
    travelling = pa.schema([*job.schema, *group, *own.set(1, pa.field(TIME, pa.int64()))])
    local = Local(placed, travelling) if job.spread else layout
    plan = across = plan_for((placed,))
    if job.part and any(map(job.crosses, job.shards)):
        across = plan_for((job.family.across(placed, job.part),))
    return Prepared(placed, query.measure(), plan, across, layout, local, travelling, _answer_schema(job, layout))


def _answer_schema(job: Job, layout: Layout) -> pa.Schema:
    rows = job.schema.empty_table()
    keys = rows.select(job.query.partition_by) if job.query.partition_by else None
    rows = job.family.row([rows] * job.family.size)
    nothing = Written(NO_RANKINGS.end, keys, NO_RANKINGS.end, NO_RANKINGS.arrival, NO_RANKINGS.score)
    if job.latest:
        return layout.snapshot(nothing, rows).schema
    if job.query.window.hopping:
        return layout.rankings(nothing, rows).schema
    return layout.changes(NO_CHANGES, rows, keys).schema


def shard_names(count: int) -> list[int]:
    """Names for shards with equal work: numbers that Spark's hash sends to ``count`` different tasks.

    >>> shard_names(4)
    [0, 2, 6, 12]
    """
    names: dict[int, int] = {}
    number = 0
    while len(names) < count:
        names.setdefault(_murmur3(number) % count, number)
        number += 1
    return sorted(names.values())


def cell_names(work: Sequence[int]) -> list[int]:
    """Names for shards with unequal work: numbers that Spark's hash spreads evenly over any usual number of tasks.

    The number of tasks is not known, since a checkpoint may go on with more cores. Zero is always among the names, here
    and above: the shard 0 finds out if a checkpoint was written with other shards.

    >>> [_murmur3(name) % 2 for name in cell_names([1, 2, 1])]
    [0, 1, 0]
    """
    load = {tasks: [0] * tasks for tasks in range(2, PLACES + 1) if PLACES % tasks == 0}
    waiting: list[list[int]] = [[] for _ in range(PLACES)]
    for shard in sorted(range(len(work)), key=lambda shard: -work[shard]):
        place = min(range(PLACES), key=lambda place: sum(tasks * load[tasks][place % tasks] for tasks in load))
        waiting[place].append(shard)
        for tasks in load:
            load[tasks][place % tasks] += work[shard]
    names: dict[int, int] = {}
    number = 0
    while len(names) < len(work):
        if shards := waiting[(_murmur3(number) - _murmur3(0)) % PLACES]:
            names[shards.pop(0)] = number
        number += 1
    return [names[shard] for shard in range(len(work))]


def _murmur3(number: int) -> int:
    """Spark's hash of an int: 32-bit MurmurHash3 with the seed 42, as a signed number."""
    mask = 0xFFFFFFFF
    k = number * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) * 0x1B873593 & mask
    h = 42 ^ k
    h = ((h << 13 | h >> 19) & mask) * 5 + 0xE6546B64 & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
