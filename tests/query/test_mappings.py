"""Fields that map names to values: they do not change, and their order does not tell queries apart."""

import copy
import pickle

import pytest

import skyband as sb
from skyband.query.base import Fixed
from skyband.testing import assert_same_rows


def turned(mapping):
    return dict(reversed(mapping.items()))


DIMENSIONS = {"b": "min", "a": "max"}
OUTPUTS = {"z": "count(*)", "a": "max(v)", "m": "min(v)"}


def dominating(dimensions):
    return sb.TopKDominating(k=2, dimensions=dimensions, window=sb.last(4))


def groups(outputs, every=2, **more):
    return sb.TopKGroups(k=2, id="g", value="v", window=sb.last(4, every=every), outputs=outputs, **more)


def nearest(to):
    return sb.Nearest(k=2, to=to, weights={"x": 2, "y": 3}, window=sb.last(4))


@pytest.mark.parametrize(
    ("build", "mapping"),
    [(dominating, DIMENSIONS), (groups, OUTPUTS), (nearest, {"y": 0.1, "x": 0.7, "z": 0.3})],
)
def test_equal_queries_have_equal_hashes(build, mapping):
    one, other = build(mapping), build(turned(mapping))
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    assert one.lower().fingerprint == other.lower().fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda fixed: fixed.__setitem__("x", 3),
        lambda fixed: fixed.__delitem__("x"),
        lambda fixed: fixed.__ior__({"z": 3}),
        lambda fixed: fixed.update(z=3),
        lambda fixed: fixed.setdefault("z", 3),
        lambda fixed: fixed.pop("x"),
        lambda fixed: fixed.popitem(),
        lambda fixed: fixed.clear(),
    ],
)
def test_a_mapping_of_a_query_does_not_change(change):
    query = nearest({"x": 1, "y": 2})
    with pytest.raises(TypeError, match="a query does not change"):
        change(query.to)
    assert query == nearest({"x": 1, "y": 2})


def test_a_mapping_of_a_query_is_not_the_users():
    given = dict(DIMENSIONS)
    query = dominating(given)
    given["c"] = "min"
    assert query.dimensions == DIMENSIONS


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda fixed: pickle.loads(pickle.dumps(fixed))])
def test_a_mapping_is_copied_as_one(again):
    fixed = again(Fixed(y=2, x=1))
    assert type(fixed) is Fixed and list(fixed) == ["y", "x"] and hash(fixed) == hash(Fixed(x=1, y=2))


def test_a_state_goes_on_with_an_equal_query():
    first, second = {"a": [1, 5, 3], "b": [1, 2, 3]}, {"a": [2.5], "b": [0]}
    monitor = sb.Monitor(dominating(DIMENSIONS))
    monitor.push(first)
    again = sb.Monitor.loads(monitor.dumps(), dominating(turned(DIMENSIONS)))
    assert_same_rows(again.push(second), monitor.push(second))
    assert_same_rows(again.top(), monitor.top())


@pytest.mark.parametrize("every", [2, None])
def test_outputs_are_shown_in_the_order_in_which_they_were_asked_for(every):
    first, second = {"g": [1, 1, 2], "v": [2, 3, 1]}, {"g": [2, 2, 1], "v": [8, 9, 7]}
    query, other = (groups(outputs, every, having="sum(v) > 2") for outputs in (OUTPUTS, turned(OUTPUTS)))
    monitor = sb.Monitor(query)
    answer = monitor.push(first)
    assert answer.column_names[-3:] == ["z", "a", "m"]
    again = sb.Monitor.loads(monitor.dumps(), other)
    expected, got = monitor.push(second), again.push(second)
    assert expected.num_rows and got.column_names[-3:] == ["m", "a", "z"]
    assert_same_rows(got.select(expected.column_names), expected)


def test_equal_queries_in_one_monitor():
    query, other = (groups(outputs, name=name) for name, outputs in (("one", OUTPUTS), ("two", turned(OUTPUTS))))
    answer = sb.Monitor([query, other]).push({"g": [1, 1, 2, 2], "v": [2, 3, 1, 9]}).to_pylist()
    ones, twos = ([{**row, "query": ""} for row in answer if row["query"] == name] for name in ("one", "two"))
    assert ones == twos and [row["z"] for row in ones] == [2, 2, 2]
