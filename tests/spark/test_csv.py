"""The same CSV through ``skyband top`` and ``skyband run``: the same rows, the same counts, the same refusals."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import skyband as sb
from skyband.cli.files import batches, found
from skyband.errors import SkybandError
from skyband.spark import run, sources
from skyband.spark.watch import Watch

HOURS = sb.last("1 hour", every="1 hour")
QUERY = sb.TopK(k=3, order_by="x DESC", window=HOURS, partition_by=("city",))
T = "2024-01-01 00:00:0"

ALIKE = {
    "empty fields": [f'ts,x,city\n{T}1,1,a\n{T}2,,a\n{T}3,3,\n{T}4,4,""\n,5,b\n'],
    "words for NULL": [f"ts,x,city\n{T}1,NA,a\nNULL,2,a\n{T}3,nan,NA\n{T}4,-4.5,NA\n"],
    "quotes": [f'ts,x,city\n{T}1,1,"a, ""b"""\n{T}2,"2","line\nline"\n{T}3,3,back\\slash\n{T}4,4, blank \n'],
    "an inferred type is too narrow for a later row": [f"ts,x,city\n{T}1,1,7\n{T}2,2.5,08\n{T}3,1e3,north\n"],
    "an inferred type is too narrow for a later file": [f"ts,x,city\n{T}1,1,\n", f"ts,x,city\n{T}2,2.5,b\n"],
    "another order of columns": [f"ts,x,city\n{T}1,1,a\n", f"city,ts,x\nb,{T}2,2\n"],
    "texts that are no times": [f"ts,x,city\nsoon,1,a\n{T}2,2,a\n2024-01-01T00:00:03Z,3,b\n{T}4.123456,4,b\n"],
    "times with a zone": ["ts,x,city\n2024-01-01T00:30:00+01:00,1,a\n2024-01-01T00:30:00Z,2,a\n,3,a\n"],
    "days": ["ts,x,city\n2024-01-01,1,a\n2024-01-02,2,a\n"],
    "seconds since the epoch": ["ts,x,city\n1704067200,1,a\n1704067201.5,2,a\n"],
    "line ends": [f"\ufeffts,x,city\r\n{T}1,1,a\r\n\r\n{T}2,2,b"],
    "an empty file": ["", f"ts,x,city\n{T}1,1,a\n"],
    "a header alone": ["ts,x,city\n", f"ts,x,city\n{T}1,1,a\n"],
    "infinite": [f"ts,x,city\n{T}1,inf,a\n{T}2,-inf,a\n{T}3,1.5,a\n"],
}

REFUSED = {
    "a field too few": ([f"ts,x,city\n{T}1,1,a\n{T}2,2\n"], "row 3 (the header is row 1): 2 fields where the header"),
    "a field too many": ([f"ts,x,city\n{T}1,1,a,b\n"], "row 2 (the header is row 1): 4 fields where the header has 3"),
    "one name twice": (["ts,x,x\n1,2,3\n"], "has 'x' twice"),
    "a column missing": ([f"ts,x,city\n{T}1,1,a\n", "ts,x\n1,2\n"], "has no column 'city'"),
    "no UTF-8": ([b"ts,x,city\n2024-01-01,1,\xff\n"], "the text is not UTF-8"),
    "no times": (["ts,x,city\nsoon,1,a\n"], "ts = 'soon' is not a time"),
}


def written(texts: list[str | bytes], place: Path) -> str:
    for number, text in enumerate(texts):
        (place / f"{number}.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return str(place)


def with_top(place: str) -> tuple[pa.Table, tuple[int, int]]:
    """What ``top`` shows before the end, and its counts of rows that it saw and that are invalid."""
    monitor = sb.Monitor(QUERY)
    with found([f"csv:{place}"]) as groups:
        rows = pa.concat_tables([monitor.push(batch) for batch in batches(groups, QUERY, None)])
    # With an empty answer the stream goes on, and its last windows stay open.
    return pa.concat_tables([rows, monitor.flush()]), (monitor.stats.seen, monitor.stats.invalid)


def with_run(spark: SparkSession, place: str) -> tuple[pa.Table, tuple[int, int]]:
    """What ``run`` does with the rows that there are: the same, as they are a whole here."""
    rows = sources.read(spark, sources.source(f"csv:{place}"), QUERY)
    watch = Watch(sources.start(run(rows, QUERY), sources.sink("memory:"), lambda *_: None, once=True))
    watch.query.awaitTermination(300)
    progress = watch.poll()
    watch.raise_failure()
    # The stream's rows as they were read, which close every window once they are no stream any more.
    got: list[pa.Table] = []
    sources.start(rows, sources.sink("memory:"), lambda _, part: got.append(part), once=True).awaitTermination(300)
    table = pa.concat_tables(got)
    static = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    return run(static, QUERY).toArrow(), (progress.seen, progress.invalid)


def in_order(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.to_pylist()
    return sorted(rows, key=lambda row: (row["window_end"], str(row["city"]), row["rank"]))


@pytest.mark.parametrize("name", ALIKE)
def test_both_read_alike(name: str, spark: SparkSession, tmp_path: Path) -> None:
    place = written([*ALIKE[name]], tmp_path)
    (engine, counts), (stream, again) = with_top(place), with_run(spark, place)
    assert in_order(engine) == in_order(stream) and engine.num_rows
    assert counts == again
    assert [str(kind) for kind in engine.schema.types] == [str(kind) for kind in stream.schema.types]


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_alike(name: str, spark: SparkSession, tmp_path: Path) -> None:
    texts, sentence = REFUSED[name]
    place = written([*texts], tmp_path)
    with pytest.raises(SkybandError) as engine:
        with_top(place)
    with pytest.raises(SkybandError) as stream:
        sources.read(spark, sources.source(f"csv:{place}"), QUERY)
    assert sentence in str(engine.value)
    assert str(engine.value) == str(stream.value)


def test_nothing_to_read(spark: SparkSession, tmp_path: Path) -> None:
    place = written([""], tmp_path)
    with pytest.raises(SkybandError, match="is empty: its first row must name its columns"):
        with_top(place)
    with pytest.raises(SkybandError, match="there are no csv files to take the columns from"):
        sources.read(spark, sources.source(f"csv:{place}"), QUERY)


def test_a_file_that_comes_later_and_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    """The stream ends, and says where; with the file put right it goes on from its checkpoint."""
    (tmp_path / "in").mkdir()
    place = written([f"ts,x,city\n{T}1,1,a\n"], tmp_path / "in")
    rows = sources.read(spark, sources.source(f"csv:{place}"), QUERY)
    got: list[pa.Table] = []

    def go_on() -> None:
        sink = sources.sink("memory:")
        stream = sources.start(rows, sink, lambda _, part: got.append(part), checkpoint=f"{tmp_path}/state", once=True)
        watch = Watch(stream)
        while watch.running:
            stream.exception()
        watch.raise_failure()

    go_on()
    (tmp_path / "in" / "later.csv").write_text(f"ts,x,city\n{T}2,2,a\n{T}3,many,a\n")
    with pytest.raises(SkybandError, match=r"later.csv, row 3 \(the header is row 1\): x = 'many' does not fit"):
        go_on()
    (tmp_path / "in" / "later.csv").write_text(f"ts,x,city\n{T}2,2,a\n{T}3,3,a\n")
    go_on()
    assert pa.concat_tables(got)["x"].to_pylist() == [1, 2, 3]
