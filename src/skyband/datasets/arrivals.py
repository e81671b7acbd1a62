"""Event times of generated streams, and orders of arrival in which some objects come late."""

from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from skyband.query.windows import duration

Ints = NDArray[np.int64]


def bursty(n: int, seed: int = 0, gap: float = 1000.0, burst: float = 20.0, length: float = 100.0) -> Ints:
    """n event times in ascending order, in microseconds from 0 on: calm stretches and bursts take turns.

    Within a stretch the gaps are exponentially distributed. On average half of the objects come in bursts, so most of
    the *time* is calm. Gaps below a microsecond become ties.

    Args:
        n: how many.
        seed: of the random numbers.
        gap: the mean gap between neighbours over the whole stream, in microseconds.
        burst: how many times as fast objects come in a burst as in a calm stretch.
        length: how many objects a stretch has on average.

    >>> bursty(6, gap=10, burst=50, length=2)
    array([ 61,  68,  68,  98,  98, 100])
    """
    rng = np.random.default_rng(seed)
    calm = 2 * gap * burst / (burst + 1)
    # Twice the stretches wanted on average, and 10 for small n: in the rare case of too few, the last one is longer.
    stretches = rng.geometric(1 / length, int(2 * n / length) + 10)
    in_burst = np.repeat(np.arange(stretches.size) % 2 == 1, stretches)[:n]
    in_burst = np.pad(in_burst, (0, n - in_burst.size), mode="edge")
    gaps = rng.standard_exponential(n) * np.where(in_burst, calm / burst, calm)
    return np.cumsum(gaps).astype(np.int64)


def late(time: Ints, by: int | str | timedelta, seed: int = 0) -> NDArray[np.intp]:
    """An order of arrival for objects with these event times, in which each is delayed at random by up to ``by``.

    So no object arrives after one that is more than ``by`` newer.

    Args:
        time: event times, in microseconds.
        by: the longest delay: microseconds, or a duration such as ``"5 seconds"``.
        seed: of the random numbers.

    Returns:
        The indices of the objects in their order of arrival: ``table.take(late(time, by))``.

    >>> time = np.arange(0, 1000, 100)
    >>> time[late(time, by=300, seed=1)]
    array([  0, 100, 400, 200, 500, 300, 600, 800, 700, 900])
    """
    longest = duration(by, "by") if isinstance(by, str | timedelta) else by
    delay = np.random.default_rng(seed).integers(longest, size=time.size, endpoint=True)
    return np.argsort(time + delay, kind="stable")
