"""Top-k dominating points: the figures and tables of *dominating* (Kontaki et al., TKDE 2012), and CLA beside them.

    python benchmarks/dominating.py [--full]

Running times per 1000 updates over the size of the window (Figure 7), the dimensions (8), k (9), ε and δ (10); events,
exact scores and comparisons per 1000 updates (Table 4); accuracy (Tables 2 and 3). As in the paper the measurement
begins with a full window, whose scores are known; BFA's are not counted first, since its work does not depend on them.
``--full`` takes the window of the paper (n = 2,000,000) for Figure 7 and the targets, and 200,000 for the others.
Forest Cover is among the data if covtype.parquet is named in COVTYPE.
"""

import os
import sys
import time

import numpy as np
from _measure import console, keep, show

import skyband as sb
from skyband import datasets, plan
from skyband.algorithm import Rows
from skyband.dominating.base import Dominating
from skyband.kernels.dominating import events as events
from skyband.kernels.dominating.harvest import PLAIN
from skyband.kernels.dominating.score import all_scores
from skyband.kernels.dominating.space import CELL, COUNT, SHAPE, Points, all_points, fill, laid_out
from skyband.kernels.dominating.steps import event_steps
from skyband.kernels.dominating.tell import NONE

FULL = "--full" in sys.argv
N, K, D = (2_000_000, 256, 4) if FULL else (50_000, 32, 4)
M = 200_000 if FULL else N  # the window of what is varied otherwise
UPDATES = 5_000 if FULL else 1_000
KS = [16, 64, 256] if FULL else [16, 64]
ALGORITHMS = plan.algorithms("dominating")
KINDS = {"IND": datasets.independent, "ANT": datasets.anticorrelated}
_scores: dict = {}


def points(kind: str, n: int, d: int) -> np.ndarray:
    if kind == "FC":
        import pyarrow.parquet as pq

        table = pq.read_table(os.environ["COVTYPE"])
        return np.stack([table.column(j).to_numpy().astype(float) for j in range(d)], axis=1)[:n]
    return KINDS[kind](n, d, seed=1)


def loaded(name: str, x: np.ndarray, n: int, k: int, key: object = None, **options: float) -> Dominating:
    """An algorithm with a full window; what it knows of the scores of the window is exact."""
    query = sb.TopKDominating(k=k, dimensions={f"x{j}": "min" for j in range(x.shape[1])}, window=sb.last(n))
    algorithm = ALGORITHMS[name](query, **options)
    rows = Points(*(fixed(a) for a in (x[:n], np.arange(n), np.arange(n))))
    state = algorithm._roomy(algorithm.fresh(), rows)
    state[-1][0], step = n - 1, np.array([[n], [-1], [NONE], [0]])
    if name == "bfa":
        space, ledger = algorithm.parts(state)
        fill(space, *rows)
        ledger = ledger._replace(x=x[:n].T.ravel().copy(), data=np.zeros((7, n), np.int64))
        ledger.data[[1, 2, 3]] = np.arange(n)
        ledger.data[4], ledger.entry[:], ledger.meta[0] = -1, np.arange(n), n
        state = algorithm.whole(state, space, ledger)
    elif isinstance(algorithm, ALGORITHMS["eva"]):
        space, *parts = algorithm.parts(state)
        parts = event_steps(space, *parts, rows, step, 0, algorithm.setting(space), algorithm.work)[:3]
        slots, _ = all_points(space)
        if (key, n, k) not in _scores:
            _scores[key, n, k] = scores(rows, n, k)
        ledger, _, happening = parts
        happening.event[events.BASE, slots] = _scores[key, n, k] - happening.meta[events.ARRIVED]
        ledger.entry[slots] = PLAIN
        happening.meta[events.FORCED] = 1
        state = algorithm.whole(state, space, *parts)
    else:
        state, _ = algorithm.take(state, rows, step)
    algorithm.states[0] = state
    return algorithm


