"""Scoring functions and conditions over pairs, each as text and in plain Python; and a query with its oracle."""

import math

import skyband as sb
from skyband.families import FAMILIES
from tests.support import oracle_pairs, streams
from tests.support.cases import LONG, WINDOWS

ALGORITHMS = FAMILIES["pairs"].algorithms()


def both(*names):
    """A function of two rows that is None where one of the columns is NULL or NaN."""

    def wrap(function):
        def score(a, b):
            values = [row[name] for row in (a, b) for name in names]
            return None if any(v is None or v == "nan" for v in values) else function(a, b)

        return score

    return wrap


def ratio(x, y):
    return None if y == 0 else x / y


def gap(name):
    return lambda a, b: abs(a[name] - b[name])


# The text, what it means, and the columns without which a row is invalid.
ORDERS = {
    "abs(a.x - b.x) + abs(a.y - b.y)": both("x", "y")(lambda a, b: gap("x")(a, b) + gap("y")(a, b)),
    "abs(a.x - b.x) + abs(a.y - b.y) DESC": both("x", "y")(lambda a, b: gap("x")(a, b) + gap("y")(a, b)),
    "abs(a.x - b.x) * abs(a.y - b.y)": both("x", "y")(lambda a, b: gap("x")(a, b) * gap("y")(a, b)),
    "-abs(a.x - b.x) * abs(a.y - b.y)": both("x", "y")(lambda a, b: -gap("x")(a, b) * gap("y")(a, b)),
    "abs(a.x - b.x) / (abs(a.y - b.y) * abs(a.z - b.z))": both("x", "y", "z")(
        lambda a, b: ratio(gap("x")(a, b), gap("y")(a, b) * gap("z")(a, b))
    ),
    "a.x - b.x DESC": both("x")(lambda a, b: a["x"] - b["x"]),
    "abs(a.z - b.z) - 2.5 * abs(a.y - b.y)": both("y", "z")(lambda a, b: gap("z")(a, b) - 2.5 * gap("y")(a, b)),
    "power(a.z - b.z, 2) + power(a.y - b.y, 2)": both("y", "z")(
        lambda a, b: (a["z"] - b["z"]) * (a["z"] - b["z"]) + float(a["y"] - b["y"]) * float(a["y"] - b["y"])
    ),
    "greatest(abs(a.z - b.z), abs(a.y - b.y)) % 0.75 DESC": both("y", "z")(
        lambda a, b: math.fmod(max(gap("z")(a, b), float(gap("y")(a, b))), 0.75)
    ),
    "CASE WHEN a.y < b.y THEN a.z ELSE b.z END": both("y", "z")(lambda a, b: a["z"] if a["y"] < b["y"] else b["z"]),
}
NEEDS = {order: tuple(name for name in "xyz" if f"a.{name}" in order) for order in ORDERS}
CONDITIONS = {
    None: None,
    "a.id < b.id": lambda a, b: a["id"] < b["id"],
    "a.id > b.id": lambda a, b: a["id"] > b["id"],
    "a.id < b.id AND a.g <> b.g": lambda a, b: a["id"] < b["id"] and None not in (a["g"], b["g"]) and a["g"] != b["g"],
    "a.h = b.h": lambda a, b: a["h"] is not None and a["h"] == b["h"],
    "a.y BETWEEN b.y AND 2 OR a.z > b.z": lambda a, b: (
        (a["y"] is not None and b["y"] is not None and b["y"] <= a["y"] <= 2)
        or (a["z"] is not None and b["z"] is not None and a["z"] > b["z"])
    ),
    "lower(a.g) < b.g": lambda a, b: a["g"] is not None and b["g"] is not None and a["g"].lower() < b["g"],
}
# Those that are not known to be monotone in the differences of single columns.
NOT_GLOBAL = ["a.x - b.x DESC", "greatest(abs(a.z - b.z), abs(a.y - b.y)) % 0.75 DESC"]
COMPILED = [order for order in ORDERS if "CASE" not in order]


def make(stream, seed=0, size=None):
    """A stream with a third number, ``z``."""
    table = streams.make(stream, seed, size)
    return table.append_column("z", streams.pa.array([float(i * 7 % 11) / 4 for i in range(table.num_rows)]))


def pair(k, window, order_by="abs(a.x - b.x) + abs(a.y - b.y)", where=None, same=(), different=(), partition_by=(),
         select=("a.id", "b.id"), ties="newest", on=None, late=None, algorithm="auto", name=None):  # fmt: skip
    """The query, and the oracle that answers it. ``window`` is a name, or the fields of one."""
    spec = {**WINDOWS, **LONG}[window] if isinstance(window, str) else window
    time, extent, every = spec.get("time", False), spec["extent"], spec.get("every")
    if time:
        on, late = on or "ts", streams.LATE if late is None else late
    span = (lambda length: f"{length} microseconds") if time else int
    last = sb.last(span(extent), every=None if every is None else span(every), on=on,
                   late=None if late is None else span(late))  # fmt: skip
    query = sb.TopKPairs(k=k, order_by=order_by, window=last, partition_by=partition_by, where=where,
                         same=same or None, different=different or None, select=select, ties=ties,
                         algorithm=algorithm, name=name)  # fmt: skip
    model = oracle_pairs.TopKPairs(
        k, ORDERS[order_by], extent, every, time, on, late, order_by.endswith("DESC"), partition_by,
        CONDITIONS[where], same, different, NEEDS[order_by], select, ties,
    )  # fmt: skip
    return query, model
