"""PreTopk: a predicted top k for the present and every future window."""

import numpy as np

from skyband.algorithms.contract import FOREVER, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import PerKey, best
from skyband.errors import QueryError
from skyband.kernels.objects import predicted
from skyband.order import ranking
from skyband.query import Query

State = predicted.Predicted
MOST = 50_000_000  # list entries, about 1 GB: beyond it the algorithm is the wrong choice


class PreTopk(PerKey[State]):
    """PreTopk of Yang et al. (EDBT 2011), section 3.2: the step before MinTopk, kept to compare with.

    Every window that an arriving object will be part of has a predicted top k of its own, and the object is put into
    each that takes it. Expiry is free: the list of a closed window is dropped. The distinct objects held are the
    minimal set, as in MinTopk, but there are k · win/slide references to them, and an insertion costs up to win/slide
    steps.

    Deviations: the windows of an object are tried from the youngest back, and no further than the first that refuses
    it, since older windows hold the same objects and more; with ``ties="all"`` a list may grow past k.
    """

    name = "pretopk"
    serves = frozenset({"hopping"})
    any_last = False
    state_type = State

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        window, k = self.window, self.query.k
        self._slots = window.extent // window.slide + 1
        if self._slots * k > MOST:
            raise QueryError(f"algorithm='pretopk' keeps {self._slots} lists of {k} for this window; "
                             "take algorithm='mintopk', or a longer slide")  # fmt: skip
        self._spec = predicted.Spec(k, self.query.ties == "all", window.extent, window.slide, window.time)

    def fresh(self) -> State:
        # A slot more than k: the entry that falls out is written first.
        room = self._slots * (self.query.k + 1)
        first = -FOREVER // self.window.slide * self.window.slide if self.window.time else 0
        meta = np.array([first, first, -FOREVER])
        return State(np.zeros(self._slots, np.int64), np.empty(room), np.empty(room, np.int64),
                     np.empty(room, np.int64), meta)  # fmt: skip

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        state, out = predicted.predict(state, rows.score, rows.position, rows.arrival, frontier, self._spec)
        return state, (Rankings.of(out),)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window = self.window
        end = window.first_end(self.newest if window.time else int(state.meta[2]))
        held = self._held(state)
        rows = held.join(waiting) if waiting.score.size else held
        rows = rows.take(np.flatnonzero(rows.position >= end - (window.extent if last is None else last)))
        return end, *best(rows, k, self.query.ties == "all")

    def arrivals(self, state: State) -> Ints:
        return self._held(state).arrival

    def verify(self, state: State) -> None:
        width = state.score.size // self._slots
        for slot in range(self._slots):
            part = slice(slot * width, slot * width + state.size[slot])
            order = ranking(state.score[part], state.position[part], state.arrival[part])
            assert (order == np.arange(order.size)).all(), "a predicted top k is not in order"
            assert order.size <= self.query.k or state.score[part][self.query.k - 1] == state.score[part][-1]

    def _held(self, state: State) -> Rows:
        """The distinct objects of all lists."""
        width = state.score.size // self._slots
        used = (np.arange(width) < state.size[:, None]).ravel()
        arrival, first = np.unique(state.arrival[used], return_index=True)
        return Rows(state.score[used][first], state.position[used][first], np.zeros(first.size, np.int64), arrival)
