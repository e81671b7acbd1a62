"""Top-k pairs: SCase and TA beside the competitors of *pairs* and its lower bound.

    python benchmarks/pairs.py [--quick | --full]

Every figure is microseconds for each arriving object in a full window, the mean over the scores s1 … s4 unless said
otherwise: the algorithm's own work, without reading batches and writing answers. ``--full`` goes up to windows of 10⁶.
"""

import sys
import time

import numpy as np
import pyarrow as pa
from _measure import console, keep, show
from pairs_supreme import room, supreme

import skyband as sb
from skyband import datasets
from skyband.algorithm import Rows
from skyband.pipeline import Pipeline
from skyband.plan import plan_for

QUICK, FULL = "--quick" in sys.argv, "--full" in sys.argv
RUNS = 2 if QUICK else 3
N, K, D = 10_000, 20, 3  # Table 1
POINTS = {"uniform": datasets.independent, "correlated": datasets.correlated,
          "anti-correlated": datasets.anticorrelated}  # fmt: skip


def scores(d: int) -> dict[str, str]:
    terms = [f"abs(a.x{i} - b.x{i})" for i in range(d)]
    total, product = " + ".join(terms), " * ".join(terms)
    return {"s1": f"{total} ASC", "s2": f"-({total}) ASC", "s3": f"{product} ASC", "s4": f"-({product}) ASC"}


class Stand:
    """A full window, on which algorithms take turns."""

    def __init__(self, queries: list[sb.TopKPairs], values: np.ndarray, n: int, tags: np.ndarray | None = None,
                 times: np.ndarray | None = None) -> None:  # fmt: skip
        self.queries, self.n = queries, n
        self.values = values
        self.tags = np.empty((len(values), 0), np.int64) if tags is None else tags
        self.times = np.arange(len(values)) if times is None else times
        names = sorted({column[2:] for column in queries[0].terms.score.columns})
        self.schema = pa.schema([(name, pa.float64()) for name in names] + [("colour", pa.int64())])
        self.scase = self.built("scase")
        self.scase.update(self.rows(0, n), 0)

    def built(self, name: str):
        queries = tuple(query.but(algorithm=name) for query in self.queries)
        pipeline = Pipeline(plan_for(queries))
        pipeline._begin(self.schema)
        return pipeline.algorithm

    def rows(self, low: int, high: int) -> Rows:
        number = np.arange(low, high)
        return Rows(np.zeros(high - low), self.times[low:high], np.zeros(high - low, np.int64), number, 0, 0,
                    self.values[low:high], self.tags[low:high])  # fmt: skip

    def state(self, name: str):
        state = self.scase.states[0].copied()
        if name == "basic":  # its counters, where the others have a staircase
            for i in range(state.size):
                state.stair_corner[i] = np.count_nonzero(state.pair_time[:i] >= state.pair_time[i])
        return state

    def cost(self, name: str, count: int) -> float:
        """Microseconds an object, of the fastest of several runs."""
        fastest = np.inf
        algorithm = self.built("scase" if name in ("supreme", "scores") else name)
        if name == "naive":
            algorithm.update(self.rows(0, self.n), 0)
            full = algorithm.states[0]
        for _ in range(RUNS + 1):
            state = full.copied() if name == "naive" else self.state(name)
            rows = self.rows(self.n, self.n + count)
            if name in ("supreme", "scores"):
                state = state.roomy(count, 0)
                objects, register = algorithm._objects(rows), np.empty((algorithm.program.registers, 1024))
                start = time.perf_counter()
                supreme(state.window, algorithm._spec, algorithm.program, objects, register, *room(name == "supreme"))
            else:
                algorithm.states = {0: state}
                start = time.perf_counter()
                algorithm.update(rows, 0)
            fastest = min(fastest, time.perf_counter() - start)
        return fastest / count * 1e6


