"""Sketches over a sliding window: how many objects streams share, and how often an object comes again.

Flajolet and Martin, *Probabilistic Counting Algorithms for Data Base Applications* (JCSS 1985), with the position of
the newest row that set it in place of each bit; Alon et al., *Tracking Join and Self-Join Sizes in Limited Storage*
(JCSS 2002), added up by blocks of an eighth of the window.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.groups.assemble import Arriving, Parts, Spec
from skyband.storage.blocks import Floats, Ints, Record, block, column, scalars

LEVELS = 24
SIGNS = 32  # counters of a self-join sketch
BLOCKS = 9  # eight in the window, and one that is filling
NEVER = np.iinfo(np.int64).min // 4
PHI = 0.77351


class SketchMeta(NamedTuple):
    since: int = 0  # rows since the last pruning
    due: int = 0  # after how many the next is due


@block(version=1)
class Sketch(NamedTuple):
    """What is kept of each stream, whatever the number of objects."""

    bits: Annotated[Ints, column("bitmaps", fill=NEVER)]  # by stream, bitmap, level: the newest position that set it
    sums: Annotated[Ints, column("signs")]  # for each stream, block and sign: the signed count
    counts: Annotated[Ints, column("blocks")]  # for each stream and block: rows
    span: Annotated[Ints, column("blocks", fill=NEVER)]  # which block of positions is in a place, for each stream
    high: Annotated[Floats, column("streams")]  # the largest amount seen in each stream
    meta: Annotated[Record, scalars(SketchMeta)]


@outer
def sketch_rows(sketch: Sketch, rows: Arriving, hashes: Ints, bitmaps: int, extent: int) -> None:
    """Takes the rows in; ``hashes``: 48 random bits of the object of each."""
    span = max(extent // (BLOCKS - 1), 1)
    for i in range(hashes.size):
        s, position, h = rows.stream[i], rows.position[i], hashes[i]
        sketch.high[s] = max(sketch.high[s], rows.value[i])
        rest, level = h // bitmaps, 0
        while level < LEVELS - 1 and rest & 1 == 0:
            rest, level = rest >> 1, level + 1
        place = (s * bitmaps + h % bitmaps) * LEVELS + level
        sketch.bits[place] = max(sketch.bits[place], position)
        block = s * BLOCKS + position // span % BLOCKS
        if sketch.span[block] < position // span:  # a block that is long over
            sketch.span[block], sketch.counts[block] = position // span, 0
            sketch.sums[block * SIGNS : (block + 1) * SIGNS] = 0
        if sketch.span[block] == position // span:
            sketch.counts[block] += 1
            for j in range(SIGNS):
                sketch.sums[block * SIGNS + j] += 1 - 2 * (h >> j & 1)


@inner
def _words(sketch: Sketch, bitmaps: int, since: int) -> Ints:
    """The bitmaps of each stream as they are for the rows after ``since``."""
    words = np.zeros(sketch.high.size * bitmaps, np.int64)
    for i in range(words.size):
        for level in range(LEVELS):
            if sketch.bits[i * LEVELS + level] > since:
                words[i] |= 1 << level
    return words.reshape(-1, bitmaps)


@inner
def _distinct(words: Ints) -> float:
    """How many distinct objects were seen, from the positions of the lowest bits that nobody set.

    With the correction for few objects of Scheuermann and Mauve (2007).
    """
    total = 0
    for word in words:
        while word & 1:
            total, word = total + 1, word >> 1
    mean = total / words.size
    return float(words.size / PHI * (2.0**mean - 2.0 ** (-1.75 * mean)))


@outer
def shared(sketch: Sketch, bitmaps: int, since: int) -> Floats:
    """How many objects each three streams have in common, by inclusion and exclusion; [i, i, j] is that of two.

    The paper has the sign turned: |a ⋈ b| = |a| + |b| − |a ∪ b|.
    """
    words = _words(sketch, bitmaps, since)
    d = words.shape[0]
    one, two, three = np.empty(d), np.empty((d, d)), np.empty((d, d, d))
    union = np.empty((d, d))
    for i in range(d):
        one[i] = _distinct(words[i])
    for i in range(d):
        for j in range(d):
            union[i, j] = _distinct(words[i] | words[j])
            two[i, j] = one[i] if i == j else max(0.0, one[i] + one[j] - union[i, j])
    for i in range(d):
        for j in range(d):
            for k in range(d):
                if i == j:
                    three[i, j, k] = two[i, k]
                elif k in (i, j):
                    three[i, j, k] = two[i, j]
                else:
                    every = _distinct(words[i] | words[j] | words[k])
                    apart = one[i] + one[j] + one[k] - union[i, j] - union[i, k] - union[j, k]
                    three[i, j, k] = max(0.0, apart + every)
    return three


@outer
def repeats(sketch: Sketch, three: Floats, newest: int, extent: int) -> Floats:
    """How often an object comes in each stream: the root of the self-join size over the number of objects.

    ``three`` is what :func:`shared` says.
    """
    span = max(extent // (BLOCKS - 1), 1)
    result = np.ones(sketch.high.size)
    for s in range(result.size):
        total = np.zeros(SIGNS, np.int64)
        for b in range(s * BLOCKS, (s + 1) * BLOCKS):
            if sketch.span[b] > newest // span - BLOCKS:
                total += sketch.sums[b * SIGNS : (b + 1) * SIGNS]
        result[s] = max(1.0, np.sqrt((total * total).mean() / max(three[s, s, s], 1.0)))
    return result


@outer
def chances(parts: Parts, three: Floats, width: int) -> Floats:
    """For each object and stream that has not reported it: how probably it will, given the streams that have.

    Given more than one, it is the mean over all pairs of these.
    """
    result = np.zeros((parts.meta[0].objects, width))
    seen = np.empty(width, np.int64)
    for slot in range(result.shape[0]):
        count, c = 0, parts.first[slot]
        while c >= 0:
            if parts.seen[c] > 0:
                seen[count] = parts.stream[c]
                count += 1
            c = parts.following[c]
        for y in range(width):
            total, terms = 0.0, 0
            for a in range(count):
                for b in range(a, count):
                    i, j = seen[a], seen[b]
                    if (a == b) == (count == 1) and three[i, i, j] >= 1.0:
                        total += min(1.0, three[i, j, y] / three[i, i, j])
                        terms += 1
            if terms > 0:
                result[slot, y] = total / terms
    return result


@outer
def hoped(parts: Parts, often: Floats, high: Floats, spec: Spec) -> Floats:
    """What may still come, for each object and stream, if it comes at all."""
    result = np.empty((parts.meta[0].objects, often.size))
    result[:] = often * high
    for c in range(parts.meta[0].cells):
        slot, s = parts.owner[c], parts.stream[c]
        if parts.seen[c] > 0:
            result[slot, s] = max(0.0, often[s] - parts.seen[c]) * high[s] if spec.many else -np.inf
    return result
