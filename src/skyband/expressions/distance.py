"""Writes the distance of a row from a point as an SQL expression."""

import math
from collections.abc import Mapping
from numbers import Real

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from skyband.errors import QueryError

METRICS = {"euclidean": 2.0, "manhattan": 1.0, "chebyshev": math.inf}
LARGEST = 16  # with larger exponents, powers of ordinary differences leave the range of a double


def distance(to: Mapping[str, float], metric: str | float, weights: Mapping[str, float]) -> str:
    """The Lp distance of a row from a point; it is NULL if one of the row's coordinates is NULL.

    >>> distance({"x": 0.2, "y": -3}, "euclidean", {"y": 2})
    'sqrt(power(x - 0.2, 2) + power(2 * (y - (-3)), 2))'
    """
    p = _exponent(metric)
    if not isinstance(to, Mapping) or not to:
        raise QueryError(f'to={to!r} must give a number for each column that counts, such as {{"x": 0.2, "y": 0.7}}')
    if not isinstance(weights, Mapping):
        raise QueryError(f'weights={weights!r} must give numbers for columns, such as {{"x": 2}}')
    for name in weights:
        if name not in to:
            raise QueryError(f"weights: {name!r} is no column of to, which are {', '.join(map(str, to))}")
    columns = {name: _column(name) for name in to}
    differences = []
    for name, value in to.items():
        coordinate, weight = _number(f"to[{name!r}]", value), _number(f"weights[{name!r}]", weights.get(name, 1))
        if weight.startswith("-"):
            raise QueryError(f"weights[{name!r}]={weights[name]!r} must not be negative")
        difference = f"{columns[name]} - {f'({coordinate})' if coordinate.startswith('-') else coordinate}"
        differences.append(difference if weights.get(name, 1) == 1 else f"{weight} * ({difference})")
    sizes = [f"abs({difference})" for difference in differences]
    if len(sizes) == 1:
        return sizes[0]
    if p == 1:
        return " + ".join(sizes)
    if p == 2:
        return f"sqrt({' + '.join(f'power({difference}, 2)' for difference in differences)})"
    if p == math.inf:
        # greatest() skips NULL, but a row that lacks a coordinate has no distance.
        unknown = " OR ".join(f"{column} IS NULL" for column in columns.values())
        return f"CASE WHEN {unknown} THEN NULL ELSE greatest({', '.join(sizes)}) END"
    exponent = _number("metric", p)
    return f"power({' + '.join(f'power({size}, {exponent})' for size in sizes)}, {1 / p!r})"


def _exponent(metric: str | float) -> float:
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    if isinstance(metric, Real) and not isinstance(metric, bool) and (1 <= metric <= LARGEST or metric == math.inf):
        return float(metric)
    raise QueryError(f"metric={metric!r} is unknown; it is {', '.join(map(repr, METRICS))}, or a number from 1 to "
                     f"{LARGEST} (larger ones come close to 'chebyshev')")  # fmt: skip


def _number(field: str, value: object) -> str:
    """A finite number as SQL text."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise QueryError(f"{field}={value!r} must be a finite number")
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1 << 53 else repr(number)


def _column(name: object) -> str:
    """A column's name, in double quotes if SQL needs them."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"to: {name!r} is not a column name")
    try:
        word = [token.token_type for token in sqlglot.tokenize(name)] == [TokenType.VAR] and name.isidentifier()
    except SqlglotError:
        word = False
    return name if word else exp.to_identifier(name, quoted=True).sql()
