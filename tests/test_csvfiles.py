"""The one reader of CSV: types, NULLs, and what it refuses, with the file and the row."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skyband.csvfiles import File, reader, times
from skyband.errors import SkybandError


def read(*texts: str | bytes, delimiter: str = ",", time: str | None = None) -> pa.Table:
    """All rows of files with these texts."""
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    files = [File(f"{number}.csv", text) for number, text in enumerate(raw)]
    found = reader(files, delimiter, time)
    return pa.Table.from_batches((batch for file in files for batch in found.read(file)), found.schema)


LONG = pa.decimal128(38, 0)


def column(*values: str) -> tuple[pa.DataType, list[Any]]:
    """The type and the values of a column, each value in a file of its own; and the same if all are in one."""
    together, apart = read("\n".join(("x,y", *(f"{v},1" for v in values)))), read(*(f"x,y\n{v},1\n" for v in values))
    assert together == apart
    return together.schema.field("x").type, together["x"].to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "", "-2"], pa.int64(), [1, None, -2]),
        (["1", "NA", "1.5", "nan", "inf"], pa.float64(), [1.0, None, 1.5, None, float("inf")]),
        (["1", "", "-2", "12345678901234567890"], LONG, [1, None, -2, 12345678901234567890]),
        (["18446744073709551615", "-9223372036854775809"], LONG, [(1 << 64) - 1, -(1 << 63) - 1]),
        (["9223372036854775807", "-9223372036854775808"], pa.int64(), [(1 << 63) - 1, -(1 << 63)]),
        (["12345678901234567890", "0.5"], pa.float64(), [1.2345678901234567e19, 0.5]),
        (["1e19", "2"], pa.float64(), [1e19, 2.0]),
        (["1" * 39, "2"], pa.float64(), [float("1" * 39), 2.0]),
        (["12345678901234567890", "x"], pa.string(), ["12345678901234567890", "x"]),
        (["1.0", "2.0"], pa.float64(), [1.0, 2.0]),
        (["true", "", "false"], pa.bool_(), [True, None, False]),
        (["2024-01-01", "2024-01-02"], pa.date32(), [date(2024, 1, 1), date(2024, 1, 2)]),
        (["2024-01-01", "2024-01-01 10:00"], pa.timestamp("us"), [datetime(2024, 1, 1), datetime(2024, 1, 1, 10)]),
        (["2024-01-01 00:00:00", "2024-01-01 00:00:00.25"], pa.timestamp("us"),
         [datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 250_000)]),
        (["7", "", "seven", "NA"], pa.string(), ["7", None, "seven", "NA"]),
        (["7", "2024-01-01"], pa.string(), ["7", "2024-01-01"]),
        (["a", '""', ""], pa.string(), ["a", None, None]),
        (['"a ""b"",\nc"', "\\"], pa.string(), ['a "b",\nc', "\\"]),
        (["", ""], pa.string(), [None, None]),
        (["10:30:00", ""], pa.string(), ["10:30:00", None]),
    ],
)  # fmt: skip
def test_types_fit_all_values(values: list[str], kind: pa.DataType, expected: list[Any]) -> None:
    assert column(*values) == (kind, expected)


def test_types_fit_values_far_below() -> None:
    """Far behind what Arrow looks at to guess a type."""
    rows = "".join(f"{i},,{'x' * 90}\n" for i in range(30_000))
    table = read(f"a,b,c\n{rows}0.5,true,\n")
    assert [str(field.type) for field in table.schema] == ["double", "bool", "string"]
    assert table.num_rows == 30_001 and table["a"][-1].as_py() == 0.5


def test_long_whole_numbers_far_below_and_in_later_files() -> None:
    rows = "".join(f"{i},{'x' * 90}\n" for i in range(30_000))
    table = read(f"a,b\n{rows}12345678901234567890,\n")
    assert table.schema.field("a").type == LONG and table["a"][-1].as_py() == 12345678901234567890
    small, long = File("small.csv", b"x\n1\n"), File("long.csv", b"x\n12345678901234567890\n")
    with pytest.raises(SkybandError, match=r"long.csv, row 2 .*: x = '12345678901234567890' does not fit the .* int64"):
        list(reader([small]).read(long))
    with pytest.raises(SkybandError, match=r"half.csv, row 2 .*: x = .* does not fit the type .* decimal128\(38, 0\)"):
        list(reader([long]).read(File("half.csv", b"x\n0.5\n")))


def test_files_of_a_table() -> None:
    assert read("x,y\n1,a\n", "y,x\nb,2\n", "\ufeffx,y\n").to_pylist() == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]
    assert read("", "x,y\n1,a\n", "").to_pylist() == [{"x": 1, "y": "a"}]
    assert read("x;y\n1;a,b\n", delimiter=";").to_pylist() == [{"x": 1, "y": "a,b"}]
    files = [File(f"{day}.csv", b"x\n1\n", f"day={day}/zone=B/{day}.csv") for day in (1, 2)]
    found = reader(files)
    rows = [row for file in files for batch in found.read(file) for row in batch.to_pylist()]
    assert rows == [{"x": 1, "day": 1, "zone": "B"}, {"x": 1, "day": 2, "zone": "B"}]
    with pytest.raises(SkybandError, match="its directories give the columns"):
        list(found.read(File("a.csv", b"x\n1\n", "a.csv")))


def test_compressed(tmp_path: Path) -> None:
    with pa.output_stream(f"{tmp_path}/a.csv.gz") as file:
        file.write(b"x\n1\n")
    file = File("a", f"{tmp_path}/a.csv.gz")
    assert [row for batch in reader([file]).read(file) for row in batch.to_pylist()] == [{"x": 1}]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["x,y\n1,2\n3\n"], "0.csv, row 3 (the header is row 1): 1 fields where the header has 2: 3"),
        (["x,y\n1,2,3\n"], "0.csv, row 2 (the header is row 1): 3 fields where the header has 2: 1,2,3"),
        (["x,y\n1,2\n", "x\n1\n"], "1.csv has no column 'y'; the other files have x, y"),
        (["x\n1\n", "x,y\n1,2\n"], "1.csv has a column 'y'; the other files have x"),
        (["x,x\n1,2\n"], "has 'x' twice"),
        ([""], "0.csv is empty: its first row must name its columns"),
        ([b"x,y\n1,\xff\n"], "the text is not UTF-8"),
    ],
)
def test_refused(texts: list[str | bytes], sentence: str) -> None:
    with pytest.raises(SkybandError) as caught:
        read(*texts)
    assert sentence in str(caught.value)


def test_a_later_file_keeps_the_types() -> None:
    found = reader([File("a.csv", b"x,y\n1,a\n")])
    with pytest.raises(SkybandError) as caught:
        list(found.read(File("b.csv", b"x,y\n1,a\n1.5,b\n")))
    assert str(caught.value) == (
        "b.csv, row 3 (the header is row 1): x = '1.5' does not fit the type of the column, int64"
    )


def test_event_times_are_read_one_by_one() -> None:
    """A text that is no time is NULL, so that its row is invalid; a column without a time is refused."""
    table = read("ts,x\nsoon,1\n2024-01-01 00:00:01,2\n,3\n2024-01-01T00:00:00Z,4\n", time="ts")
    assert table["ts"].to_pylist() == [None, datetime(2024, 1, 1, 0, 0, 1), None, None]
    with pytest.raises(SkybandError, match="ts = 'soon' is not a time"):
        read("ts,x\nsoon,1\n,2\n", time="ts")
    assert times(pa.array(["2024-01-01"]), pa.timestamp("us")).to_pylist() == [datetime(2024, 1, 1)]
