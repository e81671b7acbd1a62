"""Random expressions, and rows to put them to."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

BIG = 1 << 63


class Maker:
    """Random expressions that another engine answers as we do.

    DuckDB refuses some arguments (√-1, ln 0, sin ∞) and rounds in other ways (round(x, 2), CAST to an integer). Spark
    does all this as we do, but has logarithms, sines and the like of its own, which may differ in the last digit.
    """

    NUMBERS = (
        "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / {b})", "({a} % {b})", "(-{a})", "abs({a})", "length(s)",
        "sqrt(abs({a}))", "power({a}, 2)", "power({a}, 3)", "floor({a})", "ceil({a})", "round({a})", "radians({a})",
        "greatest({a}, {b})", "least({a}, {b}, i)", "coalesce({a}, {b})", "nullif({a}, {b})", "if({c}, {a}, {b})",
        "CASE WHEN {c} THEN {a} WHEN {d} THEN {b} END", "CASE WHEN {c} THEN {a} ELSE {b} END", "degrees({a})",
        "CASE i WHEN 1 THEN {a} WHEN 2 THEN {b} ELSE 0 END",
    )  # fmt: skip
    FOR_DUCKDB = (
        "exp(-abs({a}))", "ln(abs({a}) + 1)", "log10(abs({a}) + 1)", "log2(abs({a}) + 1)", "sin(least(abs({a}), 9))",
        "atan2({a} + 0e0, {b} + 0e0)", "cos(least(abs({a}), 9))", "atan({a})",
    )  # fmt: skip
    FOR_SPARK = (
        "sqrt({a})", "CAST({a} AS INT)", "CAST({a} AS BIGINT)", "CAST(s AS DOUBLE)", "CAST(s AS BIGINT)", "sign({a})",
        "round({a}, 2)", "large", "cents", "single", "small", "(large * {a})", "(large + large)", "CAST(b AS INT)",
        "(small * small * 100000)", "(-large)", "abs(large)", "(0.1 * i)", "(cents + 0.2)", "if({c}, {a})",
        "CAST(CAST(large AS VARCHAR) AS BIGINT)",
    )  # fmt: skip
    CONDITIONS = (
        "({a} < {b})", "({a} <= {b})", "({a} > {b})", "({a} >= {b})", "({a} = {b})", "({a} <> {b})", "({c} AND {d})",
        "({c} OR {d})", "(NOT {c})", "({a} IS NULL)", "({a} IS NOT NULL)", "({a} BETWEEN {b} AND 3)", "(s > 'ab')",
        "({a} NOT BETWEEN -1 AND {b})", "(i IN (1, 2, 3))", "(j NOT IN (1, -2, NULL))", "(s IN ('ab', 'b'))",
        "(s NOT LIKE '%b_')", "({c} IS TRUE)", "({c} IS NOT FALSE)", "(lower(s) = upper(s))", "(x IN (0, 1.5))",
    )  # fmt: skip
    PLAIN_NUMBERS = ("i", "j", "x", "y", "z", "7", "0", "(-2)", "5e-1", "(-31e-1)", "NULL")
    PLAIN_CONDITIONS = ("b", "(i > 1)", "(x < y)", "(s = 'ab')", "TRUE", "(i IS NULL)", "(s LIKE 'a%')", "NULL")

    def __init__(self, rng, for_spark=False):
        self.rng = rng
        self.numbers = self.NUMBERS + (self.FOR_SPARK if for_spark else self.FOR_DUCKDB)

    def number(self, depth):
        return self._fill(self.numbers if depth else self.PLAIN_NUMBERS, depth)

    def condition(self, depth):
        return self._fill(self.CONDITIONS if depth else self.PLAIN_CONDITIONS, depth)

    def _fill(self, forms, depth):
        form = forms[self.rng.integers(len(forms))]
        return form.format(**{k: (self.number if k in "ab" else self.condition)(depth - 1) for k in "abcd"
                              if f"{{{k}}}" in form})  # fmt: skip


# What has no number for a result, and what leaves the range of one: of columns, so that no engine computes it first,
# and of constants, which it may. Logarithms, powers and the like are Spark's own: the same but for the last digit.
EDGES = (
    "x / 0", "x / y", "i / 0", "i / j", "0 / 0", "1 / 0", "large / 0", "x / 0 * 0", "-x / 0", "x % 0", "x % y", "i % 0",
    "i % j", "0 % 0", "large % 0", "large % -1", "large % i", "sqrt(x)", "sqrt(i)", "sqrt(-1)", "1 / sqrt(i)",
    "coalesce(x / 0, 7)", "coalesce(i % 0, 7)", "greatest(x / 0, y)", "least(i / 0, j)", "if(x / 0 > 1, 1, 2)",
    "nullif(i, i) / 0", "large + large", "large - 9 * large", "large * large", "large * i", "-large", "abs(large)",
    "large * i / i", "coalesce(large + large, 0)", "(large + large) % 7", "x * 1e308 * 1e308", "x - x", "x * 0",
    "CAST(x AS INT)", "CAST(x / 0 AS BIGINT)", "CAST(large + large AS BIGINT)", "CAST(x * 1e300 AS BIGINT)",
)  # fmt: skip
ROUNDED_EDGES = (
    "ln(x)", "ln(i)", "ln(0)", "ln(-1)", "ln(i - i)", "log10(i)", "log2(i)", "log(2, i)", "log(i, z)", "log(x, 3)",
    "log(i - i, 2)", "1 / ln(i)", "coalesce(ln(i), 7)", "greatest(ln(i), -9)", "log(1, i)", "exp(large)",
    "exp(x * 1000)", "power(i, j)", "power(x, y)", "power(i - i, -1)", "power(0, -1)", "power(-8, 1 / 3)",
    "asin(x)", "acos(i)", "atan2(i - i, i - i)", "tan(x)",
)  # fmt: skip


def stream(rng, size=300):
    """Rows with NULL, NaN, ±inf, ±0 and ties in them."""

    def holes(values, kind=None):
        return pa.array(values, kind, mask=rng.random(size) < 0.1)

    x = np.round(rng.normal(size=size) * 3, 1)
    for value, share in ((np.nan, 0.05), (np.inf, 0.03), (-np.inf, 0.03), (0.0, 0.1), (-0.0, 0.05)):
        x[rng.random(size) < share] = value
    words = ["ab", "b", "A", "", "abc", "12", "1.5", " 7 ", "1e3", "a_%", "Infinity", "12x", "9223372036854775808"]
    return pa.table(
        {
            "i": holes(rng.integers(-3, 4, size)),
            "j": holes(rng.integers(-9, 10, size)),
            "x": holes(x),
            "y": holes(np.round(rng.normal(size=size), 1)),
            "z": rng.random(size) * 100 - 50,
            "s": holes(rng.choice(words, size)),
            "b": holes(rng.random(size) < 0.5),
            "large": holes(rng.choice([1 << 62, -BIG, BIG - 1, 3, -5, (1 << 53) + 1, 10**18], size)),
            "small": holes(rng.integers(-(1 << 31), 1 << 31, size).astype(np.int32)),
            "single": holes(rng.normal(size=size).astype(np.float32)),
            "cents": pa.array([Decimal(int(v)).scaleb(-2) for v in rng.integers(-(10**6), 10**6, size)],
                              pa.decimal128(10, 2)),
        }
    )  # fmt: skip


def same(left, right):
    return np.array_equal(left, right, equal_nan=True)