def scores(rows: Points, n: int, k: int) -> np.ndarray:
    """The scores of the points, or bounds where the measurement is over before it could see the difference.

    In an update a bound comes no more than two closer to the k-th score, so that a point is not looked at before the
    end if its bound is further below. Only the other points are counted, with a fine grid for the bounds.
    """
    grid = laid_out(rows.x, rows.time, rows.number, n, rows.x[:0], 4)
    slots, _ = all_points(grid)
    most = grid.cells[COUNT].reshape(grid.axes[SHAPE])
    for j in range(most.ndim):
        most = np.flip(np.cumsum(np.flip(most, j), j), j)
    bound = most.ravel()[grid.slots[CELL, slots]]
    coarse, found = laid_out(rows.x, rows.time, rows.number, n, rows.x[:0]), bound.copy()
    first = np.argsort(-bound, kind="stable")
    low, high = 0, 4 * k
    while low < high:
        found[first[low:high]] = all_scores(coarse, first[low:high])
        least = np.sort(found[first[:high]])[-k] - 4 * UPDATES
        low, high = high, max(high, min(2 * high, int(np.count_nonzero(bound > least))))
    return found


def fixed(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def push(algorithm: Dominating, x: np.ndarray, low: int, high: int):
    numbers = np.arange(low, high)
    rows = Rows(np.zeros(high - low), numbers, np.empty(0, np.int64), numbers, 0, 0, fixed(x[low:high]))
    return algorithm.update(rows, 0)[0]


def measured(name: str, kind: str, n: int, d: int, k: int, updates: int = UPDATES, **options: float) -> dict:
    """Milliseconds, events, exact scores and comparisons per 1000 updates, and bytes."""
    x = points(kind, n + updates + 1, d)
    algorithm = loaded(name, x, n, k, (kind, d), **options)
    if name == "bfa":
        updates = min(updates, 5 if FULL else 20)
    push(algorithm, x, n, n + 1)  # the first one sets the events up
    algorithm.work[:] = 0
    start = time.process_time()
    push(algorithm, x, n + 1, n + 1 + updates)
    seconds = time.process_time() - start
    per = 1000 / updates
    return {"ms": seconds * 1e3 * per, "events": algorithm.work[2] * per, "exact": algorithm.work[1] * per,
            "comparisons": algorithm.work[0] * per / 1e6, "MB": algorithm.nbytes / 1e6}  # fmt: skip


def accuracy(name: str, kind: str, n: int, k: int, updates: int, **options: float) -> float:
    """The share of the right points in the answers, over all updates, in percent."""
    x, answers = points(kind, n + updates, D), []
    for algorithm in (loaded(name, x, n, k, (kind, D), **options), loaded("cla", x, n, k)):
        changes, shown, after = push(algorithm, x, n, n + updates), set(), {}
        for at, op, number in zip(changes.at, changes.op, changes.number, strict=True):
            (shown.add if op > 0 else shown.discard)(int(number))
            after[int(at)] = frozenset(shown)
        answers.append(after)
    found, right, shares = frozenset(), frozenset(), []
    for at in range(n, n + updates):
        found, right = answers[0].get(at, found), answers[1].get(at, right)
        shares.append(len(found & right) / len(right))
    return 100 * float(np.mean(shares))


def figure_7() -> list[dict]:
    rows = []
    for kind in KINDS:
        for n in (N // 4, N) if FULL else (N // 4, N // 2, N):
            row = {"data": kind, "n": n}
            for name in ("bfa", "eva", "ada", "ahba", "amsa", "cla"):
                row[name] = measured(name, kind, n, D, K)["ms"]
            rows.append(row)
    return rows


def targets(rows: list[dict]) -> list[dict]:
    found = []
    for row in rows:
        if row["n"] == N:
            ratio = {"ADA / EVA": (row["eva"] / row["ada"], 3 if row["data"] == "ANT" else 1),
                     "ADA / BFA": (row["bfa"] / row["ada"], 100), "AHBA / ADA": (row["ada"] / row["ahba"], 1),
                     "AMSA / ADA": (row["ada"] / row["amsa"], 1),
                     "CLA / ADA": (row["ada"] / row["cla"], 1)}  # fmt: skip
            found += [{"data": row["data"], "faster by": what, "ratio": value, "target": f"≥ {least}",
                       "met": "yes" if value >= least else "NO"} for what, (value, least) in ratio.items()]  # fmt: skip
    return found


def over(varied: str, values: list[int], kinds: tuple[str, ...] = tuple(KINDS)) -> list[dict]:
    rows = []
    for kind in kinds:
        for value in values:
            d, k = (value, K) if varied == "d" else (D, value)
            n = M
            row = {"data": kind, varied: value}
            for name in ("eva", "ada", "ahba", "amsa", "cla"):
                row[name] = measured(name, kind, n, d, k)["ms"]
            rows.append(row)
    return rows


def figure_10() -> list[dict]:
    rows = []
    for kind in KINDS:
        for eps in (0.01, 0.03, 0.05) if FULL else (0.01, 0.05):
            row = {"data": kind, "ε": eps, "ada": measured("ada", kind, M, D, K)["ms"]}
            for delta in (0.99, 0.95, 0.90):
                row[f"ahba δ={delta}"] = measured("ahba", kind, M, D, K, eps=eps, delta=delta)["ms"]
            rows.append(row)
    return rows


def table_4(kind: str = "ANT") -> list[dict]:
    rows = []
    for k in KS:
        for name in ("eva", "ada", "ahba", "amsa", "cla"):
            rows.append({"k": k, "algorithm": name, **measured(name, kind, M, D, k)})
    return rows


def tables_2_and_3(kinds: tuple[str, ...]) -> tuple[list[dict], list[dict]]:
    two, three = [], []
    for kind in kinds:
        n = M
        for eps in (0.01, 0.05):
            row = {"data": kind, "ε": eps}
            for delta in (0.99, 0.90):
                row[f"δ={delta} %"] = accuracy("ahba", kind, n, K, UPDATES, eps=eps, delta=delta)
            two.append(row)
        for k in KS:
            row = {"data": kind, "k": k}
            for name in ("ahba", "amsa"):
                row[f"{name} %"] = accuracy(name, kind, n, k, UPDATES)
            three.append(row)
    return two, three


def main() -> None:
    console.print(f"n = {M:,}, d = {D}, k = {K} unless said otherwise; milliseconds per 1000 updates")
    kinds = (*KINDS, "FC") if "COVTYPE" in os.environ else tuple(KINDS)
    for name in ("bfa", "eva", "ada", "ahba", "amsa", "cla"):
        measured(name, "IND", 2_000, D, 8, 200)  # compiles
    seven = figure_7()
    show("Figure 7: over the size of the window", seven)
    met = targets(seven)
    show(f"Targets, at n = {N:,}", met)
    eight, nine, ten = over("d", [2, 3, 4, 5] if FULL else [2, 4, 6], kinds), over("k", KS, kinds), figure_10()
    show("Figure 8: over the dimensions", eight)
    show("Figure 9: over k", nine)
    show("Figure 10: over ε and δ", ten)
    four = table_4()
    show("Table 4: per 1000 updates (comparisons in millions); MB: the state", four)
    two, three = tables_2_and_3(kinds)
    show("Table 2: accuracy of AHBA over ε and δ", two)
    show("Table 3: accuracy over k, ε = 10 %, δ = 0.9", three)
    if FULL:
        keep("dominating", figure_7=seven, targets=met, figure_8=eight, figure_9=nine, figure_10=ten, table_4=four,
             table_2=two, table_3=three)  # fmt: skip


if __name__ == "__main__":
    main()
