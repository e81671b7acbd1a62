"""Queries over assembled objects and their oracles, built from one description, and streams to put them to."""

import numpy as np
import oracle_incomplete
import pyarrow as pa
import streams
from cases import LONG, WINDOWS

import skyband as sb
from skyband import plan

ALGORITHMS = plan.algorithms("incomplete")
EXACT = sorted(name for name, algorithm in ALGORITHMS.items() if algorithm.exact)
NAMES = ("r1", "r2", "r3")
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


def make(stream, seed=0, size=None, ids=9):
    """A stream of :mod:`streams` with the columns ``o``, the object (sometimes NULL), and ``s``, the stream."""
    table = streams.make(stream, seed, size)
    rng = np.random.default_rng([seed, 1, *stream.encode()])
    n = table.num_rows
    names = [NAMES[i] for i in rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    objects = rng.integers(0, ids, n)
    table = table.append_column("o", pa.array(objects, mask=objects == 4))
    return table.append_column("s", pa.array(names, pa.string()))


def pair(k, window, how="sum", occurrences="once", algorithm="auto", late=streams.LATE, on=None, partition_by=(),
         where=None, ties="newest", **fields):  # fmt: skip
    """The query, and the oracle that answers it."""
    spec = {**WINDOWS, **LONG}[window] if isinstance(window, str) else window
    time, extent, every = spec.get("time", False), spec["extent"], spec.get("every")
    span = (lambda length: f"{length} microseconds") if time else int
    last = sb.last(span(extent), every=None if every is None else span(every), on="ts" if time else on,
                   late=span(late) if time else None)  # fmt: skip
    fields = {**AGGREGATES[how], **fields}
    query = sb.TopKIncomplete(k=k, id="o", stream="s", value="x", occurrences=occurrences, window=last,
                              partition_by=partition_by, where=where, ties=ties, algorithm=algorithm,
                              **fields)  # fmt: skip
    bounds = fields.get("bounds")

    def amount(row):
        x = row["x"]
        if x is None or x == "nan" or abs(x) > 1e300 or (how == "product" and x < 0):
            return None
        if bounds is not None and not bounds[0] <= x <= bounds[1]:
            return None
        return 1.0 if how == "count" else x * WEIGHTS.get(row["s"], 1.0) if how == "weighted" else x

    name = {"weighted": "sum", "function": widest_of}.get(how, how)
    low = 0.0 if bounds is None or how in ("sum", "count", "mean", "weighted") else bounds[0]
    model = oracle_incomplete.TopKIncomplete(
        k, "o", "s", amount, name, occurrences == "many", 3, low, extent=extent, every=every, time=time,
        on="ts" if time else on, late=late if time else None, partition=partition_by, ties=ties,
        where=None if where is None else lambda row: row["y"] is not None and row["y"] > 0,
    )  # fmt: skip
    return query, model
