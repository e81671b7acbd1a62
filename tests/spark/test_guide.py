"""The guide to Spark and the front page: their examples one after the other, and they do what is said."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from skyband.cli.run import EXAMPLES
from skyband.datasets import trades
from skyband.spark.testing import files, write_batches
from skyband.testing import answer, assert_same_rows

ROOT = Path(__file__).parents[2]
GUIDE, FRONT_PAGE = ROOT / "docs" / "spark.md", ROOT / "README.md"
_BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
_COMMAND = re.compile(r"```\nskyband (run .*?)```", re.DOTALL)


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, "an example", "exec"), names)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = _BLOCK.findall(GUIDE.read_text())
    assert blocks
    for code, printed in blocks:
        capsys.readouterr()
        run(code, names)
        assert capsys.readouterr().out.rstrip() == printed.rstrip(), code


def test_front_page(spark: SparkSession, tmp_path: Path) -> None:
    """Its stream is over the query of its first example; directories are looked for where Java was started."""
    text = FRONT_PAGE.read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, FRONT_PAGE.name, str(FRONT_PAGE), 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, clear_globs=False).failed == 0
    table = trades(20_000, seed=1)
    write_batches([table], tmp_path / "trades")
    names = {**examples.globs, "spark": spark, "schema": files(spark, tmp_path / "trades").schema}
    [code] = [code for code, _ in _BLOCK.findall(text) if not code.startswith(">>>")]
    run(re.sub(r'"(\w+/)"', rf'"{tmp_path}/\1"', code), names)
    [running] = spark.streams.active
    running.processAllAvailable()
    running.stop()
    expected = answer(names["query"], [table], flush=False)
    assert expected.num_rows > 2
    assert_same_rows(spark.read.parquet(str(tmp_path / "top")).toArrow().cast(expected.schema), expected)


@pytest.mark.slow
@pytest.mark.parametrize("page", [FRONT_PAGE, GUIDE], ids=lambda page: page.stem)
def test_commands(page: Path, tmp_path: Path) -> None:
    """The command of the page, over a directory of the name that it gives; it ends where the files do."""
    write_batches([trades(200_000, seed=1)], tmp_path / "trades")
    [command] = _COMMAND.findall(page.read_text())
    words = shlex.split(command.replace("\\\n", " "))
    program = [sys.executable, "-m", "skyband.cli", *words, *([] if "--once" in words else ["--once"])]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    place = words[words.index("--to") + 1].partition(":")[2]
    assert parquet.read_table(tmp_path / place).num_rows > 100


@pytest.mark.slow
def test_examples_of_run(tmp_path: Path) -> None:
    """Those of ``skyband run --help``, one after the other; streams that do not end are only explained."""
    write_batches([trades(20_000, seed=1)], tmp_path / "demo" / "trades")
    commands = [text for text in EXAMPLES.replace("\\\n", "").split("\n\n") if text.startswith("skyband run")]
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command)[1:]
        ends = "--once" in words
        program = [sys.executable, "-m", "skyband.cli", *words, *([] if ends else ["--explain"])]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert not ends or "20,000 rows in" in done.stderr
