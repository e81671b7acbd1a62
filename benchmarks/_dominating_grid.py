"""Which exact algorithm is the fastest for top-k dominating points, over windows, dimensions and k."""

import numpy as np
from _dominating_window import BATCH, KINDS, Filled, query

from skyband.engine.planner import plan_for

WINDOWS = (1_000, 3_000, 10_000)
LARGER = (30_000, 100_000)
DIMENSIONS = (2, 4, 6, 8, 10, 14)
KS = (16, 256)
EXACT = ("cla", "bfa", "ada", "eva")
PATIENCE = 0.5  # seconds, and more in large windows


def grid(
    sizes: tuple[int, ...] = WINDOWS, dimensions: tuple[int, ...] = DIMENSIONS, ks: tuple[int, ...] = KS
) -> list[dict]:
    """Microseconds an update in windows that the stream fills, and how far from the fastest the planner's choice is.

    Windows of more than 10,000 points are filled at once to begin with.
    """
    rows = []
    for n in sizes:
        for d in (d for d in dimensions if n < 100_000 or d <= 10):  # beyond, CLA takes minutes to begin with
            for k in ks:
                for kind, points in KINDS.items():
                    row = one(kind, points(2 * n + 4 * BATCH, d, seed=1), n, k)
                    print(row, flush=True)
                    rows.append(row)
    return rows


def one(kind: str, x: np.ndarray, n: int, k: int) -> dict:
    names = EXACT if n <= 1_000 else EXACT[:2]  # the others are far behind, and take long to find that out
    found = Filled(names, x, n, k, PATIENCE * (1 if n < 10_000 else 4), hurry=n > 10_000).update(max(4 * BATCH, n // 4))
    chosen = plan_for((query(n, x.shape[1], k),)).algorithm.name
    best = min(found.values())
    return {"n": n, "d": x.shape[1], "k": k, "data": kind, **{name: found.get(name, "") for name in EXACT},
            "chosen": chosen, "/ fastest": found[chosen] / best}  # fmt: skip


def regrets(rows: list[dict]) -> list[dict]:
    """By window and dimensions: at worst, how many times as long as the fastest each takes."""
    found = []
    for n, d in dict.fromkeys((row["n"], row["d"]) for row in rows):
        some = [row for row in rows if (row["n"], row["d"]) == (n, d)]
        best = [min(row[name] for name in EXACT if row[name]) for row in some]
        worst = {f"{name}, at worst": max(row[name] / least for row, least in zip(some, best, strict=True))
                 for name in EXACT[:2]}  # fmt: skip
        found.append({"n": n, "d": d, **worst, "chosen": some[0]["chosen"]})
    return found
