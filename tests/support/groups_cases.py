"""Queries over assembled objects and their oracles, built from one description, and streams to put them to."""

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband import datasets
from skyband.families import FAMILIES
from tests.support import oracle_groups, streams
from tests.support.cases import LONG, WINDOWS

ALGORITHMS = FAMILIES["groups"].algorithms()
EXACT = sorted(name for name, algorithm in ALGORITHMS.items() if algorithm.exact)
NAMES = ("r1", "r2", "r3")
BOUNDS = (0, 1)  # of the values of ``promised``
WEIGHTS = {"r1": 0.5, "r3": 2.0}


def widest(vectors):
    """A monotone function of the three streams: twice the first, the second, and the larger of the two others."""
    return 2 * vectors[:, 0] + vectors[:, 1] + np.maximum(vectors[:, 1], vectors[:, 2])


def widest_of(values, low):
    r1, r2, r3 = (values.get(name, low) for name in NAMES)
    return 2 * r1 + r2 + max(r2, r3)


# How an aggregate is asked for, and what the oracle makes of it.
AGGREGATES = {
    "sum": dict(aggregate="sum"),
    "weighted": dict(aggregate="sum", weights=WEIGHTS),
    "count": dict(aggregate="count"),
    "mean": dict(aggregate="mean", streams=3),
    "max": dict(aggregate="max"),
    "min": dict(aggregate="min", streams=NAMES),
    "product": dict(aggregate="product", streams=3),
    "function": dict(aggregate=widest, streams=NAMES),
}


SUMMED = ("sum", "weighted", "count")  # with "many", what the algorithms of the paper serve too, and functions

# Several aggregates at once: fields of the query; for the oracle the ranked call, outputs, having and what is valid.
X, Y, N = (lambda row: row["x"]), (lambda row: row["y"]), (lambda row: 1)


def there(*names):
    return lambda row: any(not oracle_groups.nothing(row[name]) for name in names)


def positive(row):
    return None if row["x"] is None else 1 if row["x"] == "nan" or row["x"] > 0 else 0  # NaN is above all numbers


ASKED = {
    "mean": (dict(value="x", aggregate="mean", having="count(x) > 1"), ("mean", X), {},
             lambda score, shown, rows: oracle_groups.aggregate("count", map(X, rows)) > 1, there("x")),
    "distinct": (dict(value="s", aggregate="count_distinct", outputs={"values": "count(distinct x)", "n": "count(*)"}),
                 ("count_distinct", lambda row: row["s"]), {"values": ("count_distinct", X), "n": ("count", N)},
                 None, lambda row: True),
    "max": (dict(value="x", aggregate="max", outputs={"low": "MIN(y)", "n": "count(y)", "total": "sum(x)"}),
            ("max", X), {"low": ("min", Y), "n": ("count", Y), "total": ("sum", X)}, None, there("x", "y")),
    "min": (dict(value="y", aggregate="min", order="asc", outputs={"p": "product(x)", "m": "avg(x)"},
                 having="p < 5 AND score IS NOT NULL OR max(x) > 1"),
            ("min", Y), {"p": ("product", X), "m": ("mean", X)},
            lambda score, shown, rows: sql_or(None if shown["p"] is None else shown["p"] < 5, above(rows)),
            there("x", "y")),
    "product": (dict(value="x - 1", aggregate="product", order="asc", outputs={"n": "count(distinct y)"}),
                ("product", lambda row: None if oracle_groups.nothing(row["x"]) else row["x"] - 1),
                {"n": ("count_distinct", Y)}, None, there("x", "y")),
    "count": (dict(aggregate="count", outputs={"up": "sum(CASE WHEN x > 0 THEN 1 ELSE 0 * x END)"}, order="asc",
                   having="score >= 2"),
              ("count", N), {"up": ("sum", positive)}, lambda score, shown, rows: score >= 2, lambda row: True),
}  # fmt: skip


def sql_or(one, other):
    return True if one or other else None if one is None or other is None else False


def above(rows):
    most = oracle_groups.aggregate("max", map(X, rows))
    return None if most is None else most > 1


