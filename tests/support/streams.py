"""Streams that are hard in one way each, and ways to cut them into batches.

Every stream has the columns ``id`` (arrival number), ``ts`` (event time), ``x`` (the score, as a rule), ``y`` (a second
measure), ``g`` and ``h`` (keys, with NULLs). Times lie within :data:`LATE` of the newest one before them, except in
the streams named in :data:`STRAGGLING`.
"""

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
LATE = 3 * SECOND
SIZE = 110
START = 1_700_000_000 * SECOND


# Scores


def random(rng, n):
    return list(rng.normal(size=n))


def rising(rng, n):
    return [float(i) for i in range(n)]


def falling(rng, n):
    return [float(-i) for i in range(n)]


def constant(rng, n):
    return [1.5] * n


def tied(rng, n):
    return [float(v) for v in rng.integers(0, 3, n)]


def saw(rng, n):
    return [float(i % 7) for i in range(n)]


def extreme(rng, n):
    return [float(v) for v in rng.choice([np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324], n)]


def broken(rng, n):
    return [
        [None, float("nan"), float(v), float(v) / 2][c] for v, c in zip(rng.integers(0, 9, n), rng.integers(0, 4, n))
    ]


# Event times, as microseconds


def steady(rng, n):
    return list(START + np.cumsum(rng.integers(0, 3, n)) * SECOND // 2)


def fine(rng, n):
    return list(START + np.cumsum(rng.integers(0, 700_001, n)))


def bursty(rng, n):
    """Many rows at one moment, then nothing, sometimes for longer than a window lasts."""
    return list(START + np.cumsum(rng.choice([0, 0, 0, 0, 0, 1, 4, 40], n)) * SECOND)


def still(rng, n):
    return [START] * n


def jittered(rng, n):
    """Out of order, none further than LATE behind."""
    return [int(t) for t in steady(rng, n) - rng.integers(0, LATE + 1, n)]


def straggling(rng, n):
    """One in six far behind."""
    return [int(t) for t in jittered(rng, n) - rng.choice([0, 0, 0, 0, 0, 1], n) * rng.integers(0, 30 * SECOND, n)]


def before_epoch(rng, n):
    return [int(t) for t in np.cumsum(rng.integers(0, 3, n)) * SECOND // 2 - n * SECOND // 4]


def broken_times(rng, n):
    return [None if c == 0 else t for t, c in zip(jittered(rng, n), rng.integers(0, 5, n))]


STREAMS = {
    "random": (random, fine, SIZE),
    "rising": (rising, steady, SIZE),
    "falling": (falling, steady, SIZE),
    "constant": (constant, steady, SIZE),
    "tied": (tied, steady, SIZE),
    "saw": (saw, fine, SIZE),
    "extreme": (extreme, steady, SIZE),
    "bursty": (tied, bursty, SIZE),
    "still": (random, still, SIZE),
    "jittered": (random, jittered, SIZE),
    "jittered_tied": (tied, jittered, SIZE),
    "straggling": (tied, straggling, SIZE),
    "before_epoch": (random, before_epoch, SIZE),
    "broken": (broken, broken_times, SIZE),
    "duplicates": (tied, still, SIZE // 2),
    "tiny": (random, steady, 2),
    "empty": (random, steady, 0),
}
STRAGGLING = {"straggling"}


def make(name, seed=0, size=None):
    """The stream of that name as one table."""
    scores, times, n = STREAMS[name]
    n = n if size is None else size
    rng = np.random.default_rng([seed, *name.encode()])
    table = pa.table({
        "id": pa.array(range(n), pa.int64()),
        "ts": pa.array([None if t is None else int(t) for t in times(rng, n)], pa.timestamp("us")),
        "x": pa.array(scores(rng, n), pa.float64()),
        "y": pa.array(rng.integers(-3, 4, n), pa.int64(), mask=rng.random(n) < 0.1),
        "g": pa.array([["a", "b", "c", None][i] for i in rng.choice(4, n, p=[0.5, 0.2, 0.2, 0.1])], pa.string()),
        "h": pa.array([[1, 2, None][i] for i in rng.integers(0, 3, n)], pa.int32()),
    })  # fmt: skip
    if name == "duplicates":
        table = table.take(np.repeat(np.arange(n), 2))
    return table


def cut(table, seed=0, pieces=8):
    """The table in batches cut at random places: some empty, some of one row."""
    rng = np.random.default_rng(seed)
    at = sorted(int(c) for c in rng.integers(0, table.num_rows + 1, pieces - 1))
    return [table.slice(low, high - low) for low, high in zip([0, *at], [*at, table.num_rows])]


def one_by_one(table):
    return [table.slice(i, 1) for i in range(table.num_rows)]


def numbered(table, partition=(), reach=0, seed=0):
    """With a column ``seq``, dense from 0 in each partition, and rows moved up to ``reach`` places from there."""
    rng = np.random.default_rng(seed)
    count, seq = {}, []
    for key in zip(*(table[name].to_pylist() for name in partition)) if partition else [()] * table.num_rows:
        seq.append(count.get(key, 0))
        count[key] = seq[-1] + 1
    table = table.append_column("seq", pa.array(seq, pa.int64()))
    return table.take(np.argsort(np.arange(table.num_rows) + rng.integers(0, reach + 1, table.num_rows), kind="stable"))
