"""Every option of every query with values of every kind, and the oracle's answer to any combination of them.

An option is a field of a query; the first of its values is the one that stays while others are tried. ``window`` is the
name of one of :data:`WINDOWS`, and ``algorithm`` is filled in for each algorithm by itself.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.families import of
from tests.support import oracle, oracle_dominating, oracle_groups, oracle_pairs, streams
from tests.support.pair_cases import both, gap

SECOND = streams.SECOND
SIZE = 48

# Kinds of windows. The sequence column is dense in each partition, so there is one for each ``partition_by``.
WINDOWS = {
    "count hopping": dict(extent=7, every=3),
    "count": dict(extent=6),
    "time hopping": dict(time=True, extent=4 * SECOND, every=2 * SECOND, late=streams.LATE),
    "time hopping, other column": dict(time=True, extent=5 * SECOND, every=2 * SECOND, on="when", late=0),
    "time": dict(time=True, extent=4 * SECOND, late=0),
    "time, late": dict(time=True, extent=4 * SECOND, late=streams.LATE),
    "sequence hopping": dict(extent=7, every=3, on="seq"),
    "sequence": dict(extent=6, on="seq"),
    "sequence, late": dict(extent=6, on="seq", late=4),
}
PARTITIONS = [(), ("g",), ("g", "h")]

CONDITIONS = {
    None: None,
    "y > 0": lambda r: r["y"] is not None and r["y"] > 0,
    "g = 'a' OR h IS NULL": lambda r: r["g"] == "a" or r["h"] is None,
}
ITEMS = {"y * 2 AS twice": ("twice", lambda r: None if r["y"] is None else r["y"] * 2)}


def table() -> pa.Table:
    """A stream that has all that is hard: ties, NULL and NaN, rows that are late, numbers out of order."""
    rows = streams.make("jittered_tied", 4, SIZE)
    rng = np.random.default_rng(4)
    spoilt = {7: None, 20: float("nan"), 31: None}
    x = [spoilt.get(i, value) for i, value in enumerate(rows["x"].to_pylist())]
    rows = rows.set_column(rows.column_names.index("x"), "x", pa.array(x, pa.float64()))
    when = np.cumsum(rng.integers(0, 3, SIZE)) * SECOND // 2 + streams.START - rng.choice([0, 0, 0, 2 * SECOND], SIZE)
    rows = rows.append_column("when", pa.array(when, pa.timestamp("us")))
    rows = rows.append_column("z", pa.array([float(i * 7 % 11) / 4 for i in range(SIZE)]))
    moved = np.argsort(np.arange(SIZE) + rng.integers(0, 4, SIZE), kind="stable")
    rows = rows.append_column("o", pa.array(rng.integers(0, 6, SIZE), mask=rng.random(SIZE) < 0.05))
    rows = rows.append_column("s", pa.array([("r1", "r2", "r3")[i] for i in rng.choice(3, SIZE, p=[0.5, 0.3, 0.2])]))
    rows = rows.append_column("swapped", pa.array([i ^ 1 for i in range(SIZE)]))  # as dense as seq, in another order
    for by in PARTITIONS:
        number = streams.numbered(rows.select(["g", "h"]), by)["seq"]
        rows = rows.append_column("_".join(("seq", *by)), number)
    return rows.take(moved[moved != SIZE // 2])  # a number that never comes


ROWS = table()


class Family(NamedTuple):
    """A query class with values for each of its fields, the oracle that knows them all, and values that are refused."""

    query: type
    options: dict[str, list[Any]]
    model: Callable[..., Any]  # from the values of the options to an oracle; ``window`` are then fields of the oracle
    bad: list[tuple[dict[str, Any], str]]  # fields that are refused, and a word of the reason beside the field's name
    beside: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - what must be set so that an option alone shows
    plan_only: frozenset[str] = frozenset({"algorithm", "error"})  # change the plan, not the answers of an exact one
    title: str = ""  # where a class has several sets of values
    choosy: bool = False  # whether options contradict each other, so that some pairs are refused whatever the algorithm
    loose: Callable[[Mapping[str, Any]], bool] = lambda values: False  # whether nothing is promised of who is found

    @property
    def name(self) -> str:
        return self.query.__name__ + self.title

    @property
    def algorithms(self) -> Mapping[str, Any]:
        return of(self.query).algorithms()

    def defaults(self, **others: Any) -> dict[str, Any]:
        return {**{option: values[0] for option, values in self.options.items()}, **others}

    def ask(self, values: Mapping[str, Any]) -> Any:
        """The query."""
        window = dict(WINDOWS[values["window"]])
        time, on = window.pop("time", False), _on(window, values)
        span = (lambda length: f"{length} microseconds") if time else int
        lengths = {name: span(length) for name, length in window.items() if name != "on"}
        return self.query(**{**values, "window": sb.last(**lengths, on=on)})

    def answered(self, values: Mapping[str, Any]) -> Any:
        """The oracle."""
        window = dict(WINDOWS[values["window"]])
        window["on"] = _on(window, values) or ("ts" if window.get("time") else None)
        given = {option: value for option, value in values.items() if option not in ("window", "algorithm", "error")}
        given.pop("name")
        given["partition"] = given.pop("partition_by")
        return self.model(**window, **given)


def _on(window: Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
    on = window.get("on")
    return "_".join(("seq", *values["partition_by"])) if on == "seq" else on


def items(select: tuple[str, ...] | None, known: Mapping[str, Any] = ITEMS) -> list[Any] | None:
    return None if select is None else [known.get(item, item) for item in select]


COMMON: dict[str, list[Any]] = {
    "window": list(WINDOWS),
    "partition_by": PARTITIONS,
    "where": list(CONDITIONS),
    "select": [None, ("id", "x"), ("g", "id", "y * 2 AS twice")],
    "ties": ["newest", "all"],
    "error": [0.0, 1e-6],  # so small that even an approximate algorithm misses nothing in windows of this size
    "algorithm": ["auto"],
    "name": [None, "mine"],
}
BAD: list[tuple[dict[str, Any], str]] = [
    (dict(k=0), "at least 1"),
    (dict(k=2.0), "whole number"),
    (dict(window=7), "sb.last"),
    (dict(partition_by=("g", "g")), "twice"),
    (dict(partition_by="nowhere"), "nowhere"),
    (dict(ties="some"), "newest"),
    (dict(error=1), "from 0"),
    (dict(error="0.1"), "from 0"),
    (dict(algorithm="dijkstra"), "unknown"),
    (dict(algorithm="auto(buffer=3)"), "no options"),
    (dict(algorithm="auto(buffer=)"), "name=number"),
    (dict(algorithm="scase(a=1, a=2)"), "twice"),
    (dict(name=""), "not empty"),
    (dict(name=5), "not empty"),
]
BAD_WHERE: list[tuple[dict[str, Any], str]] = [(dict(where="y >"), "y >"), (dict(where=7), "condition")]
BAD_SELECT: list[tuple[dict[str, Any], str]] = [
    (dict(select=("id", "id")), "twice"),
    (dict(select=("x", "y AS x")), "another name"),
    (dict(select=("nowhere",)), "nowhere"),
    (dict(select=("y * 2",)), "needs a name"),
    (dict(select=("y AS rank",)), "rank"),
]


# Objects


def of_column(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda columns: columns[name]


by_x = of_column("x")


ORDERS: dict[Any, tuple[Callable[[Any], Any], bool]] = {
    "y": (lambda r: r["y"], False),
    "x DESC": (lambda r: r["x"], True),
    "abs(x - y) ASC": (lambda r: None if oracle.bad(r["x"]) or r["y"] is None else abs(r["x"] - r["y"]), False),
    by_x: (lambda r: r["x"], False),
    (by_x, "DESC"): (lambda r: r["x"], True),
}


def top_k(order_by: Any, where: Any, select: Any, **rest: Any) -> oracle.TopK:
    score, desc = ORDERS[order_by]
    return oracle.TopK(score=score, desc=desc, where=CONDITIONS[where], select=items(select), **rest)


OBJECTS = Family(
    sb.TopK,
    {"k": [2, 1, 5], "order_by": list(ORDERS), **COMMON},
    top_k,
    [*BAD, *BAD_WHERE, *BAD_SELECT, (dict(order_by="x, y"), "x, y"), (dict(order_by=7), "order_by"),
     (dict(order_by=(by_x, "UP")), "DESC")],
)  # fmt: skip


def length(differences: list[float], metric: Any) -> float:
    """The length of a vector."""
    p = {"euclidean": 2.0, "manhattan": 1.0, "chebyshev": math.inf}.get(metric, metric)
    if p == math.inf:
        return max(map(abs, differences))
    return math.fsum(abs(d) ** p for d in differences) ** (1 / p)


def nearest(to: Any, metric: Any, weights: Any, where: Any, select: Any, **rest: Any) -> oracle.TopK:
    def distance(row: Any) -> float | None:
        if any(oracle.bad(row[name]) for name in to):
            return None
        return length([weights.get(name, 1) * (row[name] - value) for name, value in to.items()], metric)

    return oracle.TopK(score=distance, desc=False, where=CONDITIONS[where], select=items(select), **rest)


NEAREST = Family(
    sb.Nearest,
    {"k": [2, 1, 5], "to": [{"x": 1.0, "y": -1.0}, {"y": 2}, {"z": 0.5, "x": 0.0, "y": 1}],
     "metric": ["euclidean", "manhattan", "chebyshev", 3, math.inf], "weights": [{}, {"y": 2.5}, {"y": 0}], **COMMON},
    nearest,
    [*BAD, *BAD_WHERE, *BAD_SELECT, (dict(to={}), "number for each"), (dict(to={"x": "far"}), "far"),
     (dict(metric="cosine"), "euclidean"), (dict(metric=0.5), "0.5"), (dict(metric=300), "16"),
     (dict(metric=True), "euclidean"), (dict(weights={"z": 2}), "no column of to"),
     (dict(weights={"y": -1}), "negative"), (dict(weights=[2, 1]), "numbers"),
     (dict(weights={"y": math.inf}), "finite")],
)  # fmt: skip


# Pairs


def gap_of(name: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: abs(a[name] - b[name])


apart = gap_of("z")


def both_gaps(a: Any, b: Any) -> Any:
    return gap("x")(a, b) + gap("z")(a, b)


PAIR_ORDERS: dict[Any, tuple[Callable[[Any, Any], Any], bool, tuple[str, ...]]] = {
    "abs(a.x - b.x) + abs(a.z - b.z)": (both("x", "z")(both_gaps), False, ("x", "z")),
    "abs(a.z - b.z) DESC": (both("z")(gap("z")), True, ("z",)),
    "a.x - b.y": (both("x", "y")(lambda a, b: a["x"] - b["y"]), False, ("x", "y")),
    (apart, "DESC"): (gap("z"), True, ()),
}  # fmt: skip
PAIR_CONDITIONS = {
    None: None,
    "a.id < b.id": lambda a, b: a["id"] < b["id"],
    "a.g <> b.g AND a.y >= b.y": lambda a, b: (
        None not in (a["g"], b["g"], a["y"], b["y"]) and a["g"] != b["g"] and a["y"] >= b["y"]
    ),
}
PAIR_ITEMS = {"a.id - b.id AS gap": ("gap", lambda a, b: a["id"] - b["id"])}


def pairs(order_by: Any, where: Any, same: Any, different: Any, select: Any, **rest: Any) -> oracle_pairs.TopKPairs:
    score, desc, required = PAIR_ORDERS[order_by]
    return oracle_pairs.TopKPairs(
        score=score, desc=desc, required=required, where=PAIR_CONDITIONS[where], same=same or (),
        different=different or (), select=items(select, PAIR_ITEMS), **rest,
    )  # fmt: skip


PAIRS = Family(
    sb.TopKPairs,
    {"k": [2, 1, 6], "order_by": list(PAIR_ORDERS), "same": [None, ("h",), ("h", "y")],
     "different": [None, ("s",), ("s", "o")], **COMMON,
     "where": list(PAIR_CONDITIONS), "select": [("a.id", "b.id"), None, ("a.id - b.id AS gap", "b.g")]},
    pairs,
    [*BAD, (dict(where="y > 0"), "y"), (dict(where="a.y >"), "a.y >"), (dict(order_by="x"), "x"),
     (dict(same="a.h"), "'h'"), (dict(same="h", different="h"), "agree and differ"),
     (dict(same="h", different="H"), "agree and differ"), (dict(same="nowhere"), "nowhere"),
     (dict(different=("s", "s")), "twice"), (dict(different=5), "names"), (dict(select=("id",)), "id"),
     (dict(select=("a.id", "b.id AS a_id")), "another name")],
)  # fmt: skip


# Dominating points

DIMENSIONS: dict[str, Callable[[Any], Any]] = {
    "x": lambda r: r["x"],
    "y": lambda r: r["y"],
    "y + z": lambda r: None if r["y"] is None else r["y"] + r["z"],
    "z": lambda r: r["z"],
}


def dominating(dimensions: Any, policy: Any, where: Any, select: Any, **rest: Any) -> Any:
    return oracle_dominating.TopKDominating(
        dimensions=[(DIMENSIONS[text], sense) for text, sense in dimensions.items()],
        where=CONDITIONS[where], select=items(select), **rest,
    )  # fmt: skip


def unguaranteed(values: Mapping[str, Any]) -> bool:
    """Whether AMSA is at work, which passes points over."""
    return values["algorithm"].startswith(("amsa", "adaptive(budget=1)"))


DOMINATING = Family(
    sb.TopKDominating,
    {"k": [2, 1, 5], "dimensions": [{"x": "max", "y": "min"}, {"x": "min", "y": "min"}, {"z": "max"},
                                    {"y + z": "min", "x": "max", "z": "max"}],
     "policy": ["exact", "adaptive"], **COMMON, "error": [0.0, 0.05, 0.3]},
    dominating,
    [*BAD, *BAD_WHERE, *BAD_SELECT, (dict(dimensions={}), "must map"), (dict(dimensions={"x": "least"}), "min"),
     (dict(dimensions=["x"]), "must map"), (dict(dimensions={"nowhere": "min"}), "nowhere"),
     (dict(policy="quick"), "adaptive"), (dict(policy="adaptive", algorithm="cla"), "algorithm")],
    plan_only=frozenset({"algorithm", "error", "policy"}),
    loose=unguaranteed,
)  # fmt: skip

# Groups, and objects assembled from streams

NAMES = ("r1", "r2", "r3")
WEIGHTS = {"r1": 0.5, "r3": 2.0}
VALUES: dict[Any, Callable[[Any], Any]] = {
    "x": lambda r: r["x"],
    "y": lambda r: r["y"],
    "x + z": lambda r: None if oracle.bad(r["x"]) else r["x"] + r["z"],
    None: lambda r: 1.0,
}
OUTPUTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "count(*)": ("count", lambda r: 1),
    "max(y)": ("max", lambda r: r["y"]),
    "count(distinct x)": ("count_distinct", lambda r: r["x"]),
}
HAVING: dict[Any, Any] = {
    None: None,
    "count(*) >= 2": lambda score, shown, rows: len(rows) >= 2,
    "score > 1": lambda score, shown, rows: None if score is None else score > 1,
}


def weigher() -> Callable[[Any], Any]:
    return lambda vectors: 2 * vectors[:, 0] + vectors.max(axis=1)


widest = weigher()


def groups(id: Any, stream: Any, value: Any, aggregate: Any, occurrences: Any, streams: Any, weights: Any, bounds: Any,
           most: Any, order: str, outputs: Any, having: Any, where: Any, **rest: Any) -> Any:  # fmt: skip
    many = (occurrences or ("once" if stream else "many")) == "many"
    apart = not many or callable(aggregate)  # each stream has a say of its own

    def plain(row: Any) -> Any:
        """The amount of a row, or None."""
        amount = VALUES[value](row)
        return None if oracle.bad(amount) else amount

    def meant(row: Any) -> bool:
        amount = plain(row)
        named = not isinstance(streams, tuple) or row["s"] in streams
        within = value is None or bounds is None or amount is None or bounds[0] <= amount <= bounds[1]
        falls = apart and aggregate == "product" and bounds is None and amount is not None and amount < 0
        return named and within and not falls

    def weighted(row: Any) -> Any:
        amount = plain(row)
        return None if amount is None else amount * weights.get(row["s"], 1) if weights else amount

    where = CONDITIONS[where]
    if apart:
        names = streams if isinstance(streams, tuple) else [None]

        def function(said: Any, low: float) -> float:
            told = [said.get(name, low) for name in names]
            return 2 * told[0] + max(told)

        width = len(streams) if isinstance(streams, tuple) else streams or 1
        low = 0.0 if bounds is None or aggregate in ("sum", "count", "mean") else bounds[0]
        counted = aggregate == "count"
        return oracle_groups.TopKGroups(
            id=id, stream=stream, how=function if callable(aggregate) else aggregate, many=many, width=width, low=low,
            amount=lambda row: None if not meant(row) or plain(row) is None else 1.0 if counted else weighted(row),
            where=where, **rest,
        )  # fmt: skip
    shown = {name: OUTPUTS[text] for name, text in outputs.items()}
    ranked = ("count" if value is None and not weights else aggregate, weighted)
    alone = not outputs and having is None

    def valid(row: Any) -> bool:
        if alone:
            return meant(row) and plain(row) is not None
        calls = [ranked, *shown.values()]
        of_rows = value is None or "count(*)" in outputs.values() or having == "count(*) >= 2"
        return meant(row) and (of_rows or any(not oracle_groups.nothing(of(row)) for _, of in calls))

    return oracle_groups.Groups(
        ids=(id,) if isinstance(id, str) else id, ranked=ranked, outputs=shown, valid=valid, having=HAVING[having],
        desc=order == "desc", where=where, **rest,
    )  # fmt: skip


GROUP_OPTIONS: dict[str, list[Any]] = {
    "k": [2, 1, 4], "id": ["o", "h", ("o", "h")], "stream": [None, "s"], "value": ["x", "y", "x + z", None],
    "aggregate": ["sum", "count", "mean", "min", "max", "product", "count_distinct", widest],
    "occurrences": [None, "once", "many"], "streams": [None, NAMES[::2]], "weights": [{}, WEIGHTS],
    "bounds": [None, (0, 1), (-1, 2)], "most": [None, SIZE], "order": ["desc", "asc"],
    "outputs": [{}, {"n": "count(*)", "top": "max(y)"}, {"kinds": "count(distinct x)"}], "having": list(HAVING),
    **COMMON, "select": [None, ("o",)],
}  # fmt: skip
BAD_GROUPS: list[tuple[dict[str, Any], str]] = [
    *BAD, *BAD_WHERE, (dict(select=("x",)), "id"), (dict(id=""), "names"), (dict(id="nowhere"), "nowhere"),
    (dict(stream=""), "column name"), (dict(stream="nowhere"), "nowhere"), (dict(value="x +"), "x +"),
    (dict(value="nowhere"), "nowhere"), (dict(aggregate="median"), "count_distinct"), (dict(occurrences="two"), "once"),
    (dict(occurrences="once", order="asc"), "many"), (dict(occurrences="once", having="count(*) > 1"), "many"),
    (dict(streams=3), "stream="), (dict(stream="s", streams=2), "3 streams"), (dict(stream="s", streams=0), "at least"),
    (dict(weights={"r1": 2}), "stream="), (dict(stream="s", weights={"r1": -1}), "at least 0"),
    (dict(stream="s", weights={"r9": 1}, streams=NAMES), "none of the streams"),
    (dict(bounds=(1, 0)), "smallest"), (dict(bounds=(1, 2)), "must be 0"), (dict(bounds=(0, 1), value=None), "value"),
    (dict(most=0), "at least 1"), (dict(most=3, aggregate="max"), "leave it out"), (dict(order="up"), "asc"),
    (dict(outputs={"n": "count"}), "count"), (dict(outputs={"score": "count(*)"}), "another name"),
    (dict(outputs=["count(*)"]), "mapping"),
    (dict(having="x > 1"), "where="), (dict(having="count(*) >"), "having"), (dict(having=5), "condition"),
]  # fmt: skip
GROUPS = Family(
    sb.TopKGroups, GROUP_OPTIONS, groups, BAD_GROUPS,
    beside={"occurrences": {"stream": "s"}, "streams": {"stream": "s"}, "weights": {"stream": "s"},
            "select": {"id": ("o", "h")}, "stream": {"aggregate": "max"},
            "most": {"window": "count", "bounds": (0, 2)}},
    plan_only=frozenset({"algorithm", "error", "most"}), title=": groups", choosy=True,
)  # fmt: skip
ASSEMBLED = GROUPS._replace(
    options={**GROUP_OPTIONS, "stream": ["s", None], "occurrences": ["once", "many"],
             "streams": [NAMES, 4, NAMES[::2], None]},
    bad=[({"stream": None, "streams": None, "occurrences": "many", **wrong}, word) for wrong, word in BAD_GROUPS],
    beside={"streams": {"aggregate": "mean"}, "select": {"id": ("o", "h")}, "error": {"window": "count"},
            "most": {"window": "count", "bounds": (0, 2), "occurrences": "many"}},
    title=": streams",
)  # fmt: skip

FAMILIES = {family.name: family for family in (OBJECTS, NEAREST, PAIRS, DOMINATING, GROUPS, ASSEMBLED)}

# Values of the options of algorithms; an option that is missing here fails the test.
SETTINGS: dict[str, tuple[float, ...]] = {
    "buffer": (1, 3), "gamma": (0, 2), "sigma": (1e-6, 1e-3), "cells": (1, 5), "additional": (0, 3), "maxcand": (0, 1),
    "eps": (0.02, 0.3), "delta": (0.5, 0.99), "budget": (1, 1000), "bitmaps": (1, 64), "caution": (0, 1),
}  # fmt: skip
TOGETHER = ("fewest", "most")  # of pa: how many objects a window of time holds, for which both are needed


def calls(family: Family, algorithm: str) -> list[str]:
    """The ways to name an algorithm: alone, and with each value of each of its options."""
    if algorithm == "auto":
        return ["auto"]
    options = family.algorithms[algorithm].options
    single = [option for option in options if option not in TOGETHER]
    both = [f"{algorithm}(fewest=1, most=1000)"] if len(single) < len(options) else []
    return [algorithm, *(f"{algorithm}({option}={value})" for option in single for value in SETTINGS[option]), *both]


# Combinations

Pair = frozenset[tuple[str, int]]  # two options, each with the place of a value


def all_pairs(options: Mapping[str, list[Any]]) -> set[Pair]:
    """Every two values of different options."""
    return {
        frozenset({(a, i), (b, j)})
        for a, b in itertools.combinations(options, 2)
        for i in range(len(options[a]))
        for j in range(len(options[b]))
    }


def covering(options: Mapping[str, list[Any]]) -> list[dict[str, int]]:
    """Few combinations of the options in which every two values of different options meet."""
    left, rows = all_pairs(options), []
    while left:
        row = dict(min(left, key=sorted))
        for option in options:
            if option not in row:
                met = [sum(frozenset({(option, i), other}) in left for other in row.items())
                       for i in range(len(options[option]))]  # fmt: skip
                row[option] = met.index(max(met))
        left -= pairs_of(row)
        rows.append(row)
    return rows


def pairs_of(row: Mapping[str, int]) -> set[Pair]:
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}


def fields(query: type) -> set[str]:
    return {field.name for field in dataclasses.fields(query)}


def named(option: str, value: Any, message: str) -> bool:
    """Whether a message names an option, its value, or one of its values."""
    parts = value if isinstance(value, tuple | list | Mapping) else []
    return option in message or str(value) in message or any(isinstance(p, str) and p in message for p in parts)
