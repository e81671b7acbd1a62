"""The command line with Spark: sources and sinks one by one, and whole programs, each a process of its own."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet
from pyspark.sql import SparkSession

import skyband as sb
from skyband import datasets
from skyband.datasets.replay import DISORDER, Replay
from skyband.errors import SkybandError
from skyband.spark import run, sources
from skyband.spark.watch import Watch, reason

VALUE = "price * volume DESC"
QUERY = sb.TopK(k=3, order_by=VALUE, window=sb.last("10 minutes", every="1 minute"))
OPTIONS = ["-k", "3", "--order-by", VALUE, "--last", "10 minutes", "--every", "1 minute"]
PATIENCE = 300  # seconds for a program
# A stream that goes on until somebody ends it.
ENDLESS = [sys.executable, "-m", "skyband.cli", "run", "--from", "rate:100", "-k", "2", "--order-by", "value DESC",
           "--last", "2 seconds", "--every", "1 second", "--on", "timestamp"]  # fmt: skip

# The line about how things are, which comes now and then.
STATUS = re.compile(r"No rows yet \(.*\)|[\d,]+ rows, [\d,]+ rows/s, [\d,]+ late, [\d,]+ invalid, state .*")


def trades() -> pa.Table:
    return datasets.trades(5000, gap=200_000.0)


def skyband(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "skyband.cli", *arguments]
    result = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == code, result.stderr
    return result


def rows(answer: pa.Table, *names: str) -> list[dict[str, Any]]:
    """The rows of an answer in their order, whatever the files they came from and the types of times in them."""
    answer = answer.select(names)
    end = answer["window_end"].cast(pa.timestamp("us", "UTC"))
    answer = answer.set_column(names.index("window_end"), "window_end", end)
    order = [(name, "ascending") for name in ("window_end", "symbol", "rank") if name in names]
    return answer.sort_by(order).to_pylist()  # type: ignore[no-any-return]


def taken_in(spark: SparkSession, place: str, query: sb.TopK = QUERY) -> pa.Table:
    """What comes through a source."""
    got: list[pa.Table] = []
    stream = sources.read(spark, sources.source(place), query)
    started = sources.start(stream, sources.sink("memory:"), lambda _, part: got.append(part), once=True)
    started.awaitTermination(PATIENCE)
    return pa.concat_tables(got)


# --- sources and sinks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/*.parquet", "/1.parquet"])
def test_files_directories_and_globs(path: str, spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(trades().slice(0, 2000), tmp_path / "0.parquet")
    parquet.write_table(trades().slice(2000), tmp_path / "1.parquet")
    got = taken_in(spark, f"parquet:{tmp_path}{path}")
    first = 2000 if path == "/1.parquet" else 0
    assert sorted(got["id"].to_pylist()) == list(range(first, 5000))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_times_are_read_from_text(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    table = trades().slice(0, 100)
    if kind == "csv":
        csv.write_csv(table, tmp_path / "a.csv")
    else:
        (tmp_path / "a.json").write_text("\n".join(json.dumps(row, default=str) for row in table.to_pylist()))
    got = taken_in(spark, f"{kind}:{tmp_path}").sort_by("id")
    assert got["ts"].to_pylist() == table["ts"].to_pylist()
    assert got["price"].to_pylist() == table["price"].to_pylist()


def test_text_that_is_no_time(spark: SparkSession, tmp_path: Path) -> None:
    """A row is left out, and counted; a column is refused."""
    (tmp_path / "a.csv").write_text("ts,x\nyesterday,1\n2024-01-01 00:00:00,2\n,3\n")
    query = sb.TopK(k=3, order_by="x", window=sb.last("1 minute", every="1 minute"))
    answer = run(sources.read(spark, sources.source(f"csv:{tmp_path}"), query), query)
    watch = Watch(sources.start(answer, sources.sink("memory:"), lambda *_: None, once=True))
    watch.query.awaitTermination(PATIENCE)
    progress = watch.poll()
    assert (progress.seen, progress.invalid) == (3, 2)
    (tmp_path / "a.csv").write_text("ts,x\nyesterday,1\n,2\n")
    with pytest.raises(SkybandError, match="ts = 'yesterday' is not a time"):
        taken_in(spark, f"csv:{tmp_path}", query)


def test_nothing_to_take_columns_from(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SkybandError, match="there are no parquet files to take the columns from"):
        taken_in(spark, f"parquet:{tmp_path}")


def test_lines_of_a_socket(spark: SparkSession) -> None:
    """Text that is no number counts as invalid; the stream goes on until it is stopped."""
    query = sb.TopK(k=2, order_by="CAST(value AS DOUBLE) DESC", window=sb.last(4, every=4), select=("value",))
    got: list[pa.Table] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = sources.source(f"socket:127.0.0.1:{server.getsockname()[1]}")
        answer = run(sources.read(spark, place, query), query)
        watch = Watch(sources.start(answer, sources.sink("memory:"), lambda _, part: got.append(part)))
        with server.accept()[0] as client:
            client.sendall(b"3\n1e2\nmany\n7\n5\n")
            deadline = time.monotonic() + PATIENCE
            while watch.poll().seen < 5 and watch.running and time.monotonic() < deadline:
                time.sleep(0.1)
            watch.query.stop()
    watch.raise_failure()
    progress = watch.poll()
    assert (progress.seen, progress.invalid, progress.late) == (5, 1, 0)
    assert [(row["rank"], row["value"]) for row in pa.concat_tables(got).to_pylist()] == [(1, "1e2"), (2, "7")]


@pytest.mark.parametrize(
    "text",
    ["", "parquet", "parquet:", "csv:/nowhere", "rate:x", "rate:0", "socket:9999", "socket:host:port", "kafka:x"],
)
def test_bad_sources(text: str) -> None:
    with pytest.raises(SkybandError, match="--from"):
        sources.source(text)


@pytest.mark.parametrize("text", ["", "parquet", "parquet:", "console:x", "paper", "out.csv"])
def test_bad_sinks(text: str) -> None:
    with pytest.raises(SkybandError, match="--to"):
        sources.sink(text)


def test_the_answer_of_another_stream_is_not_mixed_in(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would take the first batches of the new stream for those that are written already, and drop them."""
    parquet.write_table(trades(), tmp_path / "a.parquet")
    stream = sources.read(spark, sources.source(f"parquet:{tmp_path}/a.parquet"), QUERY)
    sink = sources.sink(f"parquet:{tmp_path}/out")
    sources.start(stream, sink, print, once=True).awaitTermination(PATIENCE)
    assert parquet.read_table(tmp_path / "out").num_rows == 5000
    with pytest.raises(SkybandError, match="has the answer of another stream"):
        sources.start(stream, sink, print, checkpoint=f"{tmp_path}/new", once=True)
    with pytest.raises(SkybandError, match="cannot follow --emit latest"):
        sources.start(stream, sink, print, mode="update", once=True)


