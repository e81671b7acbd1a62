"""``skyband top``: a query put to a file, in this process."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from skyband.cli.query import explained, is_everything, takes_query
from skyband.cli.terminal import Answers, err, out
from skyband.errors import SkybandError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.queries import Query

EXAMPLES = """[bold]Examples[/] (the trades are those that [bold]skyband demo --out demo[/] leaves)

[dim]# the five largest of all[/]

skyband top demo/trades -k 5 --order-by "price * volume DESC"

[dim]# the largest of each symbol[/]

skyband top demo/trades -k 1 --order-by "price * volume DESC" \\
  --partition-by symbol --select "price, volume"

[dim]# those of the last ten minutes, every minute, into a file[/]

skyband top demo/trades -k 5 --order-by "price * volume DESC" \\
  --last "10 minutes" --every "1 minute" --late "2 seconds" \\
  --to csv:demo/largest.csv
"""

_KINDS = ("parquet", "csv", "json")
_SUFFIXES = {f".{kind}": kind for kind in _KINDS} | {".jsonl": "json", ".ndjson": "json"}

Write = Callable[["pa.Table"], None]


@takes_query
def top(
    query: "Query",
    file: Annotated[str, Argument(help="Parquet, CSV or JSON lines, or a directory of them; csv:PATH if need be.")],
    to: Annotated[str, Option(metavar="SINK", help="console, parquet:PATH, csv:PATH or json:PATH.")] = "console",
    explain: Annotated[bool, Option("--explain", help="Show what would be done, and why; then stop.")] = False,
) -> None:
    """Put a query to a file, without Spark.

    Without --last, the best rows of the whole file. With it, the rows are
    taken for a stream, in their order.
    """
    from skyband.monitor import Monitor

    if explain:
        out.print(explained(query), markup=False, soft_wrap=True)
        return
    monitor = Monitor(query)
    batches = _read(*_found(file), query)
    with _writer(to, query) as write:
        with err.status("Reading (the first run compiles, which may take a minute) …") as status:
            for batch in batches:
                rows = monitor.push(batch)
                status.update(f"{monitor.stats.seen:,} rows …")
                if not is_everything(query):
                    write(rows)
        write(monitor.top() if is_everything(query) else monitor.flush())
    stats = monitor.stats
    err.print(f"{stats.seen:,} rows, {stats.late:,} late, {stats.invalid:,} invalid", style="dim")
    if stats.late:
        err.print("Rows that come later than --late allows are left out.", style="dim")


def _found(file: str) -> tuple[Path, str]:
    """A path, and what is there."""
    kind, _, rest = file.partition(":")
    path = Path(rest if kind in _KINDS else file)
    if not path.exists():
        raise SkybandError(f"there is nothing at {path}")
    if kind in _KINDS:
        return path, kind
    names = sorted(path.rglob("[!._]*.*")) if path.is_dir() else [path]
    known = [_SUFFIXES[name.suffix] for name in names if name.suffix in _SUFFIXES]
    if not known:
        raise SkybandError(f"{path} does not tell what it holds: write parquet:{path}, csv:{path} or json:{path}")
    return path, known[0]


def _read(path: Path, kind: str, query: "Query") -> "Iterator[pa.Table]":
    """The rows of a file, batch by batch, after an empty batch that shows the columns."""
    import pyarrow as pa
    from pyarrow import dataset

    try:
        rows = dataset.dataset(str(path), format=kind, partitioning="hive" if path.is_dir() else None)
        yield _timed(rows.schema.empty_table(), query)
        for batch in rows.to_batches():
            yield _timed(pa.Table.from_batches([batch]), query)
    except pa.ArrowException as error:
        raise SkybandError(f"{path} cannot be read as {kind}: {error}") from error


def _timed(table: "pa.Table", query: "Query") -> "pa.Table":
    """The rows with their event time as a timestamp, if it is text."""
    import pyarrow as pa

    name = query.window.on
    if not query.window.time or name not in table.column_names:
        return table
    column = table[name]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return table
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):  # times without a zone, and with one
        try:
            return table.set_column(table.column_names.index(name), name, column.cast(kind))
        except pa.ArrowInvalid as error:
            wrong = re.search(r"string: ('.*?')", str(error))
    raise SkybandError(f"{name} = {wrong[1] if wrong else '?'} is not a time; write times as 2024-12-31 23:59:59.5, or "
                       "name the column that has them with --on")  # fmt: skip


@contextmanager
def _writer(to: str, query: "Query") -> Iterator[Write]:
    """A function that takes the rows of the answer as they come."""
    kind, _, rest = to.partition(":")
    if to == "console":
        answers = Answers(query, at_end=out.is_terminal)
        yield answers.add
        answers.end()
    elif kind == "json" and rest:
        with open(rest, "w", encoding="utf-8") as file:
            yield lambda rows: file.writelines(_json_lines(rows))
    elif kind in ("parquet", "csv") and rest:
        with _columns_writer(kind, rest) as write:
            yield write
    else:
        raise SkybandError(f"--to {to!r} is unknown; it is console, parquet:PATH, csv:PATH or json:PATH")


@contextmanager
def _columns_writer(kind: str, path: str) -> Iterator[Write]:
    from pyarrow import csv, parquet

    make = parquet.ParquetWriter if kind == "parquet" else csv.CSVWriter
    writer = None

    def write(rows: "pa.Table") -> None:
        nonlocal writer
        writer = writer or make(path, rows.schema)
        writer.write_table(rows)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _json_lines(rows: "pa.Table") -> Iterator[str]:
    import json

    for row in rows.to_pylist():
        yield json.dumps(row, default=str, ensure_ascii=False) + "\n"
