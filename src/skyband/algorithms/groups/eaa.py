"""EAA: the Early Aggregation Algorithm."""

from typing import Any

import numpy as np

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.groups import parts as states
from skyband.algorithms.groups.assembled import Assembled
from skyband.algorithms.groups.parts import AssembledState
from skyband.kernels.groups.assemble import MAX, MEAN, MIN, PRODUCT, PartsMeta
from skyband.kernels.groups.dominance import Flags, Hope, counting_rows, dominated, intervals, needed
from skyband.storage.blocks import plain


class Eaa(Assembled):
    """The Early Aggregation Algorithm of Haghani et al., *Evaluating Top-k Queries over Incomplete Data Streams*
    (CIKM 2009, section 3.2; many occurrences: section 5).

    Every row that counts begins an *instance* of its object, which takes into account the rows that are no older: its
    current score can only rise, and the best score it may still reach can only fall, until it expires. An instance is
    dropped when k distinct objects have instances that are no older and better now than it can ever become; those that
    are left after each update are the k dominance set (Theorem 1), and hold the answer.

    How high an object may still rise is known only if the query declares ``bounds``, ``streams`` and ``most``. The
    proof of Theorem 1 needs ``most`` (the paper: each stream reports an object once): if a stream may say something
    lower again later (``occurrences="once"`` without ``most=1``), current scores can fall and nobody may be dropped.
    So without these declarations every row is held; answers are exact in either case, as long as what was declared is
    true.

    Deviations:

    - Algorithms 1 and 2 keep a dominance counter, and a list of the ids counted, for each instance, and scan the lists
      of current and best scores for every row. Here one pass over the instances, newest first, with the k largest
      current scores of distinct objects at hand, finds all whose counter is k; it is made after every update, and
      within long batches whenever half as many rows have come as are held.
    - An instance dominates others of its own time too (Definition 1: later only): they expire together.
    - Scores of dominating instances must be larger by more than rounding can explain.
    - An object of which all instances are dropped is forgotten. When it comes again, the streams that reported it
      before count as streams that still may: its best score is then larger than Definition 1 would have it.
    - The best scores are filled into the view of the k_max best by a scan of all objects instead of ``csorted``.
    """

    name = "eaa"

    @property
    def prunes(self) -> bool:
        """Whether the query declares enough for dropping anything."""
        return self.groups.promises

    def highest(self) -> Floats | None:
        """The largest amount a row of each stream may have, its weight in it."""
        query = self.groups
        largest = query.largest
        if largest is None or query.width is None:
            return None
        if isinstance(query.streams, tuple):
            return largest * np.array([query.weights.get(name, 1.0) for name in query.streams])
        return np.full(query.width, largest * max([1.0, *query.weights.values()]))

    def hope(self, state: AssembledState, width: int) -> Hope:
        """What may still come."""
        parts, highest, most = state.parts, self.highest(), self.groups.most
        meta = plain(PartsMeta, parts.meta)
        assert highest is not None and most is not None
        every = np.full(width, highest.max())
        every[: highest.size] = highest
        left = np.full((meta.objects, width), most)
        owner, stream = parts.owner[: meta.cells], parts.stream[: meta.cells]
        left[owner, stream] = np.maximum(most - parts.seen[: meta.cells], 0)
        return Hope(np.where(left > 0, left * every, 0.0 if self.spec.many else -np.inf), np.ones(left.shape), False)

    def aggregated(self, vectors: Floats) -> Floats:
        """The scores of vectors that have a value for each stream."""
        if self.function is not None:
            return states.evaluated(self.function, vectors)
        how = self.spec.how
        if how in (MAX, MIN, PRODUCT):
            reduce: Any = {MAX: np.max, MIN: np.min, PRODUCT: np.prod}[how]
            return np.asarray(reduce(vectors, axis=1), np.float64)
        total: Floats = vectors.sum(axis=1)
        return total / self.spec.width if how == MEAN else total

    def stretch(self, state: AssembledState) -> int:
        return max(256, self.count(state) // 2)

    def settled(self, state: AssembledState) -> AssembledState:
        return super().settled(self.pruned(state) if self.prunes else state)

    def pruned(self, state: AssembledState) -> AssembledState:
        """The state with the instances alone that are not dominated, and the rows that they take into account."""
        parts, meta = state.parts, plain(PartsMeta, state.parts.meta)
        rows, gone = self.dominance(state)
        keep = np.zeros(meta.rows, bool)
        keep[rows] = needed(parts.owner[parts.cell[rows]], gone, meta.objects)
        if keep[rows].all():
            return state
        return states.rescored(states.compacted(state, self.spec, self._lists, keep), self.spec, self.function)

    def dominance(self, state: AssembledState) -> tuple[Ints, Flags]:
        """The rows that begin instances, oldest first, and which of these are dominated by k objects."""
        parts, meta = state.parts, plain(PartsMeta, state.parts.meta)
        rows = counting_rows(parts, self.spec.many)
        width = max(self.spec.width, int(parts.stream[: meta.cells].max(initial=-1)) + 1)
        current, best = intervals(parts, rows, self.hope(state, width), meta.now, self.spec)
        owner, position = parts.owner[parts.cell[rows]], parts.position[rows]
        enough = self.enough(position, meta.now)
        return rows, dominated(position, owner, self.aggregated(current), self.aggregated(best), enough)

    def enough(self, position: Ints, now: int) -> Ints:
        """How many objects must dominate each instance for it to be dropped."""
        return np.full(position.size, self.query.k)

    def verify(self, state: AssembledState) -> None:
        super().verify(state)
        if self.prunes:
            rows, gone = self.dominance(state)
            owner = state.parts.owner[state.parts.cell[rows]]
            assert needed(owner, gone, plain(PartsMeta, state.parts.meta).objects).all(), "a dominated instance is held"
