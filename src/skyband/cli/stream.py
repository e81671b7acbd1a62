"""What the commands that run a stream have in common: Spark's beginning and end, and the line about how it fares."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

from skyband.cli.terminal import err, out, step
from skyband.errors import SkybandError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skyband.queries import Query
    from skyband.spark.watch import Progress, Watch

LOOK = 0.25  # seconds between two looks at a stream
_SAY = 10.0  # seconds between two lines about it where there is no terminal
_NONE_YET = "No rows yet (the first run compiles, which may take a minute)"


@contextmanager
def spark_session(ctx: typer.Context, master: str, query: "Query") -> "Iterator[SparkSession]":
    """Spark for one query, with its messages in a file that is kept, and named, only if something goes wrong."""
    from skyband.spark.quiet import quiet_session
    from skyband.spark.session import session

    app = f"skyband {ctx.info_name}"
    one_place = query.family == "objects" and not query.partition_by
    conf = {"spark.sql.shuffle.partitions": 1} if one_place else {}  # any other task would start for nothing
    if ctx.find_root().params["debug"]:
        with step(err, "Starting Spark", "a few seconds"):
            spark = session(app, master, **conf)
        try:
            yield spark
        finally:
            spark.stop()
        return
    handle, name = tempfile.mkstemp(prefix="skyband-", suffix=".log")
    os.close(handle)
    log = Path(name)
    try:
        with step(err, "Starting Spark", "a few seconds"):
            spark = quiet_session(app, master, log, **conf)
        try:
            yield spark
        finally:
            spark.stop()
    except Exception as error:
        found_here = isinstance(error, SkybandError) and error.__cause__ is None  # by a check, not by Spark
        if found_here or isinstance(error, BrokenPipeError):  # or nobody reads the answer any more
            log.unlink()
        else:
            err.print(f"[dim]Spark's own messages are in {escape(name)}[/]")
        raise
    except BaseException:
        log.unlink()
        raise
    log.unlink()


def follow(watch: "Watch", stop: threading.Event, each: Callable[[], None]) -> None:
    """Say how a stream fares until it ends, or until it is told to; calls ``each`` at every look."""
    from skyband.dashboard import status

    with _line() as say:
        while watch.running and not stop.wait(LOOK):
            each()
            progress = watch.poll()
            say(status(progress) if progress.seen else _NONE_YET)
    finish(watch, stop)
    each()


def finish(watch: "Watch", stop: threading.Event) -> None:
    """End a stream, and take in its last reports; a failure is raised unless the user was ending it anyway.

    Ctrl-C reaches the Python workers too, which may fail before the stream has been told to stop.
    """
    watch.query.stop()
    watch.poll()
    if not stop.is_set():
        watch.raise_failure()


def summary(progress: "Progress", seconds: float) -> str:
    """What a stream has done, in a line."""
    from skyband.dashboard import size

    rate = progress.seen / seconds if seconds else 0.0
    return (
        f"{progress.seen:,} rows in {seconds:.1f} s ({rate:,.0f} rows/s), {progress.late:,} late, "
        f"{progress.invalid:,} invalid; state {size(progress.bytes)} for {progress.candidates:,} rows"
    )


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """A line that is always the newest one: on the terminal, or now and then where errors go."""
    if not err.is_terminal:
        yield _now_and_then()
        return
    # One console must do both where rows are shown on the same terminal, or the line would be left between them.
    console = out if out.is_terminal else err
    spinner = Spinner("dots", "waiting for rows")
    with Live(spinner, console=console, transient=True, redirect_stdout=out.is_terminal, refresh_per_second=8):
        yield lambda text: spinner.update(text=text)


def _now_and_then() -> Callable[[str], None]:
    due = monotonic() + _SAY

    def say(text: str) -> None:
        nonlocal due
        if monotonic() >= due:
            err.print(text)
            due += _SAY

    return say
