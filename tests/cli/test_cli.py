"""The command line as far as it needs no Spark: help, errors, ``skyband top``, and what is drawn on a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from rich.console import Console
from typer.testing import CliRunner

import skyband as sb
from skyband import datasets
from skyband.cli import terminal
from skyband.cli.app import app
from skyband.cli.dashboard import Board, as_table, in_order, line, rankings
from skyband.datasets.replay import DISORDER, Replay, pieces

VALUE = "price * volume DESC"


def skyband(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def refused(*arguments: str) -> str:
    """The one line of an error."""
    code, out, err = skyband(*arguments)
    assert code == 2 and out == ""
    (sentence,) = err.splitlines()
    return sentence.removeprefix("skyband: ")


@pytest.fixture(scope="module")
def trades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trades as a directory of Parquet files, as CSV, and as JSON lines."""
    place = tmp_path_factory.mktemp("trades")
    table = datasets.trades(5000, gap=200_000.0)
    (place / "parts").mkdir()
    parquet.write_table(table.slice(0, 2000), place / "parts" / "0.parquet")
    parquet.write_table(table.slice(2000), place / "parts" / "1.parquet")
    csv.write_csv(table, place / "trades.csv")
    with open(place / "trades.jsonl", "w") as file:
        file.writelines(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
    return place


# --- help -------------------------------------------------------------------------------------------------------------


def test_no_arguments_show_help() -> None:
    _, out, err = skyband()
    assert all(command in out + err for command in ("demo", "run", "top"))


@pytest.mark.parametrize("command", ["demo", "run", "top"])
def test_help_has_examples(command: str) -> None:
    code, out, _ = skyband(command, "--help")
    assert code == 0
    assert re.search(rf"Examples[\s\S]*skyband {command}", out)
    assert command == "demo" or "empty field is NULL" in " ".join(out.split())
    assert all(len(row) <= 80 for row in out.splitlines())


def test_examples_of_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each does what it says, one after the other, in the directory that the demonstration would leave."""
    from skyband.cli.top import EXAMPLES

    replay = Replay(tmp_path / "demo" / "trades", rate=2_000, speed=60.0)
    for _ in range(25):
        replay.write()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    commands = [
        text for text in EXAMPLES.replace("\\\n", "").split("\n\n") if "skyband top" in text and "[" not in text
    ]
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(command.replace("skyband", f"{sys.executable} -m skyband.cli"), shell=True, cwd=tmp_path,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0 and (done.stdout or "--to" in command), done.stderr
    assert csv.read_csv(tmp_path / "demo" / "largest.csv").num_rows == 3


def test_the_query_is_described_alike_everywhere() -> None:
    described = [
        skyband(command, "--help")[1].partition("The query")[2].partition("╰")[0] for command in ("run", "top")
    ]
    assert described[0] == described[1]
    assert all(f"--{name}" in described[0] for name in ("order-by", "nearest-to", "last", "every", "late", "select"))


def test_version() -> None:
    assert skyband("--version") == (0, f"skyband {sb.__version__}\n", "")


def test_starts_without_spark() -> None:
    """Neither the program nor ``top`` touches Spark."""
    code = "import sys; from skyband.cli.app import app; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_pyspark(trades: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.modules['pyspark'] = None; from skyband.cli.app import app; app({list(arguments)!r})"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert run("top", f"{trades}/parts", "--order-by", VALUE).returncode == 0
    answer = run("run", "--from", "rate:", "--order-by", "value", "--last", "5")
    assert answer.returncode == 2
    assert answer.stderr == (
        "skyband: this command needs Spark, and pyspark is not installed: run pip install 'skyband[spark]'\n"
    )


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--order-by", "prise"], "did you mean 'price'?"),
        (["--order-by", "price +"], "--order-by 'price +' is not an SQL expression"),
        ([], "with either --order-by or --nearest-to"),
        (["--order-by", "price", "--nearest-to", "price=1"], "with either --order-by or --nearest-to"),
        (["--nearest-to", "price"], "must give a number to each column"),
        (["--nearest-to", "price=1", "--metric", "straight"], "--metric 'straight' is unknown"),
        (["--order-by", "price", "--k", "0"], "-k 0 must be a whole number, at least 1"),
        (["--order-by", "price", "--every", "5"], "say how far it reaches with --last"),
        (["--order-by", "price", "--last", "1 fortnight"], "--last '1 fortnight' is not a duration"),
        (["--order-by", "price", "--last", "10", "--every", "20"], "--every 20 exceeds the extent"),
        (["--order-by", "price", "--last", "1 minute", "--on", "symbol"], "or name the column that has them with --on"),
        (["--order-by", "price", "--algorithm", "quick"], "--algorithm 'quick' is unknown"),
        (["--order-by", "price", "--partition-by", "city"], "city"),
        (["--order-by", "price", "--to", "paper"], "--to 'paper' is unknown"),
        (["--order-by", "price", "--to", "csv:/nowhere/a.csv"], "there is no directory /nowhere; make it first"),
        (["--order-by", "price", "--late", "3", "--last", "5"], "--late 3 has no meaning for a count window"),
        (["--order-by", "price", "--error", "2"], "--error 2.0 must be a number from 0"),
        (["--nearest-to", "price=1", "--weights", "volume=2"], "--weights: 'volume' is no column of"),
        (["--order-by", "price", "--delimiter", "::"], "--delimiter '::' must be one ASCII character"),
        (["--order-by", "price", "--name", "a", "--where", "k=0 AND"], "--where 'k=0 AND'"),
    ],
)
def test_errors(arguments: list[str], sentence: str, trades: Path) -> None:
    assert sentence in refused("top", f"{trades}/trades.csv", *arguments)


def test_bad_files(tmp_path: Path) -> None:
    assert "there is nothing at" in refused("top", f"{tmp_path}/none.csv", "--order-by", "x")
    (tmp_path / "a.txt").write_text("x\n1\n")
    assert "write parquet:" in refused("top", f"{tmp_path}/a.txt", "--order-by", "x")
    assert "cannot be read as parquet" in refused("top", f"parquet:{tmp_path}/a.txt", "--order-by", "x")
    code, out, _ = skyband("top", f"csv:{tmp_path}/a.txt", "--order-by", "x", "--select", "x AS y")
    assert (code, out) == (0, "rank\tscore\ty\n1\t1.0\t1\n")


def test_debug_shows_where_it_came_from() -> None:
    with pytest.raises(sb.QueryError):
        skyband("--debug", "top", "--order-by", "x", "--last", "no time", "file.csv")


# --- top --------------------------------------------------------------------------------------------------------------


def test_top_of_the_whole_file(trades: Path) -> None:
    code, out, err = skyband("top", f"{trades}/parts", "-k", "3", "--order-by", VALUE, "--select", "id, symbol")
    table = datasets.trades(5000, gap=200_000.0).to_pylist()
    best = sorted(table, key=lambda row: (-row["price"] * row["volume"], -row["id"]))[:3]
    expected = [f"{i + 1}\t{r['price'] * r['volume']}\t{r['id']}\t{r['symbol']}" for i, r in enumerate(best)]
    assert (code, out.splitlines()) == (0, ["rank\tscore\tid\tsymbol", *expected])
    assert err == "5,000 rows, 0 late, 0 invalid\n"


def test_nearest_by_partition(trades: Path) -> None:
    nearest = ["--nearest-to", "price=100, volume=500", "--weights", "volume=0.1", "--metric", "1"]
    _, out, _ = skyband("top", f"{trades}/parts", "-k", "1", *nearest, "--partition-by", "symbol,exchange")
    rows = [row.split("\t") for row in out.splitlines()]
    assert rows[0][:4] == ["symbol", "exchange", "rank", "score"]
    best: dict[tuple[str, str], float] = {}
    for row in datasets.trades(5000, gap=200_000.0).to_pylist():
        key = row["symbol"], row["exchange"]
        best[key] = min(best.get(key, 1e9), abs(row["price"] - 100) + 0.1 * abs(row["volume"] - 500))
    assert {(row[0], row[1]): pytest.approx(float(row[3])) for row in rows[1:]} == best


@pytest.mark.parametrize("file", ["parts", "trades.csv", "trades.jsonl"])
@pytest.mark.parametrize("sink", ["parquet", "csv", "json"])
def test_windows_from_and_to_files(file: str, sink: str, trades: Path, tmp_path: Path) -> None:
    """Every format in, every format out, and always the rows of a Monitor."""
    window = ["--last", "10 minutes", "--every", "1 minute"]
    code, out, _ = skyband(
        "top", f"{trades}/{file}", "-k", "3", "--order-by", VALUE, *window, "--to", f"{sink}:{tmp_path}/a"
    )
    assert (code, out) == (0, "")
    if sink == "json":
        rows = [json.loads(row) for row in (tmp_path / "a").read_text().splitlines()]
        answer = pa.Table.from_pylist(rows)
    else:
        answer = (parquet.read_table if sink == "parquet" else csv.read_csv)(tmp_path / "a")
    monitor = sb.Monitor(sb.TopK(k=3, order_by=VALUE, window=sb.last("10 minutes", every="1 minute")))
    expected = pa.concat_tables([monitor.push(datasets.trades(5000, gap=200_000.0)), monitor.flush()])
    names = ["rank", "score", "id", "symbol"]
    assert answer.select(names).to_pylist() == expected.select(names).to_pylist()
    assert [str(end)[:19] for end in answer["window_end"].to_pylist()] == [
        str(end)[:19] for end in expected["window_end"].to_pylist()
    ]


def test_changes_of_count_windows(trades: Path) -> None:
    _, out, _ = skyband("top", f"{trades}/parts", "-k", "2", "--order-by", VALUE, "--last", "100", "--select", "id")
    monitor = sb.Monitor(sb.TopK(k=2, order_by=VALUE, window=sb.last(100), select=("id",)))
    expected = monitor.push(datasets.trades(5000, gap=200_000.0)).to_pylist()
    assert out.splitlines()[1:] == ["\t".join(map(str, row.values())) for row in expected]


def test_late_rows_are_told(tmp_path: Path) -> None:
    replay = Replay(tmp_path, rate=20_000, speed=60.0)
    for _ in range(8):
        replay.write()
    window = ["--last", "1 minute", "--every", "1 minute", "--late", DISORDER]
    code, _, err = skyband("top", str(tmp_path), "--order-by", VALUE, *window)
    assert code == 0
    counts = re.findall(r"^([\d,]+) rows, ([\d,]+) late, ([\d,]+) invalid$", err, re.MULTILINE)[-1]
    seen, late, invalid = (int(text.replace(",", "")) for text in counts)
    assert seen == replay.rows and late > 0 and invalid > 0
    assert "--late" in err


def test_explain() -> None:
    code, out, _ = skyband("top", "any", "--order-by", VALUE, "-k", "5", "--explain")
    assert code == 0 and out.startswith("top 5 by price * volume DESC over all rows\n")
    query = ["--last", "10 minutes", "--every", "1 minute", "--order-by", VALUE]
    code, out, _ = skyband("run", "--from", "rate:", "--explain", *query)
    assert code == 0 and out.startswith("top 10 by price * volume DESC over the last 10 minutes every 1 minute on ts\n")


def test_pipe_that_ends_early(trades: Path) -> None:
    program = [sys.executable, "-m", "skyband.cli", "top", f"{trades}/parts", "--order-by", VALUE, "--last", "10"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()


def test_counts_are_told_while_it_runs(trades: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal, in lines of their own."""
    from skyband.cli import terminal

    monkeypatch.setattr(terminal, "_SAY", 0.0)
    broken = "price * nullif(volume, 100) DESC"
    _, _, err = skyband("top", f"{trades}/parts", "--order-by", broken, "--last", "1 minute", "--every", "1 minute")
    lines = err.splitlines()
    assert re.fullmatch(r"2,000 rows, 0 late, [1-9]\d* invalid", lines[0]), lines
    assert re.fullmatch(r"5,000 rows, 0 late, [1-9][\d,]* invalid", lines[-2])
    assert lines[-1] == "Rows without a score or an event time are invalid, and left out."


def test_warnings_are_a_line_in_the_words_of_the_program(trades: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(UserWarning):
        __module__ = "skyband.errors"

    flush = sb.Monitor.flush

    def warning(monitor: sb.Monitor) -> pa.Table:
        warnings.warn("most rows are late; give late= its true value", Mine, stacklevel=2)
        return flush(monitor)

    monkeypatch.setattr(sb.Monitor, "flush", warning)
    with pytest.MonkeyPatch.context() as filters:
        filters.setattr(warnings, "filters", [])
        _, _, err = skyband("top", f"{trades}/parts", "--order-by", VALUE, "--last", "1 hour", "--every", "1 hour")
    assert err.splitlines()[0] == "skyband: most rows are late; give --late its true value"


# --- what is read -----------------------------------------------------------------------------------------------------

LARGEST = ["-k", "2", "--order-by", VALUE, "--select", "id"]


def answered(*files: str) -> str:
    code, out, err = skyband("top", *files, *LARGEST)
    assert code == 0, err
    return out


def test_globs_and_several_files(trades: Path) -> None:
    whole = answered(f"{trades}/parts")
    assert answered(f"{trades}/parts/*.parquet") == answered(f"{trades}/**/?.parquet") == whole
    assert answered(f"{trades}/parts/1.parquet", f"{trades}/parts/0.parquet") == whole
    assert answered(f"csv:{trades}/*.csv") == whole
    assert "there is nothing at" in refused("top", f"{trades}/*.none", *LARGEST)
    assert "of several kinds (csv, parquet)" in refused("top", f"{trades}/parts", f"{trades}/trades.csv", *LARGEST)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("file", ["trades.csv", "trades.jsonl", "parts/0.parquet"])
@pytest.mark.parametrize("piped", [True, False])
def test_standard_input(name: str, file: str, piped: bool, trades: Path) -> None:
    program = [sys.executable, "-m", "skyband.cli", "top", name, *LARGEST]
    with open(trades / file, "rb") as rows:
        given = {"input": rows.read()} if piped else {"stdin": rows}
        done = subprocess.run(program, capture_output=True, **given)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == answered(f"{trades}/{file}")


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "csv:-"])
def test_empty_standard_input(name: str) -> None:
    program = [sys.executable, "-m", "skyband.cli", "top", name, *LARGEST]
    done = subprocess.run(program, input=b"", capture_output=True)
    assert done.returncode == 2 and done.stderr.decode() == (
        "skyband: standard input is empty: give it rows, as skyband top - < trades.csv does, or name a file\n"
    )


