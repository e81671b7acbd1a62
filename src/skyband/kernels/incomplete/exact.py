"""Sums in two doubles: exact up to 106 bits, so that what is added and later taken away again leaves no trace.

A sum is ``hi + lo`` with ``hi`` the double nearest to it. Every addition says whether it was exact; while it was,
``hi`` is the correctly rounded sum of all amounts, in whatever order they came (what ``math.fsum`` gives).
"""

from skyband.kernels.jit import inner


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
