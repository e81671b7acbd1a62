"""The approximate algorithm: best scores estimated from how streams are correlated."""

import numpy as np

from skyband.algorithms.contract import FOREVER, Ints, Rows
from skyband.algorithms.groups.assembled import Assembled
from skyband.algorithms.groups.eaa import Eaa
from skyband.algorithms.groups.parts import AssembledState
from skyband.errors import QueryError
from skyband.kernels.groups import sketches
from skyband.kernels.groups.assemble import Arriving, PartsMeta
from skyband.kernels.groups.dominance import Flags, Hope
from skyband.kernels.groups.sketches import BLOCKS, LEVELS, SIGNS, Sketch, SketchMeta
from skyband.query import Query
from skyband.storage.blocks import empty, plain, resized

CHANCE = 8.0  # standard deviations at caution 0.5
OFTEN = 64  # rows between two prunings, at least: more often would cost more than it saves


class Approx(Eaa):
    """The approximate algorithm of Haghani et al., *Evaluating Top-k Queries over Incomplete Data Streams* (CIKM 2009,
    section 4; many occurrences: section 5).

    :class:`Eaa` with a smaller best score: a stream that has not reported an object counts for its largest value times
    the probability that it will, given the streams that have. How many objects streams have in common is estimated
    with FM sketches over the sliding window, of a size that does not depend on the number of objects. With many
    occurrences, what may still come of a stream is what an object usually gets: the root of its self-join size (AMS
    sketches) over its objects. Bounds that are not declared are learnt: the largest amount seen in each stream.

    Options: ``bitmaps`` of each sketch; ``caution`` from 0 (nothing more is expected of any stream, and those that are
    better now keep coming as they did) over 0.5 (the probabilities as they are estimated) to 1 (every stream is sure to
    report every object: as :class:`Eaa`); by default it follows from the query's ``error``.

    Deviations:

    - An instance is dropped before k objects dominate it if at this pace k will, long before it expires: at a tenth of
      its life, a tenth of k are enough, and some more for chance (``caution``: how many standard deviations). Where
      the best objects come in bursts, this drops too much. The present top k is never dropped.
    - The probability shrinks as an instance ages: what has not come in the larger part of a window is less likely to
      come in the rest of it.
    - Given several streams the probability is the mean over pairs of them: sketches are too coarse for more at once.
    - Instances are pruned whenever half as many rows have come as were held (at least 64), counted from the first row
      of the partition, so that answers do not depend on how a stream is cut into batches.
    - Erratum: the text of section 4 has the sign of inclusion and exclusion turned; as printed the estimate is never
      positive.
    """

    name = "approx"
    exact = False
    options = {"bitmaps": 256, "caution": 0.5}  # noqa: RUF012

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.bitmaps = int(self.parameters["bitmaps"])
        if self.bitmaps != self.parameters["bitmaps"] or not 1 <= self.bitmaps <= 1 << 16:
            raise QueryError(f"bitmaps={self.parameters['bitmaps']:g} must be a whole number from 1 to {1 << 16}")
        if not 0 <= self.parameters["caution"] <= 1:
            raise QueryError(f"caution={self.parameters['caution']:g} must be from 0 to 1")

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        return {"caution": max(0.0, round(0.5 - 1.5 * query.error, 3))} if query.error else {}

    def bound(self) -> str:
        meant = f", meant for missing about {self.query.error:g} of the top k" if self.query.error else ""
        return f"approximate{meant}; no bound is proven: it depends on how the streams are correlated"

    @property
    def prunes(self) -> bool:
        return True

    def fresh_sketch(self) -> Sketch:
        return empty(Sketch, due=OFTEN)

    def observe(self, state: AssembledState, rows: Rows, arriving: Arriving) -> AssembledState:
        size = arriving.value.size
        sketch = _widened(state.sketch, int(arriving.stream.max(initial=-1)) + 1, self.bitmaps)
        hashes = rows.values[:, -1].astype(np.int64) if size else np.empty(0, np.int64)
        sketches.sketch_rows(sketch, arriving, hashes, self.bitmaps, self.window.extent)
        sketch.meta["since"] += size
        return state._replace(sketch=sketch)

    def hope(self, state: AssembledState, width: int) -> Hope:
        sketch, query = _widened(state.sketch, width, self.bitmaps), self.groups
        meta = plain(PartsMeta, state.parts.meta)
        caution, extent = self.parameters["caution"], self.window.extent
        newest = meta.next_end - 1 if self.window.hopping and meta.next_end > -FOREVER else meta.now
        three = sketches.shared(sketch, self.bitmaps, newest - extent)
        chance = sketches.chances(state.parts, three, width)
        often = np.ones(width)
        if self.spec.many:
            often = sketches.repeats(sketch, three, meta.now, extent)
            often = often if query.most is None else np.minimum(often + caution * (query.most - often), query.most)
        high, declared = np.maximum(sketch.high, self.spec.low), self.highest()
        if declared is not None:
            high[: declared.size] = declared
        odds = 2 * caution * chance if caution < 0.5 else chance + (2 * caution - 1) * (1 - chance)
        return Hope(sketches.hoped(state.parts, often, high, self.spec), odds, caution < 1)

    def enough(self, position: Ints, now: int) -> Ints:
        """As many as have come by its age if k come in its whole life, at a steady pace; and some more for chance."""
        k, caution = self.query.k, self.parameters["caution"]
        if caution == 1:
            return super().enough(position, now)
        age = np.clip((now - position) / self.window.extent, 0, 1)
        by_now = k * age + CHANCE * caution / (1 - caution) * np.sqrt(k * age * (1 - age))
        return np.clip(np.ceil(by_now), 1, k).astype(np.int64)

    def dominance(self, state: AssembledState) -> tuple[Ints, Flags]:
        """As that of :class:`Eaa`, without the oldest instances of the present top k: they are its scores."""
        rows, gone = super().dominance(state)
        parts, k = state.parts, self.query.k
        owners, oldest = np.unique(parts.owner[parts.cell[rows]], return_index=True)
        score = state.view.score[owners]
        bar = np.partition(score, -k)[-k] if score.size > k else -np.inf
        gone[oldest[score >= bar]] = False
        return rows, gone

    def stretch(self, state: AssembledState) -> int:
        clock = plain(SketchMeta, state.sketch.meta)
        return clock.due - clock.since

    def settled(self, state: AssembledState) -> AssembledState:
        if self.stretch(state) > 0:
            return state
        state = Assembled.settled(self, self.pruned(state))
        clock = state.sketch.meta
        clock["since"], clock["due"] = 0, max(OFTEN, self.count(state) // 2)
        return state

    def verify(self, state: AssembledState) -> None:
        Assembled.verify(self, state)


def _widened(sketch: Sketch, streams: int, bitmaps: int) -> Sketch:
    """With room for so many streams."""
    if streams <= sketch.high.size:
        return sketch
    sketch = resized(resized(sketch, "streams", streams), "bitmaps", streams * bitmaps * LEVELS)
    return resized(resized(sketch, "signs", streams * BLOCKS * SIGNS), "blocks", streams * BLOCKS)
