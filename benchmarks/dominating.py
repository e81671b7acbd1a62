"""Top-k dominating points: the figures and tables of *dominating* (Kontaki et al., TKDE 2012), and CLA beside them.

    python benchmarks/dominating.py [--full] [--data DIR]
    python benchmarks/dominating.py --filled
    python benchmarks/dominating.py --grid [--full]

Running times per 1000 updates over the size of the window (Figure 7), the dimensions (8), k (9), ε and δ (10); events,
exact scores and comparisons per 1000 updates (Table 4); accuracy (Tables 2 and 3). As in the paper, times are measured
from a full window on. Its scores are counted once; AHBA and AMSA start from where ADA stands, and algorithms take turns
with some updates each. n / 100 updates are timed, at least 1000, three times over; of BFA a few. Accuracy is the mean
share of the right points in the answers over all updates of one full turnover of the window, or of the first n / 10
where it is large. ``--full`` takes the paper's window (n = 2,000,000; FC: 500,000) for Figure 7, the targets and
accuracy. Forest Cover (FC) is among the data if DIR has covtype.parquet. On one core it takes less than five minutes,
with ``--full`` about twenty.

``--filled`` is about windows that the stream itself has filled, row by row: no score is known but what an algorithm
found out. ``--grid`` compares the exact algorithms in such windows, over n, d and k; the planner's rules follow from
it; ``--full`` adds windows of 30,000 and 100,000 points. Each takes some minutes and keeps its results.
"""

import functools
import sys
import time
from pathlib import Path

import numpy as np
from _dominating_accuracy import DELTAS, TABLE_2, TABLE_3, Answers, accuracy
from _dominating_grid import LARGER, WINDOWS, grid, regrets
from _dominating_window import ALGORITHMS, KINDS, Filled, at_once, compiled, made, one_step, push, to_come
from _measure import console, keep, show

from skyband.algorithms.dominating.ahba import sample_size
from skyband.algorithms.dominating.base import Dominating
from skyband.kernels.dominating.harvest import BIG, PLAIN
from skyband.kernels.dominating.score import all_scores
from skyband.kernels.dominating.space import all_points, laid_out, shape_for
from skyband.kernels.dominating.steps import event_steps
from skyband.storage.blocks import copied

