"""What the commands that run a stream share: starting and stopping Spark, and the line about the stream's progress."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from skyband.cli import interrupt
from skyband.cli.terminal import err, line, step
from skyband.errors import SkybandError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skyband.query import Query
    from skyband.spark.watch import Progress, Watch

Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show what Spark and its workers say.")]

LOOK = 0.25  # seconds between two looks at a stream
_NONE_YET = "No rows yet (the first run compiles, which may take a minute)"


@contextmanager
def spark_session(ctx: typer.Context, master: str, query: "Query", verbose: bool) -> "Iterator[SparkSession]":
    """A Spark session for one query.

    Its messages go to standard error if that is wanted, else to a file, which is named and kept only if Spark fails.
    """
    from skyband import families
    from skyband.spark.quiet import quiet_session
    from skyband.spark.session import session

    app = f"skyband {ctx.info_name}"
    one_place = not query.partition_by and not families.of(query).splits(query, alone=True)
    conf = {"spark.sql.shuffle.partitions": 1} if one_place else {}  # any other task would start for nothing
    if verbose or ctx.find_root().params["debug"]:
        with step(err, "Starting Spark", "a few seconds"):
            spark = session(app, master, **conf)
        try:
            yield spark
        finally:
            spark.stop()
        return
    with _log() as log:
        with step(err, "Starting Spark", "a few seconds"):
            spark = quiet_session(app, master, log, **conf)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _log() -> Iterator[Path]:
    """A file for Spark's messages. It is kept only if Spark fails, not if a check of ours does or the user stops."""
    handle, name = tempfile.mkstemp(prefix="skyband-", suffix=".log")
    os.close(handle)
    log, kept = Path(name), False
    with interrupt.undoing(lambda: None if kept else log.unlink()):
        try:
            yield log
        except Exception as error:
            found_here = isinstance(error, SkybandError) and error.__cause__ is None  # by a check, not by Spark
            kept = not found_here and not isinstance(error, BrokenPipeError) and not interrupt.heard()
            if kept:
                err.print(f"[dim]Spark's own messages are in {escape(name)}[/]")
            raise


def follow(watch: "Watch", stop: threading.Event, each: Callable[[], None]) -> None:
    """Shows the progress of a stream until it ends, or until it is told to; calls ``each`` each time."""
    from skyband.cli.dashboard import status

    with line("waiting for rows") as say:
        while watch.running and not stop.wait(LOOK):
            each()
            progress = watch.poll()
            say(status(progress) if progress.seen else _NONE_YET)
    finish(watch, stop)
    each()


def finish(watch: "Watch", stop: threading.Event) -> None:
    """Ends a stream, and reads its last reports; raises its failure, unless the user was ending it anyway."""
    watch.query.stop()
    watch.poll()
    if not stop.is_set():
        watch.raise_failure()


def summary(progress: "Progress", seconds: float) -> str:
    """A line that sums up what a stream has done."""
    from skyband.cli.dashboard import size

    rate = progress.seen / seconds if seconds else 0.0
    return (
        f"{progress.seen:,} rows in {seconds:.1f} s ({rate:,.0f} rows/s), {progress.late:,} late, "
        f"{progress.invalid:,} invalid; state {size(progress.bytes)} for {progress.candidates:,} rows"
    )
