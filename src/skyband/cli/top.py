"""``skyband top``: answers a query over files, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from skyband.cli.query import Delimiter, Overwrite, explained, is_everything, takes_query
from skyband.cli.terminal import Answers, err, left_out, line, out

if TYPE_CHECKING:
    from skyband.cli.output import Target, Write
    from skyband.engine.monitor import Stats
    from skyband.query import Query

EXAMPLES = """[bold]Examples[/] (the trades are those that [bold]skyband demo --out demo[/] leaves)

[dim]# the five largest of all[/]

skyband top demo/trades -k 5 --order-by "price * volume DESC"

[dim]# the largest of each symbol, of some of the files[/]

skyband top "demo/trades/*0.parquet" -k 1 --order-by "price * volume DESC" \\
  --partition-by symbol --select "price, volume"

[dim]# those of the last ten minutes, every minute, into a file[/]

skyband top demo/trades -k 5 --order-by "price * volume DESC" \\
  --last "10 minutes" --every "1 minute" --late "2 seconds" \\
  --to demo/largest.csv

[dim]# the largest of those, from standard input; and replace a file[/]

cat demo/largest.csv | skyband top - -k 3 --order-by "score DESC" \\
  --select "symbol, price, volume" --to demo/largest.csv --overwrite
"""

CSV = """[bold]CSV[/] is read as by [bold]skyband run[/]: the first row names the columns; an empty field is NULL; types
are those that all values fit; a row with another number of fields stops the
program, which names file and row. The page docs/spark.md has all of it.
"""


@takes_query
def top(
    query: "Query",
    files: Annotated[list[str], Argument(metavar="FILE", help="Parquet, CSV or JSON lines: files, directories or "
                     "globs; - for standard input; csv:PATH if the name does not tell the format.")],
    to: Annotated[str, Option(metavar="SINK", help="console, or a file: its suffix tells the format, or csv:PATH.")
                  ] = "console",
    overwrite: Overwrite = False,
    delimiter: Delimiter = None,
    explain: Annotated[bool, Option("--explain", help="Show what would be done, and why; then stop.")] = False,
) -> None:  # fmt: skip
    """Answer a query over files, without Spark.

    Without --last, the answer is the best rows of all. With it, the rows
    are taken as a stream, in their order. A file that is written appears
    under its name when it is complete.
    """
    if explain:
        out.print(explained(query), markup=False, soft_wrap=True)
        return
    from skyband.cli.files import batches, found
    from skyband.cli.output import check, target
    from skyband.engine.monitor import Monitor

    monitor = Monitor(query)
    place = target(to)
    with found(files) as groups:
        if place is not None:
            check(place, groups, overwrite)
        with _writer(place, query) as write:
            with line("Reading (the first run compiles, which may take a minute) …") as say:
                for batch in batches(groups, query, delimiter):
                    rows = monitor.push(batch)
                    if batch.num_rows:
                        say(_counts(monitor.stats))
                    if not is_everything(query):
                        write(rows)
            write(monitor.top() if is_everything(query) else monitor.flush())
    err.print(_counts(monitor.stats), style="dim")
    left_out(monitor.stats.late, monitor.stats.invalid)


def _counts(stats: "Stats") -> str:
    return f"{stats.seen:,} rows, {stats.late:,} late, {stats.invalid:,} invalid"


@contextmanager
def _writer(place: "Target | None", query: "Query") -> "Iterator[Write]":
    """A function that takes the rows of the answer as they come."""
    if place is not None:
        from skyband.cli.output import writer

        with writer(place) as write:
            yield write
        return
    answers = Answers(query, at_end=out.is_terminal)
    yield answers.add
    answers.end()
