"""Tables 2 and 3 of *pairs*: the size of the K-skyband, averaged over s1 … s4."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.pairs.scase import SCase
from skyband.kernels.pairs.band import Pairs
from skyband.storage.blocks import declaration, used

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from _pairs_windows import filled

TERMS = [f"abs(a.x{i} - b.x{i})" for i in range(3)]
SCORES = {"s1": " + ".join(TERMS), "s2": f"-({' + '.join(TERMS)})", "s3": " * ".join(TERMS),
          "s4": f"-({' * '.join(TERMS)})"}  # fmt: skip

# Table 2: K and |SKB| for N = 10,000. Table 3: N and |SKB| for K = 20.
TABLE_2 = {1: 17.4, 5: 82.3, 10: 159.9, 20: 308.5, 50: 730.6, 100: 1398.0}
TABLE_3 = {1_000: 216.5, 5_000: 280.8, 10_000: 308.5, 50_000: 372.9, 100_000: 399.8}
TABLE_3_LARGE = {500_000: 465.7, 1_000_000: 496.8}


def skyband_size(K, N, score, samples, apart):
    """The mean size over some moments of a stream of uniform points. TA and SCase keep the same skyband."""
    algorithm = "scase" if N <= 10_000 else "ta"
    points = np.random.default_rng([K, N]).random((N + samples * apart, 3))
    table = pa.table({f"x{i}": points[:, i] for i in range(3)})
    monitor = sb.Monitor(sb.TopKPairs(k=K, order_by=score, window=sb.last(N), select=("a.x0",), algorithm=algorithm))
    monitor.push(table.slice(0, N))
    sizes = []
    for i in range(samples):
        monitor.push(table.slice(N + i * apart, apart))
        sizes.append(used(monitor.pipelines[0].algorithm.states[0].band, "pairs"))
    return np.mean(sizes)


def mean_size(K, N, samples=24, apart=None):
    return np.mean([skyband_size(K, N, score, samples, apart or N // 8) for score in SCORES.values()])


@pytest.mark.parametrize("N", [1_000])
def test_table_3_small(N):
    assert mean_size(20, N, samples=80) == pytest.approx(TABLE_3[N], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("K", TABLE_2)
def test_table_2(K):
    assert mean_size(K, 10_000, samples=200 if K == 1 else 60, apart=500) == pytest.approx(TABLE_2[K], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("N", TABLE_3)
def test_table_3(N):
    assert mean_size(20, N, samples=80 if N <= 10_000 else 24) == pytest.approx(TABLE_3[N], rel=0.03)


def state_of(points, K, name):
    """What SCase keeps of a window that holds all the points, in which they did not come one after the other."""
    algorithm = SCase(sb.TopKPairs(k=K, order_by=SCORES[name], window=sb.last(len(points))))
    algorithm.meet(pa.schema([(f"x{i}", pa.float64()) for i in range(3)]), lambda numbers: pa.table({}))
    return filled(algorithm, points, name)


@pytest.mark.parametrize("name", SCORES)
def test_a_window_built_at_once(name):
    points = np.random.default_rng(3).random((1_500, 3))
    monitor = sb.Monitor(sb.TopKPairs(k=20, order_by=SCORES[name], window=sb.last(1_500), algorithm="scase"))
    monitor.push(pa.table({f"x{i}": points[:, i] for i in range(3)}))
    one, other = monitor.pipelines[0].algorithm.states[0], state_of(points, 20, name)
    assert (mine := used(one.band, "pairs")) == used(other.band, "pairs")
    for column in declaration(Pairs).columns:
        assert getattr(one.band, column)[:mine].tolist() == getattr(other.band, column)[:mine].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("N", TABLE_3_LARGE)
def test_table_3_large(N):
    """The furthest pairs share objects, so that the sizes of their skybands differ most from window to window."""
    windows = {"s1": 8, "s2": 30, "s3": 3, "s4": 30}
    means = [np.mean([used(state_of(np.random.default_rng([N, i, seed]).random((N, 3)), 20, name).band, "pairs")
                      for i in range(windows[name])]) for seed, name in enumerate(SCORES)]  # fmt: skip
    assert np.mean(means) == pytest.approx(TABLE_3_LARGE[N], rel=0.03)
