"""How accurate approximate answers are, and what the paper has (*dominating*, Tables 2 and 3)."""

import itertools
from typing import NamedTuple

import numpy as np

from skyband.algorithms.contract import Changes

# Accuracies of the paper at n = 2,000,000 (FC: 500,000); Table 2 by ε for each δ, Table 3 by k for AHBA and AMSA.
DELTAS = (0.99, 0.95, 0.90)
TABLE_2 = {
    "ANT": {0.01: (100, 100, 100), 0.02: (100, 100, 100), 0.03: (100, 100, 99.9), 0.04: (99.9, 99.9, 99.9),
            0.05: (99.9, 99.9, 99.9)},
    "FC": {0.01: (99.9, 99.8, 99.8), 0.02: (99.8, 99.8, 99.5), 0.03: (99.5, 99.5, 98.9), 0.04: (99.1, 98.0, 97.8),
           0.05: (98.3, 97.5, 97.4)},
}  # fmt: skip
TABLE_3 = {"IND": {16: (100, 100), 64: (100, 100), 256: (99.9, 99.8), 512: (99.8, 99.5)},
           "ANT": {16: (100, 100), 64: (100, 99.6), 256: (99.9, 99.2), 512: (99.8, 98.4)},
           "FC": {16: (81.7, 79.6), 64: (86.9, 84.3), 256: (92.8, 91.4), 512: (94.2, 93.8)}}  # fmt: skip


class Answers(NamedTuple):
    """The top k after each of some updates: those at the beginning, and what changed."""

    shown: frozenset[int]
    changes: Changes


def accuracy(found: Answers, right: Answers, n: int, count: int) -> float:
    """After each update the share of the right top k that is in the answer; then the mean, in percent."""
    shown = [set(found.shown), set(right.shown)]
    number, op = (np.concatenate([getattr(a.changes, f) for a in (found, right)]).tolist() for f in ("arrival", "op"))
    whose = np.repeat([0, 1], [found.changes.at.size, right.changes.at.size])
    at = np.concatenate([found.changes.at, right.changes.at])
    order, total, both = np.argsort(at, kind="stable"), 0.0, len(shown[0] & shown[1])
    cuts = np.searchsorted(at[order], np.arange(n + 1, n + count + 1))
    whose, order = whose.tolist(), order.tolist()
    for first, last in itertools.pairwise([0, *cuts[1:].tolist()]):
        for i in order[first:last]:
            mine, other = shown[whose[i]], shown[1 - whose[i]]
            (mine.add if op[i] > 0 else mine.remove)(number[i])
            both += op[i] if number[i] in other else 0
        total += both / len(shown[1])
    return 100 * total / (count - 1)
