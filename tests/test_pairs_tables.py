"""Tables 2 and 3 of *pairs*: the size of the K-skyband, averaged over s1 … s4."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

TERMS = [f"abs(a.x{i} - b.x{i})" for i in range(3)]
SCORES = (" + ".join(TERMS), f"-({' + '.join(TERMS)})", " * ".join(TERMS), f"-({' * '.join(TERMS)})")

# Table 2: K and |SKB| for N = 10,000. Table 3: N and |SKB| for K = 20.
TABLE_2 = {1: 17.4, 5: 82.3, 10: 159.9, 20: 308.5, 50: 730.6, 100: 1398.0}
TABLE_3 = {1_000: 216.5, 5_000: 280.8, 10_000: 308.5, 50_000: 372.9, 100_000: 399.8}


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
        sizes.append(monitor.pipelines[0].algorithm.states[0].size)
    return np.mean(sizes)


def mean_size(K, N, samples=24, apart=None):
    return np.mean([skyband_size(K, N, score, samples, apart or N // 8) for score in SCORES])


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
