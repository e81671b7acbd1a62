"""A whole family in one file, as somebody would add it: rows ranked by how long a text of theirs is."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from skyband.algorithms.contract import FOREVER, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import PerKey, best, join_rankings
from skyband.expressions import find_column
from skyband.families import Family, register
from skyband.families.family import named
from skyband.query import Query
from skyband.query.measures import Measure, Measured
from skyband.query.windows import Window
from skyband.storage import blocks
from skyband.storage.blocks import ARRIVAL, Record, block, column, scalars


@dataclass(frozen=True, repr=False)
class Longest(Query):
    family: ClassVar[str] = "longest"
    k: int
    text: str
    window: Window

    def __post_init__(self):
        self.check()

    def measure(self):
        return Length(self.text)

    def describe(self):
        return f"the {self.k} longest by {self.text}"


class Length(Measure):
    def __init__(self, text):
        self.text = text

    def evaluate(self, table):
        length = pc.utf8_length(table.column(self.text)).cast(pa.float64())
        return Measured(pc.fill_null(length, np.nan).to_numpy(), np.empty((table.num_rows, 0)))

    def needs(self, names):
        return (find_column(self.text, names),)


class Closed(NamedTuple):
    until: int = -FOREVER


@block(version=1)
class Texts(NamedTuple):
    score: Annotated[Floats, column("rows")]
    position: Annotated[Ints, column("rows")]
    arrival: Annotated[Ints, column("rows", holds=ARRIVAL)]
    meta: Annotated[Record, scalars(Closed)]

    def rows(self):
        return Rows(self.score, self.position, np.zeros_like(self.arrival), self.arrival)


class Sorting(PerKey[Texts]):
    """Keeps the rows of all open windows, and sorts those of a window when it closes."""

    name = "sorting"
    serves = frozenset({"hopping"})
    state_type = Texts

    def fresh(self):
        return blocks.empty(Texts)

    def advance(self, state, rows, frontier):
        window, rows = self.window, state.rows().join(rows)
        ends = {end for at in rows.position.tolist()
                for end in range(window.first_end(at), window.last_end(at) + 1, window.slide)}  # fmt: skip
        closed = [self._ranking(rows, end) for end in sorted(ends) if state.meta[0].until < end <= frontier]
        kept = rows.take(rows.position >= window.first_end(frontier) - window.extent)
        left = blocks.empty(Texts, until=frontier)
        return left._replace(score=kept.score, position=kept.position, arrival=kept.arrival), (join_rankings(closed),)

    def snapshot(self, state, waiting, query, k, last):
        end = self.window.first_end(self.newest)
        ranking = self._ranking(state.rows().join(waiting), end)
        return end, ranking.arrival[:k], ranking.score[:k]

    def arrivals(self, state):
        return state.arrival

    def verify(self, state):
        assert (state.position >= state.meta[0].until - self.window.extent).all()

    def _ranking(self, rows, end):
        inside = rows.take((rows.position >= end - self.window.extent) & (rows.position < end))
        arrival, score = best(inside, self.query.k, self.query.ties == "all")
        one = np.array([end]), np.zeros(1, np.int64), np.array([inside.arrival.max()])
        return Rankings(*one, np.array([0, arrival.size]), arrival, score)


class LongestFamily(Family):
    name = "longest"
    queries = (Longest,)
    rules = (named, lambda queries: ("sorting", "it is the only one", {}))

    def algorithms(self):
        return {"sorting": Sorting}

    def splits(self, query, alone):
        return True


register(LongestFamily())


WORDS = np.array(["a", "to", "the", "four", "seven", None, "twelve"])


def batches(count=4, size=60):
    rng = np.random.default_rng(3)
    for first in range(0, count * size, size):
        seconds = np.sort(rng.integers(first // 10, (first + size) // 10, size))
        yield pa.table({"id": np.arange(first, first + size), "ts": pa.array(seconds * 10**6, pa.timestamp("us")),
                        "g": rng.integers(0, 3, size), "word": pa.array(rng.choice(WORDS, size))})  # fmt: skip


def query(**fields):
    return Longest(text="word", **{"k": 3, "window": sb.last("7 seconds", every="2 seconds"), **fields})