def costs(names: tuple[str, ...], k: int = K, n: int = N, d: int = D, points: str = "uniform") -> dict[str, float]:
    """The mean over s1 … s4 for each algorithm."""
    count = {"basic": 100, "naive": 30, "ta": max(500, n // 16)}
    most = 1000 if n <= N else 300
    values = POINTS[points](n + max(most, *count.values()), d, seed=1)
    total = dict.fromkeys(names, 0.0)
    for order_by in scores(d).values():
        stand = Stand([sb.TopKPairs(k=k, order_by=order_by, window=sb.last(n), select=("a.x0",))], values, n)
        for name in names:
            total[name] += stand.cost(name, count.get(name, most)) / 4
    return total


def targets() -> list[dict]:
    values = datasets.independent(N + 1000, D, seed=1)
    rows = []
    for name, order_by in scores(D).items():
        stand = Stand([sb.TopKPairs(k=K, order_by=order_by, window=sb.last(N), select=("a.x0",))], values, N)
        ours, bound, strict = (stand.cost(which, 1000) for which in ("scase", "supreme", "scores"))
        rows.append({"score": name, "scase µs": ours, "supreme µs": bound, "ratio": ours / bound,
                     "to scores only": ours / strict, "target": "≤ 2",
                     "met": "yes" if ours <= 2 * bound else "NO"})  # fmt: skip
    large = costs(("scase", "ta", "supreme"), n=100_000)
    rows.append({"score": "s1–s4, N = 10⁵", "scase µs": large["scase"], "supreme µs": large["supreme"],
                 "ratio": large["ta"] / large["scase"], "to scores only": 0.0,
                 "target": f"ta {large['ta']:.0f} µs < scase",
                 "met": "yes" if large["ta"] < large["scase"] else "NO"})  # fmt: skip
    return rows


def maintenance() -> list[dict]:
    names = ("basic", "scase", "ta", "supreme")
    cases = [("K", k, dict(k=k)) for k in ((1, 20, 100) if QUICK else (1, 5, 10, 20, 50, 100))]
    cases += [("N", n, dict(n=n)) for n in (10_000, 50_000, 100_000, *((500_000, 1_000_000) if FULL else ()))]
    cases += [("d", d, dict(d=d)) for d in ((2, 6) if QUICK else (2, 3, 4, 5, 6))]
    cases += [("points", name, dict(points=name)) for name in POINTS]
    return [{"varied": varied, "value": str(value), **costs(names, **fields)} for varied, value, fields in cases]


def overall() -> list[dict]:
    names = ("naive", "scase", "supreme")
    cases = [("K", k, dict(k=k)) for k in ((1, 20) if QUICK else (1, 5, 20, 50))]
    cases += [("N", n, dict(n=n)) for n in ((2_000,) if QUICK else (1_000, 5_000, *((50_000,) if FULL else ())))]
    return [{"varied": varied, "value": str(value), **costs(names, **fields)} for varied, value, fields in cases]


def shorter() -> list[dict]:
    """SCase keeps the 20-skyband of 10⁴ objects; naive++ and supreme++ know k and n."""
    rows, ours = [], costs(("scase",))["scase"]
    for k, n in ((1, N), (10, N), (K, 1_000), (K, 5_000)):
        other = costs(("naive", "supreme"), k=k, n=n)
        rows.append({"k": k, "n": n, "naive++": other["naive"], "scase": ours, "supreme++": other["supreme"]})
    return rows


def sensors(n: int) -> np.ndarray:
    """Readings of 54 sensors that drift, with time, temperature and humidity: a stand-in for the lab data."""
    rng = np.random.default_rng(3)
    of, time = rng.integers(54, size=n), np.cumsum(rng.exponential(0.6, n))
    walk = np.array([np.sin(time / 3000 + of), np.cos(time / 4000 - of)]) * [[4], [9]] + rng.normal(size=(2, n)) * 0.3
    return np.column_stack([time, 21 + walk[0], 38 + walk[1]]).round(4)


def random_queries(count: int, order_by: str, **fields) -> list[sb.TopKPairs]:
    rng = np.random.default_rng(4)
    sizes = zip(rng.integers(1, K + 1, count - 1), rng.integers(100, N + 1, count - 1), strict=True)
    first = sb.TopKPairs(k=K, order_by=order_by, window=sb.last(N), **fields)
    return [first, *(first.but(k=int(k), window=sb.last(int(n))) for k, n in sizes)]


def real() -> list[dict]:
    order_by = "abs(a.t - b.t) / (abs(a.temp - b.temp) * abs(a.humid - b.humid))"
    values, rows = sensors(N + 1000), []
    for count in (1, 100):
        stand = Stand(random_queries(count, order_by, select=("a.t",)), values, N)
        row = {"queries": count, "scase": stand.cost("scase", 1000), "supreme": stand.cost("supreme", 1000)}
        one = Stand(stand.queries[:1], values, N)
        rows.append({**row, "naive (one query)": one.cost("naive", 30)})
    return rows


def late() -> list[dict]:
    """A share of the objects come up to N places behind their turn."""
    rows = []
    values = datasets.independent(2 * N, D, seed=1)
    for share in (0.0, 0.1, 0.3, 0.5):
        rng = np.random.default_rng(5)
        delay = np.where(rng.random(2 * N) < share, rng.integers(1, N, 2 * N), 0)
        order = np.argsort(np.arange(2 * N) + delay, kind="stable")
        total = 0.0
        for order_by in scores(D).values():
            queries = random_queries(100, order_by, select=("a.x0",))
            total += Stand(queries, values[order], N, times=order.astype(np.int64)).cost("scase", 1000) / 4
        rows.append({"late %": int(100 * share), "scase, 100 queries": total})
    return rows


def chromatic() -> list[dict]:
    rows = []
    values = datasets.independent(N + 1000, D, seed=1)
    for colours in (1, 2, 10, 100, 1000):
        tags = np.random.default_rng(6).integers(colours, size=(N + 1000, 1))
        row = {"colours": colours}
        for field in ("same", "different"):
            row[field] = 0.0
            for order_by in scores(D).values():
                query = sb.TopKPairs(k=K, order_by=order_by, window=sb.last(N), select=("a.x0",), **{field: "colour"})
                row[field] += Stand([query], values, N, tags).cost("scase", 1000) / 4
        rows.append(row)
    return rows


def main() -> None:
    parts = {"targets": targets, "figure_13": maintenance, "figure_9": overall, "figure_10": shorter, "figure_8": real,
             "figure_17": late, "figure_18b": chromatic}  # fmt: skip
    titles = {"targets": f"Targets: N = {N:,}, K = {K}, d = {D}", "figure_13": "Skyband maintenance (Figure 13), µs",
              "figure_9": "Overall cost (Figure 9), µs", "figure_10": "Fewer and shorter (Figure 10), µs",
              "figure_8": "The paper's real function on sensors (Figure 8), µs",
              "figure_17": "Out of order (Figure 17), µs", "figure_18b": "Chromatic (Figure 18b), µs"}  # fmt: skip
    results = {}
    for name, part in parts.items():
        results[name] = part()
        show(titles[name], results[name])
    if not QUICK:
        keep("pairs", **results)
    console.print("µs for each arriving object; the fastest of several runs")


if __name__ == "__main__":
    main()
