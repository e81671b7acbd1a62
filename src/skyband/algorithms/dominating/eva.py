"""EVA: the event-based algorithm."""

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from skyband.algorithms.contract import Ints
from skyband.algorithms.dominating.base import Clock, Dominating
from skyband.kernels.dominating import events as kernel
from skyband.kernels.dominating.decide import Setting
from skyband.kernels.dominating.events import Events, EventsMeta, no_events
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN
from skyband.kernels.dominating.ledger import Ledger, LedgerMeta, empty_ledger
from skyband.kernels.dominating.space import Points, Space, all_points
from skyband.kernels.dominating.steps import anew, event_steps, told_after
from skyband.kernels.dominating.tell import Steps, Told
from skyband.storage.blocks import Record, block, plain, scalars


@block(version=1)
class Expectant(NamedTuple):
    """The state of a partition: with an event for each point that is not in the ledger."""

    space: Space
    ledger: Ledger
    clock: Annotated[Record, scalars(Clock)]
    samples: Ledger  # AHBA: a sample of the window; its scores mean nothing
    events: Events


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
    mode: ClassVar[int] = kernel.EVA
    state_type = Expectant

    def further(self) -> dict[str, Any]:
        return {"samples": empty_ledger(self.d), "events": no_events(1, 1, self.k, self.mode)}

    def take(self, state: Expectant, rows: Points, steps: Steps, told: Told) -> tuple[Expectant, Told]:
        space, ledger, _, samples, events = state
        setting, at = self.setting(state), 0
        while at < steps.high.size:
            ledger, samples, told, at = event_steps(
                space, ledger, samples, events, told, rows, steps, at, setting, self.work
            )
            if plain(EventsMeta, events.meta).forced:
                ledger, samples = anew(space, ledger, samples, events, setting, self.work)
                told, ledger = told_after(told, ledger, rows, steps, at - 1)
        return state._replace(ledger=ledger, samples=samples), told

    def setting(self, state: Expectant) -> Setting:
        """What the kernel is to know beside the state."""
        window = self.window
        n = self.count(state) if window.time else window.extent
        candidates = int(n * self.parameters.get("maxcand", 0.01))
        steady = window.extent if not window.time and window.on is None else 0
        return Setting(self.k, self.ties, steady, candidates, self.samples(), float(self.parameters.get("eps", 0)))

    def samples(self) -> int:
        """How many points of a cell are sampled."""
        return 0

    def moved(self, state: Expectant, old: Space, slots: Ints, entry: Ints) -> Expectant:
        space, events, meta = state.space, state.events, plain(EventsMeta, state.events.meta)
        new = no_events(space.slots.cell.size, space.cells.members.size, self.k, meta.mode)
        new.base[: slots.size] = np.where(entry == OPEN, BIG, events.base[slots])
        near = plain(EventsMeta, new.meta).near
        new.meta[0] = tuple(meta._replace(near=near, seen=-1, ahead=0, levels=0, forced=1, rate=-1))
        return state._replace(samples=empty_ledger(self.d, space.slots.cell.size), events=new)

    def verify(self, state: Expectant) -> None:
        super().verify(state)
        space, ledger, _, samples, events = state
        meta, sampled = plain(EventsMeta, events.meta), plain(LedgerMeta, samples.meta).held
        slots, x = all_points(space)
        entry = ledger.entry[slots]
        assert (entry != OPEN).all() and sampled == np.count_nonzero(samples.entry >= 0)
        dominates = (x[:, None] <= x).all(axis=2) & (x[:, None] < x).any(axis=2)
        bounded = (entry < 0) & (entry != NEVER)
        bound = events.base[slots] + meta.arrived
        assert not self.exact or (dominates.sum(axis=1) <= bound)[bounded].all(), "a bound is too low"
        queued = 0
        for bucket, slot in enumerate(events.queue):
            while slot >= 0:
                assert events.bucket[slot] == bucket and ledger.entry[slot] < 0, "an event is out of place"
                queued, slot = queued + 1, events.after[slot]
        assert queued == np.count_nonzero(events.bucket[slots] >= 0), "an event is lost"
        if meta.mode >= kernel.ADA and not meta.forced:
            newer = np.triu(np.ones((slots.size, slots.size), bool), 1).T
            counted = events.newer_here[space.slots.cell[slots]] - events.newer[slots]
            assert (counted <= (dominates & newer).sum(axis=0)).all(), "a point has fewer dominators than are counted"
