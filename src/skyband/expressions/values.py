"""The few types that expressions compute with, and how operands are brought to a common type."""

import math
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import QueryError

Value = Any  # pa.Array, or pa.Scalar for what is the same in every row

INT, DOUBLE, BOOL, TEXT = pa.int64(), pa.float64(), pa.bool_(), pa.string()
FALSE, NULL = pa.scalar(False), pa.scalar(None)


class Mismatch(Exception):
    """A construct was given operands that it does not take; the message says what it takes."""


def is_null_type(value: Value) -> bool:
    return bool(pa.types.is_null(value.type))


def is_number(value: Value) -> bool:
    return value.type in (INT, DOUBLE) or is_null_type(value)


def double(value: Value) -> Value:
    """A value as doubles, rounded if need be. (Arrow's implicit conversions refuse integers beyond 2⁵³.)"""
    if value.type == DOUBLE:
        return value
    if isinstance(value, pa.Int64Scalar) and value.is_valid:  # a literal, for every batch however short
        return _double(value.as_py())
    return value.cast(DOUBLE, safe=False)


@lru_cache(256)
def _double(whole: int) -> Value:
    return pa.scalar(float(whole))


def normal(array: Value) -> Value:
    """A column in one of the types above, if it is of numbers or text; an unsigned integer must fit into 64 bits."""
    kind = array.type
    if kind in (DOUBLE, INT):
        return array
    if pa.types.is_dictionary(kind):
        return normal(array.dictionary_decode())
    if pa.types.is_integer(kind):
        return array.cast(INT)
    if pa.types.is_floating(kind):
        return double(array)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(TEXT)
    return array


def _decimals(array: Value) -> Value:
    """Decimals as the nearest doubles; Arrow's own conversion is often off by one in the last place."""
    kind = array.type
    if pa.types.is_decimal128(kind) and kind.precision <= 15 and 0 <= kind.scale <= 22:
        # The digits and the power of ten are exact as doubles, so the quotient is rounded once.
        digits = array.view(pa.decimal128(kind.precision, 0)).cast(INT)
        return pc.divide(double(digits), pa.scalar(10.0**kind.scale))
    return array.cast(TEXT).cast(DOUBLE)


def numbers(*values: Value) -> list[Value]:
    """Operands that must be numbers, as integers if all of them are, else as doubles."""
    kind = INT
    for value in values:
        if value.type == DOUBLE:
            kind = DOUBLE
        elif not is_number(value):
            raise Mismatch(f"numbers, not {value.type}")
    return [value if value.type == kind else value.cast(kind) if is_null_type(value) else double(value)
            for value in values]  # fmt: skip


def doubles(*values: Value) -> list[Value]:
    """Operands that must be numbers, as doubles."""
    return [value if value.type == DOUBLE else double(value) for value in numbers(*values)]


def typed(kind: Any, name: str, *values: Value) -> list[Value]:
    """Operands that must be of one type, or NULL."""
    for value in values:
        if value.type != kind and not is_null_type(value):
            raise Mismatch(f"{name}, not {value.type}")
    return [value.cast(kind) if is_null_type(value) else value for value in values]


def truths(*values: Value) -> list[Value]:
    return typed(BOOL, "conditions", *values)


def texts(*values: Value) -> list[Value]:
    return typed(TEXT, "text", *values)


def alike(*values: Value) -> list[Value]:
    """Operands that must be of one kind, whichever it is; NULL is of every kind."""
    if all(is_number(value) for value in values):
        return numbers(*values)
    kinds = {value.type: None for value in values if not is_null_type(value)}
    if len(kinds) > 1:
        raise Mismatch(f"values of one kind, not {' and '.join(map(str, kinds))}; a CAST may help")
    return typed(*kinds, "", *values)


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """``yes`` where the condition is true, ``no`` elsewhere; both must be of one type."""
    condition = pc.coalesce(condition, FALSE)
    if isinstance(condition, pa.Scalar):
        return yes if condition.as_py() else no
    return pc.if_else(condition, yes, no)


def unless(bad: Value, value: Value) -> Value:
    """The value, but NULL where ``bad``. If nothing is bad, the value is not copied."""
    return choose(bad, pa.scalar(None, value.type), value) if pc.any(bad).as_py() else value


def floats(value: Value, label: str) -> Any:
    """A score for NumPy: an array, or one number if it is the same in every row; NaN where it is NULL."""
    value = normal(value) if isinstance(value, pa.Array) else value
    if not is_number(value):
        hints = {TEXT: "; for numbers in text write CAST(... AS DOUBLE)", BOOL: "; for 1 and 0 write CAST(... AS INT)"}
        hint = hints.get(value.type, "")
        raise QueryError(f"{label} is of type {value.type}; a score must be a number{hint}")
    if isinstance(value, pa.Scalar):
        return value.as_py() if value.is_valid else math.nan
    if value.null_count or pa.types.is_null(value.type):
        value = pc.fill_null(double(value), math.nan)
    return value.to_numpy()