def test_delimiters(tmp_path: Path) -> None:
    for name, sign in (("tab", "\t"), (r"\t", "\t"), (";", ";")):
        (tmp_path / "a.csv").write_text(f"x{sign}y\n1{sign}a,b\n")
        code, out, _ = skyband("top", f"{tmp_path}/a.csv", "--order-by", "x", "--delimiter", name)
        assert (code, out) == (0, "rank\tscore\tx\ty\n1\t1.0\t1\ta,b\n")
    (tmp_path / "a.json").write_text('{"x": 1}\n')
    assert "--delimiter is for CSV" in refused("top", f"{tmp_path}/a.json", "--order-by", "x", "--delimiter", ";")


def test_parts_in_directories(trades: Path, tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        for day in (1, 2):
            place = tmp_path / kind / f"day={day}"
            place.mkdir(parents=True)
            table = pa.table({"x": [day, day + 10]})
            (csv.write_csv if kind == "csv" else parquet.write_table)(table, place / f"a.{kind}")
        code, out, _ = skyband("top", f"{tmp_path}/{kind}", "--order-by", "x DESC", "-k", "2", "--partition-by", "day")
        assert (code, out) == (0, "day\trank\tscore\tx\n1\t1\t11.0\t11\n1\t2\t1.0\t1\n2\t1\t12.0\t12\n2\t2\t2.0\t2\n")


# --- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("{0}/a.csv", "csv:{0}/a.csv"),
        ("{0}/a.csv", "{0}/a.csv"),
        ("{0}/a.csv", "{0}/../in/./a.csv"),
        ("{0}/a.csv", "csv:{0}/link"),
        ("{0}/a.csv", "csv:{0}/hard"),
        ("csv:{0}/link", "{0}/a.csv"),
        ("{0}/a.csv", "{0}/../directory/a.csv"),
        ("{0}", "{0}/a.csv"),
        ("{0}", "{0}/new.csv"),
        ("{0}", "{0}/../directory/new.csv"),
        ("{0}/*.csv", "{0}/a.csv"),
        ("{0}/?.csv", "{0}/b.csv"),
        ("{0}/../directory/?.csv", "{0}/b.csv"),
        ("in/a.csv", "{0}/a.csv"),
    ],
)
def test_what_is_read_is_not_written(
    source: str, to: str, overwrite: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "in"
    place.mkdir()
    (tmp_path / "directory").symlink_to(place)
    (place / "a.csv").write_text("x\n1\n")
    (place / "link").symlink_to("a.csv")
    (place / "hard").hardlink_to(place / "a.csv")
    sentence = refused("top", source.format(place), "--order-by", "x", "--to", to.format(place), *overwrite)
    assert "is among what is read" in sentence
    assert sorted(path.name for path in place.iterdir()) == ["a.csv", "hard", "link"]
    assert (place / "a.csv").read_text() == "x\n1\n"


def test_standard_input_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with open(tmp_path / "a.csv") as rows:
        program = [sys.executable, "-m", "skyband.cli", "top", "-", "--order-by", "x", "--overwrite"]
        done = subprocess.run([*program, "--to", f"{tmp_path}/a.csv"], stdin=rows, capture_output=True, text=True)
    assert done.returncode == 2 and "is among what is read (-)" in done.stderr
    assert (tmp_path / "a.csv").read_text() == "x\n1\n"


def test_a_file_is_replaced_only_if_told_to(trades: Path, tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    program = ["top", f"{trades}/parts", *LARGEST, "--to", str(place)]
    assert skyband(*program)[0] == 0
    first = place.read_bytes()
    assert "exists; name another file, or replace it with --overwrite" in refused(*program)
    place.write_text("mine")
    (tmp_path / "link.csv").symlink_to(place)
    assert skyband(*program[:-1], f"{tmp_path}/link.csv", "--overwrite")[0] == 0
    assert place.read_bytes() == first and (tmp_path / "link.csv").is_symlink()
    assert "is a directory; name a file" in refused(*program[:-1], f"csv:{tmp_path}", "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "link.csv"]


@pytest.mark.parametrize(("name", "kind"), [("a.csv", "csv"), ("a.parquet", "parquet"), ("a.jsonl", "json")])
def test_the_suffix_tells_the_format(name: str, kind: str, trades: Path, tmp_path: Path) -> None:
    for to in (name, f"{kind}:{name}.other"):
        where = to.replace("a.", f"{tmp_path}/a.", 1)
        assert skyband("top", f"{trades}/parts", *LARGEST, "--to", where)[0] == 0
    assert (tmp_path / name).read_bytes() == (tmp_path / f"{name}.other").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_failure_leaves_what_was_there(kind: str, tmp_path: Path) -> None:
    """The last row of the input is broken: rows have been written by then, but not into the file."""
    (tmp_path / "bad.csv").write_text("x\n" + "1\n" * 1_000_000 + '"2\n')
    place = tmp_path / "answer"
    place.write_text("mine")
    program = ["top", f"{tmp_path}/bad.csv", "--order-by", "x", "--last", "10", "--every", "10"]
    code, _, err = skyband(*program, "--to", f"{kind}:{place}", "--overwrite")
    assert (code, place.read_text()) == (2, "mine"), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer", "bad.csv"]


def test_devices_are_written_as_they_are(trades: Path) -> None:
    program = [sys.executable, "-m", "skyband.cli", "top", f"{trades}/parts", *LARGEST, "--to", "csv:/dev/stdout"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == '"rank","score","id"'


def test_whole_numbers_beyond_64_bits_are_not_rounded(tmp_path: Path) -> None:
    long = 12345678901234567890
    (tmp_path / "rows.csv").write_text(f"id,g,x\n{long},{long + 1},1\n{long + 2},{long + 3},2\n7,{long + 1},3\n")
    for name in ("answer.json", "answer.csv", "answer.parquet"):
        assert skyband("top", f"{tmp_path}/rows.csv", "-k", "1", "--order-by", "x", "--partition-by", "g",
                       "--to", f"{tmp_path}/{name}")[0] == 0  # fmt: skip
    rows = [{"g": long + 1, "rank": 1, "score": 1.0, "id": long, "x": 1},
            {"g": long + 3, "rank": 1, "score": 2.0, "id": long + 2, "x": 2}]  # fmt: skip
    assert [json.loads(line) for line in (tmp_path / "answer.json").read_text().splitlines()] == rows
    assert str(long + 2) in (tmp_path / "answer.csv").read_text()
    assert parquet.read_table(tmp_path / "answer.parquet").to_pylist() == rows


def test_how_things_are_is_said_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Off a terminal a line every ten seconds at most, also after a step that took a minute."""
    clock = [0.0]
    monkeypatch.setattr(terminal, "monotonic", lambda: clock[0])
    with terminal.line("Reading") as say:
        for moment in (1, 9, 70, 70, 71, 79, 81, 82):
            clock[0] = float(moment)
            say(f"after {moment} s")
    assert capsys.readouterr().err.splitlines() == ["after 70 s", "after 81 s"]


@pytest.mark.filterwarnings("always::skyband.DataWarning")
def test_warnings_are_in_the_words_of_the_command_line(tmp_path: Path) -> None:
    rows = "".join(f"2024-01-01 0{hour}:00:{second:02},1\n" for hour in (5, 2) for second in range(30))
    (tmp_path / "a.csv").write_text(f"ts,x\n{rows}")
    (tmp_path / "b.csv").write_text("ts,x\n" + "2024-01-01 01:00:00,2\n" * 30)
    code, _, errors = skyband("top", f"{tmp_path}/a.csv", f"{tmp_path}/b.csv", "-k", "1", "--order-by", "x",
                              "--last", "1 minute", "--every", "1 minute")  # fmt: skip
    warned = [line for line in errors.splitlines() if line.startswith("skyband: ")]
    assert code == 0 and warned == [
        "skyband: 30 of 30 rows were left out, since they came too late: sort the rows by 'ts' first, or allow for "
        "their delay with --late"
    ]


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def interrupted(moment: str, *arguments: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The program, with a Ctrl-C at the moment when it imports a module."""
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys

def hook(event, arguments):
    if event == "import" and arguments[0] == {moment!r}:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hook)
""")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = [sys.executable, "-m", "skyband.cli", *arguments]
    return subprocess.run(program, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "moment", ["skyband.cli.app", "typer", "numba", "pyarrow", "skyband.kernels.common.jit", "sqlglot"]
)
def test_ctrl_c_while_importing(moment: str, trades: Path, tmp_path: Path) -> None:
    done = interrupted(moment, "top", f"{trades}/trades.csv", *LARGEST, tmp_path=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (130, "skyband: interrupted\n", "")


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_while_writing(number: signal.Signals, code: int, word: str, tmp_path: Path) -> None:
    """Nothing is left behind, neither of the answer nor of the copy of standard input."""
    (tmp_path / "copies").mkdir()
    program = [sys.executable, "-m", "skyband.cli", "top", "-", "--order-by", "x", "--last", "1000", "--every", "10",
               "--to", f"{tmp_path}/answer.csv"]  # fmt: skip
    environment = {**os.environ, "TMPDIR": f"{tmp_path}/copies"}
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        assert running.stdin is not None and running.stderr is not None
        running.stdin.write(b"x\n" + b"".join(b"%d\n" % (i * 7919 % 10007) for i in range(2_000_000)))
        running.stdin.close()
        deadline = time.monotonic() + 120
        while not any(f.stat().st_size for f in tmp_path.glob(".answer.*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(number)
        errors = running.stderr.read().decode()
        assert running.wait(60) == code
    assert errors.splitlines()[-1] == f"skyband: {word}" and "Traceback" not in errors
    assert [path.name for path in tmp_path.rglob("*")] == ["copies"]


# --- the replayed stream ----------------------------------------------------------------------------------------------


def test_replay_is_seeded_and_steady() -> None:
    """Files of about the same size, rows at most as far out of order as said but for the faults made on purpose."""
    first, again = (pa.concat_tables([next(part) for part in [pieces(4000, 60.0, seed=7)] * 20]) for _ in range(2))
    assert first == again
    assert first["id"].to_pylist() != sorted(first["id"].to_pylist())
    assert 0.8 * 40_000 < first.num_rows < 1.2 * 40_000
    monitor = sb.Monitor(sb.TopK(k=1, order_by=VALUE, window=sb.last("1 minute", every="1 minute", late=DISORDER)))
    size = 500
    for start in range(0, first.num_rows, size):
        monitor.push(first.slice(start, size))
    faulty = sum(late > timedelta(minutes=10) for late in _behind(first))
    assert monitor.stats.late == faulty > 0
    assert monitor.stats.invalid == first["price"].null_count > 0


def _behind(table: pa.Table) -> list[timedelta]:
    newest, behind = datetime.min.replace(tzinfo=UTC), []
    for stamp in table["ts"].to_pylist():
        newest = max(newest, stamp)
        behind.append(newest - stamp)
    return behind


def test_replay_laps_go_on_in_time() -> None:
    """After the trades of one minute on the wall the next lap begins where the last one ended."""
    parts = pieces(200, 60.0)
    table = pa.concat_tables([next(parts) for _ in range(150)])
    assert table["id"].to_pylist() != table["id"].unique().to_pylist()[::-1]
    assert len(table["id"].unique()) == table.num_rows > 60 * 200
    assert sum(late > timedelta(seconds=2) for late in _behind(table)) < 10


# --- the terminal -----------------------------------------------------------------------------------------------------


def drawn(thing: object, width: int, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(thing)
    return captured.get().splitlines()


@pytest.fixture(scope="module")
def board() -> Board:
    from skyband.spark.watch import Progress

    monitor = sb.Monitor(sb.TopK(k=10, order_by=VALUE, window=sb.last("10 minutes", every="1 minute", late=DISORDER)))
    board = Board("The title", 10, 60, 30, Progress())
    parts = pieces(2000, 60.0)
    for number in range(1, 30):
        for ranking in rankings(monitor.push(next(parts))):
            board.show(ranking)
        stats = monitor.stats
        progress = Progress(
            number, 0, stats.seen, stats.late, stats.invalid, stats.candidates, stats.bytes, 1e5 * number
        )
        board.update(progress, number / 2)
    return board


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30)])
def test_board_fits(board: Board, width: int, height: int) -> None:
    rows = drawn(board, width, height)
    assert len(rows) <= height and all(len(row) <= width for row in rows)
    text = "\n".join(rows)
    assert "The title" in text and "…" not in text
    assert all(f"{row['price']:,.2f}" in text for row in board.ranking.rows)  # type: ignore[union-attr]


def test_board_shows_what_moved() -> None:
    from skyband.spark.watch import Progress

    def answer(minute: int, *ids: int) -> pa.Table:
        end = datetime(2024, 1, 2, 15, minute, tzinfo=UTC)
        rows = [
            {"window_start": end - timedelta(minutes=10), "window_end": end, "rank": rank, "score": 1e6 / rank,
             "id": id, "symbol": "VEGA", "price": 1.5, "volume": 100}
            for rank, id in enumerate(ids, 1)
        ]  # fmt: skip
        return pa.Table.from_pylist(rows)

    board = Board("", 4, 60, 30, Progress())
    assert "no window has closed yet" in "\n".join(drawn(board, 80))
    both = pa.concat_tables([answer(2, 3, 1, 2, 4), answer(1, 1, 2, 3, 4)])
    for ranking in rankings(both):
        board.show(ranking)
    marks = [row[4:10].strip() for row in drawn(board, 80)[2:6]]
    assert marks == ["▲ 2", "▼ 1", "▼ 1", "·"]
    assert board.windows == 2
    for ranking in rankings(answer(3, 9, 3)):
        board.show(ranking)
    assert [row[4:10].strip() for row in drawn(board, 80)[2:4]] == ["new", "▼ 1"]
    assert line(board.ranking, board.progress).startswith("15:03  1 VEGA 1.00 M  2 VEGA 500.0 k  |  0 rows")  # type: ignore[arg-type]


def test_answers_of_shards_are_put_in_order() -> None:
    mixed = pa.table({"window_end": [2, 1, 1, 2], "key": ["a", "b", "a", "a"], "rank": [2, 1, 1, 1]})
    assert in_order(mixed, ("key",)).to_pydict() == {
        "window_end": [1, 1, 2, 2], "key": ["a", "b", "a", "a"], "rank": [1, 1, 1, 2]
    }  # fmt: skip
    changes = pa.table({"at": [5, 4, 5], "op": ["-", "+", "+"]})
    assert in_order(changes, ()).to_pydict() == {"at": [4, 5, 5], "op": ["+", "-", "+"]}


def test_tables_leave_out_the_day_if_they_can() -> None:
    end = datetime(2024, 1, 2, 15, 1, tzinfo=UTC)
    rows = [{"window_start": end, "window_end": end + timedelta(minutes=i), "score": 1.0} for i in range(3)]
    text = "\n".join(drawn(as_table(pa.Table.from_pylist(rows)), 80))
    assert "15:02:00" in text and "2024" not in text and "window_start" not in text
    rows.append({**rows[0], "window_end": end + timedelta(days=1)})
    assert "2024-01-03 15:01:00" in "\n".join(drawn(as_table(pa.Table.from_pylist(rows)), 80))
