"""How many candidates a probabilistic k-skyband must hold (topkw, section 4.1.1 and appendix).

An object of a random-order stream that arrives with rank ``l`` in a window of ``n`` objects becomes a top-k object
later with a probability of at most :func:`p_practice`, if ``l`` is beyond :func:`convex_from`. From rank l to the next
that bound falls at least by the factor (l + k - 1)/2l: by half for k = 1, by less for larger k. From it come two limits
on the number of candidates: :func:`limit`, the rule by which the paper's Table V is made, and
:func:`guaranteed_limit`, the tail sum of Definition 4.5 itself. Both are for count windows.

The paper knows no time windows. There the rate may fall: the objects that are better than one of a busy hour expire
before it does, and few come to take their place. :func:`timed_limit` is for windows of which the least and the most
objects are known.

Errata: the last binomial of equations (8) and (9) is C(2n-2, l+l'-2), not C(2n-2, l+l'), and Table V counts the
candidates only, so that ``limit = l_c - 1 - k``. Table X lists the ranks of Lemma A.2, not A.1.
"""

from functools import cache
from math import ceil, exp, lgamma, sqrt
from typing import Any

import numpy as np

from skyband.storage.blocks import Floats

PARTS = 64  # of an object's life that are looked at, each as it is at its worst


def convex_from(n: int, k: int) -> float:
    """L of Lemma A.2: above this rank the chance of being in the top k rises, and rises faster, until expiry.

    >>> [ceil(convex_from(10_000, k)) for k in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    [4, 7, 12, 19, 33, 69, 126, 236, 555]
    """
    root = 3 * (-8 * k * k * n + 4 * k * k + 8 * k * n * n + 4 * k * n - 4 * k - 5 * n * n - 2 * n + 3)
    return (3 * n - 4 * k + 2 * k * n + 3 + sqrt(max(root, 0))) / (2 * n + 2)


def p_practice(rank: int, n: int, k: int) -> float:
    """Upper bound on the chance that an object of this initial rank becomes a top-k object (equation 9, corrected).

    The sum over l' = 1 ... k starts at its largest term, l' = k, and goes down by the ratio of neighbouring terms until
    they no longer count; only that first term needs logarithms.
    """
    term = exp(_log_binomial(n - 1, k - 1) + _log_binomial(n - 1, rank - 1) - _log_binomial(2 * n - 2, rank + k - 2))
    total, other = 0.0, k
    while term > total * 1e-17:
        total += term
        term *= (other - 1) * (2 * n + 1 - rank - other) / ((n - other + 1) * (rank + other - 2))
        other -= 1
    return n * n / (4 * n - 2) * total


@cache
def limit(n: int, k: int, sigma: float) -> int:
    """Candidates beside the top k by the rule of Table V: stop at the first rank with p_practice < σ/2.

    >>> [limit(10_000, k, 0.001) for k in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    [22, 25, 30, 37, 46, 65, 86, 116, 172]
    """
    rank = max(ceil(convex_from(n, k)), k + 1)
    while rank <= n and p_practice(rank, n, k) >= sigma / 2:
        rank += 1
    return max(0, min(rank - 1, n) - k)


@cache
def guaranteed_limit(n: int, k: int, sigma: float) -> int:
    """Candidates beside the top k so that the bounds of all ranks left out add up to less than σ (Definition 4.5).

    This is what makes Lemma 4.6 hold as stated; for k of 20 and more it is up to 5 % above :func:`limit`.

    >>> guaranteed_limit(10_000, 100, 0.001)
    89
    """
    first = max(ceil(convex_from(n, k)), k + 1)
    bounds: list[float] = []
    while first + len(bounds) <= n and (not bounds or bounds[-1] > sigma * 1e-9):
        bounds.append(p_practice(first + len(bounds), n, k))
    tail = 0.0
    while bounds and tail + bounds[-1] < sigma:
        tail += bounds.pop()
    return max(0, min(first - 1 + len(bounds), n) - k)


def p_timed(rank: int, k: int, fewest: int, most: int) -> float:
    """Upper bound on the chance that an object of this initial rank becomes a top-k object of a time window.

    ``fewest`` and ``most`` are the objects that the window may hold. It can become one only as one of the at most
    ``most - 1`` older objects expires. When ``a`` of them are left, at least ``b = fewest - 1 - a`` newer ones have
    come. In a random order the better ones among the first are distributed hypergeometrically, those among the second
    beta-binomially, and the object is in the top k if there are fewer than k of both. The bound adds up the chances at
    each expiry; those of neighbouring ones are taken together, with the lowest ``a`` and ``b`` of any of them.
    """
    low = np.unique(np.linspace(0, most - 1, PARTS + 1)[:-1].astype(np.int64))
    high = np.append(low[1:], most - 1) - 1
    left, come = low, np.maximum(0, fewest - 1 - high)
    better = np.arange(k)[:, None]
    older = _binomials(rank - 1, better) + _binomials(most - rank, left - better) - _binomials(most - 1, left)
    newer = _binomials(rank - 1 + better, better) + _binomials(most - rank + come - better, come - better)
    newer -= _binomials(most + come, come)
    of_newer = np.cumsum(np.exp(newer), axis=0)  # no more than so many
    chance = np.minimum(1, (np.exp(older) * of_newer[::-1]).sum(axis=0))
    return min(1.0, float((chance * (high - low + 1)).sum()))


@cache
def timed_limit(k: int, sigma: float, fewest: int, most: int) -> int:
    """Candidates beside the top k so that of a time window's length of stream fewer than σ top-k objects are missed.

    Each arrival costs one object its place: itself, if its rank is beyond those held, or else the last of them, whose
    chance is no better than that of an arrival of its rank. With ``most / fewest`` for the arrivals of a window's
    length to the ranks there are, the bounds of the ranks left out, and that of the first of them once for each rank
    held, must add up to less than σ · fewest / most. Ranks are tried in steps of a twentieth.

    >>> [timed_limit(10, 0.01, fewest, 1000) for fewest in (1000, 500, 250)]
    [31, 67, 141]
    """
    first = [k + 1]
    while first[-1] < most:
        first.append(min(most, max(first[-1] + 1, first[-1] * 21 // 20)))
    goal, chance = sigma * fewest / most, list[float]()
    while len(chance) < len(first) and (not chance or chance[-1] * most > goal / 1000):
        chance.append(p_timed(first[len(chance)], k, fewest, most))
    kept, tail = most, 0.0 if len(chance) == len(first) else chance[-1] * most
    for i in reversed(range(len(chance))):
        after = first[i + 1] if i + 1 < len(first) else most + 1
        tail += (after - first[i]) * chance[i]
        if tail + (first[i] - 1) * chance[i] >= goal:
            break
        kept = first[i] - 1
    return max(0, kept - k)


def _log_binomial(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _binomials(n: Any, k: Any) -> Floats:
    """The logarithms of binomials; -inf for k < 0 or k > n."""
    n, k = np.broadcast_arrays(n, k)
    sensible = (k >= 0) & (k <= n)
    k = np.where(sensible, k, 0)
    n = np.where(sensible, n, 0)
    return np.where(sensible, _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k), -np.inf)


def _log_factorial(n: Any) -> Floats:
    """Stirling's series, from n + 9 downwards, where it is exact to all digits."""
    x = np.asarray(n, float) + 9
    series = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi) + 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5)
    below = np.ones_like(x)
    for i in range(1, 9):
        below *= x - i
    return np.asarray(series - np.log(below))