FULL = "--full" in sys.argv
DATA = Path(sys.argv[sys.argv.index("--data") + 1]) if "--data" in sys.argv else None
N, K, D = (2_000_000, 256, 4) if FULL else (50_000, 64, 4)
SIZES = (N // 4, N) if FULL else (N // 4, N // 2, N)
M = 100_000 if FULL else 20_000  # the window of Figures 8 to 10 and Tables 2 and 4
TURNOVER = 20_000 if FULL else 10_000  # that of Table 3
TURN = 500
RUNS = 3
KS = [16, 64, 256, 512]
EVENTS = ("eva", "ada", "ahba", "amsa", "cla")
PAPER = ("IND", "ANT")
ALL = (*PAPER, "FC") if DATA else PAPER
LONE = "--filled" in sys.argv
FILLED, PATIENCE = (100_000, 60) if FULL or LONE else (20_000, 20)  # points of a window that the stream fills; seconds
started = time.perf_counter()


def updates(n: int) -> int:
    """How many are timed."""
    return max(1_000, n // 100)


def coming(n: int) -> int:
    """Over how many updates accuracy is measured: one turnover of the window, or a tenth of it if that is large."""
    return n if n <= 100_000 else n // 10


def size(kind: str) -> int:
    """The window in which accuracy is measured; with ``--full`` that of the paper."""
    return min(N, 500_000) if kind == "FC" else N


@functools.lru_cache(2)
def points(kind: str, window: int, d: int) -> np.ndarray:
    """Enough for a window and what is to come."""
    n = window + max(coming(window), updates(window) + 2)
    if kind != "FC":
        return KINDS[kind](n, d, seed=1)
    import pyarrow.parquet as pq

    table = pq.read_table(DATA / "covtype.parquet")
    return np.stack([table.column(j).to_numpy().astype(float) for j in range(d)], axis=1)[:n]


@functools.lru_cache(2)
def scores(kind: str, n: int, d: int, k: int) -> np.ndarray:
    """The scores of a full window, or bounds where the measurement is over before it could see the difference.

    In an update a bound comes no more than two closer to the k-th score, so that a point is not looked at before the
    end if its bound is further below. Only the other points are counted, with a fine grid for the bounds.
    """
    x, numbers = points(kind, n, d)[:n], np.arange(n)
    grid, coarse = (laid_out(x, numbers, numbers, n, x[:0], per_cell) for per_cell in (4, 32))
    slots, _ = all_points(grid)
    most = grid.cells.members.reshape(grid.grid.shape)
    for j in range(most.ndim):
        most = np.flip(np.cumsum(np.flip(most, j), j), j)
    bound = most.ravel()[grid.slots.cell[slots]]
    found, first = bound.copy(), np.argsort(-bound, kind="stable")
    low, high = 0, min(n, 4 * k)
    while low < high:
        found[first[low:high]] = all_scores(coarse, first[low:high])
        least = np.sort(found[first[:high]])[-k] - 4 * updates(n)
        low, high = high, max(high, min(2 * high, int(np.count_nonzero(bound > least))))
    return found


def loaded(name: str, kind: str, n: int, d: int, k: int) -> Dominating:
    """An algorithm with a full window; what it knows of the scores of the window is exact."""
    x = points(kind, n, d)
    algorithm = at_once(name, x, n, k) if name in ("bfa", "cla") else injected(name, kind, n, d, k)
    push(algorithm, x, n, n + 1)  # sets the events up
    return algorithm


def injected(name: str, kind: str, n: int, d: int, k: int) -> Dominating:
    """An algorithm with events and a full window, that was told the scores."""
    algorithm, x = made(name, n, d, k), points(kind, n, d)
    rows, state = to_come(algorithm, x, n)
    space, ledger, _, samples, events = state
    setting, work = algorithm.setting(state), algorithm.work
    ledger, samples, *_ = event_steps(
        space, ledger, samples, events, algorithm._told, rows, one_step(n), 0, setting, work
    )
    slots, _ = all_points(space)
    events.base[slots] = scores(kind, n, d, k) - events.meta["arrived"]
    ledger.entry[slots] = PLAIN
    events.meta["forced"] = 1
    algorithm.states[0] = state._replace(ledger=ledger, samples=samples)
    return algorithm


def taken_over(ada: Dominating, name: str, **options: float) -> Dominating:
    """AHBA or AMSA, from where ADA stands."""
    algorithm = made(name, ada.window.extent, ada.d, ada.k, **options)
    algorithm.states[0] = state = copied(ada.states[0])
    state.events.meta["mode"], state.events.meta["refreshed"] = algorithm.mode, -BIG
    return algorithm


def timed(algorithms: dict[str, Dominating], x: np.ndarray, n: int) -> dict[str, dict]:
    """Milliseconds, events, exact scores and comparisons per 1000 updates, and MB, for each; they take turns.

    All of it is done several times over, and the fastest counts: the work is the same each time.
    """
    for algorithm in algorithms.values():
        push(algorithm, x, n + 1, n + 2)  # AHBA draws its sample
    begin = {name: algorithm.states[0] for name, algorithm in algorithms.items()}
    fastest = dict.fromkeys(algorithms, np.inf)
    for _ in range(RUNS):
        seconds = dict.fromkeys(algorithms, 0.0)
        for name, algorithm in algorithms.items():
            algorithm.states[0] = copied(begin[name])
            algorithm.work[:] = 0
        for low in range(n + 2, n + 2 + updates(n), TURN):
            for name, algorithm in algorithms.items():
                start = time.process_time()
                push(algorithm, x, low, low + TURN)
                seconds[name] += time.process_time() - start
        fastest = {name: min(fastest[name], seconds[name]) for name in algorithms}
    per = 1000 / updates(n)
    return {
        name: {"ms": fastest[name] * 1e3 * per, "events": int(a.work[0].events) * per,
               "exact": int(a.work[0].scores) * per, "comparisons": int(a.work[0].comparisons) * per / 1e6,
               "MB": a.nbytes / 1e6}
        for name, a in algorithms.items()
    }  # fmt: skip


@functools.cache
def measured(kind: str, n: int, d: int, k: int) -> dict[str, dict]:
    """What is measured of EVA, ADA, AHBA, AMSA and CLA; kept, since a figure may ask for what another one has."""
    tell(f"{kind}, n = {n:,}, d = {d}, k = {k}")
    algorithms = {name: loaded(name, kind, n, d, k) for name in ("eva", "ada", "cla")}
    algorithms |= {name: taken_over(algorithms["ada"], name) for name in ("ahba", "amsa")}
    return timed({name: algorithms[name] for name in EVENTS}, points(kind, n, d), n)


def brute_force(kind: str, n: int, k: int) -> float:
    x, some = points(kind, n, D), 5 if FULL else 20
    algorithm = loaded("bfa", kind, n, D, k)
    start = time.process_time()
    push(algorithm, x, n + 1, n + 1 + some)
    return (time.process_time() - start) * 1e6 / some


def times(kind: str, n: int, d: int, k: int) -> dict[str, float]:
    return {name: row["ms"] for name, row in measured(kind, n, d, k).items()}


def figure_7() -> list[dict]:
    return [{"data": kind, "n": n, "bfa": brute_force(kind, n, K), **times(kind, n, D, K)}
            for kind in PAPER for n in SIZES]  # fmt: skip


def memory() -> list[dict]:
    """Megabytes of the state in the windows of Figure 7."""
    return [{"data": kind, "n": n, **{name: row["MB"] for name, row in measured(kind, n, D, K).items()}}
            for kind in PAPER for n in SIZES]  # fmt: skip


def targets(rows: list[dict]) -> list[dict]:
    found = []
    for row in rows:
        if row["n"] == N:
            ratio = {"ADA / EVA": (row["eva"] / row["ada"], 3 if row["data"] == "ANT" else 1),
                     "ADA / BFA": (row["bfa"] / row["ada"], 100), "AHBA / ADA": (row["ada"] / row["ahba"], 1),
                     "AMSA / ADA": (row["ada"] / row["amsa"], 1),
                     "CLA / ADA": (row["ada"] / row["cla"], 1)}  # fmt: skip
            missed = "NO" if FULL else "see --full"
            found += [{"data": row["data"], "faster by": what, "ratio": value, "target": f"≥ {least}",
                       "met": "yes" if value >= least else missed}
                      for what, (value, least) in ratio.items()]  # fmt: skip
    return found


def figure_10() -> list[dict]:
    rows = []
    for kind in PAPER:
        tell(f"{kind}: ε and δ")
        ada = loaded("ada", kind, M, D, K)
        algorithms = {"ada": taken_over(ada, "ada")}
        cases = [(eps, delta) for eps in (0.01, 0.02, 0.03, 0.04, 0.05, 0.1) for delta in (0.99, 0.95, 0.90)]
        for eps, delta in cases:
            algorithms[eps, delta] = taken_over(ada, "ahba", eps=eps, delta=delta)
        found = timed(algorithms, points(kind, M, D), M)
        for eps, group in ((e, [c for c in cases if c[0] == e]) for e in dict.fromkeys(e for e, _ in cases)):
            rows.append({"data": kind, "ε": eps, "ada": found["ada"]["ms"],
                         **{f"ahba δ={delta}": found[eps, delta]["ms"] for _, delta in group}})  # fmt: skip
    return rows


def table_4(kind: str = "ANT") -> list[dict]:
    return [{"k": k, "algorithm": name, **row} for k in KS for name, row in measured(kind, M, D, k).items()]


def answers(algorithm: Dominating, kind: str, n: int, count: int) -> Answers:
    ledger = algorithm.states[0].ledger
    held = int(ledger.meta[0].held)
    shown = frozenset(ledger.arrival[:held][ledger.shows[:held] >= 0].tolist())
    return Answers(shown, push(algorithm, points(kind, n, D), n + 1, n + count))


def table_2(k: int) -> list[dict]:
    """AHBA's accuracy; "counted" where the window is too small for so large a sample, so that it is exact."""
    rows = []
    for kind in (kind for kind in TABLE_2 if kind in ALL):
        n = size(kind)
        count, cells = coming(n), shape_for(n, D, ALGORITHMS["ahba"].per_cell).max()
        tell(f"{kind}, n = {n:,}: accuracy over ε and δ, {count:,} updates")
        ada, right = loaded("ada", kind, n, D, k), answers(loaded("cla", kind, n, D, k), kind, n, count)
        for eps, paper in TABLE_2[kind].items():
            row = {"data": kind, "n": n, "updates": count, "ε": eps}
            for delta, percent in zip(DELTAS, paper, strict=True):
                row[f"δ={delta} %"], row[f"paper {delta}"] = "counted", percent
                if 8 * cells * sample_size(eps, delta) <= n:
                    ahba = taken_over(ada, "ahba", eps=eps, delta=delta)
                    row[f"δ={delta} %"] = accuracy(answers(ahba, kind, n, count), right, n, count)
            rows.append(row)
    return rows


def table_3(sizes: dict[str, int]) -> list[dict]:
    """The accuracy of AHBA and AMSA in windows of these sizes."""
    rows = []
    for kind, n in sizes.items():
        for k in KS:
            count = coming(n)
            tell(f"{kind}, n = {n:,}, k = {k}: accuracy, {count:,} updates")
            ada, right = loaded("ada", kind, n, D, k), answers(loaded("cla", kind, n, D, k), kind, n, count)
            row: dict = {"data": kind, "n": n, "updates": count, "k": k}
            for name, percent in zip(("ahba", "amsa"), TABLE_3[kind][k], strict=True):
                found = accuracy(answers(taken_over(ada, name), kind, n, count), right, n, count)
                row |= {f"{name} %": found, f"{name} paper": percent}
                row[f"{name} met"] = "yes" if round(found, 1) >= percent else "NO"
            rows.append(row)
    return rows


def filled_by_the_stream() -> list[dict]:
    """Microseconds an update where nothing is known of the scores but what the algorithms found out by themselves."""
    rows, half = [], FILLED // 2
    for kind in PAPER:
        tell(f"{kind}, n = {FILLED:,}: filled by the stream")
        window = Filled(EVENTS, KINDS[kind](FILLED + 2 * half, D, seed=1), FILLED, 256, PATIENCE)
        rows.append({"data": kind, "n": FILLED, "k": 256, **window.update(half)})
    show("Filled by the stream itself: µs an update over half a window more", rows)
    return rows


def tell(what: str) -> None:
    console.print(f"[{time.perf_counter() - started:5.0f} s] {what}", markup=False)


def main() -> None:
    if "--grid" in sys.argv:
        return main_grid()
    if LONE:
        compiled(D)
        return keep("dominating_filled", updates=filled_by_the_stream())
    console.print(f"n = {M:,}, d = {D}, k = {K} unless said otherwise; milliseconds per 1000 updates")
    tell("compiling")
    compiled(D)
    parts: dict[str, list[dict]] = {"figure_7": figure_7()}
    show("Figure 7: over the size of the window", parts["figure_7"])
    parts["filled"] = filled_by_the_stream()
    parts["memory"] = memory()
    show("The state, MB", parts["memory"])
    parts["targets"] = targets(parts["figure_7"])
    show(
        f"Targets, at n = {N:,}{'' if FULL else ' (they are set for n = 2,000,000, k = 256: --full)'}", parts["targets"]
    )
    parts["figure_8"] = [{"data": kind, "d": d, **times(kind, M, d, K)} for kind in ALL for d in (2, 3, 4, 5)]
    show("Figure 8: over the dimensions", parts["figure_8"])
    parts["figure_9"] = [{"data": kind, "k": k, **times(kind, M, D, k)} for kind in ALL for k in KS]
    show("Figure 9: over k", parts["figure_9"])
    parts["figure_10"] = figure_10()
    show("Figure 10: over ε and δ", parts["figure_10"])
    parts["table_4"] = table_4()
    show("Table 4: per 1000 updates of ANT (comparisons in millions); MB: the state", parts["table_4"])
    parts["table_2"] = table_2(K)
    show(f"Table 2: accuracy of AHBA over ε and δ, k = {K} (counted: no sample, exact)", parts["table_2"])
    parts["table_3"] = table_3(dict.fromkeys(ALL, TURNOVER))
    if FULL:
        parts["table_3"] += table_3({kind: size(kind) for kind in ALL})
    show("Table 3: accuracy over k, ε = 10 %, δ = 0.9", parts["table_3"])
    if FULL:
        keep("dominating", **parts)
    tell("done")


def main_grid() -> None:
    """Which exact algorithm is the fastest where: the measurement behind the planner's rules."""
    compiled(D)
    rows = grid(WINDOWS + LARGER if FULL else WINDOWS)
    show("Filled by the stream itself: µs an update", rows)
    worst = regrets(rows)
    show("At worst, as many times as long as the fastest takes", worst)
    keep("dominating_grid", updates=rows, regrets=worst)


if __name__ == "__main__":
    main()
