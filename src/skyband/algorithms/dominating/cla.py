"""CLA: candidates and ledger, the fastest exact algorithm here for large windows of few dimensions."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from skyband.algorithms.contract import Ints
from skyband.algorithms.dominating.base import Clock, Dominating
from skyband.kernels.dominating.cla import Marks, MarksMeta, ledger_steps, no_marks
from skyband.kernels.dominating.harvest import BIG, NEVER, PLAIN
from skyband.kernels.dominating.ledger import Ledger
from skyband.kernels.dominating.space import Points, Space, all_points
from skyband.kernels.dominating.tell import Steps, Told
from skyband.storage.blocks import Record, block, plain, scalars


@block(version=1)
class Marked(NamedTuple):
    """The state of a partition: with bounds of the scores that are not in the ledger."""

    space: Space
    ledger: Ledger
    clock: Annotated[Record, scalars(Clock)]
    marks: Marks


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
    state_type = Marked

    def further(self) -> dict[str, Any]:
        return {"marks": no_marks(1, 1)}

    def take(self, state: Marked, rows: Points, steps: Steps, told: Told) -> tuple[Marked, Told]:
        ledger, told = ledger_steps(
            state.space, state.ledger, state.marks, told, rows, steps, self.k, self.ties, self.work
        )
        return state._replace(ledger=ledger), told

    def moved(self, state: Marked, old: Space, slots: Ints, entry: Ints) -> Marked:
        space, ledger, marks, meta = state.space, state.ledger, state.marks, plain(MarksMeta, state.marks.meta)
        new = no_marks(space.slots.cell.size, space.cells.members.size)
        before, cell, n = old.slots.cell[slots], space.slots.cell[: slots.size], slots.size
        bound = np.minimum(marks.base[slots] + marks.drift[before], marks.most[before]) + meta.arrived
        new.base[:n] = bound
        ledger.entry[:n] = np.where(entry == NEVER, NEVER, ledger.entry[:n])
        np.add.at(new.nevers, cell, entry == NEVER)
        np.maximum.at(new.highest, cell, np.where(entry == PLAIN, bound, -BIG))
        level = meta.level + meta.arrived if meta.level >= 0 else meta.level
        new.meta[0] = tuple(meta._replace(level=level, arrived=0, expired=0, forced=1))
        return state._replace(marks=new)

    def verify(self, state: Marked) -> None:
        super().verify(state)
        space, marks, meta = state.space, state.marks, plain(MarksMeta, state.marks.meta)
        slots, x = all_points(space)
        entry = state.ledger.entry[slots]
        assert ((entry >= 0) | (entry == PLAIN) | (entry == NEVER)).all()
        dominates = (x[:, None] <= x).all(axis=2) & (x[:, None] < x).any(axis=2)
        plain_ones, cell = entry == PLAIN, space.slots.cell[slots]
        assert (np.bincount(cell[entry == NEVER], minlength=marks.nevers.size) == marks.nevers).all()
        assert (marks.base[slots] <= marks.highest[cell])[plain_ones].all(), "a cell does not know its highest bound"
        bound = np.minimum(marks.base[slots] + marks.drift[cell], marks.most[cell])
        assert (dominates.sum(axis=1) <= bound + meta.arrived)[plain_ones].all(), "a bound is too low"
        assert meta.forced or (bound <= meta.level)[plain_ones].all(), "a candidate is missing"
        newer = np.triu(np.ones((slots.size, slots.size), bool), 1).T
        before = dominates if self.ties else (x[:, None] <= x).all(axis=2)
        assert ((before & newer).sum(axis=0) >= self.k)[entry == NEVER].all(), "one that may win was struck out"
