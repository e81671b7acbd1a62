"""Draws on the terminal: answers as tables, the state of a stream in a line, and the live view of the demonstration."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from skyband.spark.watch import Progress

SHOWN = 60  # rows of an answer that a terminal is given at most

_UNITS = ("B", "kB", "MB", "GB", "TB")
_BLOCKS = " ▏▎▍▌▋▊▉█"
_SPARKS = "▁▂▃▄▅▆▇█"
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta", "bright_green",
            "bright_yellow", "bright_blue", "bright_red")  # fmt: skip


# --- answers as tables ------------------------------------------------------------------------------------------------


def in_order(answer: pa.Table, partition_by: Sequence[str]) -> pa.Table:
    """The rows of an answer in the order in which people read them, since rows of several shards come mixed.

    Changes at one moment keep their order: first who left, then who entered.
    """
    names = [name for name in ("window_end", "at") if name in answer.column_names]
    names += [*partition_by, "rank"] if "rank" in answer.column_names else []
    return answer.sort_by([(name, "ascending") for name in names]) if answer.num_rows else answer


def as_table(answer: pa.Table) -> Table:
    """The newest rows of an answer as a table, with a line between windows; the start of windows is not shown."""
    answer = answer.slice(max(0, answer.num_rows - SHOWN))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), show_edge=False)
    columns = []
    for name in answer.column_names:
        if name != "window_start":
            kind = answer.schema.field(name).type
            right = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
            columns.append(_cells(answer[name].to_pylist()))
    windows = answer["window_end"].to_pylist() if "window_end" in answer.column_names else [None] * answer.num_rows
    for row, window, following in zip(zip(*columns, strict=True), windows, [*windows[1:], None], strict=True):
        table.add_row(*map(Text, row), end_section=window != following)
    return table


def _cells(values: list[Any]) -> list[str]:
    """A column as texts; times without the day if it is the same in all."""
    times = [value for value in values if isinstance(value, datetime)]
    if times and len({time.date() for time in times}) == 1:
        return [cell(value)[len("2024-01-01 ") :] for value in values]
    return [cell(value) for value in values]


def as_lines(answer: pa.Table, header: bool) -> Iterator[str]:
    """An answer as tab-separated values, for programs."""
    if header:
        yield "\t".join(answer.column_names)
    for row in answer.to_pylist():
        yield "\t".join(_plain(value) for value in row.values())


def cell(value: Any) -> str:
    """A value as a short text.

    >>> cell(999839.9999999999), cell(0.1 + 0.2), cell(None), cell(12300)
    ('999840', '0.3', '', '12300')
    """
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds" if not value.microsecond else "milliseconds").split("+")[0]
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value).translate({ord("\t"): " ", ord("\n"): " "})


# --- the state of a stream --------------------------------------------------------------------------------------------


def status(progress: "Progress") -> str:
    """The state of a stream in a line."""
    return (
        f"{progress.seen:,} rows, {progress.rate:,.0f} rows/s, {progress.late:,} late, {progress.invalid:,} invalid, "
        f"state {size(progress.bytes)}"
    )


def size(count: float) -> str:
    """A number of bytes in a unit that people read easily.

    >>> size(999), size(35_840), size(12_345_678)
    ('999 B', '35.8 kB', '12.3 MB')
    """
    unit = min(len(_UNITS) - 1, int(math.log(max(count, 1), 1000)))
    return f"{count / 1000**unit:.{1 if unit else 0}f} {_UNITS[unit]}"


def short(amount: float) -> str:
    """An amount of money, short enough for a narrow column.

    >>> short(6_894_702), short(95_300)
    ('6.89 M', '95.3 k')
    """
    return f"{amount / 1e6:.2f} M" if amount >= 1e6 else f"{amount / 1e3:.1f} k"


# --- the live view of the demonstration -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """The answer for one window of the trades."""

    start: datetime
    end: datetime
    rows: list[dict[str, Any]]


def rankings(answer: pa.Table) -> Iterator[Ranking]:
    """The windows of an answer, oldest first."""
    rows: list[dict[str, Any]] = []
    for row in in_order(answer, ()).to_pylist():
        if rows and rows[0]["window_end"] != row["window_end"]:
            yield Ranking(rows[0]["window_start"], rows[0]["window_end"], rows)
            rows = []
        rows.append(row)
    if rows:
        yield Ranking(rows[0]["window_start"], rows[0]["window_end"], rows)


def line(ranking: Ranking, progress: "Progress", best: int = 3) -> str:
    """A window in a line, for output that is no terminal."""
    names = "  ".join(f"{row['rank']} {row['symbol']} {short(row['score'])}" for row in ranking.rows[:best])
    return f"{ranking.end:%H:%M}  {names}  |  {status(progress)}"


@dataclass
class Board:
    """The live view: the ranking of the newest window, what has moved in it, and the state of the stream.

    Attributes:
        title: what is ranked.
        k: how many ranks there are.
        speed: how many times faster than the clock event time runs.
        seconds: how long the demonstration takes.
        progress: of the stream.
        ended: whether it is over.
    """

    title: str
    k: int
    speed: float
    seconds: float
    progress: "Progress"
    ended: bool = False
    elapsed: float = 0.0
    windows: int = 0
    ranking: Ranking | None = None
    _before: dict[int, int] = field(default_factory=dict)  # the ranks of the window before, by the trade's id
    _rates: deque[float] = field(default_factory=lambda: deque(maxlen=16))

    def show(self, ranking: Ranking) -> None:
        """The next window has closed."""
        self._before = {} if self.ranking is None else {row["id"]: row["rank"] for row in self.ranking.rows}
        self.ranking = ranking
        self.windows += 1

    def update(self, progress: "Progress", elapsed: float) -> None:
        if progress.batches > self.progress.batches:
            self._rates.append(progress.rate)
        self.progress, self.elapsed = progress, elapsed

    def __rich__(self) -> RenderableType:
        return Group(self._panel(), self._state(), *([] if self.ended else [self._bar()]))

    def _panel(self) -> Panel:
        table = Table(box=None, expand=True, header_style="dim", padding=(0, 1), pad_edge=False)
        for name, width in (("", 2), ("", 4), ("symbol", 8), ("price", 8), ("volume", 8), ("value", 9)):
            table.add_column(name, justify="left" if name == "symbol" else "right", width=width, no_wrap=True)
        table.add_column("", ratio=1, no_wrap=True)
        rows = self.ranking.rows if self.ranking else []
        best = max((row["score"] for row in rows), default=1.0)
        for row in rows:
            colour = _COLOURS[sum(row["symbol"].encode()) % len(_COLOURS)]
            table.add_row(
                Text(str(row["rank"]), "bold"),
                self._move(row),
                Text(row["symbol"], colour),
                f"{row['price']:,.2f}",
                f"{row['volume']:,}",
                Text(short(row["score"]), "bold"),
                Bar(row["score"] / best, colour),
            )
        for _ in range(self.k - len(rows)):
            table.add_row()
        span = f"{self.ranking.start:%H:%M} – {self.ranking.end:%H:%M}" if self.ranking else "no window has closed yet"
        return Panel(table, title=f"[bold]{self.title}[/]", subtitle=f"[bold]{span}[/]", border_style="blue",
                     padding=(0, 1))  # fmt: skip

    def _move(self, row: dict[str, Any]) -> Text:
        before = self._before.get(row["id"])
        if before is None:
            return Text("new", "bold green")
        if before == row["rank"]:
            return Text("·", "dim")
        up = before - row["rank"]
        return Text(f"▲ {up}", "green") if up > 0 else Text(f"▼ {-up}", "red")

    def _state(self) -> RenderableType:
        p = self.progress
        grid = Table.grid(padding=(0, 1), expand=True)
        for _ in range(3):
            grid.add_column(style="dim", justify="right", no_wrap=True)
            grid.add_column(ratio=1, no_wrap=True)
        grid.add_row("rows", f"{p.seen:,}", "rows/s", Rates([*self._rates, p.rate]), "windows", f"{self.windows}")
        grid.add_row("late", _warning(p.late), "state", size(p.bytes), "micro-batches", f"{p.batches}")
        grid.add_row("invalid", _warning(p.invalid), "rows held", f"{p.candidates:,}", "event time",
                     f"× {self.speed:g}")  # fmt: skip
        return grid

    def _bar(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(ratio=1)
        grid.add_column(justify="right", no_wrap=True)
        left = max(0.0, self.seconds - self.elapsed)
        grid.add_row(ProgressBar(total=self.seconds, completed=min(self.elapsed, self.seconds), complete_style="blue",
                                 finished_style="blue"), f"[dim]{left:.0f} s left, Ctrl-C ends it[/]")  # fmt: skip
        return grid


class Bar:
    """A bar whose length is a share of the width that there is, to an eighth of a character."""

    def __init__(self, share: float, style: str) -> None:
        self.share = share
        self.style = style

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Text]:
        eighths = round(self.share * options.max_width * 8)
        full, part = divmod(eighths, 8)
        yield Text("█" * full + (_BLOCKS[part] if part else ""), self.style, no_wrap=True, end="")


class Rates:
    """The newest of a list of numbers, as many as there is space for, drawn as small columns."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values = values

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Text]:
        newest = f"{self.values[-1]:,.0f}"
        top = max(self.values) or 1.0
        sparks = "".join(_SPARKS[min(7, int(8 * value / top))] for value in self.values)
        room = max(0, options.max_width - len(newest) - 2)
        yield Text.assemble((newest, "bold"), " ", (sparks[len(sparks) - min(room, len(sparks)) :], "blue"), end="")


def _warning(count: int) -> Text:
    return Text(f"{count:,}", "yellow" if count else "")
