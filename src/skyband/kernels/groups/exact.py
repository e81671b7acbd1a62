"""Sums and products in two doubles, so that they come out correctly rounded, whatever order they were made in.

A sum is ``hi + lo`` with ``hi`` the double nearest to it. Every addition says whether it was exact; while it was,
``hi`` is the correctly rounded sum of all amounts, in whatever order they came (what ``math.fsum`` gives): what is
added and later taken away again leaves no trace.

A product is ``(hi + lo) * 2 ** exponent`` with ``0.5 <= |hi| < 1``, so that no factor makes it too large or too small.
While it has no more than 106 bits it is exact; beyond that each factor may cost a few units of the 106th.
"""

import math

from skyband.kernels.common.jit import inner

_SPLIT = 134217729.0  # 2 ** 27 + 1


@inner
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum and its error (Knuth)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


@inner
def add(hi: float, lo: float, more: float, rest: float) -> tuple[float, float, bool]:
    """``(hi, lo) + (more, rest)``, and whether nothing was lost."""
    s, e = two_sum(hi, more)
    t, f = two_sum(lo, rest)
    e, lost = two_sum(e, t)
    s, e = two_sum(s, e)
    e, again = two_sum(e, f)
    s, e = two_sum(s, e)
    return s, e, lost == 0.0 and again == 0.0


@inner
def multiply(
    hi: float, lo: float, exponent: float, more: float, rest: float, power: float
) -> tuple[float, float, float]:
    """``(hi + lo) * 2 ** exponent`` times ``(more + rest) * 2 ** power`` (Dekker)."""
    product = hi * more
    t = _SPLIT * hi
    a = t - (t - hi)
    t = _SPLIT * more
    b = t - (t - more)
    c, d = hi - a, more - b
    error = ((a * b - product) + a * d + c * b) + c * d + (hi * rest + lo * more)
    s = product + error
    error -= s - product
    hi, shift = math.frexp(s)
    return hi, math.ldexp(error, -shift), exponent + power + shift


@inner
def nearest(hi: float, lo: float, exponent: float) -> float:
    """The double nearest to a product."""
    if exponent > 1024:
        return math.copysign(math.inf, hi)
    if exponent < -1080:
        return math.copysign(0.0, hi)
    shift = int(exponent)
    if shift >= -1021:
        return math.ldexp(hi, shift)
    # It has fewer bits than hi: where these end halfway between two doubles, lo decides.
    rounded = math.ldexp(hi, shift)
    off = hi - math.ldexp(rounded, -shift)
    if abs(off) == math.ldexp(0.5, -1074 - shift) and off * lo > 0:
        rounded += math.copysign(5e-324, off)
    return rounded
