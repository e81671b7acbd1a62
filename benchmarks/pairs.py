"""Top-k pairs: SCase and TA beside the competitors of *pairs* and its lower bound.

    python benchmarks/pairs.py [--quick | --full]

Every figure is microseconds of processor time for each arriving object in a full window, the mean over the scores
s1 … s4 unless said otherwise: the algorithm's own work, without reading batches and writing answers. On one core
``--quick`` takes less than a minute, the default less than four, and ``--full``, which goes up to windows of 10⁶, less
than ten. Slow competitors are measured on few objects.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial

import numpy as np
import pyarrow as pa
from _measure import best_of, console, keep, show
from _pairs_supreme import room, supreme
from _pairs_windows import filled

import skyband as sb
from skyband import datasets
from skyband.algorithms.contract import Rows
from skyband.algorithms.pairs.room import with_objects
from skyband.engine.pipeline import Pipeline
from skyband.engine.planner import plan_for
from skyband.kernels.common.jit import outer
from skyband.kernels.pairs.answers import reach
from skyband.kernels.pairs.band import Pairs
from skyband.kernels.pairs.program import BLOCK
from skyband.kernels.pairs.scan import passing
from skyband.storage.blocks import copied

QUICK, FULL = "--quick" in sys.argv, "--full" in sys.argv
RUNS = 2 if QUICK else 4
N, K, D = 10_000, 20, 3  # Table 1
POINTS = {"uniform": datasets.independent, "correlated": datasets.correlated,
          "anti-correlated": datasets.anticorrelated}  # fmt: skip
Row = dict[str, int | float | str]


def scores(d: int) -> dict[str, str]:
    terms = [f"abs(a.x{i} - b.x{i})" for i in range(d)]
    total, product = " + ".join(terms), " * ".join(terms)
    return {"s1": f"{total} ASC", "s2": f"-({total}) ASC", "s3": f"{product} ASC", "s4": f"-({product}) ASC"}


class Stand:
    """A full window, on which algorithms take turns. ``score``: that of a large window of uniform points."""

    def __init__(self, queries: list[sb.TopKPairs], values: np.ndarray, n: int, tags: np.ndarray | None = None,
                 times: np.ndarray | None = None, score: str | None = None) -> None:  # fmt: skip
        self.queries, self.n = queries, n
        self.values = values
        self.tags = np.empty((len(values), 0), np.int64) if tags is None else tags
        self.times = np.arange(len(values)) if times is None else times
        names = sorted({column[2:] for column in queries[0].terms.score.columns})
        self.schema = pa.schema([(name, pa.float64()) for name in names] + [("colour", pa.int64())])
        self.scase = self.built("scase")
        if score:
            self.scase.states = {0: filled(self.scase, values[:n], score)}
        else:
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

    def cost(self, name: str, count: int) -> float:
        """Microseconds an object, of the fastest of several runs."""
        fastest = np.inf
        algorithm = self.built("scase" if name in ("supreme", "scores") else name)
        if name == "naive":
            newcomers = algorithm.newcomers(self.rows(0, self.n))
            full, _ = algorithm.fold(algorithm.fresh(), newcomers, algorithm.silent, moves=False)
        for _ in range(RUNS + 1 if self.n <= 100_000 else 1):
            state = copied(full if name == "naive" else self.scase.states[0])
            rows = self.rows(self.n, self.n + count)
            if name in ("supreme", "scores"):
                window, program = with_objects(state, count, 0).window, algorithm.scoring.program
                newcomers, register = algorithm.newcomers(rows), np.empty((program.registers, BLOCK))
                start = time.process_time()
                supreme(window, algorithm.asked, program, newcomers, register, *room(name == "supreme"))
            else:
                algorithm.states = {0: state}
                start = time.process_time()
                algorithm.update(rows, 0)
            fastest = min(fastest, time.process_time() - start)
        return fastest / count * 1e6


@lru_cache(4)
def stand(score: str, k: int, n: int, d: int, points: str) -> Stand:
    values = POINTS[points](n + max(1000, n // 16), d, seed=1)
    query = sb.TopKPairs(k=k, order_by=scores(d)[score], window=sb.last(n), select=("a.x0",))
    return Stand([query], values, n, score=score if n > N and points == "uniform" else None)


def count_for(name: str, n: int) -> int:
    """How many objects are enough: those of SCase take a microsecond or more for each thousand in the window."""
    if name == "naive":
        return 5
    if name == "basic":
        return max(2, min(50, 300_000 // n))
    return max(500, n // 16) if name == "ta" else 1000 if n <= N else 300 if n <= 100_000 else 50


@cache
def cost(name: str, score: str, k: int, n: int, d: int, points: str) -> float:
    return stand(score, k, n, d, points).cost(name, count_for(name, n))


def costs(names: tuple[str, ...], k: int = K, n: int = N, d: int = D, points: str = "uniform",
          of: tuple[str, ...] = ("s1", "s2", "s3", "s4")) -> dict[str, float]:  # fmt: skip
    """The mean over some scores for each algorithm. What has been measured once is not measured again."""
    by_score = [[cost(name, score, k, n, d, points) for name in names] for score in of]
    return dict(zip(names, np.mean(by_score, axis=0).tolist(), strict=True))


def verdict(*met: bool) -> str:
    return "yes" if all(met) else "NO"


def targets() -> Iterator[Row]:
    cases = [(score, dict(of=(score,))) for score in scores(D)] + [("N = 10⁵", dict(n=100_000))]
    for label, case in cases:
        row = costs(("scase", "supreme", "scores", "ta"), **case)
        large = "n" in case
        yield {"case": label, **row, "scase / supreme": row["scase"] / row["supreme"],
               "scase / scores": row["scase"] / row["scores"], "ta / scase": row["ta"] / row["scase"],
               "target": "ta < scase" if large else "≤ 2 × supreme",
               "met": verdict(row["ta"] < row["scase"] if large else row["scase"] <= 2 * row["supreme"])}  # fmt: skip


def maintenance() -> Iterator[Row]:
    cases = [("K", k, dict(k=k)) for k in ((1, 20, 100) if QUICK else (1, 5, 10, 20, 50, 100))]
    cases += [("N", n, dict(n=n)) for n in (1_000, N, *(() if QUICK else (50_000,)), 100_000)]
    cases += [("N", n, dict(n=n)) for n in ((500_000, 1_000_000) if FULL else ())]
    cases += [("d", d, dict(d=d)) for d in ((2, 6) if QUICK else (2, 3, 4, 5, 6))]
    cases += [("points", name, dict(points=name)) for name in POINTS]
    for varied, value, case in cases:
        row = costs(("basic", "scase", "ta", "supreme"), **case)
        large = case.get("n", 0) >= 100_000
        yield {"varied": f"{varied} = {value}", **row, "basic / scase": row["basic"] / row["scase"],
               "scase / supreme": row["scase"] / row["supreme"], "ta / scase": row["ta"] / row["scase"],
               "expected": f"{'ta < ' if large else ''}scase < basic",
               "met": verdict(row["scase"] < row["basic"], not large or row["ta"] < row["scase"])}  # fmt: skip


def against_naive(label: str, row: dict[str, float], low: str = "supreme", high: str = "naive") -> Row:
    return {"varied": label, **row, f"{high} / scase": row[high] / row["scase"],
            f"scase / {low}": row["scase"] / row[low], "expected": f"scase < {high}",
            "met": verdict(row["scase"] < row[high])}  # fmt: skip


def overall() -> Iterator[Row]:
    cases = [("K", k, dict(k=k)) for k in ((1, 20) if QUICK else (1, 5, 10, 20, 50, 100) if FULL else (1, 5, 20, 50))]
    cases += [("N", n, dict(n=n)) for n in ((1_000,) if QUICK else (1_000, 5_000, N, *((20_000,) if FULL else ())))]
    for varied, value, case in cases:
        yield against_naive(f"{varied} = {value}", costs(("naive", "scase", "supreme"), **case))


def shorter() -> Iterator[Row]:
    """SCase keeps the 20-skyband of 10⁴ objects; naive++ and supreme++ know k and n."""
    ours = costs(("scase",))["scase"]
    for k, n in ((1, N), (K, 1_000)) if QUICK else ((1, N), (5, N), (K, N), (K, 1_000), (K, 5_000)):
        other = costs(("naive", "supreme"), k=k, n=n)
        row = {"naive++": other["naive"], "scase": ours, "supreme++": other["supreme"]}
        yield against_naive(f"k = {k}, n = {n}", row, "supreme++", "naive++")


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


def real() -> Iterator[Row]:
    order_by = "abs(a.t - b.t) / (abs(a.temp - b.temp) * abs(a.humid - b.humid))"
    values = sensors(N + 1000)
    naive = Stand(random_queries(1, order_by, select=("a.t",)), values, N).cost("naive", 5)
    for count in (1, 100):
        many = Stand(random_queries(count, order_by, select=("a.t",)), values, N)
        row = {"naive": naive, "scase": many.cost("scase", 1000), "supreme": many.cost("supreme", 1000)}
        yield against_naive(f"{count} queries" if count > 1 else "1 query", row)  # naive always answers one


def late() -> Iterator[Row]:
    """A share of the objects come up to N places behind their turn."""
    values, none = datasets.independent(2 * N, D, seed=1), np.inf
    for share in (0.0, 0.3) if QUICK else (0.0, 0.1, 0.3, 0.5):
        rng = np.random.default_rng(5)
        delay = np.where(rng.random(2 * N) < share, rng.integers(1, N, 2 * N), 0)
        order = np.argsort(np.arange(2 * N) + delay, kind="stable")
        total = 0.0
        for order_by in scores(D).values():
            queries = random_queries(100, order_by, select=("a.x0",))
            total += Stand(queries, values[order], N, times=order.astype(np.int64)).cost("scase", 1000) / 4
        none = total if share == 0 else none
        yield {"late": f"{share:.0%}", "scase, 100 queries": total, "/ in order": total / none,
               "expected": "≤ 1.1", "met": verdict(total <= 1.1 * none)}  # fmt: skip


def chromatic() -> Iterator[Row]:
    values, none = datasets.independent(N + 1000, D, seed=1), costs(("scase",))["scase"]
    for colours in (1, 2, 10, 100, 1000):
        tags = np.random.default_rng(6).integers(colours, size=(N + 1000, 1))
        row = {"no condition": none, "same": 0.0, "different": 0.0}
        for field in ("same", "different"):
            for order_by in scores(D).values():
                query = sb.TopKPairs(k=K, order_by=order_by, window=sb.last(N), select=("a.x0",), **{field: "colour"})
                row[field] += Stand([query], values, N, tags).cost("scase", 1000) / 4
        yield {"colours": str(colours), **row, "same / none": row["same"] / none,
               "different / none": row["different"] / none, "expected": "≤ 1.15",
               "met": verdict(row["same"] <= 1.15 * none, row["different"] <= 1.15 * none)}  # fmt: skip


def staircase() -> Iterator[Row]:
    """The test of N new pairs against a staircase of 300 steps: a bar for each block, and the paper's search."""
    rng = np.random.default_rng(7)
    score, corner = -rng.random(N), np.sort(rng.choice(N, 300, replace=False))
    height, ages = -np.sort(rng.random(300)) / N, {"in age order": np.arange(N), "in any order": rng.permutation(N)}
    row = {"one bar a block": timed(one_bar_a_block, score, height)}
    row |= {f"a search, {name}": timed(a_search, score, age, corner, height) for name, age in ages.items()}
    yield {"pairs": f"{N:,}", **row, "expected": "a search costs more",
           "met": verdict(row["one bar a block"] < row["a search, in age order"])}  # fmt: skip


