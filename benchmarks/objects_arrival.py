"""Top-k objects at every arrival: the algorithms of *topkw* side by side.

    python benchmarks/objects_arrival.py [--full]

First the target: n = 40,000, k = 9, one query, exact (RAPF), beside PA, RA, SASF and SA, and a ``numpy.max`` scan of
the same array. Then all of them over k and n, with the objects that each holds. The order is that of topkw Figure 10,
where SASF is but slightly ahead of SA: here these two may change places from run to run. ``--full`` takes more
objects and keeps the results.
"""

import sys

import numpy as np
from _measure import best_of, console, keep, scan, show

import skyband as sb

FULL = "--full" in sys.argv
ORDER = ("pa", "rapf", "ra", "sasf", "sa")
BATCH = 200_000


def run(scores: np.ndarray, k: int, n: int, algorithm: str) -> sb.Monitor:
    monitor = sb.Monitor(sb.TopK(k=k, order_by="score DESC", window=sb.last(n), algorithm=algorithm))
    for start in range(0, scores.size, BATCH):
        monitor.push({"score": scores[start : start + BATCH]})
    return monitor


def target(scores: np.ndarray) -> list[dict]:
    base, rows = scan(scores), []
    for name in ORDER:
        size = scores.size if name in ("pa", "rapf") else scores.size // 8
        seconds = best_of(lambda: run(scores[:size], 9, 40_000, name), 2 if FULL else 1)  # noqa: B023
        rate = size / seconds / 1e6
        row = {
            "algorithm": name,
            "M objects/s": rate,
            "of a numpy.max scan": f"1/{scores.size / rate / 1e6 / base:.0f}",
        }
        rows.append({**row, "target": "≥ 5 M/s" if name == "rapf" else "", "met": _met(name, rate, rows)})
    return rows


def _met(name: str, rate: float, rows: list[dict]) -> str:
    if name == "rapf" and rate < 5:
        return "NO"
    return "yes" if not rows or rate < rows[-1]["M objects/s"] else "NO (out of order)"


def compare(scores: np.ndarray) -> list[dict]:
    rows = []
    cases = [("k", k, 40_000) for k in (1, 9, 81)] + [("n", 9, n) for n in (4_000, 40_000, 400_000)]
    for varied, k, n in cases:
        row = {"varied": varied, "k": k, "n": n}
        held = {}
        for name in ORDER:
            size = (2_000_000 if FULL else 1_000_000) // (4 if name in ("sa", "sasf") else 1)
            seconds = best_of(lambda: run(scores[:size], k, n, name), 1)  # noqa: B023
            row[f"{name} M/s"] = size / seconds / 1e6
            held[name] = run(scores[: n + BATCH], k, n, name).stats.candidates
        rows.append({**row, **{f"held by {name}": held[name] for name in ("pa", "sa")}})
    return rows


def main() -> None:
    scores = np.random.default_rng(1).random(20_000_000 if FULL else 4_000_000)
    console.print(f"numpy.max over {scores.size:,} scores: {scan(scores) * 1e3:.1f} ms")
    met = target(scores)
    show("n = 40,000, k = 9, one query; the order of topkw Figures 9 and 10", met)
    order = compare(scores)
    show("Over k and n", order)
    if FULL:
        keep("objects_arrival", targets=met, algorithms=order)


if __name__ == "__main__":
    main()
