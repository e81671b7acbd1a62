"""The generators keep their promises: shape, order, spread and repeatability."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skyband import datasets
from skyband.datasets.trades import EXCHANGES, SYMBOLS

SEEDED = [
    datasets.uniform,
    datasets.random_walk,
    datasets.rising,
    datasets.falling,
    datasets.tied,
    datasets.bursty,
    datasets.independent,
    datasets.clustered,
]


@pytest.mark.parametrize("generate", SEEDED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_same_seed_same_data(generate, n):
    data = generate(n, seed=7)
    assert len(data) == n
    np.testing.assert_array_equal(data, generate(n, seed=7))
    if n == 1000:
        assert not np.array_equal(data, generate(n, seed=8))


def test_scores_are_what_their_names_say():
    assert (np.diff(datasets.rising(1000)) >= 0).all()
    assert (np.diff(datasets.falling(1000)) <= 0).all()
    assert set(datasets.constant(5, 3.5)) == {3.5}
    assert set(datasets.tied(1000, values=4)) == {0.0, 1.0, 2.0, 3.0}
    assert abs(datasets.uniform(100_000).mean() - 0.5) < 0.01
    assert abs(np.diff(datasets.random_walk(100_000)).std() - 1) < 0.01
    assert all(f(10).dtype == np.float64 for f in (*SEEDED[:5], datasets.constant))


def test_bursty_is_ordered_bursty_and_keeps_its_mean_gap():
    time = datasets.bursty(1_000_000, gap=1000, burst=20, length=100)
    gaps = np.diff(time)
    assert time.dtype == np.int64
    assert time[0] >= 0
    assert (gaps >= 0).all()
    assert abs(gaps.mean() / 1000 - 1) < 0.05
    assert gaps.std() / gaps.mean() > 1.3  # a steady (Poisson) stream has 1
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) > 0.1  # and no memory


def test_bursty_with_gaps_below_a_microsecond_has_ties():
    assert (np.diff(datasets.bursty(1000, gap=0.5)) == 0).mean() > 0.5


@pytest.mark.parametrize("by", [0, 1, 1000, 100_000])
def test_late_is_a_permutation_that_keeps_its_bound(by):
    time = datasets.bursty(5000, gap=100)
    order = datasets.late(time, by, seed=3)
    np.testing.assert_array_equal(np.sort(order), np.arange(5000))
    arrived = time[order]
    behind = np.maximum.accumulate(arrived) - arrived
    assert behind.max() <= by
    if by >= 1000:  # gaps of 10 and 200 microseconds: there are neighbours to overtake
        assert behind.max() > 0.5 * by


def test_late_takes_a_duration():
    time = datasets.bursty(1000)
    np.testing.assert_array_equal(datasets.late(time, "2 ms"), datasets.late(time, 2000))
    np.testing.assert_array_equal(datasets.late(time, "0 seconds"), np.arange(1000))


def test_points_lie_in_the_unit_cube():
    for points in (datasets.independent(5000, d=3), datasets.clustered(5000, d=3, clusters=5)):
        assert points.shape == (5000, 3)
        assert points.min() >= 0
        assert points.max() <= 1
    tight = datasets.clustered(5000, clusters=1, variance=1e-4)
    assert tight.std(axis=0).max() < 0.011


def test_trades():
    n = 50_000
    table = datasets.trades(n, seed=1)
    assert table.schema == pa.schema(
        {
            "id": pa.int64(),
            "ts": pa.timestamp("us", tz="UTC"),
            "symbol": pa.string(),
            "price": pa.float64(),
            "volume": pa.int64(),
            "exchange": pa.string(),
        }
    )
    assert all(column.null_count == 0 for column in table.columns)
    np.testing.assert_array_equal(table["id"], np.arange(n))
    gaps = np.diff(table["ts"].to_numpy().astype(np.int64))
    assert (gaps >= 0).all()
    assert 0.1 < (gaps == 0).mean() < 0.6
    assert table.equals(datasets.trades(n, seed=1))
    assert not table.equals(datasets.trades(n, seed=2))

    count = {row["values"]: row["counts"] for row in pc.value_counts(table["symbol"].combine_chunks()).to_pylist()}
    assert sorted(count, key=count.get, reverse=True)[:3] == list(SYMBOLS[:3])
    assert abs(count[SYMBOLS[0]] / count[SYMBOLS[1]] - 2) < 0.1
    assert set(table["exchange"].unique().to_pylist()) == set(EXCHANGES)
    volume = table["volume"].to_numpy()
    assert (volume % 100 == 0).all()
    assert volume.min() == 100
    assert volume.max() > 10 * np.median(volume)


def test_the_price_of_each_symbol_walks_in_small_steps():
    table = datasets.trades(50_000)
    for symbol in SYMBOLS:
        price = table.filter(pc.field("symbol") == symbol)["price"].to_numpy()
        assert price.min() > 1
        assert abs(np.diff(np.log(price))).max() < 0.003
        assert np.ptp(price) > 0


def test_no_trades_are_an_empty_table():
    assert datasets.trades(0).schema == datasets.trades(1).schema
    assert datasets.trades(0).num_rows == 0
