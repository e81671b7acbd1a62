"""PreTopk: a predicted top k for the present and every future window."""

import numpy as np

from skyband.algorithms.contract import FOREVER, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import PerKey, best
from skyband.errors import QueryError
from skyband.kernels.common.output import no_output
from skyband.kernels.objects.minimal import Asked
from skyband.kernels.objects.predicted import Predicted, predict
from skyband.order import ranking
from skyband.query import Query
from skyband.storage.blocks import empty, resized

MOST = 50_000_000  # list entries, about 1 GB: beyond it the algorithm is the wrong choice


class PreTopk(PerKey[Predicted]):
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
    state_type = Predicted

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        window, k = self.window, self.query.k
        self._slots = window.extent // window.slide + 1
        if self._slots * k > MOST:
            raise QueryError(f"algorithm='pretopk' keeps {self._slots} lists of {k} for this window; "
                             "take algorithm='mintopk', or a longer slide")  # fmt: skip
        self._asked = Asked(k, self.query.ties == "all", window.extent, window.slide, window.pane, window.time)

    def fresh(self) -> Predicted:
        first = self.window.last_closed(-FOREVER) if self.window.time else 0
        lists = empty(Predicted, wide=dict.fromkeys(("score", "position", "arrival"), self._slots),
                      closes=first, empties=first, newest=-FOREVER)  # fmt: skip
        lists = resized(lists, "places", self.query.k + 1)  # one more: the entry that falls out is written first
        return resized(lists, "windows", self._slots)

    def advance(self, state: Predicted, rows: Rows, frontier: int) -> tuple[Predicted, tuple[Emission, ...]]:
        columns = rows.score, rows.position, rows.arrival
        state, out = predict(state, *columns, frontier, self._asked, no_output())
        return state, (Rankings.of(out),)

    def snapshot(
        self, state: Predicted, waiting: Rows, query: Query, k: int, last: int | None
    ) -> tuple[int, Ints, Floats]:
        window = self.window
        end = window.first_end(self.newest if window.time else int(state.meta[0].newest))
        held = self._listed(state)
        rows = held.join(waiting) if waiting.score.size else held
        rows = rows.take(np.flatnonzero(rows.position >= end - (window.extent if last is None else last)))
        return end, *best(rows, k, self.query.ties == "all")

    def arrivals(self, state: Predicted) -> Ints:
        return self._listed(state).arrival

    def arrived(self, state: Predicted, since: int) -> Ints:
        slide, meta = self.window.slide, state.meta[0]
        first, last = (self.window.last_end(position) // slide for position in (meta.first, meta.newest))
        slots = np.arange(max(first, last - self._slots + 1), last + 1) % self._slots
        arrival = self._listed(state, slots).arrival
        return arrival[arrival >= since]

    def count(self, state: Predicted) -> int:
        return int(state.meta["objects"][0])

    def verify(self, state: Predicted) -> None:
        for slot, held in enumerate(state.held):
            score = state.score[slot, :held]
            order = ranking(score, state.position[slot, :held], state.arrival[slot, :held])
            assert (order == np.arange(held)).all(), "a predicted top k is not in order"
            assert held <= self.query.k or score[self.query.k - 1] == score[-1]
        used = np.arange(state.arrival.shape[1]) < state.held[:, None]
        held = np.unique(state.arrival[used])
        assert held.tolist() == np.sort(self.arrivals(state)).tolist(), "an object is not in its youngest window"
        assert held.size == self.count(state), "what is held is counted wrong"

    def _listed(self, state: Predicted, slots: Ints | None = None) -> Rows:
        """The objects of all lists, or of these, each in that of its youngest window."""
        slots = np.arange(self._slots) if slots is None else slots
        position = state.position[slots]
        used = np.arange(position.shape[1]) < state.held[slots][:, None]
        used &= self.window.last_end(position) // self.window.slide % self._slots == slots[:, None]
        size = np.count_nonzero(used)
        return Rows(state.score[slots][used], position[used], np.zeros(size, np.int64), state.arrival[slots][used])
