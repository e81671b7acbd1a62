"""Trades of an invented stock exchange: the stream that the documentation and the demonstration rank."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.datasets.arrivals import bursty

SYMBOLS = ("VEGA", "RIGEL", "MIRA", "DENEB", "SPICA", "ATLAS", "ALGOL", "CAPELLA", "CASTOR", "ALTAIR", "HADAR", "NASH")
EXCHANGES = {"D": 0.25, "Q": 0.21, "P": 0.2, "Z": 0.17, "B": 0.09, "K": 0.08}  # with their shares
OPENING = datetime(2024, 1, 2, 14, 30, tzinfo=UTC)

_STEP = 2e-4  # the standard deviation of a price's change from trade to trade, relative to the price
_LOT = 100


def trades(n: int, seed: int = 0, gap: float = 5000.0) -> pa.Table:
    """n trades as an Arrow table, in the order of their event times.

    The columns are ``id`` (from 0), ``ts`` (UTC, in whole milliseconds, so that trades of a burst often share one),
    ``symbol`` (one of twelve; the r-th most popular has a share proportional to 1 / r), ``price`` (a random walk for
    each symbol, in whole cents), ``volume`` (log-normal, in round lots of 100) and ``exchange``.

    Args:
        n: how many.
        seed: of the random numbers.
        gap: the mean time between trades, in microseconds.

    >>> table = trades(1000)
    >>> table.column_names
    ['id', 'ts', 'symbol', 'price', 'volume', 'exchange']
    """
    rng = np.random.default_rng(seed)
    opening = int(OPENING.timestamp()) * 1_000_000
    time = bursty(n, seed, gap) // 1000 * 1000
    symbol = _pick(rng, 1 / np.arange(1, len(SYMBOLS) + 1), n)
    exchange = _pick(rng, np.array(list(EXCHANGES.values())), n)
    lots = np.ceil(np.exp(1.2 * rng.standard_normal(n)))
    return pa.table(
        {
            "id": np.arange(n),
            "ts": pa.array(opening + time, pa.timestamp("us", tz="UTC")),
            "symbol": pa.array(SYMBOLS).take(pa.array(symbol)),
            "price": _prices(rng, symbol),
            "volume": lots.astype(np.int64) * _LOT,
            "exchange": pa.array(list(EXCHANGES)).take(pa.array(exchange)),
        }
    )


def _pick(rng: np.random.Generator, weight: NDArray[np.float64], n: int) -> NDArray[np.int8]:
    """n draws of an index with these weights."""
    bounds = np.cumsum(weight / weight.sum())[:-1]
    return np.searchsorted(bounds, rng.random(n), side="right").astype(np.int8)


def _prices(rng: np.random.Generator, symbol: NDArray[np.int8]) -> NDArray[np.float64]:
    """A geometric random walk for each symbol, from an opening price between 10 and 500."""
    opening = np.exp(rng.uniform(np.log(10), np.log(500), len(SYMBOLS)))
    order = np.argsort(symbol, kind="stable")
    walk = np.cumsum(_STEP * rng.standard_normal(symbol.size))
    # One long walk over all symbols, one after the other, less where it stood when the symbol's own part began.
    count = np.bincount(symbol, minlength=len(SYMBOLS))
    before = np.concatenate([[0.0], walk])[np.cumsum(count) - count]
    price = np.empty(symbol.size)
    price[order] = np.exp(walk - np.repeat(before, count)) * np.repeat(opening, count)
    return np.round(price, 2)
