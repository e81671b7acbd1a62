"""EVA: the event-based algorithm."""

from typing import ClassVar

import numpy as np

from skyband.algorithms.contract import Ints
from skyband.algorithms.dominating.base import Dominating, State
from skyband.kernels.dominating import events as kernel
from skyband.kernels.dominating.events import Events, no_events
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN
from skyband.kernels.dominating.ledger import SIZE, Ledger, empty_ledger, with_slots
from skyband.kernels.dominating.space import CELL, HEAD, TAIL, Points, Space, all_points
from skyband.kernels.dominating.steps import anew, event_steps, told_of
from skyband.kernels.dominating.tell import Told, all_told


class EVA(Dominating):
    """The *event-based algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 4 and Figure 5.

    Only the top k have exact scores. Every other point has an *event*: a bound of its score, and the time when it may
    at the earliest be among the top k, since the k-th score falls and its own grows by no more than one in an update
    (Lemma 1). Until then it is left alone; when the time comes, a new bound is made of the old one (section 4.1), and
    only if that does not do is its score counted. For an arriving point a bound comes from a point that dominates it
    (section 4.2).

    Errata and readings:
        - Equation (1): the ceiling covers half the difference of the scores.
        - Line 22: an event lies at least one update ahead, or the loop of lines 9–18 would not end.
        - Lines 9–18 after a point of the top k has expired, when all events are due: the point with the largest bound
          is looked at first, since any other would let worse ones through to be counted.
    Deviations:
        - Section 8: time counts updates, and a step with a arrivals and x expirations is max(a, x) of them.
        - When more than half of the window comes in one step, the top k are found from scratch, best bound first.
        - The cells of the grid are parted by quantiles, and there are about n / 32 of them in any number of dimensions.
        - Equal points have the same score: the bound of one serves for the other, and a score that is known is not
          counted again. One whose bound is just the k-th score, and which is older than the k-th, is not counted.
    """

    name = "eva"
    extra = (Ledger, Events)
    mode: ClassVar[int] = kernel.EVA

    def spare(self) -> tuple[State, ...]:
        return with_slots(empty_ledger(self.d), 1), no_events(1, 1, self.mode)

    def take(self, state: State, rows: Points, steps: Ints) -> tuple[State, Told]:
        space, ledger, samples, events = self.parts(state)
        setting, told, at = self.setting(space), [], 0
        while at < steps.shape[1]:
            ledger, samples, events, part, at = event_steps(
                space, ledger, samples, events, rows, steps, at, setting, self.work
            )
            told.append(part)
            if events.meta[kernel.FORCED]:
                ledger, samples, events = anew(space, ledger, samples, events, setting, self.work)
                told.append(told_of(ledger, rows, steps, at - 1))
        return self.whole(state, space, ledger, samples, events), all_told(told)

    def setting(self, space: Space) -> Ints:
        """What the kernel is to know beside the state."""
        window = self.window
        n = int(space.meta[TAIL] - space.meta[HEAD]) if window.time else window.extent
        candidates = int(n * self.parameters.get("maxcand", 0.01))
        steady = window.extent if not window.time and window.on is None else 0
        eps = round(1e6 * self.parameters.get("eps", 0))
        return np.array([self.k, self.ties, steady, candidates, self.samples(), eps])

    def samples(self) -> int:
        """How many points of a cell are sampled."""
        return 0

    def moved(self, state: State, old: Space, slots: Ints, entry: Ints) -> State:
        space, ledger, _, events = self.parts(state)
        new = no_events(space.slots.shape[1], space.cells.shape[1], int(events.meta[kernel.MODE]))
        near = new.meta[kernel.NEAR]
        new.event[kernel.BASE, : slots.size] = np.where(entry == OPEN, BIG, events.event[kernel.BASE, slots])
        new.meta[:] = events.meta
        new.meta[kernel.NEAR], new.meta[kernel.SEEN], new.meta[kernel.FORCED], new.meta[kernel.RATE] = near, -1, 1, -1
        samples = with_slots(empty_ledger(self.d), space.slots.shape[1])
        return self.whole(state, space, ledger, samples, new)

    def verify(self, state: State) -> None:
        super().verify(state)
        space, ledger, samples, events = self.parts(state)
        slots, x = all_points(space)
        entry, event, meta = ledger.entry[slots], events.event, events.meta
        assert (entry != OPEN).all() and samples.meta[SIZE] == np.count_nonzero(samples.entry >= 0)
        dominates = (x[:, None] <= x).all(axis=2) & (x[:, None] < x).any(axis=2)
        plain = (entry < 0) & (entry != NEVER)
        bound = event[kernel.BASE, slots] + meta[kernel.ARRIVED]
        assert not self.exact or (dominates.sum(axis=1) <= bound)[plain].all(), "a bound is too low"
        queued = 0
        for bucket, slot in enumerate(events.queue):
            while slot >= 0:
                assert event[kernel.BUCKET, slot] == bucket and ledger.entry[slot] < 0, "an event is out of place"
                queued, slot = queued + 1, event[kernel.NEXT, slot]
        assert queued == np.count_nonzero(event[kernel.BUCKET, slots] >= 0), "an event is lost"
        if meta[kernel.MODE] >= kernel.ADA and not meta[kernel.FORCED]:
            newer = np.triu(np.ones((slots.size, slots.size), bool), 1).T
            counted = events.mark[kernel.NEWER_HERE, space.slots[CELL, slots]] - event[kernel.NEWER, slots]
            assert (counted <= (dominates & newer).sum(axis=0)).all(), "a point has fewer dominators than are counted"
