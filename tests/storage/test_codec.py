"""Saved states: arrays and tables come back as they were, in few bytes, and a damaged one is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from skyband.errors import StateError
from skyband.storage import codec as state
from skyband.storage.tables import table_from_arrays, table_to_arrays

EXTREME = np.iinfo(np.int64)
ARRAYS = {
    "none": np.empty(0, np.int64),
    "one": np.array([-5]),
    "steps": np.arange(1000)[::-1] * 7,
    "constant": np.full(1000, -(1 << 62)),
    "small": np.random.default_rng(1).integers(-100, 100, 1000),
    "times": 1_700_000_000_000_000 + np.random.default_rng(2).integers(0, 1 << 31, 1000),
    "extreme": np.array([EXTREME.min, EXTREME.max, 0]),
    "wrapping": np.array([EXTREME.max, EXTREME.min, EXTREME.max, EXTREME.min]),  # steps of 1, if they may wrap
    "scores": np.random.default_rng(3).random(1000),
    "again": np.random.default_rng(3).random(1000),
    "odd": np.array([np.nan, -0.0, 0.0, np.inf]),
    "flags": np.array([True, False, True]),
    "bytes": np.frombuffer(b"abc", np.uint8),
    "ranks": np.tile(np.arange(5, dtype=np.int32), 200),
    "short": np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min], np.int32),
    "unsigned": np.array([1, (1 << 64) - 1], np.uint64),
}


def same(got, expected):
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


def test_arrays_come_back_as_they_were():
    meta, got = state.unpack(state.pack({"a": 1}, ARRAYS))
    assert meta == {"a": 1}
    assert list(got) == list(ARRAYS)
    for name, array in ARRAYS.items():
        same(got[name], array)
        got[name][:] = 0  # each may be written to, and is not another one


@given(st.lists(arrays(np.int64, array_shapes(max_dims=1, max_side=20)), max_size=4))
def test_integers_come_back_as_they_were(many):
    _, got = state.unpack(state.pack({}, {str(i): array for i, array in enumerate(many)}))
    for i, array in enumerate(many):
        same(got[str(i)], array)


def test_what_can_be_told_in_a_word_takes_no_bytes():
    def size(*names):
        return len(state.pack({}, {name: ARRAYS[name] for name in names}))

    assert size("steps", "constant") < 300
    assert size("scores", "again") < 8000 + 300
    assert size("small") < 1000 + 200
    assert size("times") < 4000 + 200


def test_tables_come_back_as_they_were():
    table = pa.table({
        "rest": [None, "b", "c"], "0": [1, 2, 3], "ts": pa.array([3, 2, 1], pa.timestamp("us", "Europe/Berlin")),
        "x": [1.5, float("nan"), -0.0], "y": [1.0, None, 2.0], "nested": [[1], [], None], "flag": [True, False, None],
        "span": pa.array([1, 2, 3], pa.duration("ns")), "small": pa.array([1, 2, 3], pa.int8()),
        "rank": pa.array([1, 2, 1], pa.int32()),
    })  # fmt: skip
    for rows in (table, table.slice(1), table.slice(0, 0), pa.concat_tables([table.slice(1), table])):
        blob = state.pack({}, {**table_to_arrays(rows, "a"), **table_to_arrays(rows.select(["x"]), "b")})
        _, arrays = state.unpack(blob)
        for got, expected in (
            (table_from_arrays(arrays, "a"), rows),
            (table_from_arrays(arrays, "b"), rows.select(["x"])),
        ):
            assert got.schema == expected.schema
            assert repr(got.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("place", [0, 9, 13, 17, 40, -1])
def test_a_changed_byte_is_refused(place):
    blob = bytearray(state.pack({"a": 1}, ARRAYS))
    blob[place] ^= 1
    with pytest.raises(StateError):
        state.unpack(bytes(blob))
