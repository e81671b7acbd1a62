"""What the experiments share: a table replayed as a stream on Spark, and its ranking shown as it changes."""

import argparse
import tempfile
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

import skyband as sb
from skyband.query import Query
from skyband.spark import session
from skyband.spark.testing import files, write_batches


def options(description: str | None, rows: int) -> argparse.Namespace:
    """The options that every experiment has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a Parquet file; generated rows without it")
    parser.add_argument("--rows", type=int, default=rows, help="how many of its rows")
    parser.add_argument("--batches", type=int, default=5, help="in how many micro-batches")
    return parser.parse_args()


def in_microseconds(table: pa.Table) -> pa.Table:
    """The same with event times that Spark can read."""
    place = table.column_names.index("ts")
    return table.set_column(place, "ts", table["ts"].cast(pa.timestamp("us", "UTC"), safe=False))


def watch(table: pa.Table, query: Query, batches: int) -> None:
    """Replays a table on Spark and prints, after every micro-batch, the newest ranking."""
    console = Console()
    console.print(sb.explain(query), style="dim")
    console.print("Starting Spark", style="dim")
    spark = session("skyband experiment", "local[*]")
    with tempfile.TemporaryDirectory(prefix="skyband-", ignore_cleanup_errors=True) as place:
        size = -(-table.num_rows // batches)
        write_batches([table.slice(i, size) for i in range(0, table.num_rows, size)], f"{place}/rows")
        writer = sb.spark.run(files(spark, f"{place}/rows"), query).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{place}/state")
        writer.foreachBatch(lambda frame, _: console.print(*_newest(frame.toArrow()))).start().awaitTermination()
    spark.stop()


def _newest(answer: pa.Table) -> Iterator[Table]:
    """The last window of an answer."""
    if answer.num_rows:
        end = pc.max(answer["window_end"])
        last = answer.filter(pc.equal(answer["window_end"], end)).drop_columns(["window_start", "window_end"])
        picture = Table(title=f"until {end.as_py():%d %b %H:%M:%S}", title_justify="left")
        for name in last.column_names:
            picture.add_column(name)
        for row in last.sort_by("rank").to_pylist():
            picture.add_row(*(f"{value:,.4g}" if isinstance(value, float) else str(value) for value in row.values()))
        yield picture
