"""``skyband run``: answers a query over a stream, on Spark."""

from enum import StrEnum
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from skyband.cli import interrupt
from skyband.cli.query import Delimiter, Overwrite, explained, is_everything, takes_query
from skyband.cli.stream import Verbose, follow, spark_session, summary
from skyband.cli.terminal import Answers, err, left_out, out, stop_signal
from skyband.errors import QueryError, SkybandError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.query import Query

EXAMPLES = """[bold]Examples[/]

[dim]# rows that Spark makes by itself; Ctrl-C ends it[/]

skyband run --from rate: --on timestamp --order-by "value % 1000 DESC" \\
  -k 3 --last "10 seconds" --every "1 second"

[dim]# numbers from a socket, such as that of nc -lk 9999, every 5 seconds[/]

skyband run --from socket:localhost:9999 --trigger "5 seconds" \\
  --on timestamp --order-by "CAST(value AS DOUBLE) DESC" -k 3 \\
  --last "1 minute" --emit latest

[dim]# the files of one directory into another, here those of skyband demo[/]

skyband demo --seconds 10 --out demo

skyband run --from parquet:demo/trades --to parquet:demo/answer --once \\
  -k 5 --order-by "price * volume DESC" --last "10 minutes" \\
  --every "1 minute" --late "2 seconds" --partition-by symbol

[dim]# all of an answer shown at the end, with a checkpoint to go on from[/]

skyband run --from parquet:demo/trades --to memory: --once \\
  --checkpoint demo/state -k 5 --order-by "price * volume DESC" \\
  --last "10 minutes" --every "1 minute"

[dim]# the answer as CSV; each time this begins again[/]

skyband run --from parquet:demo/trades --to csv:demo/csv --overwrite \\
  --once -k 5 --order-by "price * volume DESC" --last "10 minutes" \\
  --every "1 minute"

[dim]# what would be done, and why[/]

skyband run --from rate: --explain --on timestamp --last "1 minute" \\
  --every "1 second" --order-by "value % 1000 DESC"
"""

CSV = """[bold]CSV[/] is read by the rules of [bold]skyband top[/]: the first row names the columns; an empty field
is NULL; types are those that all values fit; a broken row ends the stream, with its file
and row. The page docs/spark.md has all of it.
"""


class Emit(StrEnum):
    """What the answer tells; see :func:`skyband.spark.run`."""

    final = "final"
    changes = "changes"
    latest = "latest"


Source = Annotated[str, Option("--from", metavar="SOURCE", help="parquet:PATH, csv:PATH or json:PATH (a directory, "
                               "file or glob), rate:, rate:ROWS a second, or socket:HOST:PORT.")]  # fmt: skip
To = Annotated[
    str,
    Option(
        metavar="SINK",
        help="console, memory: (shown when the stream ends), or a directory: parquet:PATH, "
        "csv:PATH or json:PATH. A directory that has files is refused, unless --checkpoint goes on with it.",
    ),
]
Checkpoint = Annotated[str | None, Option(metavar="DIR", help="The directory from which to go on after a stop; by "
                                          "default PATH/_checkpoint if the answer goes to files.")]  # fmt: skip
Trigger = Annotated[
    str | None, Option(metavar="TIME", help='The time between micro-batches: "10 seconds"; none by default.')
]
Once = Annotated[bool, Option("--once", help="Take the rows that are there now, then stop. Windows that are still open "
                              "wait in the checkpoint for later rows.")]  # fmt: skip
Wanted = Annotated[
    Emit,
    Option(
        metavar="WHAT",
        help="final: each window once. changes: who enters and who leaves. latest: the ranking as it stands after "
        "each micro-batch.",
    ),
]
Files = Annotated[int | None, Option(metavar="N", min=1, help="How many new files a micro-batch takes at most.")]
Master = Annotated[
    str, Option(metavar="URL", help="Where Spark runs: all cores of this machine, or spark://HOST:7077.")
]
Explain = Annotated[bool, Option("--explain", help="Show what would be done, and why; then stop.")]


@takes_query
def run(
    query: "Query",
    ctx: typer.Context,
    source: Source,
    to: To = "console",
    checkpoint: Checkpoint = None,
    trigger: Trigger = None,
    once: Once = False,
    emit: Wanted = Emit.final,
    max_files_per_trigger: Files = None,
    master: Master = "local[*]",
    overwrite: Overwrite = False,
    delimiter: Delimiter = None,
    verbose: Verbose = False,
    explain: Explain = False,
) -> None:
    """Answer a query over a stream, on Spark.

    The answer has a row for each rank of each window. If it does not go to
    a terminal, its values are separated by tabs. An answer in files goes on
    where it stopped; --overwrite begins anew, and removes the old answer
    and its checkpoint.
    """
    from skyband.query.windows import duration

    if explain:
        out.print(explained(query), markup=False, soft_wrap=True)
        return
    if is_everything(query):
        raise QueryError('a stream needs a window: say how far it reaches with --last, such as "10 minutes" or 1000')
    if trigger is not None:
        duration(trigger, "trigger")
    from skyband.cli import places
    from skyband.cli.files import separator
    from skyband.spark import run as put
    from skyband.spark import sources
    from skyband.spark.watch import Watch

    place, sink = sources.source(source), sources.sink(to)
    if delimiter is not None and place.kind != "csv":
        raise SkybandError(f"--delimiter is for CSV, not for {place.kind}")
    places.check(place, sink, checkpoint, overwrite)
    coming: SimpleQueue[pa.Table] = SimpleQueue()
    answers = Answers(query, at_end=sink.kind == "memory")

    def show() -> None:
        try:
            while True:
                answers.add(coming.get_nowait())
        except Empty:
            pass

    with spark_session(ctx, master, query, verbose) as spark:
        rows = sources.read(spark, place, query, max_files_per_trigger, separator(delimiter))
        answer = put(rows, query, emit.value)
        mode: Literal["append", "update"] = "update" if emit is Emit.latest else "append"
        if overwrite:
            places.clear(sink, checkpoint)
        began = monotonic()
        stream = sources.start(answer, sink, lambda _, rows: coming.put(rows), mode, checkpoint, trigger, once)
        watch = Watch(stream)
        with stop_signal() as stop:
            try:
                follow(watch, stop, show)
            except SkybandError as error:  # which may be as short as "Connection refused"
                raise SkybandError(f"the stream from {source} ended: {error}") from error
        took = monotonic() - began
    answers.end()
    err.print(("interrupted: " if interrupt.heard() else "") + summary(watch.progress, took), soft_wrap=True)
    if not interrupt.heard():
        left_out(watch.progress.late, watch.progress.invalid)
