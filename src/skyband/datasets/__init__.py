"""Generated data for examples, tests and benchmarks: nothing is downloaded, and the same seed gives the same data.

Scores in arrival order (:mod:`~skyband.datasets.scores`), times and orders of arrival
(:mod:`~skyband.datasets.arrivals`), points for :class:`skyband.Nearest` (:mod:`~skyband.datasets.points`), objects
scattered over several streams (:mod:`~skyband.datasets.scattered`) and a stream of trades
(:mod:`~skyband.datasets.trades`).

>>> from skyband import datasets
>>> table = datasets.trades(100_000)
>>> delayed = table.take(datasets.late(table["ts"].to_numpy().astype("int64"), by="2 seconds"))
"""

from skyband.datasets.arrivals import bursty, late
from skyband.datasets.points import anticorrelated, clustered, correlated, independent
from skyband.datasets.scattered import scattered
from skyband.datasets.scores import constant, falling, random_walk, rising, tied, uniform
from skyband.datasets.trades import trades

__all__ = [
    "anticorrelated",
    "bursty",
    "clustered",
    "constant",
    "correlated",
    "falling",
    "independent",
    "late",
    "random_walk",
    "rising",
    "scattered",
    "tied",
    "trades",
    "uniform",
]
