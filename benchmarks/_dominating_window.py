"""Algorithms for top-k dominating points as the benchmarks drive them: made, and fed with points."""

import time
from typing import Any

import numpy as np

import skyband as sb
from skyband import datasets
from skyband.algorithms.contract import Changes, Rows
from skyband.algorithms.dominating.base import Dominating
from skyband.families import FAMILIES
from skyband.kernels.dominating.space import Points, fill
from skyband.kernels.dominating.tell import NONE, Steps
from skyband.storage.blocks import resized

ALGORITHMS = FAMILIES["dominating"].algorithms()
KINDS = {"IND": datasets.independent, "ANT": datasets.anticorrelated, "COR": datasets.correlated}
BATCH = 200  # rows of a push where the stream fills the window


def query(n: int, d: int, k: int, **fields: str) -> sb.TopKDominating:
    return sb.TopKDominating(k=k, dimensions={f"x{j}": "min" for j in range(d)}, window=sb.last(n), **fields)


def made(name: str, n: int, d: int, k: int, **options: float) -> Dominating:
    return ALGORITHMS[name](query(n, d, k), **options)


def fixed(array: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def push(algorithm: Dominating, x: np.ndarray, low: int, high: int) -> Changes:
    """Rows ``low`` to ``high`` come, one by one."""
    numbers = np.arange(low, high)
    rows = Rows(np.zeros(high - low), numbers, np.empty(0, np.int64), numbers, 0, 0, fixed(x[low:high]))
    return algorithm.update(rows, 0)[0]


def compiled(d: int = 4) -> None:
    """So that no figure has the compiler in it."""
    for name in ALGORITHMS:
        if name != "adaptive":
            push(made(name, 500, d, 8), KINDS["IND"](2_000, d, seed=1), 0, 2_000)


def at_once(name: str, x: np.ndarray, n: int, k: int) -> Dominating:
    """An algorithm with a full window of which all points came in one step.

    With BFA no scores are counted for that, since its work does not depend on them: its answers are wrong.
    """
    algorithm = made(name, n, x.shape[1], k)
    rows, state = to_come(algorithm, x, n)
    if name == "bfa":
        fill(state.space, *rows)
        ledger = resized(state.ledger, "entries", n)
        ledger.x[:], ledger.shows[:], ledger.meta["held"] = x[:n].T, -1, n
        for column in (ledger.position, ledger.arrival, ledger.slot, ledger.entry):
            column[:] = np.arange(n)
        algorithm.states[0] = state._replace(ledger=ledger)
    else:
        algorithm.states[0], _ = algorithm.take(state, rows, one_step(n), algorithm._told)
    return algorithm


def to_come(algorithm: Dominating, x: np.ndarray, n: int) -> tuple[Points, Any]:
    """The first points, and a state with room for them in which the clock has gone on as if they had come."""
    rows = Points(*(fixed(a) for a in (x[:n], np.arange(n), np.arange(n))))
    state = algorithm._roomy(algorithm.fresh(), rows)
    state.clock["now"] = n - 1
    return rows, state


def one_step(n: int) -> Steps:
    """All of n rows come at once, and nothing is told."""
    return Steps(*(np.array([value]) for value in (n, -1, NONE, 0)))


class Filled:
    """Algorithms that take turns with the same updates of a window that the stream itself has filled, row by row.

    Nothing is known of a score but what the algorithm found out. The window is filled and then half of it replaced
    before anything is timed. An algorithm that takes more than ``patience`` seconds of processor time for that is timed
    in the window as far as it was filled, which is less work. With ``hurry`` the window is filled at once, and half of
    it replaced as far as there is patience.
    """

    def __init__(
        self, names: tuple[str, ...], x: np.ndarray, n: int, k: int, patience: float, hurry: bool = False
    ) -> None:
        self.x, self.n, self.k, self.patience = x, n, k, patience
        self.hurry = hurry
        self.at: dict[str, int] = {}
        self.algorithms = {name: self._filled(name) for name in names}

    def _filled(self, name: str) -> Dominating:
        n, k = self.n, self.k
        algorithm = at_once(name, self.x, n, k) if self.hurry else made(name, n, self.x.shape[1], k)
        low, last, start = n if self.hurry else 0, n + n // 2, time.process_time()
        while low < last and time.process_time() - start < self.patience:
            push(algorithm, self.x, low, min(low + BATCH, last))
            low = min(low + BATCH, last)
        self.at[name] = low
        return algorithm

    def update(self, count: int) -> dict[str, float]:
        """Microseconds of processor time for an update: the mean over so many, or as many as there is patience for."""
        seconds, done = dict.fromkeys(self.algorithms, 0.0), dict.fromkeys(self.algorithms, 0)
        for _ in range(0, count, BATCH):
            for name, algorithm in self.algorithms.items():
                if seconds[name] < self.patience:
                    start, low = time.process_time(), self.at[name] + done[name]
                    push(algorithm, self.x, low, low + BATCH)
                    seconds[name] += time.process_time() - start
                    done[name] += BATCH
        return {name: seconds[name] / done[name] * 1e6 for name in self.algorithms}
