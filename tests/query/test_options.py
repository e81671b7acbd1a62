"""No option is ignored: each changes the answer as the oracle says, or is refused by name, alone and beside any other.

How many pairs of options were answered and how many refused is told at the end of a run (``conftest.py``).
"""

import datetime
import inspect
import itertools
from functools import cache

import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.option_cases import (
    FAMILIES,
    ROWS,
    SECOND,
    SIZE,
    WINDOWS,
    all_pairs,
    calls,
    covering,
    fields,
    named,
    pairs_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::skyband.errors.DataWarning")  # much is left out on purpose
NEAREST = ("auto", "sma")  # it is TopK with a distance for a score
ALGORITHMS = [(algorithm, name) for name, family in FAMILIES.items() for algorithm in ("auto", *family.algorithms)
              if name != "Nearest" or algorithm in NEAREST]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_every_option_has_values(name):
    family = FAMILIES[name]
    assert family.options.keys() == fields(family.query), "an option without values: write some in option_cases.py"
    assert all(len(values) > 1 for option, values in family.options.items() if option != "algorithm")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_bad_value_is_refused_by_name(name):
    family = FAMILIES[name]
    plain = {**family.defaults(), "window": sb.last(5)}
    for wrong, word in family.bad:
        message = reason_why(lambda wrong=wrong: sb.Monitor([family.query(**{**plain, **wrong})]).push(ROWS))
        assert word in message, f"{wrong}: {message}"
        assert any(named(option, value, message) for option, value in wrong.items()), f"{wrong}: {message}"
    assert {option for wrong, _ in family.bad for option in wrong} == fields(family.query), "a field with no bad value"


@pytest.mark.parametrize("name", FAMILIES)
def test_every_option_alone_shows(name):
    """Each value changes the answer, all else being equal; or, where answers are exact anyway, what is told of them."""
    family = FAMILIES[name]
    for option, (first, *others) in family.options.items():
        base = family.defaults(**family.beside.get(option, {}))
        as_it_is, *told = [shown(family, {**base, option: value}) for value in (first, *others)]
        place = 1 if option in family.plan_only else 0
        alike = [value for value, seen in zip(others, told) if seen[place] == as_it_is[place]
                 and said(family, {**base, option: value}) != said(family, {**base, option: first})]  # fmt: skip
        assert not alike, f"{option}={alike} changes nothing"
    for algorithm in family.algorithms:
        base = family.defaults(window=next(window for window in WINDOWS if serves(family, algorithm, window)))
        plans = [shown(family, {**base, "algorithm": call})[1] for call in ("auto", *calls(family, algorithm))]
        assert len(set(plans)) == len(plans)


def said(family, values):
    """The query, or why there is none."""
    try:
        return family.ask(values)
    except sb.QueryError as error:
        return str(error)


def shown(family, values):
    """All that comes out with the values, and what ``explain`` says of them."""
    try:
        query = family.ask(values)
        plan, monitor = sb.explain(query), sb.Monitor([query])
        tables = [monitor.push(batch) for batch in streams.cut(ROWS, 5, 5)]
    except sb.QueryError as error:
        return str(error), str(error)
    tables += [monitor.top(), monitor.flush()]
    return [(table.column_names, oracle.rows(table)) for table in tables], plan


@pytest.mark.parametrize(("algorithm", "name"), ALGORITHMS)
def test_every_pair_of_options(algorithm, name, record_property):
    """Every two values of different options are in a combination that is answered as by the oracle, or are refused.

    For an algorithm that is named, so is each value beside each of its options and each kind of window.
    """
    family = FAMILIES[name]
    options = {**family.options, "algorithm": calls(family, algorithm)}
    options["window"] = sorted(options["window"], key=lambda window: not serves(family, algorithm, window))

    def values(row):
        return {option: options[option][row.get(option, 0)] for option in options}

    answered, declined, put = set(), set(), 0
    for row in covering(options):
        answered |= set() if refused(family, values(row)) else pairs_of(row)
        put += 1
    reason = cache(lambda *pair: refused(family, values(dict(pair))))
    wanted = {pair for pair in all_pairs(options) if algorithm == "auto" or dict(pair).keys() & {"algorithm", "window"}}
    for pair in sorted(wanted - answered, key=sorted):  # refused in company: is it by itself?
        message = reason(*sorted(pair))
        put += 1
        (declined if message else answered).add(pair)
        if message and not any(reason(one) for one in pair):
            asked = {option: options[option][place] for option, place in pair}
            unnamed = [option for option, value in asked.items() if not named(option, value, message)]
            assert not unnamed, f"{asked} is refused without naming {unnamed}: {message}"
    assert algorithm != "auto" or family.choosy or not declined, f"no algorithm for {declined}"
    record_property("options", [name, len(answered), len(declined), put])


def serves(family, algorithm, window):
    kind = family.ask(family.defaults(window=window)).window.kind
    return algorithm == "auto" or kind in family.algorithms[algorithm].serves


def reason_why(action):
    """Why an action is refused (""): it is not."""
    try:
        action()
    except sb.QueryError as error:
        return str(error)
    return ""


def refused(family, values):
    """Why the query is refused (""): it is not, and its answers are those of the oracle."""
    message = reason_why(lambda: answer(family, values))
    given = [option for option in values if values[option] != family.options[option][0]]
    assert not message or any(named(option, values[option], message) for option in given), f"{values}: {message}"
    return message


def answer(family, values):
    """Puts the query to the stream; its answers must be those of the oracle."""
    query = family.ask(values)
    monitor = sb.Monitor([query] if query.name else query)
    if family.loose(values):
        plausible(monitor, query, family.answered({**values, "k": SIZE, "ties": "newest"}))
    else:
        agree(monitor, query.name, family.answered(values))


def agree(monitor, name, model):
    """Every answer is that of the oracle, in a few batches, for the ranking as it stands and at the end."""
    for batch in streams.cut(ROWS, 5, 5):
        compare(monitor.push(batch), name, model.push(batch), model.header(batch.column_names))
    compare(monitor.top(), name, model.top(), model.top_header(ROWS.column_names))
    stats = monitor.stats
    assert (stats.seen, stats.late, stats.invalid) == (model.seen, model.late, model.invalid)
    held = bool(model.held)  # what waited for its number is set free in no particular order of the partitions
    compare(monitor.flush(), name, model.flush(), model.header(ROWS.column_names), keys=len(model.partition) * held)


def compare(table, name, expected, header, keys=0):
    if name is not None:
        assert set(table.column(0).to_pylist()) <= {name}
        table = table.drop_columns("query")
    assert table.column_names == header
    got, expected = (rounded(part, header.index("score")) for part in (oracle.rows(table), expected))
    if keys:
        got, expected = (sorted(part, key=lambda row: oracle.ascending(row[2 : 2 + keys])) for part in (got, expected))
    assert got == expected


def rounded(rows, place):
    """Scores to twelve digits: powers and roots are not rounded alike everywhere."""
    return [(*row[:place], float(f"{row[place]:.12g}"), *row[place + 1 :]) for row in rows]


def plausible(monitor, query, model):
    """Whoever is shown is in the window, with the right score and columns; ``model`` ranks all that are."""
    header, top_header = model.header(ROWS.column_names), model.top_header(ROWS.column_names)
    for batch in streams.cut(ROWS, 5, 5):
        told, right = monitor.push(batch), model.push(batch)
        assert told.drop_columns(["query"] * bool(query.name)).column_names == header
        if query.window.hopping:
            assert unranked(told, query, header) <= {without(row, header.index("rank")) for row in right}
        known = {without(row, top_header.index("rank")) for row in model.top()}
        assert unranked(monitor.top(), query, top_header) <= known


def unranked(table, query, header):
    rows = oracle.rows(table.drop_columns(["query"] * bool(query.name)))
    return {without(row, header.index("rank")) for row in rows}


def without(row, place):
    return (*row[:place], *row[place + 1 :])


# Windows

LENGTHS = {
    "extent": [5, 12, "4 seconds", datetime.timedelta(seconds=7), 0, "soon"],
    "every": [None, 1, 4, "2 seconds", "1 minute", 2.5],
    "on": [None, "seq", "when", "swapped", ""],
    "late": [None, 0, 3, "0 seconds", "3 seconds", -1],
}


def test_the_options_of_windows(record_property):
    """Every combination: the rows of the oracle, or refused by name; and each value makes a difference somewhere."""
    assert LENGTHS.keys() == inspect.signature(sb.last).parameters.keys()
    answered, declined = {}, 0
    for values in itertools.product(*LENGTHS.values()):
        given = dict(zip(LENGTHS, values))
        message = reason_why(lambda given=given: as_windowed(given))
        if message:
            told = [option for option, value in given.items() if f"{option}={value!r}" in message]
            assert told or f"{given['on']!r}" in message, f"{given}: {message}"
            declined += 1
        else:
            answered[values] = sb.last(**given), all_of(of_window(sb.last(**given)))
    record_property("options", ["sb.last", len(answered), declined, len(answered) + declined])
    for place, (option, values) in enumerate(LENGTHS.items()):
        for one, other in itertools.combinations(values, 2):
            beside = [((*key[:place], other, *key[place + 1 :]), key) for key in answered if key[place] == one]
            both = [(answered[a], answered[b]) for a, b in beside if a in answered]
            meant = [(rows, others) for (window, rows), (another, others) in both if window != another]
            assert not meant or any(rows != others for rows, others in meant), f"{option}={one!r} is as {other!r}"


def as_windowed(given):
    agree(sb.Monitor(of_window(sb.last(**given))), None, model_of(**given))


def of_window(window):
    return sb.TopK(k=2, order_by="x DESC", window=window, select=("y", "g"))


def all_of(query):
    monitor = sb.Monitor(query)
    tables = [*(monitor.push(batch) for batch in streams.cut(ROWS, 5, 5)), monitor.flush()]
    return [oracle.rows(table) for table in tables]


def model_of(extent, every, on, late):
    """The oracle of a window."""
    time = isinstance(extent, str | datetime.timedelta)
    seconds = {"4 seconds": 4, "2 seconds": 2, "0 seconds": 0, "3 seconds": 3, datetime.timedelta(seconds=7): 7}
    if time:
        extent, every, late = (None if v is None else seconds[v] * SECOND for v in (extent, every, late))
    kind = InSeconds if time and on in ("seq", "swapped") else oracle.TopK
    on, late = (on or "ts", late or 0) if time else (on, late)
    return kind(2, lambda row: row["x"], extent, every, time, on, late, select=("y", "g"))


class InSeconds(oracle.TopK):
    """Event times are whole numbers: seconds since the epoch."""

    def row(self, row, behind):
        return super().row({**row, self.on: row[self.on] * SECOND}, behind)

    def window(self, end, key):
        return [(start // SECOND, stop // SECOND, *rest) for start, stop, *rest in super().window(end, key)]

    def changes(self, obj):
        return [(at // SECOND, *rest) for at, *rest in super().changes(obj)]


# The ranking as it stands

SMALLER = (None, 1, 3, 0, 4, True, 1.5, "2")
SHORTER = (None, 1, 2, 4, 9, 0, -1, 2.5, "1 parsec")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_options_of_a_snapshot(name, record_property):
    """``top(k, last)`` of every kind of window: the rows of the oracle, or refused by name.

    ``query`` names one of several: ``tests/engine/test_snapshots.py``.
    """
    family = FAMILIES[name]
    assert set(inspect.signature(sb.Monitor.top).parameters) == {"self", "k", "last", "query"}
    counts = [0, 0]
    for window in WINDOWS:
        values = family.defaults(window=window, partition_by=("g",), k=3)
        monitor, model, seen = sb.Monitor(family.ask(values)), family.answered(values), set()
        for batch in streams.cut(ROWS, 5, 5):
            monitor.push(batch)
            model.push(batch)
        for k, last in itertools.product(SMALLER, SHORTER):
            span = f"{last} seconds" if model.time and isinstance(last, int) else last
            message = reason_why(lambda k=k, span=span, monitor=monitor: monitor.top(k=k, last=span))
            counts[bool(message)] += 1
            if message:
                assert f"k={k!r}" in message or "last=" in message, message
                continue
            expected = model.top(k, None if last is None else last * (SECOND if model.time else 1))
            compare(monitor.top(k=k, last=span), None, expected, model.top_header(ROWS.column_names))
            seen.add(str(expected))
        assert len(seen) >= 3
    record_property("options", [f"{name}.top", *counts, sum(counts)])


# Options that say something of each other

MOVING = sb.last(6)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (dict(algorithm="pa(sigma=0.3)", error=0.01), ("error=0.01", "sigma=0.3")),
        (dict(algorithm="pa(sigma=0.3)", window=sb.last(6, every=3)), ("algorithm='pa'", "window")),
        (dict(algorithm="tma(cells=1e18)"), ("cells=1e+18", "1048576")),
        (dict(algorithm="rapf(buffer=2.5)"), ("buffer=2.5", "whole")),
        (dict(algorithm="rapf(buffer=2, buffer=3)"), ("buffer", "twice")),
        (dict(algorithm="pa(additional=1e300)"), ("additional=1e+300",)),
        (dict(algorithm="sa(foo=3)"), ("'foo'", "none")),
        (dict(kind=sb.TopKDominating, algorithm="ahba(eps=0.2)", error=0.05), ("error=0.05", "eps=0.2")),
        (dict(kind=sb.TopKDominating, algorithm="ahba(delta=0.5)", error=0.05), ("error=0.05", "delta=0.5")),
        (dict(kind=sb.TopKDominating, algorithm="amsa", error=0.05), ("'amsa'", "error=0.05")),
        (dict(kind=sb.TopKDominating, algorithm="ahba(eps=1e-12)"), ("eps=1e-12",)),
        (dict(kind=sb.TopKDominating, algorithm="adaptive(budget=0)"), ("budget=0",)),
        (dict(kind=sb.TopKDominating, algorithm="eva", policy="adaptive"), ("policy", "'eva'")),
    ],
    ids=str,
)
def test_what_contradicts_is_refused(query, words):
    """By the monitor and, so that nothing is promised that cannot be had, by ``explain``."""
    kind = query.get("kind", sb.TopK)
    measure = {"dimensions": {"x": "max"}} if kind is sb.TopKDominating else {"order_by": "x"}
    given = {"k": 1, "window": MOVING, **measure, **{name: value for name, value in query.items() if name != "kind"}}
    for use in (sb.Monitor, sb.explain):
        message = reason_why(lambda use=use: use(kind(**given)))
        assert message and all(word in message for word in words), message


@pytest.mark.parametrize(
    ("query", "line"),
    [
        (dict(algorithm="pa(sigma=0.3)"), "missed with probability of about 0.3 a"),
        (dict(algorithm="pa"), "missed with probability of about 0.001 a"),
        (dict(error=0.02), "missed with probability below 0.02 a"),
        (dict(error=0.02, window=sb.last(6, every=3)), "answers: exact, though an error of 0.02 is allowed"),
        (dict(algorithm="sa", error=0.02), "answers: exact, though an error of 0.02 is allowed"),
        (dict(algorithm="sa"), "answers: exact"),
    ],
    ids=str,
)
def test_explain_says_what_error_and_options_come_to(query, line):
    assert line in sb.explain(sb.TopK(**{"k": 1, "order_by": "x", "window": MOVING, **query}))


@pytest.mark.parametrize("metric", [1, 3, 16])
def test_a_metric_up_to_the_largest_is_right(metric):
    rows = {"x": [1e-9, 1e9, 2.0, -1e-9], "y": [2e-9, 5e8, -3.0, 0.0]}
    query = sb.Nearest(k=4, to={"x": 0, "y": 0}, metric=metric, window=sb.last(4, every=4))
    expected = sorted((abs(x) ** metric + abs(y) ** metric) ** (1 / metric) for x, y in zip(*rows.values()))
    assert sb.Monitor(query).push(rows)["score"].to_pylist() == pytest.approx(expected, rel=1e-12)
