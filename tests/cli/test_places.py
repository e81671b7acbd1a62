"""Where ``skyband run`` may write: not where it reads, not over another answer."""

import os
from pathlib import Path

import pytest

from skyband.cli import places
from skyband.errors import SkybandError
from skyband.spark import sources


def check(source: str, to: str, checkpoint: str | None = None, overwrite: bool = False) -> None:
    places.check(sources.source(source), sources.sink(to), checkpoint, overwrite)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows in ``in``, which has a second name; the answer of a stream in ``old``; a file of somebody in ``mine``."""
    monkeypatch.chdir(tmp_path)
    for directory in ("in", "old/_spark_metadata", "old/_checkpoint/offsets", "mine", "empty", "state/offsets"):
        (tmp_path / directory).mkdir(parents=True)
    for file in ("in/a.csv", "old/part-0.csv", "mine/thesis.csv"):
        (tmp_path / file).write_text("x\n1\n")
    (tmp_path / "link").symlink_to("in")
    return tmp_path


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("source", "to", "checkpoint"),
    [
        ("csv:in", "csv:in", None),
        ("csv:in", "csv:{0}/in/", None),
        ("csv:in", "csv:./old/../in", None),
        ("csv:in", "csv:link", None),
        ("csv:link", "csv:in", None),
        ("csv:in", "csv:file://{0}/in", None),
        ("csv:file:{0}/in", "csv:in", None),
        ("csv:in", "csv:in/answer", None),
        ("csv:in", "csv:link/answer", None),
        ("csv:in/a.csv", "csv:in", None),
        ("csv:in/*.csv", "csv:in", None),
        ("csv:in/a.csv", "csv:in/a.csv", None),
        ("csv:in/*.csv", "csv:in/b.csv", None),
        ("csv:i*", "csv:in/answer", None),
        ("csv:in", "csv:new", "in"),
        ("csv:in", "csv:new", "in/state"),
    ],
)
def test_what_is_read_is_not_written(source: str, to: str, checkpoint: str | None, overwrite: bool, here: Path) -> None:
    with pytest.raises(SkybandError, match="rows are read from"):
        check(source.format(here), to.format(here), checkpoint, overwrite)


@pytest.mark.parametrize(("source", "state"), [("csv:in", "link/state"), ("csv:in/a.csv", "in")])
def test_a_checkpoint_alone_is_apart_too(source: str, state: str, here: Path) -> None:
    with pytest.raises(SkybandError, match="rows are read from"):
        check(source, "memory:", state)


@pytest.mark.parametrize(
    ("to", "checkpoint", "overwrite", "sentence"),
    [
        ("csv:new", "new", False, "lie in each other"),
        ("csv:new", "new/state", False, "lie in each other"),
        ("csv:new/answer", "new", False, "lie in each other"),
        ("csv:mine", None, False, "has files of others"),
        ("csv:mine", "state", False, "has files of others"),
        ("csv:mine", None, True, "has other files"),
        ("csv:mine/thesis.csv", None, True, "is a file"),
        ("csv:old", "new", False, "has the answer of another stream"),
        ("csv:new", "mine", True, "is none"),
        ("console", None, True, "--overwrite replaces an answer in files"),
        ("csv:s3a://bucket/old", None, True, "--overwrite replaces an answer in files"),
    ],
)
def test_what_is_there_is_not_lost(to: str, checkpoint: str | None, overwrite: bool, sentence: str, here: Path) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(SkybandError, match=sentence):
        check("csv:in", to, checkpoint, overwrite)
    assert sorted(here.rglob("*")) == before


def test_an_answer_goes_on_or_begins_anew(here: Path) -> None:
    check("csv:in", "csv:new")
    check("csv:in/a.csv", "csv:in/answer", "state")  # beside what is read
    check("csv:in", "csv:empty", "empty/_state")
    check("csv:in", "csv:old")  # goes on from the checkpoint in it
    (here / "old" / "_checkpoint").rename(here / "elsewhere")
    check("csv:in", "csv:old", "elsewhere")
    check("csv:in", "csv:old", "elsewhere", overwrite=True)
    places.clear(sources.sink("csv:old"), "elsewhere")
    assert sorted(os.listdir(here)) == ["empty", "in", "link", "mine", "state"]
    check("csv:s3a://bucket/in", "csv:s3a://bucket/in")  # only Spark can look there
