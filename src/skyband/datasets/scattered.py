"""Objects whose values are scattered over several streams: data for :class:`skyband.TopKGroups`."""

from collections import deque

import numpy as np
import pyarrow as pa


def scattered(n: int, streams: int = 3, xi: float = 0.5, recent: int = 10, seed: int = 0) -> pa.Table:
    """n rows of several streams, with columns ``id``, ``stream`` and ``value`` (uniform in [0, 1)).

    These are the synthetic data of Haghani, Michel and Aberer (CIKM 2009, section 6.1). Each row is of a random stream.
    With probability ``xi`` its object is one of the last ``recent`` objects of another stream, else a new one. No
    stream reports an object twice.

    Args:
        n: how many rows.
        streams: how many streams.
        xi: how strongly the streams are correlated, from 0 to 1 (the paper's ξ).
        recent: how many objects a stream looks back in another one; the paper does not say.
        seed: of the random numbers.

    >>> table = scattered(1000)
    >>> table.column_names, len(table.group_by(["id", "stream"]).aggregate([]))
    (['id', 'stream', 'value'], 1000)
    """
    rng = np.random.default_rng(seed)
    which, copies, value = rng.integers(streams, size=n), rng.random(n) < xi, rng.random(n)
    other, back = rng.integers(1, max(streams, 2), size=n), rng.random(n)
    windows: list[deque[int]] = [deque(maxlen=recent) for _ in range(streams)]
    sent: list[set[int]] = [set() for _ in range(streams)]
    ids, fresh = np.empty(n, np.int64), 0
    for i in range(n):
        mine = int(which[i])
        window = windows[(mine + int(other[i])) % streams]
        known = [id for id in window if id not in sent[mine]] if copies[i] and streams > 1 else []
        if known:
            id = known[int(back[i] * len(known))]
        else:
            id, fresh = fresh, fresh + 1
        ids[i] = id
        windows[mine].append(id)
        sent[mine].add(id)
    return pa.table({"id": ids, "stream": which, "value": value})