def make(stream, seed=0, size=None, ids=9):
    """A stream of :mod:`streams` with the columns ``o``, the object (sometimes NULL), and ``s``, the stream."""
    table = streams.make(stream, seed, size)
    rng = np.random.default_rng([seed, 1, *stream.encode()])
    n = table.num_rows
    names = [NAMES[i] for i in rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    objects = rng.integers(0, ids, n)
    table = table.append_column("o", pa.array(objects, mask=objects == 4))
    return table.append_column("s", pa.array(names, pa.string()))


def windowed(window, late, on):
    """A window for the query, and what the oracle takes for it."""
    spec = {**WINDOWS, **LONG}[window] if isinstance(window, str) else window
    time, extent, every = spec.get("time", False), spec["extent"], spec.get("every")
    span = (lambda length: f"{length} microseconds") if time else int
    last = sb.last(span(extent), every=None if every is None else span(every), on="ts" if time else on,
                   late=span(late) if time else None)  # fmt: skip
    return last, dict(extent=extent, every=every, time=time, on="ts" if time else on, late=late if time else None)


def up(row):
    return row["y"] is not None and row["y"] > 0


def grouped(k, window, asked, late=streams.LATE, on=None, partition_by=(), where=None, ties="newest", id="o", **fields):
    """A query for several aggregates over all rows of a group, and the oracle that answers it."""
    own, ranked, outputs, having, valid = ASKED[asked]
    last, rest = windowed(window, late, on)
    fields = {**own, **fields}
    query = sb.TopKGroups(k=k, id=id, window=last, partition_by=partition_by, where=where, ties=ties, **fields)
    ids = (id,) if isinstance(id, str) else id
    model = oracle_groups.Groups(k, ids, ranked, outputs, valid, having, partition=partition_by, ties=ties,
                                     where=None if where is None else up, desc=fields.get("order") != "asc",
                                     **rest)  # fmt: skip
    return query, model


def pair(k, window, how="sum", occurrences="once", algorithm="auto", late=streams.LATE, on=None, partition_by=(),
         where=None, ties="newest", **fields):  # fmt: skip
    """The query, and the oracle that answers it."""
    last, rest = windowed(window, late, on)
    fields = {**AGGREGATES[how], **fields}
    query = sb.TopKGroups(k=k, id="o", stream="s", value="x", occurrences=occurrences, window=last,
                              partition_by=partition_by, where=where, ties=ties, algorithm=algorithm,
                              **fields)  # fmt: skip
    bounds = fields.get("bounds")
    many, order = occurrences == "many", fields.get("order", "desc")

    def amount(row):
        x = row["x"]
        if x is None or x == "nan" or abs(x) > 1e300 or (how == "product" and x < 0 and not many):
            return None
        if bounds is not None and not bounds[0] <= x <= bounds[1]:
            return None
        return 1.0 if how == "count" else x * WEIGHTS.get(row["s"], 1.0) if how == "weighted" else x

    name = {"weighted": "sum", "function": widest_of}.get(how, how)
    rest |= dict(partition=partition_by, ties=ties, where=None if where is None else up)
    if many and how != "function":
        ranked = (name, amount)
        return query, oracle_groups.Groups(k, ("o",), ranked, {}, lambda row: amount(row) is not None,
                                               desc=order == "desc", **rest)  # fmt: skip
    low = 0.0 if bounds is None or how in ("sum", "count", "mean", "weighted") else bounds[0]
    return query, oracle_groups.TopKGroups(k, "o", "s", amount, name, many, 3, low, **rest)


def promised(n, most=1, seed=0, recent=20, xi=0.6):
    """Rows of which no stream has more than ``most`` of one object, out of order by up to LATE."""
    parts = [datasets.scattered(n // most, 3, xi, recent, seed + i) for i in range(most)]
    rng = np.random.default_rng(seed)
    table = pa.concat_tables(parts).take(np.argsort(np.concatenate([np.arange(len(p)) for p in parts]), kind="stable"))
    n = table.num_rows
    times = streams.START + np.arange(n) * streams.SECOND // 4 - rng.integers(0, streams.LATE, n)
    return pa.table({
        "o": table["id"], "s": pa.array([NAMES[s] for s in table["stream"].to_pylist()]),
        "x": np.round(table["value"].to_numpy() * 16) / 16, "ts": pa.array(times, "timestamp[us]"),
        "y": rng.integers(-3, 4, n), "g": pa.array([["a", "b"][i] for i in rng.integers(0, 2, n)]),
    })  # fmt: skip


def instances(monitor):
    """How many instances are left once the dominated ones are dropped."""
    algorithm = monitor.pipelines[0].algorithm
    _, gone = algorithm.dominance(algorithm.pruned(algorithm.states[0]))
    return int((~gone).sum())


def declared(how, most=1):
    fields = {"streams": NAMES, "most": most}
    return fields if how == "count" else {**fields, "bounds": BOUNDS}