def snapshots() -> Iterator[Row]:
    """The best pairs of the window, and of a shorter one: read down S, and asked of a monitor, which makes a table."""
    values = datasets.independent(N, D, seed=1)
    for k in (K,) if QUICK else (K, 1000):
        query = sb.TopKPairs(k=k, order_by=scores(D)["s1"], window=sb.last(N), select=("a.x0",), algorithm="scase")
        monitor = sb.Monitor(query)
        monitor.push({f"x{i}": column for i, column in enumerate(values.T)})
        band = monitor.pipelines[0].algorithm.states[0].band
        row: Row = {"K": f"{k:,}", "pairs in S": int(band.meta[0].held)}
        for n in (N, N // 10, N // 100):
            row[f"S, n = {n:,}"] = best_of(partial(read_often, band, k, N - n), RUNS) * 1e3
        row["top()"] = best_of(partial(ask_often, monitor), RUNS) * 1e4
        slowest = max(value for name, value in row.items() if name.startswith("S, n"))
        yield {**row, "expected": "≤ 20 µs in S", "met": verdict(slowest <= 20)}


def ask_often(monitor: sb.Monitor) -> None:
    for _ in range(100):
        monitor.top()


@outer
def read_often(band: Pairs, k: int, start: int) -> int:
    count = 0
    for i in range(1000):
        end, _ = reach(band, k, False, start + i % 2)  # not the same each time, or it would be read once
        count += end
    return count


@outer
def one_bar_a_block(score: np.ndarray, height: np.ndarray) -> int:
    count = 0
    for low in range(0, score.size, BLOCK):
        count += passing(score[low : low + BLOCK], height[low // BLOCK])
    return count


@outer
def a_search(score: np.ndarray, age: np.ndarray, corner: np.ndarray, height: np.ndarray) -> int:
    count = 0
    for i in range(score.size):
        count += score[i] >= height[min(np.searchsorted(corner, age[i]), height.size - 1)]
    return count


def timed(function: Callable[..., int], *arguments: np.ndarray) -> float:
    """Microseconds of a call, of which a thousand are measured at once."""
    return best_of(lambda: [function(*arguments) for _ in range(1000)], RUNS) * 1e3


PARTS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "targets": (f"Targets: N = {N:,}, K = {K}, d = {D}", targets),
    "staircase": ("The test of the new pairs of an object", staircase),
    "snapshots": (f"Snapshots of windows of n objects: N = {N:,}, d = {D}", snapshots),
    "figure_8": ("The paper's real function on made-up sensors (Figure 8)", real),
    "figure_9": ("Overall cost (Figure 9)", overall),
    "figure_10": ("Fewer and shorter: SCase keeps K and N (Figure 10)", shorter),
    "figure_13": ("Skyband maintenance (Figure 13)", maintenance),
    "figure_17": ("Out of order (Figure 17)", late),
    "figure_18b": ("Colours (Figure 18b)", chromatic),
}


def main() -> None:
    began, results = time.perf_counter(), {}
    for name, (title, part) in PARTS.items():
        rows = results[name] = []
        for row in part():
            rows.append(row)
            figures = ", ".join(f"{of} {v:,.4g}" if isinstance(v, float) else str(v) for of, v in row.items())
            print(f"{time.perf_counter() - began:4.0f} s  {name}: {figures}", flush=True)
        show(f"{title}, µs", rows)
    if not QUICK:
        keep("pairs", **results)
    console.print("µs for each arriving object; the fastest of several runs")
    rows = [(name, row) for name in results for row in results[name]]
    missed = [f"{name} ({next(iter(row.values()))})" for name, row in rows if row["met"] == "NO"]
    console.print(f"not as expected: {', '.join(missed)}" if missed else "all as expected")


if __name__ == "__main__":
    main()
