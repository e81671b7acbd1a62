"""``skyband demo``: shows a stream of trades being ranked on Spark."""

import os
import shlex
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape
from typer import Option

from skyband.cli.run import Master
from skyband.cli.stream import LOOK, Verbose, finish, spark_session, summary
from skyband.cli.terminal import err, out, step, stop_signal
from skyband.errors import SkybandError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.cli.dashboard import Board, Ranking
    from skyband.spark.watch import Watch

EXAMPLES = """[bold]Examples[/]

skyband demo

skyband demo --seconds 10 --out demo

[dim]# and then, for instance[/]

skyband top demo/trades -k 3 --order-by "price * volume DESC" \\
  --partition-by symbol --select "price, volume"
"""

SPEED = 60  # times the clock: a minute of event time in a second
_PATIENCE = 20.0  # seconds that the last rows may take to be ranked


def demo(
    ctx: typer.Context,
    seconds: Annotated[float, Option(min=1, help="How long the stream runs.")] = 30,
    rate: Annotated[int, Option(min=100, help="Trades a second.")] = 50_000,
    seed: Annotated[int, Option(help="Another seed gives other trades.")] = 0,
    directory: Annotated[
        Path | None, Option("--out", help="A directory for trades and rankings; by default a temporary one.")
    ] = None,
    master: Master = "local[*]",
    verbose: Verbose = False,
) -> None:
    """Watch the ten largest trades of the last ten minutes change, on Spark.

    Trades of an invented exchange come as small Parquet files at a steady
    pace: some out of order, some far too late, some without a price. Event
    time runs 60 times faster than the clock: a window closes every second.
    """
    from skyband.cli.dashboard import Board
    from skyband.datasets.replay import DISORDER, Replay
    from skyband.query import TopK
    from skyband.query.windows import last
    from skyband.spark import run, sources
    from skyband.spark.watch import Progress, Watch

    query = TopK(
        k=10,
        order_by="price * volume DESC",
        window=last("10 minutes", every="1 minute", late=DISORDER),
        select=("id", "ts", "symbol", "price", "volume"),
    )
    directory = _made(directory)
    board = Board("The 10 largest trades of the last 10 minutes, every minute", query.k, SPEED, seconds, Progress())
    answers = _Answers(directory / "rankings")
    replay = Replay(directory / "trades", rate, SPEED, seed)
    out.print(
        f"[bold]The 10 largest trades of the last 10 minutes[/], for {seconds:g} seconds: {rate:,} trades a second, "
        f"and event time runs {SPEED} times faster than the clock."
    )
    with spark_session(ctx, master, query, verbose) as spark:
        with step(err, "Making the first trades"):
            replay.write()
        with step(err, "Compiling", "about a minute the very first time"):
            run(spark.read.parquet(str(replay.directory)), query).toArrow()
        source = sources.source(f"parquet:{replay.directory}")
        answer = run(sources.read(spark, source, query), query)
        watch = Watch(sources.start(answer, sources.sink("memory:"), answers.take))
        with stop_signal() as stop:
            with step(err, "Warming up"):
                while watch.running and watch.poll().seen < replay.rows and not stop.wait(LOOK):
                    pass
            replay.start()
            began = monotonic()
            with _view(board, watch, answers) as look:
                while watch.running and (now := monotonic() - began) < seconds and not stop.wait(LOOK):
                    look(now)
                replay.stop()
                while watch.running and watch.poll().seen < replay.rows and not stop.wait(LOOK):
                    look(monotonic() - began)
                    if monotonic() - began > seconds + _PATIENCE:
                        break
            finish(watch, stop)
            took = monotonic() - began
    _report(board, watch, took, directory)


class _Answers:
    """Writes each micro-batch of the answer to a file, and hands its windows to the display.

    A micro-batch that comes again after a failure writes the same file again.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._coming: deque[tuple[int, Ranking]] = deque()

    def take(self, number: int, rows: "pa.Table") -> None:
        from pyarrow import parquet

        from skyband.cli.dashboard import rankings

        if not rows.num_rows:
            return
        place = self.directory / f"batch={number}"
        place.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, place / ".rows.parquet")
        os.replace(place / ".rows.parquet", place / "rows.parquet")  # nobody reads half a file
        for ranking in rankings(rows):
            self._coming.append((number, ranking))

    def windows(self, newest: int, most: int | None = None) -> "Iterator[Ranking]":
        """The windows not returned before, of the micro-batches up to ``newest``; or the first few of them."""
        while self._coming and self._coming[0][0] <= newest and most != 0:
            yield self._coming.popleft()[1]
            most = None if most is None else most - 1


@contextmanager
def _view(board: "Board", watch: "Watch", answers: _Answers) -> Iterator[Callable[[float], None]]:
    """A function that shows how things stand; it is given the seconds since the beginning.

    A terminal shows one window at a time, so that windows that closed together are all seen. Without a terminal, each
    window is a line.
    """
    from skyband.cli.dashboard import line

    screen = Live(board, console=out, screen=True, auto_refresh=False) if out.is_terminal else None

    def look(elapsed: float, most: int | None = 1 if screen else None) -> None:
        board.update(watch.poll(), elapsed)
        for window in answers.windows(board.progress.newest, most):
            board.show(window)
            if screen is None:
                out.print(line(window, board.progress), markup=False, soft_wrap=True)
        if screen is not None:
            screen.refresh()

    with screen or nullcontext():
        yield look
        look(board.elapsed, None)
    if screen is not None:
        board.ended = True
        out.print(board)  # the screen is gone, and the last ranking with it


def _made(directory: Path | None) -> Path:
    """Makes the directory of the demonstration, and refuses one with other files: Spark would read them too."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="skyband-demo-"))
    if directory.exists() and any(directory.iterdir()):
        raise SkybandError(f"--out {directory} is not empty; name a directory that is, or one that does not exist yet")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _report(board: "Board", watch: "Watch", took: float, directory: Path) -> None:
    place = escape(str(directory))
    out.print(f"[bold]{board.windows}[/] windows, {summary(watch.progress, took)}", soft_wrap=True)
    out.print(f"Their rankings are in {place}/rankings, the trades in {place}/trades.", soft_wrap=True)
    out.print("Put another query to the trades, without Spark:", style="dim")
    program, trades = _program(), shlex.quote(str(directory / "trades"))
    command = f'{program} top {trades} -k 1 --order-by "price * volume DESC" --partition-by symbol'
    out.print(f"  {escape(command)}", soft_wrap=True)
    out.print("Put one to a stream of your own:", style="dim")
    out.print(f"  {escape(program)} run --help", soft_wrap=True)


def _program() -> str:
    """How to call this program in a shell: with its path, if it is in an environment that is not activated."""
    if shutil.which("skyband"):
        return "skyband"
    script = Path(sys.executable).with_name("skyband")
    return shlex.quote(os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script))
