"""SQL's operators and functions, written with Arrow's vectorised functions."""

import math
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from skyband.expressions.values import (
    DOUBLE,
    FALSE,
    INT,
    NULL,
    Value,
    alike,
    choose,
    double,
    doubles,
    numbers,
    texts,
    truths,
    unless,
)

Operator = Callable[..., Value]


# ---- numbers


def divide(left: Value, right: Value) -> Value:
    left, right = doubles(left, right)
    return pc.divide(left, unless(pc.equal(right, pa.scalar(0.0)), right))


def remainder(left: Value, right: Value) -> Value:
    """What is left by the division that rounds towards zero: it has the sign of the dividend."""
    left, right = numbers(left, right)
    right = unless(pc.equal(right, pa.scalar(0, right.type)), right)
    one = pa.scalar(1, right.type)  # in the place of NULL
    parts = (np.asarray(pc.coalesce(value, one)) if isinstance(value, pa.Array) else pc.coalesce(value, one).as_py()
             for value in (left, right))  # fmt: skip
    with np.errstate(invalid="ignore"):
        result = np.fmod(*parts)
    whole = pa.array(result) if result.ndim else pa.scalar(result)
    return pc.if_else(pc.and_(pc.is_valid(left), pc.is_valid(right)), whole, pa.scalar(None, whole.type))


SMALL_POWERS = (2, 3, 4)  # written out: ten times as fast, and the same in every engine to the last digit


def power(base: Value, exponent: Value) -> Value:
    base, exponent = doubles(base, exponent)
    if isinstance(exponent, pa.Scalar) and exponent.as_py() in SMALL_POWERS:
        return reduce(pc.multiply, [base] * int(exponent.as_py()))
    return pc.power(base, exponent)


def log(*values: Value) -> Value:
    *base, value = (unless(pc.less_equal(value, pa.scalar(0.0)), value) for value in doubles(*values))
    if not base:
        return pc.ln(value)
    if isinstance(base[0], pa.Scalar) and base[0].as_py() in (2, 10):
        return (pc.log2 if base[0].as_py() == 2 else pc.log10)(value)
    return pc.divide(pc.ln(value), pc.ln(base[0]))


def atan2(y: Value, x: Value) -> Value:
    zero = pa.scalar(0.0)
    return pc.atan2(pc.add(y, zero), pc.add(x, zero))  # adding 0.0 turns -0.0 into 0.0, as Spark does


def on_doubles(function: Operator) -> Operator:
    return lambda *values: function(*doubles(*values))


def to_whole(function: Operator) -> Operator:
    """A rounding function that leaves integers unchanged."""

    def operator(value: Value, *more: Value) -> Value:
        (value,) = numbers(value)
        return value if value.type == INT else function(value, *more)

    return operator


def round_half_away(value: Value, digits: Value = None) -> Value:
    """ROUND as in Spark: it rounds the shortest decimal that stands for the double, so 1.005 becomes 1.01."""
    scale = pa.scalar(10.0 ** (digits.as_py() if digits else 0))
    size = pc.abs(value)
    floor = pc.floor(pc.multiply(size, scale))
    half = pc.divide(pc.add(floor, pa.scalar(0.5)), scale)  # the double for the decimal half-way; equal to it is a tie
    nearest = pc.divide(pc.add(floor, pc.greater_equal(size, half).cast(DOUBLE)), scale)
    has_digits = pc.less(floor, pa.scalar(2.0**52))  # larger doubles are whole, and NaN and inf have nothing to round
    return choose(has_digits, pc.multiply(pc.sign(value), nearest), value)


def greatest(*values: Value) -> Value:
    values = tuple(numbers(*values))
    result = pc.max_element_wise(*values)
    for value in filter(_may_be_nan, values):  # for Arrow, any other number is larger than NaN
        nan = pc.is_nan(value)
        result = choose(nan, pa.scalar(math.nan), result) if pc.any(nan).as_py() else result
    return result


def least(*values: Value) -> Value:
    return pc.min_element_wise(*numbers(*values))


# ---- comparisons: NaN equals NaN and is larger than every other number


def _may_be_nan(value: Value) -> bool:
    return value.type == DOUBLE and not (isinstance(value, pa.Scalar) and value.as_py() == value.as_py())


