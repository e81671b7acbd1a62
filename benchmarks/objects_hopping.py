"""Top-k objects over hopping windows, beside a ``numpy.max`` scan of the same array.

    python benchmarks/objects_hopping.py [--full]

First the targets: 20 M uniform scores, a window of 10⁶ and slides of 10⁵ and 100, through ``Monitor.push`` with the
full output of every slide. Then MinTopk against PreTopk and SMA over k, window and slide (the shapes of Figures 7, 9
and 11 of the paper). PreTopk keeps a list for each window, so where a window has hundreds of slides it may fall behind
SMA, as it does in Figure 11. ``--full`` takes all 20 M scores for every target and keeps the results.
"""

import sys

import numpy as np
from _measure import best_of, console, keep, scan, show

import skyband as sb

FULL = "--full" in sys.argv
TARGETS = ((10, 100_000, 2_000_000, 8), (1000, 100_000, 2_000_000, 40), (1000, 100, 20_000, 1000))


def run(scores: np.ndarray, k: int, window: int, slide: int, batch: int, algorithm: str) -> sb.Monitor:
    query = sb.TopK(k=k, order_by="score DESC", window=sb.last(window, every=slide), algorithm=algorithm)
    monitor = sb.Monitor(query)
    for start in range(0, scores.size, batch):
        monitor.push({"score": scores[start : start + batch]})
    return monitor


def targets(scores: np.ndarray) -> list[dict]:
    rows = []
    for k, slide, batch, allowed in TARGETS:
        part = scores[:4_000_000] if slide < 1000 and not FULL else scores
        base = scan(scores) * part.size / scores.size
        seconds = best_of(lambda: run(part, k, 1_000_000, slide, batch, "mintopk"), 2 if slide < 1000 else 3)  # noqa: B023
        rows.append({"k": k, "slide": slide, "M rows/s": part.size / seconds / 1e6,
                     "of a numpy.max scan": f"1/{seconds / base:.1f}", "target": f"1/{allowed}",
                     "met": "yes" if seconds / base <= allowed else "NO"})  # fmt: skip
    return rows


def compare(scores: np.ndarray) -> list[dict]:
    rows = []
    cases = [("k", k, 100_000, 10_000) for k in (10, 100, 1000)]
    cases += [("window", 100, window, window // 10) for window in (1_000, 10_000, 100_000)]
    cases += [("slide", 100, 100_000, slide) for slide in (100, 1_000, 10_000)]
    for varied, k, window, slide in cases:
        row = {"varied": varied, "k": k, "window": window, "slide": slide}
        for name in ("mintopk", "pretopk", "sma"):
            size = 1_000_000 if FULL else 400_000
            seconds = best_of(lambda: run(scores[:size], k, window, slide, 100_000, name), 1)  # noqa: B023
            row[f"{name} M/s"] = size / seconds / 1e6
        rates = [row[f"{name} M/s"] for name in ("mintopk", "pretopk", "sma")]
        row["in order"] = "yes" if rates == sorted(rates, reverse=True) else "no"
        row["held by mintopk"] = run(scores[:400_000], k, window, slide, 100_000, "mintopk").stats.candidates
        row["held by sma"] = run(scores[:400_000], k, window, slide, 100_000, "sma").stats.candidates
        rows.append(row)
    return rows


def main() -> None:
    scores = np.random.default_rng(1).random(20_000_000)
    console.print(f"numpy.max over {scores.size:,} scores: {scan(scores) * 1e3:.1f} ms")
    met = targets(scores)
    show("MinTopk, window of 1,000,000, full output", met)
    order = compare(scores)
    show("MinTopk, PreTopk and SMA", order)
    if FULL:
        keep("objects_hopping", targets=met, algorithms=order)


if __name__ == "__main__":
    main()
