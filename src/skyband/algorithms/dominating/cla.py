"""CLA: candidates and ledger, the fastest exact algorithm here for large windows of few dimensions."""

import numpy as np

from skyband.algorithms.contract import Ints
from skyband.algorithms.dominating.base import Dominating, State
from skyband.kernels.dominating.cla import (
    ARRIVED,
    DRIFT,
    EXPIRED,
    FORCED,
    HIGHEST,
    LEVEL,
    MOST,
    NEVERS,
    Marks,
    ledger_steps,
    no_marks,
)
from skyband.kernels.dominating.harvest import BIG, NEVER, PLAIN
from skyband.kernels.dominating.space import CELL, Points, Space, all_points
from skyband.kernels.dominating.tell import Told


class CLA(Dominating):
    """*Candidates and ledger*: exact scores for few points, bounds by cell for all others. Not in the paper.

    The top k of a window lie in its k-skyband, and scores drift slowly: of n points, only those close behind the k-th
    can be among the top k soon. They are the candidates. A *ledger* holds their exact scores, about 2 k of them side by
    side, so that a point that comes or goes is accounted for in a few scans. Every other point is *plain*: at the last
    review it scored at most ``level``, and since then it gained at most one for each arrival. As long as the k-th
    score is above that, the answer is in the ledger and nothing else is done.

    When it is not, a *review* tightens the bounds, cell by cell and for all points of a cell at once: by how many
    points came that a point of the cell may dominate, less those that went and that all of its points dominated. The
    drift of ADA's bounds, one for each arrival, shrinks to what happens on the borders of the cell. Only points whose
    bound is still above the level are looked at, best bound first; one that a plain point dominates needs no score of
    its own. Arriving points are judged by the bound of their cell alone, unless it is above the level.

    Points that k newer ones dominate or equal can never be in an answer (in an answer with all ties: that k newer ones
    dominate), and are struck out of the ledger: it stays small on constant and duplicated data too.
    """

    name = "cla"
    extra = (Marks,)

    def spare(self) -> tuple[State, ...]:
        return (no_marks(1, 1),)

    def take(self, state: State, rows: Points, steps: Ints) -> tuple[State, Told]:
        space, ledger, marks = self.parts(state)
        ledger, told = ledger_steps(space, ledger, marks, rows, steps, self.k, self.ties, self.work)
        return self.whole(state, space, ledger, marks), told

    def moved(self, state: State, old: Space, slots: Ints, entry: Ints) -> State:
        space, ledger, marks = self.parts(state)
        new = no_marks(space.slots.shape[1], space.cells.shape[1])
        cell = old.slots[CELL, slots]
        bound = np.minimum(marks.base[slots] + marks.cell[DRIFT, cell], marks.cell[MOST, cell]) + marks.meta[ARRIVED]
        new.base[: slots.size] = bound
        ledger.entry[: slots.size] = np.where(entry == NEVER, NEVER, ledger.entry[: slots.size])
        np.add.at(new.cell[NEVERS], space.slots[CELL, : slots.size], entry == NEVER)
        np.maximum.at(new.cell[HIGHEST], space.slots[CELL, : slots.size], np.where(entry == PLAIN, bound, -BIG))
        new.meta[:] = marks.meta
        new.meta[LEVEL] += marks.meta[ARRIVED] if marks.meta[LEVEL] >= 0 else 0
        new.meta[[ARRIVED, EXPIRED]], new.meta[FORCED] = 0, 1
        return self.whole(state, space, ledger, new)

    def verify(self, state: State) -> None:
        super().verify(state)
        space, ledger, marks = self.parts(state)
        slots, x = all_points(space)
        entry = ledger.entry[slots]
        assert ((entry >= 0) | (entry == PLAIN) | (entry == NEVER)).all()
        dominates = (x[:, None] <= x).all(axis=2) & (x[:, None] < x).any(axis=2)
        plain, cell = entry == PLAIN, space.slots[CELL, slots]
        assert (np.bincount(cell[entry == NEVER], minlength=marks.cell.shape[1]) == marks.cell[NEVERS]).all()
        assert (marks.base[slots] <= marks.cell[HIGHEST, cell])[plain].all(), "a cell does not know its highest bound"
        bound = np.minimum(marks.base[slots] + marks.cell[DRIFT, cell], marks.cell[MOST, cell])
        score, arrived = dominates.sum(axis=1), marks.meta[ARRIVED]
        assert (score <= bound + arrived)[plain].all(), "a bound is too low"
        assert marks.meta[FORCED] or (bound <= marks.meta[LEVEL])[plain].all(), "a candidate is missing"
        newer = np.triu(np.ones((slots.size, slots.size), bool), 1).T
        before = dominates if self.ties else (x[:, None] <= x).all(axis=2)
        assert ((before & newer).sum(axis=0) >= self.k)[entry == NEVER].all(), "one that may win was struck out"
