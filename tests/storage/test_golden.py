"""Saved states that are kept as files: they are read and go on, and nobody changes by accident what is saved."""

import pytest

import skyband as sb
from skyband.storage.blocks import declaration
from tests.support import golden

FILES = sorted(path.name for path in golden.HERE.glob("*.bin"))
CASES = golden.cases()
WRITE = "run `python -m tests.support.golden`, look at what has changed, and commit it"


@pytest.mark.parametrize("file", FILES)
def test_a_saved_state_goes_on(file):
    """From each file: the answer of a monitor that was never saved."""
    query = CASES[file.split(".")[0]]
    monitor = sb.Monitor.loads((golden.HERE / file).read_bytes())
    assert monitor.queries == (query,)
    monitor.check()
    answer = golden.rest(monitor)
    assert answer.num_rows
    assert answer.equals(golden.rest(golden.half_way(query)))


@pytest.mark.parametrize("file", FILES)
def test_every_block_of_a_saved_state_tells_its_version(file):
    algorithm = sb.Monitor.loads((golden.HERE / file).read_bytes()).pipelines[0].algorithm
    kind = getattr(algorithm, "state_type", None)
    names = {name.rpartition(".@")[2] for name, _ in algorithm.arrays() if "@" in name}
    assert {f"{block.__name__}.{block.block_version}" for block in tree(kind)} <= names
    assert names


def tree(kind):
    return [kind, *(block for inner in declaration(kind).blocks.values() for block in tree(inner))] if kind else []


def test_every_algorithm_has_a_file():
    there = {file.split(".")[0] for file in FILES}
    assert there == CASES.keys(), (
        f"states without an algorithm, or without a file: {sorted(there ^ CASES.keys())}; {WRITE}"
    )


def test_no_block_changes_in_silence():
    now, before = golden.listing(), golden.listed()
    names = golden.changed(now, before)
    assert not names, (
        f"what is saved of {', '.join(names)} has changed, and the version has not: raise it in @block(…), say there "
        f"how states of the older one are read, if they can be; then {WRITE}"
    )
    assert now == before, f"blocks are new, gone or in a new version; {WRITE}"


def test_a_silent_change_is_found():
    before = {
        "a.A": "version 1\n  rows: x int64",
        "a.B": "version 1\n  rows: x int64",
        "a.C": "version 1\n  rows: x int64",
    }
    now = {
        "a.A": "version 1\n  rows: x float64",
        "a.B": "version 2\n  rows: x float64",
        "a.D": "version 1\n  rows: x int64",
    }
    assert golden.changed(now, before) == ["a.A"]
