"""A query and its oracle, built from one description; and how the two are run side by side."""

import skyband as sb
from skyband.families import FAMILIES
from tests.support import oracle, streams

SECOND = streams.SECOND
ALGORITHMS = FAMILIES["objects"].algorithms()
EXACT = sorted(name for name, algorithm in ALGORITHMS.items() if algorithm.exact)

# What an expression means, spelled out for the oracle: the value, and whether larger is better.
ORDERS = {
    "x DESC": (lambda r: r["x"], True),
    "x": (lambda r: r["x"], False),
    "y DESC": (lambda r: r["y"], True),
    "abs(x - y) ASC": (lambda r: None if oracle.bad(r["x"]) or r["y"] is None else abs(r["x"] - r["y"]), False),
}
CONDITIONS = {
    None: None,
    "y > 0": lambda r: r["y"] is not None and r["y"] > 0,
    "g = 'a' OR h IS NULL": lambda r: r["g"] == "a" or r["h"] is None,
}

# Each kind of window: slides that divide the extent and that do not, tumbling, single, and wider than any stream.
WINDOWS = {
    "count-20-5": dict(extent=20, every=5),
    "count-7-3": dict(extent=7, every=3),
    "count-6-6": dict(extent=6, every=6),
    "count-1-1": dict(extent=1, every=1),
    "count-500-7": dict(extent=500, every=7),
    "time-10-2": dict(time=True, extent=10 * SECOND, every=2 * SECOND),
    "time-7-3": dict(time=True, extent=7 * SECOND, every=3 * SECOND),
    "time-4-4": dict(time=True, extent=4 * SECOND, every=4 * SECOND),
    "time-600-9": dict(time=True, extent=600 * SECOND, every=90 * SECOND),
    "arrivals-1": dict(extent=1),
    "arrivals-13": dict(extent=13),
    "arrivals-500": dict(extent=500),
    "arrival-time-1": dict(time=True, extent=SECOND),
    "arrival-time-9": dict(time=True, extent=9 * SECOND),
    "arrival-time-600": dict(time=True, extent=600 * SECOND),
}
LONG = {
    "count-2400-300": dict(extent=2_400, every=300),
    "time-2400-300": dict(time=True, extent=2_400 * SECOND, every=300 * SECOND),
    "arrivals-2500": dict(extent=2_500),
    "arrival-time-2500": dict(time=True, extent=2_500 * SECOND),
}
TIMED = {"pa": "pa(fewest=90, most=120)"}  # what an algorithm must be told of time windows
ONE_OF_EACH = ("count-7-3", "time-7-3", "arrivals-13", "arrival-time-9")


def kind(window):
    return "hopping" if "every" in window else "arrival"


def served(names=WINDOWS, algorithms=EXACT):
    """Every (algorithm, window) where the one serves the other."""
    return [(a, w) for a in algorithms for w in names if kind({**WINDOWS, **LONG}[w]) in ALGORITHMS[a].serves]


def pair(k, window, order_by="x DESC", where=None, partition_by=(), select=None, ties="newest", on=None, late=None,
         algorithm="auto", error=0.0, name=None):  # fmt: skip
    """The query, and the oracle that answers it. ``window`` is a name, or the fields of one."""
    spec = {**WINDOWS, **LONG}[window] if isinstance(window, str) else window
    time, extent, every = spec.get("time", False), spec["extent"], spec.get("every")
    if time:
        on, late, algorithm = on or "ts", streams.LATE if late is None else late, TIMED.get(algorithm, algorithm)
    span = (lambda length: f"{length} microseconds") if time else int
    last = sb.last(span(extent), every=None if every is None else span(every), on=on,
                   late=None if late is None else span(late))  # fmt: skip
    query = sb.TopK(k=k, order_by=order_by, window=last, partition_by=partition_by, where=where, select=select,
                    ties=ties, algorithm=algorithm, error=error, name=name)  # fmt: skip
    score, desc = ORDERS[order_by]
    model = oracle.TopK(k, score, extent, every, time, on, late, desc, partition_by, CONDITIONS[where], select, ties)
    return query, model


def follow(monitor, model, batches, flush=True, top=True):
    """Push the batches into both; every answer and every count must be the same, row for row."""
    for batch in batches:
        names = batch.column_names
        emitted = monitor.push(batch)
        agree(emitted, model.push(batch), model.header(names))
        monitor.check()
        compare_stats(monitor.stats, model)
        if top:
            agree(monitor.top(), model.top(), model.top_header(names))
    if flush and batches:
        finish(monitor, model, batches[0].column_names)


def finish(monitor, model, names):
    """End both streams. What waited for its number is then set free, in no particular order of the partitions."""
    table, expected = monitor.flush(), model.flush()
    assert table.column_names == model.header(names)
    keys = slice(2, 2 + len(model.partition))
    emitted, expected = (sorted(part, key=lambda row: oracle.ascending(row[keys])) if model.held else part
                         for part in (oracle.rows(table), expected))  # fmt: skip
    assert emitted == expected
    monitor.check()
    assert monitor.flush().num_rows == 0


def agree(table, expected, header):
    assert table.column_names == header
    assert oracle.rows(table) == expected


def compare_stats(stats, model):
    assert (stats.seen, stats.late, stats.invalid) == (model.seen, model.late, model.invalid)
    assert stats.candidates <= model.live()


def run(monitor, batches):
    """All that a monitor emits, as one list."""
    tables = [monitor.push(batch) for batch in batches] + [monitor.flush()]
    return [row for table in tables for row in oracle.rows(table)]


def together(pairs, stream):
    """Several queries in one monitor give what each gives alone, one after the other."""
    monitor = sb.Monitor([query for query, _ in pairs])
    names = [query.name or f"q{i}" for i, (query, _) in enumerate(pairs)]
    for batch in [*streams.cut(streams.make(stream), 6), None]:
        emitted = monitor.flush() if batch is None else monitor.push(batch)
        expected = [model.flush() if batch is None else model.push(batch) for _, model in pairs]
        assert emitted.column_names[0] == "query"
        assert oracle.rows(emitted) == [(n, *row) for n, part in zip(names, expected, strict=True) for row in part]
        monitor.check()
        monitor = sb.Monitor.loads(monitor.dumps())
