"""Warnings where many rows of a stream are left out, and none where it is few."""

import warnings

import numpy as np
import pytest

import skyband as sb
from skyband.errors import SkybandError

HOUR = sb.last("1 hour", every="1 hour")


def batch(times, score=1.0):
    return {"ts": np.asarray(times, float), "x": np.full(len(times), score)}


def test_many_late_rows_are_warned_of_once():
    monitor = sb.Monitor(sb.TopK(1, "x", HOUR))
    monitor.push(batch(range(1000, 1100)))
    with pytest.warns(sb.DataWarning, match=r"^80 of 100 rows .* too late: sort the rows by 'ts'.* late= ") as told:
        monitor.push(batch([*range(80), *range(1200, 1220)]))
    assert len(told) == 1 and told[0].filename == __file__
    monitor.push(batch(range(100)))
    assert monitor.stats.late == 180
    assert issubclass(sb.DataWarning, UserWarning) and not issubclass(sb.DataWarning, SkybandError)


def test_many_invalid_rows_are_warned_of_once():
    monitor = sb.Monitor(sb.TopK(1, "x", sb.last(5)))
    with pytest.warns(sb.DataWarning, match=r"^11 of 20 rows .* their score is NULL, NaN") as told:
        monitor.push({"x": [None] * 11 + [1.0] * 9})
    assert len(told) == 1 and told[0].filename == __file__
    monitor.push({"x": [None] * 100})
    assert monitor.stats.invalid == 111


def test_a_few_are_not_warned_of():
    monitor = sb.Monitor(sb.TopK(1, "x", HOUR))
    monitor.push(batch(range(1000, 1100)))
    monitor.push(batch([*range(10), *range(2000, 2090)]))  # a tenth
    monitor.push({"ts": np.arange(3000.0, 3020), "x": [None] * 10 + [1.0] * 10})  # half
    assert (monitor.stats.late, monitor.stats.invalid) == (10, 10)


def test_small_batches_are_judged_together():
    monitor = sb.Monitor(sb.TopK(1, "x", HOUR))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for moment in range(100, 0, -1):
            monitor.push(batch([moment]))
            assert bool(told) == (monitor.stats.seen >= 20)
    assert len(told) == 1 and "19 of 20 rows" in str(told[0].message)


def test_what_was_lost_before_a_state_was_saved_is_not_told_again():
    monitor = sb.Monitor(sb.TopK(1, "x", sb.last(5)))
    with pytest.warns(sb.DataWarning):
        monitor.push({"x": [None] * 30})
    restored = sb.Monitor.loads(monitor.dumps())
    restored.push({"x": [1.0] * 20})
    with pytest.warns(sb.DataWarning, match="30 of 30 rows"):
        restored.push({"x": [None] * 30})


def test_each_of_several_queries_counts():
    queries = [sb.TopK(1, "x", sb.last(5), name="x"), sb.TopK(1, "y", sb.last(5), name="y")]
    with pytest.warns(sb.DataWarning, match="^20 of 20 rows"):
        sb.Monitor(queries).push({"x": [1.0] * 20, "y": [None] * 20})
