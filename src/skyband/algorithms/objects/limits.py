"""How many candidates a probabilistic k-skyband must hold (topkw, section 4.1.1 and appendix).

An object of a random-order stream that arrives with rank ``l`` in a window of ``n`` objects becomes a top-k object
later with a probability of at most :func:`p_practice`; beyond rank :func:`convex_from` that bound holds and falls
faster than by half from rank to rank. From it come two limits on the number of candidates: :func:`limit`, the rule by
which the paper's Table V is made, and :func:`guaranteed_limit`, the tail sum of Definition 4.5 itself.

Errata: the last binomial of equations (8) and (9) is C(2n-2, l+l'-2), not C(2n-2, l+l'), and Table V counts the
candidates only, so that ``limit = l_c - 1 - k``. Table X lists the ranks of Lemma A.2, not A.1.
"""

from functools import cache
from math import ceil, exp, lgamma, sqrt


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


def _log_binomial(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
