"""Arithmetic over doubles in few rows gives the same, to the last bit, as where Arrow evaluates it."""

import numpy as np
import pyarrow as pa
import pytest

from skyband.expressions import Expression, plain

ODD = [0.0, -0.0, 1.0, -1.5, 0.1, 1e308, -1e308, 5e-324, 2.0**53 + 2, np.inf, -np.inf, np.nan]


def evaluated(text, table, widen=True):
    """By NumPy, where that is done."""
    return pa.chunked_array([value for _, value in Expression(text, "").blocks(table, widen)])


def by_arrow(text, table, widen=True):
    expression = Expression(text, "")
    expression._plain = None
    return pa.chunked_array([value for _, value in expression.blocks(table, widen)])


def written(rng, depth):
    """An arithmetic expression at random."""
    if depth == 0 or rng.random() < 0.1:
        return str(rng.choice(["x", "y"] * 5 + ["0", "(-0)", "(-0.0)", "3", "0.25", "1e200", "9007199254740993",
                               "(-9223372036854775807)", "9223372036854775808"]))  # fmt: skip
    one, other = written(rng, depth - 1), written(rng, depth - 1)
    return str(rng.choice([f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"(-{one})",
                           f"abs({one})", f"sqrt({one})", f"power({one}, {rng.choice(['2', '3', '4', '2.0', '4e0'])})"]
                          ))  # fmt: skip


def bits(column):
    """The bits of each number; NaN has many patterns, which are one."""
    found = column.combine_chunks().to_numpy(zero_copy_only=False)
    return np.where(np.isnan(found), np.nan, found).view(np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([ODD, rng.normal(size=40), rng.normal(size=20) * 10.0 ** rng.integers(-300, 300, 20)])
    table = pa.table({name: rng.permutation(numbers) for name in "xy"})
    taken = 0
    for depth in (1, 2, 3, 4) * 60:
        text = written(rng, depth)
        expression = Expression(text, "")
        if not expression.columns:
            continue
        taken += expression._plain is not None
        for widen in (True, False):
            ours, theirs = evaluated(text, table, widen), by_arrow(text, table, widen)
            assert ours.type == theirs.type, text
            assert (bits(ours) == bits(theirs)).all(), text
    assert taken > 100


@pytest.mark.parametrize("text", ["1 + 2 + x", "x + 1 * 2", "x / 2", "x % 2", "power(x, 5)", "power(2, 2) + x",
                                  "power(x, y)", "greatest(x, y)", "x > 1", "CAST(x AS INT) + x", "3", "-(3)",
                                  "power(x, -2)", "abs(-3) + x", "ln(x)", "x + NULL"])  # fmt: skip
def test_all_else_is_left_to_arrow(text):
    assert Expression(text, "")._plain is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, None]),
        pa.array([1, 2]),
        pa.array([1.5, 2.5], pa.float32()),
        pa.nulls(2),
        pa.nulls(2, pa.float64()),
    ],
    ids=lambda column: f"{column.type}, {column.null_count} NULL",
)
def test_columns_of_doubles_without_null_only(column):
    table = pa.table({"x": column, "y": [0.5, 2.5]})
    expression = Expression("x * y - 1", "")
    columns = {("x", False): table.column("x").chunk(0), ("y", False): table.column("y").chunk(0)}
    assert expression._plain is not None and not expression._plain.takes(columns)
    assert evaluated("x * y - 1", table).equals(by_arrow("x * y - 1", table))


def test_many_rows_are_left_to_arrow():
    x = np.random.default_rng(1).normal(size=plain.FEW + 1)
    expression = Expression("abs(x - 0.5)", "")
    for size, taken in ((plain.FEW, True), (plain.FEW + 1, False)):
        assert expression._plain is not None
        assert expression._plain.takes({("x", False): pa.array(x[:size])}) == taken
        table = pa.table({"x": x[:size]})
        assert evaluated("abs(x - 0.5)", table).equals(by_arrow("abs(x - 0.5)", table))


def test_a_slice_begins_where_it_does():
    table = pa.table({"x": np.arange(10.0)}).slice(4, 2)
    assert evaluated("x * 2", table).to_pylist() == [8, 10]


def test_nothing_is_warned_of(recwarn):
    table = pa.table({"x": ODD})
    for text in ("sqrt(x)", "x * 1e308", "x - x", "power(x, 4)"):
        evaluated(text, table)
    assert not recwarn.list


def test_sums_of_many_terms():
    assert evaluated(" + ".join(["x"] * 800), pa.table({"x": [0.25, 1.0]})).to_pylist() == [200.0, 800.0]
