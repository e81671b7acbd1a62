"""Parses SQL text into a tree, and refuses constructs that are not allowed."""

import math
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skyband.errors import QueryError
from skyband.expressions.frame import CASTS, FORMS
from skyband.expressions.operators import ARITHMETIC, OPERATORS

_CONSTRUCTS: set[type[exp.Expr]] = {*ARITHMETIC, *OPERATORS, *FORMS}
_PARTS = {exp.Identifier, exp.DataType}  # nodes within the constructs
# The arguments of a node that we understand. Any other that is set would change the meaning, so it is refused.
_ARGUMENTS = {"this", "expression", "expressions"}
_MORE_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"low", "high"},
    exp.Case: {"ifs", "default"},
    exp.Cast: {"to"},
    exp.Column: {"table", "db", "catalog"},
    exp.DataType: {"nested"},
    exp.Greatest: {"ignore_nulls"},
    exp.Identifier: {"quoted"},
    exp.If: {"true", "false"},
    exp.Least: {"ignore_nulls"},
    exp.Like: {"negate"},
    exp.Literal: {"is_string"},
    exp.Round: {"decimals"},
    exp.TryCast: {"to", "safe"},
}


def parse(text: str, label: str, sides: tuple[str, ...] = ()) -> exp.Expr:
    """The tree of an expression; raises :class:`QueryError` if it is none, or uses a construct that is not allowed.

    ``sides`` are the names of the rows in an expression over several; a column must then be written ``side.column``.
    """
    tree = read(text, label)
    try:
        for node in tree.walk():
            _check(node)
            if isinstance(node, exp.Column):
                _check_side(node, sides)
    except RecursionError:
        raise QueryError(f"{label} is nested too deeply") from None
    except QueryError as error:
        raise QueryError(f"{label}: {error}") from None
    return tree


def read(text: str, label: str) -> exp.Expr:
    """The tree of any SQL expression; raises :class:`QueryError` if it is none."""
    try:
        tree: exp.Expr = sqlglot.parse_one(text, into=exp.Condition)
    except RecursionError:
        raise QueryError(f"{label} is nested too deeply") from None
    except SqlglotError as error:
        where = (getattr(error, "errors", None) or [{}])[0]
        place = f": cannot be read at {where['highlight']!r}, character {where['col']}" if "col" in where else ""
        raise QueryError(f"{label} is not an SQL expression{place}") from None
    return tree


def _check(node: exp.Expr) -> None:
    kind = type(node)
    if kind not in _CONSTRUCTS and kind not in _PARTS:
        raise QueryError(f"{_describe(node)} is not allowed; {_allowed()}")
    understood = _ARGUMENTS | _MORE_ARGUMENTS.get(kind, set())
    if any(value and argument not in understood for argument, value in node.args.items()):
        raise QueryError(f"{node.sql()} is not allowed in this form; {_allowed()}")
    wrong = _DETAILS[kind](node) if kind in _DETAILS else None
    if wrong:
        raise QueryError(f"{node.sql()}: {wrong}")


def _check_side(node: exp.Column, sides: tuple[str, ...]) -> None:
    if not sides and node.table:
        raise QueryError(f"{node.sql()}: a name with a dot is not allowed; write the column's name alone, in double "
                         "quotes if the dot is in it")  # fmt: skip
    if sides and (node.table.lower() not in sides or node.args.get("db")):
        raise QueryError(f"{node.sql()}: say whose column it is: {' or '.join(f'{s}.{node.name}' for s in sides)}")


def _column(node: exp.Expr) -> str | None:
    if node.this.args.get("quoted") or re.fullmatch(r"[^\W\d]\w*", node.name):
        return None
    return f'write the name of this column in double quotes, "{node.name}"'


def _literal(node: exp.Expr) -> str | None:
    if node.is_string:
        return None
    if not re.fullmatch(r"[\d.]+(?:[eE][+-]?\d+)?", node.name):  # 1e3+2 is read as one number
        return "this is no number; write a blank before the sign"
    return None if math.isfinite(float(node.name)) else "this number is too large"


def _extreme(node: exp.Expr) -> str | None:
    return None if node.expressions else "takes two arguments or more"


def _round(node: exp.Expr) -> str | None:
    digits = node.args.get("decimals")
    allowed = digits is None or (re.fullmatch(r"\d|1[0-5]", digits.name) and digits.is_number)
    return None if allowed else "the digits must be a whole number from 0 to 15"


def _in(node: exp.Expr) -> str | None:
    items = (item.this if isinstance(item, exp.Neg) else item for item in node.expressions)
    constant = all(isinstance(item, exp.Literal | exp.Null | exp.Boolean) for item in items)
    return None if constant and node.expressions else "IN takes a list of constants"


def _is(node: exp.Expr) -> str | None:
    return None if isinstance(node.expression, exp.Null | exp.Boolean) else "IS takes NULL, TRUE or FALSE"


def _like(node: exp.Expr) -> str | None:
    # Spark refuses its escape character before anything else.
    if node.expression.is_string and re.fullmatch(r"(?:[^\\]|\\[\\%_])*", node.expression.name, re.DOTALL):
        return None
    return r"LIKE takes a string, in which \ stands only before %, _ and \ itself"


def _cast(node: exp.Expr) -> str | None:
    return None if node.args["to"].sql() in CASTS else f"a CAST is to {', '.join(CASTS)}"


_DETAILS = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Round: _round,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}


def _describe(node: exp.Expr) -> str:
    """What a construct is called in an error."""
    text = node.sql()
    match node:
        case exp.Query():
            return f"a subquery, {text},"
        case exp.Window():
            return f"a window function, {text},"
        case exp.AggFunc():
            return f"the aggregate {text}"
        case exp.Star():
            return "*"
        case exp.Placeholder() | exp.Parameter():
            return f"the parameter {text}"
        case exp.Block():
            return f"more than one expression, {text},"
        case exp.Anonymous():
            return f"the function {node.name.upper()}"
        case exp.Func():
            return f"the function {node.sql_name()}, as in {text},"
    return f"{node.key.upper()}, as in {text},"


def _allowed() -> str:
    functions = {kind.sql_name() for kind in _CONSTRUCTS if issubclass(kind, exp.Func)}
    functions = functions - {"AND", "OR", "CASE", "CAST", "TRY_CAST"} | {"LOG2", "LOG10"}
    return ("allowed are columns, constants, + - * / %, = <> < <= > >=, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, "
            f"CASE, CAST and {', '.join(sorted(functions))}")  # fmt: skip
