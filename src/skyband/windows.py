"""Sliding windows: what ``last(...)`` means, and the pure arithmetic of panes, window ends and expiry.

Positions on the axis of a window are integers: microseconds since the epoch for time windows, object numbers (from 0)
for count windows. A hopping window is ``[end - extent, end)`` with ``end`` a multiple of ``every``; a *pane* is the
slice between two neighbouring window bounds, ``gcd(extent, every)`` long, so a window is always a run of whole panes.
"""

import math
import re
from dataclasses import dataclass
from datetime import timedelta

from skyband.errors import QueryError

Length = int | str | timedelta

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {"us": "microsecond", "ms": "millisecond", "s": "second", "m": "minute", "min": "minute", "h": "hour",
          "d": "day", "w": "week"}  # fmt: skip
_MOST = 1 << 60  # a position and a length, or two lengths, must add up within 64 bits
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def duration(text: str | timedelta, field: str = "duration") -> int:
    """Microseconds in a duration such as ``"10 minutes"``, ``"1h 30m"`` or a ``timedelta``.

    >>> duration("1 hour 30 minutes") == duration("90m") == duration("1.5 hours") == 5_400_000_000
    True
    """
    if isinstance(text, timedelta):
        return text // timedelta(microseconds=1)
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        word = part[2].lower() if part else ""
        name = _SHORT.get(word, word.removesuffix("s"))
        if part is None or name not in _UNITS:
            raise QueryError(
                f"{field}={text!r} is not a duration; write a number and a unit ({', '.join(_UNITS)}), "
                'for instance "10 minutes" or "1h 30m"'
            )
        total += float(part[1]) * _UNITS[name]
        position = part.end()
    if position == 0 or total != int(total):
        raise QueryError(f"{field}={text!r} is not a whole number of microseconds")
    return int(total)


def spell(length: int) -> str:
    """The shortest words for a number of microseconds, the inverse of :func:`duration`.

    >>> spell(600_000_000), spell(90_000_000), spell(0)
    ('10 minutes', '90 seconds', '0 seconds')
    """
    if length == 0:
        return "0 seconds"
    name, size = next((n, s) for n, s in reversed(_UNITS.items()) if length % s == 0)
    count = length // size
    return f"{count} {name}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Window:
    """A sliding window; build it with :func:`last`.

    Attributes:
        time: whether positions are event times (microseconds) rather than object numbers.
        extent: its length, in positions.
        every: the slide in positions, or None where the window moves with every arrival.
        on: the event-time column, or for count windows the dense sequence column (None: arrival order).
        late: how far behind the newest position of the earlier batches a row may come. For count windows with ``on``
            None means that rows wait until every earlier number has come.
    """

    time: bool
    extent: int
    every: int | None
    on: str | None
    late: int | None

    @property
    def hopping(self) -> bool:
        return self.every is not None

    @property
    def kind(self) -> str:
        """``"hopping"`` or ``"arrival"``: what an algorithm must be able to serve."""
        return "hopping" if self.hopping else "arrival"

    @property
    def pane(self) -> int:
        """The length of a pane (hopping windows)."""
        return math.gcd(self.extent, self.slide)

    @property
    def slide(self) -> int:
        """``every``, for code that serves hopping windows only."""
        if self.every is None:
            raise ValueError("a window that moves with every arrival has no slide")
        return self.every

    def start(self, end: int) -> int:
        """The first position of the window that ends at ``end``; a young count window starts at object 0."""
        return end - self.extent if self.time else max(0, end - self.extent)

    def first_end(self, position: int) -> int:
        """The end of the first hopping window that holds ``position``."""
        return (position // self.slide + 1) * self.slide

    def last_end(self, position: int) -> int:
        """The end of the last hopping window that holds ``position``."""
        return (position + self.extent) // self.slide * self.slide

    def __str__(self) -> str:
        words = spell if self.time else str
        text = f"last {words(self.extent)}"
        text += f" every {words(self.slide)}" if self.hopping else " at every arrival"
        return text + (f" on {self.on}" if self.on else "") + (f" late {words(self.late)}" if self.late else "")


def last(extent: Length, every: Length | None = None, on: str | None = None, late: Length | None = None) -> Window:
    """The window over the last ``extent`` objects (an int) or stretch of event time (a duration).

    Args:
        extent: how far back the window reaches: ``10_000`` objects, or ``"10 minutes"``.
        every: how far it moves at a time, in the same kind of unit; left out, it moves with every arrival.
        on: the event-time column (default ``"ts"``); for a count window an optional sequence column, dense from 0 in
            each partition, by which rows are placed whatever order they come in.
        late: how far behind the newest event time a row may come (default ``"0 seconds"``); a row that is later is
            left out and counted. For a count window with ``on``: how many numbers behind the newest one.

    >>> print(last("10 minutes", every="1 minute"))
    last 10 minutes every 1 minute on ts
    >>> print(last(40_000))
    last 40000 at every arrival
    """
    time = isinstance(extent, str | timedelta)
    size = _length(extent, "extent", time)
    slide = None if every is None else _length(every, "every", time)
    if slide is not None and slide > size:
        raise QueryError(f"every={every!r} exceeds the extent {extent!r}: some rows would be in no window; "
                         "make the slide at most the extent")  # fmt: skip
    if on is not None and (not isinstance(on, str) or not on):
        raise QueryError(f"on={on!r} is not a column name")
    if late is not None and not time and on is None:
        raise QueryError(f"late={late!r} has no meaning for a count window in arrival order; leave it out, "
                         "or name the sequence column with on=")  # fmt: skip
    if time:
        delay: int | None = 0 if late is None else _length(late, "late", time, least=0)
        return Window(True, size, slide, on or "ts", delay)
    return Window(False, size, slide, on, None if late is None else _length(late, "late", time, least=0))


def _length(value: Length, field: str, time: bool, least: int = 1) -> int:
    if time:
        if not isinstance(value, str | timedelta):
            raise QueryError(f'{field}={value!r} must be a duration such as "1 minute", as the extent is one')
        size = duration(value, field)
    else:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise QueryError(f"{field}={value!r} must be a whole number of objects"
                             + (" or a duration" if field == "extent" else ", as the extent is one"))  # fmt: skip
        size = int(value)
    if not least <= size <= _MOST:
        raise QueryError(f"{field}={value!r} must be from {least} to {_MOST}{' microseconds' if time else ''}")
    return size