def test_a_failure_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(trades(), tmp_path / "a.parquet")

    def fail(number: int, part: pa.Table) -> None:
        raise sb.QueryError("no such city")

    stream = sources.read(spark, sources.source(f"parquet:{tmp_path}"), QUERY)
    watch = Watch(sources.start(stream, sources.sink("console"), fail, once=True))
    with pytest.raises(Exception, match="no such city") as caught:
        watch.query.awaitTermination(PATIENCE)
    assert reason(caught.value) == "no such city"
    assert not watch.running
    with pytest.raises(SkybandError, match=r"^no such city$"):
        watch.raise_failure()


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Parquet to Parquet, in two runs: together the rows of a Monitor, each once."""
    (tmp_path / "in").mkdir()
    monitor = sb.Monitor(sb.TopK(k=3, order_by=VALUE, window=QUERY.window, partition_by=("symbol",)))
    expected = []
    for number, part in enumerate((trades().slice(0, 2000), trades().slice(2000))):
        parquet.write_table(part, tmp_path / "in" / f"{number}.parquet")
        expected.append(monitor.push(part))
        places = ["--from", f"parquet:{tmp_path}/in", "--to", f"parquet:{tmp_path}/out"]
        result = skyband("run", *places, "--once", *OPTIONS, "--partition-by", "symbol")
        assert result.stdout == ""
        assert f"{part.num_rows:,} rows in" in result.stderr
        names = ["window_end", "symbol", "rank", "score", "id"]
        assert rows(parquet.read_table(tmp_path / "out"), *names) == rows(pa.concat_tables(expected), *names)


def test_run_from_csv_to_json(tmp_path: Path) -> None:
    csv.write_csv(trades(), tmp_path / "trades.csv")
    skyband("run", "--from", f"csv:{tmp_path}/trades.csv", "--to", f"json:{tmp_path}/out", "--once", *OPTIONS)
    lines = [line for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    found = sorted((row["window_end"], row["rank"], row["id"]) for row in map(json.loads, lines))
    expected = sb.Monitor(QUERY).push(trades()).to_pylist()
    assert [(rank, id) for _, rank, id in found] == [(row["rank"], row["id"]) for row in expected]


@pytest.mark.slow
def test_run_to_memory_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """The whole answer is shown at the end; with a checkpoint a second run has only what is new."""
    (tmp_path / "in").mkdir()
    monitor = sb.Monitor(QUERY)
    places = ["--from", f"parquet:{tmp_path}/in", "--to", "memory:", "--checkpoint", f"{tmp_path}/state"]
    for number, part in enumerate((trades().slice(0, 2000), trades().slice(2000))):
        parquet.write_table(part, tmp_path / "in" / f"{number}.parquet")
        lines = skyband("run", *places, "--once", "--trigger", "1 second", *OPTIONS).stdout.splitlines()
        got = [line.split("\t") for line in lines]
        at, rank = (got[0].index(name) for name in ("id", "rank"))
        assert [(int(row[rank]), int(row[at])) for row in got[1:]] == [
            (row["rank"], row["id"]) for row in monitor.push(part).to_pylist()
        ]


@pytest.mark.slow
def test_run_ends_with_ctrl_c(tmp_path: Path) -> None:
    """Rows of windows come on standard output as they close; an interrupt ends the stream, with a summary."""
    with subprocess.Popen(ENDLESS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        header = running.stdout.readline()
        lines = [running.stdout.readline().rstrip("\n").split("\t") for _ in range(3)]
        running.send_signal(signal.SIGINT)
        errors = running.stderr.read()
        assert running.wait(PATIENCE) == 130
    assert header == "window_start\twindow_end\trank\tscore\ttimestamp\tvalue\n"
    first, second = lines[1:] if lines[1][2] == "1" else lines[:2]  # the very first window may hold a single row
    assert (first[2], second[2]) == ("1", "2") and int(first[5]) > int(second[5])
    begin, *said = errors.splitlines()
    assert begin == "Starting Spark (a few seconds) …"
    [last] = [line for line in said if not STATUS.fullmatch(line)]
    assert re.fullmatch(r"interrupted: [\d,]+ rows in .* 0 late, 0 invalid; .*", last)


def ended(program: list[str], seconds: float, signals: int = 1) -> tuple[int, list[str]]:
    """The exit code of a program that gets Ctrl-C some time after Spark begins to start, and what it says from then on.

    As on a terminal, its child processes get the signal too.
    """
    with subprocess.Popen(
        program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "Starting Spark (a few seconds) …\n"
        time.sleep(seconds)
        for _ in range(signals):
            os.killpg(running.pid, signal.SIGINT)
            time.sleep(0.5)
        began = time.monotonic()
        said = running.stderr.read().splitlines()
        code = running.wait(60)
        assert time.monotonic() - began < 30
        return code, said


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0, 2.0, 4.0, 7.0])
def test_ctrl_c_while_spark_starts(seconds: float) -> None:
    """One line, whenever it comes: in the midst of starting Java, of a talk with it, or with the stream running."""
    code, said = ended(ENDLESS, seconds)
    assert code == 130
    left = [line for line in said if not STATUS.fullmatch(line)]
    assert len(left) == 1, left
    assert left[0] == "skyband: interrupted" or re.match(r"interrupted: [\d,]+ rows in", left[0])


@pytest.mark.slow
def test_second_ctrl_c_ends_it_at_once() -> None:
    code, said = ended(ENDLESS, 12.0, signals=2)
    assert code == 130 and len([line for line in said if not STATUS.fullmatch(line)]) == 1


@pytest.mark.slow
def test_spark_is_heard_only_if_wanted(tmp_path: Path) -> None:
    """A broken file makes Spark, Java and its workers talk a lot."""
    (tmp_path / "a.parquet").write_bytes(b"PAR1" * 20)
    parquet.write_table(trades(), tmp_path / "b.parquet")
    program = ["run", "--from", f"parquet:{tmp_path}", "--once", *OPTIONS]
    quiet = skyband(*program, code=2).stderr.splitlines()
    assert quiet[0] == "Starting Spark (a few seconds) …" and quiet[-1].startswith("skyband: ")
    assert (
        len([line for line in quiet if not STATUS.fullmatch(line)]) == 3 and "Spark's own messages are in" in quiet[-2]
    )
    loud = skyband(*program, "-v", code=2).stderr
    assert " ERROR " in loud or " WARN " in loud


@pytest.mark.slow
def test_run_from_csv_to_csv(tmp_path: Path) -> None:
    """Two commands, one file: the same rows; a second run is refused another checkpoint, and begins anew if told to."""
    csv.write_csv(trades(), tmp_path / "trades.csv")
    places = ["--from", f"csv:{tmp_path}/trades.csv", "--to", f"csv:{tmp_path}/out", "--once"]
    whole = ["--last", "1000", "--every", "1000", "-k", "3", "--order-by", VALUE]
    skyband("run", *places, *whole)
    skyband("top", f"{tmp_path}/trades.csv", *whole, "--to", f"{tmp_path}/top.csv")
    names = ["window_end", "rank", "score", "id", "ts", "symbol"]

    def answer() -> list[dict[str, Any]]:
        read = pa.concat_tables([csv.read_csv(file) for file in (tmp_path / "out").glob("*.csv")])
        return read.select(names).to_pylist()  # type: ignore[no-any-return]

    expected = csv.read_csv(tmp_path / "top.csv").select(names).to_pylist()
    assert len(expected) == 15 and answer() == expected
    again = skyband("run", *places, *whole, "--checkpoint", f"{tmp_path}/other", code=2).stderr
    assert "has the answer of another stream" in again and "Starting Spark" not in again
    assert " 0 rows in" in f" {skyband('run', *places, *whole).stderr.splitlines()[-1]}"
    skyband("run", *places, *whole, "--overwrite")
    assert answer() == expected


def test_demo_without_a_terminal(tmp_path: Path) -> None:
    """The whole main job: a line for each window, the rankings of a Monitor in files, and every fault counted."""
    result = skyband("demo", "--seconds", "5", "--rate", "20000", "--out", f"{tmp_path}/the demo")
    assert "Starting Spark" in result.stderr
    query = sb.TopK(k=10, order_by=VALUE, window=sb.last("10 minutes", every="1 minute", late=DISORDER))
    monitor = sb.Monitor(query)
    files = sorted((tmp_path / "the demo" / "trades").glob("*.parquet"))
    expected = pa.concat_tables([monitor.push(parquet.read_table(file)) for file in files])
    answer = dataset.dataset(tmp_path / "the demo" / "rankings", partitioning="hive").to_table()
    names = ["window_end", "rank", "score", "id", "symbol", "price", "volume"]
    assert rows(answer, *names) == rows(expected, *names)
    lines = result.stdout.splitlines()
    windows = len(set(answer["window_end"].to_pylist()))
    assert windows >= 4 and [bool(re.match(r"\d\d:\d\d  1 \w+", line)) for line in lines].count(True) == windows
    stats = monitor.stats
    assert stats.late > 0 and stats.invalid > 0
    summary = next(line for line in lines if line.startswith(f"{windows} windows, "))
    assert f"{stats.seen:,} rows in" in summary
    assert f"{stats.late:,} late, {stats.invalid:,} invalid" in summary
    suggested = shlex.split(next(line for line in lines if " top " in line))  # can be run as it stands
    assert subprocess.run(suggested, capture_output=True, timeout=120, check=True).stdout


def test_demo_wants_a_directory_of_its_own(tmp_path: Path) -> None:
    Replay(tmp_path, 1000, 60.0).write()
    assert "is not empty" in skyband("demo", "--out", str(tmp_path), code=2).stderr


def test_errors_before_spark_starts(tmp_path: Path) -> None:
    answer = skyband("run", "--from", f"csv:{tmp_path}/none", *OPTIONS, code=2)
    assert answer.stderr.startswith("skyband: --from") and len(answer.stderr.splitlines()) == 1
    assert "needs a window" in skyband("run", "--from", "rate:", "--order-by", "value", code=2).stderr
    assert "--trigger" in skyband("run", "--from", "rate:", *OPTIONS, "--trigger", "soon", code=2).stderr


def test_errors_of_the_stream_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,price,volume\n2024-01-01 00:00:00,1,1\n")
    answer = skyband("run", "--from", f"csv:{tmp_path}", "--order-by", "prise", "--last", "1 minute", code=2)
    assert "did you mean 'price'?" in answer.stderr and "Traceback" not in answer.stderr
    answer = skyband("run", "--from", "socket:localhost:1", "--order-by", "1", "--last", "5", code=2)
    assert "the stream from socket:localhost:1 ended: Connection refused" in answer.stderr
    (tmp_path / "file").touch()
    place = ["--from", f"csv:{tmp_path}/a.csv", "--to", f"json:{tmp_path}/file/answer"]
    answer = skyband("run", *place, "--order-by", "price", "--last", "1 minute", code=2)
    assert re.search("skyband: Spark: .*(directory|mkdir)", answer.stderr), answer.stderr


@pytest.mark.slow
def test_nobody_reads_the_answer(tmp_path: Path) -> None:
    """As in ``skyband run … | head -1``: it ends, and says nothing."""
    with subprocess.Popen(ENDLESS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        errors = running.stderr.read()
        assert running.wait(PATIENCE) == 1
    assert "Spark's own messages" not in errors and "Traceback" not in errors