def equal(left: Value, right: Value) -> Value:
    left, right = alike(left, right)
    result = pc.equal(left, right)
    if _may_be_nan(left) and _may_be_nan(right):
        return pc.or_(result, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return result


def less(left: Value, right: Value) -> Value:
    left, right = alike(left, right)
    if not _may_be_nan(right):
        return pc.less(left, right)
    result = pc.invert(pc.greater_equal(left, right))
    return pc.and_not(result, pc.is_nan(left)) if _may_be_nan(left) else result


def less_equal(left: Value, right: Value) -> Value:
    left, right = alike(left, right)
    result = pc.less_equal(left, right)
    return pc.or_(result, pc.is_nan(right)) if _may_be_nan(right) else result


def between(value: Value, low: Value, high: Value) -> Value:
    return pc.and_kleene(less_equal(low, value), less_equal(value, high))


def is_one_of(value: Value, *items: Value) -> Value:
    value, *items = alike(value, *items)  # type: ignore[assignment]
    if value.type == DOUBLE:
        value = pc.add(value, pa.scalar(0.0))  # -0.0 becomes 0.0: in lists Arrow takes them for different
    known = [item.as_py() for item in items if item.is_valid]
    found = pc.is_in(value, value_set=pa.array(known, value.type))
    return unless(pc.is_null(value) if len(known) == len(items) else pc.invert(found), found)


def is_(value: Value, what: Value) -> Value:
    if what.is_valid:
        return pc.coalesce(pc.equal(*truths(value), what), FALSE)
    if isinstance(value, pa.Array):
        return pc.is_null(value) if value.null_count else FALSE
    return pa.scalar(not value.is_valid)


# ---- choices, logic, text


def if_(condition: Value, yes: Value, no: Value = NULL) -> Value:
    return choose(*truths(condition), *alike(yes, no))


def nullif(value: Value, other: Value) -> Value:
    return unless(equal(value, other), value)


_WHOLE = r"^[+-]?[0-9]{1,38}$"
_NUMERAL = r"^(?i:[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?))$"


def from_text(text: Value, kind: Any) -> Value:
    """Texts as numbers, NULL for a text that is no number."""
    text = pc.utf8_trim_whitespace(text)
    text = unless(pc.invert(pc.match_substring_regex(text, _WHOLE if kind == INT else _NUMERAL)), text)
    if kind == DOUBLE:
        return text.cast(DOUBLE)
    digits = text.cast(pa.decimal128(38, 0))
    low, high = (pa.scalar(Decimal(bound), digits.type) for bound in (-(1 << 63), (1 << 63) - 1))
    return unless(pc.or_(pc.less(digits, low), pc.greater(digits, high)), digits).cast(INT)


def to_integer(value: Value, bound: float) -> Value:
    """Numbers without their fractions; NULL for one that is beyond the bound."""
    whole = value if value.type == INT else pc.trunc(value)
    if whole.type == INT and bound == 2.0**63:
        return whole
    size = double(whole)
    fits = pc.and_(pc.greater_equal(size, pa.scalar(-bound)), pc.less(size, pa.scalar(bound)))
    return unless(pc.invert(fits), whole).cast(INT)


def logic(function: Operator) -> Operator:
    return lambda *values: function(*truths(*values))


def on_text(function: Operator) -> Operator:
    return lambda *values: function(*texts(*values))


# Arithmetic that may overflow in integers, by its name in Arrow: the frame calls it, and marks rows that overflow.
ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Neg: "negate",
    exp.Abs: "abs",
}

OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Paren: lambda value: value,
    exp.Div: divide,
    exp.Mod: remainder,
    exp.Pow: power,
    exp.Ln: log,
    exp.Log: log,
    exp.Sqrt: on_doubles(pc.sqrt),
    exp.Exp: on_doubles(pc.exp),
    exp.Sign: on_doubles(pc.sign),
    exp.Sin: on_doubles(pc.sin),
    exp.Cos: on_doubles(pc.cos),
    exp.Tan: on_doubles(pc.tan),
    exp.Asin: on_doubles(pc.asin),
    exp.Acos: on_doubles(pc.acos),
    exp.Atan: on_doubles(pc.atan),
    exp.Atan2: on_doubles(atan2),
    exp.Radians: on_doubles(lambda value: pc.multiply(value, pa.scalar(math.pi / 180))),
    exp.Degrees: on_doubles(lambda value: pc.multiply(value, pa.scalar(180 / math.pi))),
    exp.Pi: lambda: pa.scalar(math.pi),
    exp.Floor: to_whole(pc.floor),
    exp.Ceil: to_whole(pc.ceil),
    exp.Round: to_whole(round_half_away),
    exp.Greatest: greatest,
    exp.Least: least,
    exp.EQ: equal,
    exp.NEQ: lambda left, right: pc.invert(equal(left, right)),
    exp.LT: less,
    exp.LTE: less_equal,
    exp.GT: lambda left, right: less(right, left),
    exp.GTE: lambda left, right: less_equal(right, left),
    exp.Between: between,
    exp.In: is_one_of,
    exp.Is: is_,
    exp.If: if_,
    exp.Coalesce: lambda *values: pc.coalesce(*alike(*values)),
    exp.Nullif: nullif,
    exp.And: logic(pc.and_kleene),
    exp.Or: logic(pc.or_kleene),
    exp.Not: logic(pc.invert),
    exp.Length: on_text(lambda value: pc.utf8_length(value).cast(INT)),
    exp.Lower: on_text(pc.utf8_lower),
    exp.Upper: on_text(pc.utf8_upper),
}
