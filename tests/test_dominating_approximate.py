"""Approximate top-k dominating points: accuracy as in Tables 2 and 3 of *dominating*, and switching under load."""

import numpy as np
import pytest

import skyband as sb
from skyband import datasets, plan
from skyband.dominating.ahba import sample_size

N, K, UPDATES = 4_000, 16, 100
APPROXIMATE = sorted(name for name, algorithm in plan.algorithms("dominating").items() if not algorithm.exact)


def stream(kind, n, d=4, seed=5):
    x = getattr(datasets, kind)(n, d, seed=seed)
    return {"id": np.arange(n), **{f"x{j}": column for j, column in enumerate(x.T)}}


def rows(batch, low, high):
    return {name: column[low:high] for name, column in batch.items()}


def monitor(algorithm, n=N, k=K, d=4, **rest):
    return sb.Monitor(sb.TopKDominating(k=k, dimensions={f"x{j}": "min" for j in range(d)}, window=sb.last(n),
                                        select=("id",), algorithm=algorithm, **rest))  # fmt: skip


def answers(watch, batch, start, size=None):
    """The answer after every arrival from ``start`` on, as sets; what is before comes in one batch."""
    shown, after, total = set(), [], batch["id"].size
    changes = watch.push(rows(batch, 0, start)).to_pylist()
    for low in range(start, total, size or total):
        changes += watch.push(rows(batch, low, min(low + (size or total), total))).to_pylist()
    at = 0
    for number in range(total):
        while at < len(changes) and changes[at]["at"] == number:
            (shown.add if changes[at]["op"] == "+" else shown.remove)(changes[at]["id"])
            at += 1
        after.append(frozenset(shown))
    return after[start:]


@pytest.fixture(scope="module")
def exact():
    streams = {kind: stream(kind, N + UPDATES) for kind in ("independent", "anticorrelated")}
    return {kind: (batch, answers(monitor("cla"), batch, N)) for kind, batch in streams.items()}


def accuracy(found, right):
    return np.mean([len(a & b) / len(b) for a, b in zip(found, right, strict=True)])


@pytest.mark.parametrize(("eps", "delta"), [(0.01, 0.99), (0.03, 0.95), (0.05, 0.90)])
def test_table_2(exact, eps, delta):
    """At least 99.9 % on ANT for every ε from 1 to 5 % and δ from 0.90 to 0.99."""
    batch, right = exact["anticorrelated"]
    assert accuracy(answers(monitor(f"ahba(eps={eps}, delta={delta})"), batch, N), right) >= 0.999


@pytest.mark.parametrize("kind", ["independent", "anticorrelated"])
@pytest.mark.parametrize("algorithm", ["ahba", "amsa"])
def test_table_3(exact, kind, algorithm):
    """100 % for k = 16 on IND and ANT, with ε = 10 % and δ = 0.9."""
    batch, right = exact[kind]
    assert accuracy(answers(monitor(algorithm), batch, N), right) >= 0.995


def test_sample_sizes():
    """Equation (11)."""
    assert [sample_size(0.1, 0.9), sample_size(0.05, 0.95), sample_size(0.02, 0.99)] == [116, 600, 5757]


@pytest.mark.parametrize("algorithm", APPROXIMATE)
def test_states_are_sound(algorithm):
    """Any batches, saved and loaded in between: the same answers, and no invariant broken."""
    batch = stream("anticorrelated", 900, 3)
    whole, parts, told = monitor(algorithm, 300, 5, 3), monitor(algorithm, 300, 5, 3), []
    for low in range(0, 900, 150):
        told += parts.push(rows(batch, low, low + 150)).to_pylist()
        parts.check()
        parts = sb.Monitor.loads(parts.dumps())
    expected = []
    for low in range(0, 900, 150):
        expected += whole.push(rows(batch, low, low + 150)).to_pylist()
    assert told == expected
    assert whole.top().to_pylist() == parts.top().to_pylist()


def working(watch):
    return watch.pipelines[0].algorithm.working


def test_the_load_decides():
    batch, watch, seen = stream("independent", 4_000, 2), monitor("adaptive(budget=100)", 500, 5, 2), []
    low = 0
    for size in (50, 100, 101, 400, 401, 1600, 50, 50, 50, 50, 50, 50):
        watch.push(rows(batch, low, low + size))
        watch = sb.Monitor.loads(watch.dumps())
        seen.append(working(watch))
        low += size
    assert seen == ["ada", "ada", "ahba", "ahba", "amsa", "amsa", "amsa", "ahba", "ahba", "ada", "ada", "ada"]


def test_exact_again_when_the_load_is_gone():
    batch, watch, right = stream("anticorrelated", 5_000, 3), monitor("adaptive(budget=100)", 1_000, 8, 3), monitor(
        "cla", 1_000, 8, 3)  # fmt: skip
    low = 0
    for size in (800, 900, 700, *[60] * 12):
        for one in (watch, right):
            one.push(rows(batch, low, low + size))
        low += size
        watch.check()
        if working(watch) == "ada":
            assert watch.top().to_pylist() == right.top().to_pylist()
    assert working(watch) == "ada"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (dict(), ["algorithm: cla", "answers: exact"]),
        (dict(error=0.1), ["algorithm: ahba, eps=0.1, delta=0.9", "probability of at most 0.1"]),
        (dict(error=0.001), ["algorithm: cla", "whole window", "answers: exact"]),
        (dict(error=0.5), ["algorithm: amsa", "without a guarantee"]),
        (dict(policy="adaptive"), ["algorithm: adaptive", "budget"]),
        (dict(policy="adaptive", error=0.05), ["adaptive, eps=0.05, delta=0.95", "0.05"]),
        (dict(algorithm="eva"), ["algorithm: eva, because the query names it", "answers: exact"]),
    ],
)
def test_plans(query, words):
    text = sb.explain(sb.TopKDominating(k=3, dimensions={"x": "min"}, window=sb.last(10_000), **query))
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    "wrong", ["ahba(eps=0)", "ahba(delta=1)", "ada(maxcand=2)", "adaptive(budget=0)", "amsa(eps=1)"]
)
def test_bad_options(wrong):
    with pytest.raises(sb.QueryError):
        monitor(wrong)
