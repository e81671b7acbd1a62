"""A live stream of trades for the demonstration: file by file, a little out of order, with some faulty rows."""

import os
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyband.datasets.arrivals import Ints, late
from skyband.datasets.trades import OPENING, trades

DISORDER = "2 seconds"  # of event time: how much later than its neighbours a healthy row may come
FAULTS = 1e-4  # the share of rows that come far too late, and that of rows without a price

_TICK = 0.5  # seconds between files
_LAP = 2_000_000  # rows made at a time, at most
_FAR = 20 * 60 * 1_000_000  # how far too late, in microseconds
_SAFE = 60 * 1_000_000  # the first rows have no faults: nothing is too late before anything has been seen


class Replay(threading.Thread):
    """Writes trades into a directory as small Parquet files, at a steady pace, until it is stopped.

    Args:
        directory: where to write; it is made if it does not exist.
        rate: rows a second.
        speed: how many times as fast as the clock on the wall event time runs.
        seed: of the random numbers; the same seed gives the same rows, order and faults.
    """

    def __init__(self, directory: Path, rate: int, speed: float, seed: int = 0) -> None:
        super().__init__(name="replay", daemon=True)
        self.directory = directory
        self.rows = 0
        self._pieces = pieces(rate, speed, seed)
        self._number = count()
        self._stopped = threading.Event()

    def write(self) -> None:
        """Write the next file at once."""
        table = next(self._pieces)
        name = f"{next(self._number):06}.parquet"
        self.directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.directory / f".{name}")
        os.replace(self.directory / f".{name}", self.directory / name)  # nobody reads half a file
        self.rows += table.num_rows

    def run(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            self.write()
            due += _TICK

    def stop(self) -> None:
        self._stopped.set()
        if self.is_alive():
            self.join()


def pieces(rate: int, speed: float, seed: int = 0) -> Iterator[pa.Table]:
    """The rows of one file after the other, without end.

    >>> first = next(pieces(rate=1000, speed=60.0))
    >>> first["ts"][0].as_py() < first["ts"][-1].as_py()
    True
    """
    size = min(_LAP, 60 * rate)
    begin = int(OPENING.timestamp()) * 1_000_000
    for lap in count():
        table = trades(size, seed + lap, gap=speed * 1e6 / rate)
        stamp = table["ts"].to_numpy().astype(np.int64)
        stamp += begin - stamp[0]
        order = late(stamp, DISORDER, seed + lap)
        stamp = stamp[order]
        newest = np.maximum.accumulate(stamp)  # when a row arrives
        cuts = np.searchsorted(newest, np.arange(begin, newest[-1], int(_TICK * speed * 1e6))[1:])
        table = _with_faults(table.take(pa.array(order)), stamp, lap * size, np.random.default_rng(seed + lap))
        for first, end in zip([0, *cuts], [*cuts, size], strict=True):
            yield table.slice(first, end - first)
        begin = int(newest[-1])


def _with_faults(table: pa.Table, stamp: Ints, first: int, rng: np.random.Generator) -> pa.Table:
    """The rows with ids from ``first`` on, a few of them damaged on purpose: far too late, or without a price."""
    healthy = stamp < int(OPENING.timestamp()) * 1_000_000 + _SAFE
    luck = np.where(healthy, 1.0, rng.random(stamp.size))
    stamp = np.where(luck < FAULTS, stamp - _FAR, stamp)
    priceless = (luck >= FAULTS) & (luck < 2 * FAULTS)
    columns = {
        "id": pa.array(table["id"].to_numpy() + first),
        "ts": pa.array(stamp, pa.timestamp("us", tz="UTC")),
        "price": pa.array(table["price"].to_numpy(), mask=priceless),
    }
    return pa.table({name: columns.get(name, table[name]) for name in table.column_names})
