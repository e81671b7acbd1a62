"""Sliding windows: what ``last(...)`` means, and the arithmetic of panes and window ends.

An object has a *position* on the axis of the window, an integer: microseconds since the epoch for time windows, the
number of the object (from 0) for count windows. A *hopping* window moves ``every`` positions at a time: it is
``[end - extent, end)`` for each ``end`` that is a multiple of ``every``. The axis is cut into *panes* of length
``gcd(extent, every)``, so that a window is always a run of whole panes.
"""

import math
import operator
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.errors import QueryError

P = TypeVar("P", int, NDArray[np.int64])  # a position, or many

Duration = str | timedelta | np.timedelta64
Length = int | Duration

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {"us": "microsecond", "ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
_MIDDLE = {"usec": "microsecond", "msec": "millisecond", "sec": "second", "min": "minute", "hr": "hour", "wk": "week"}
_WORDS = _SHORT | {word + end: name for word, name in (_MIDDLE | {n: n for n in _UNITS}).items() for end in ("", "s")}
# Attoseconds in the units of NumPy; months and years have no one length.
_NUMPY = {unit: _UNITS[name] * 10**12 for unit, name in (_SHORT | {"D": "day", "W": "week"}).items()}
_NUMPY |= {"ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
EVENT_TIME = "ts"  # the column that time windows go by unless told otherwise
MOST = 1 << 60  # the largest position or length: the sum of two stays below FOREVER
FOREVER = int(np.iinfo(np.int64).max) // 4  # later than any position: the frontier of a stream that has ended
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def whole(value: Any) -> int | None:
    """The given whole number (Python's or NumPy's) as an int; None for anything else, True and False included.

    >>> whole(3), whole(np.int8(3)), whole(3.0), whole(True)
    (3, 3, None, None)
    """
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def duration(given: Duration, field: str = "duration") -> int:
    """Microseconds in a duration: ``"10 minutes"``, ``"90 secs"``, ``"1h 30m"``, a ``timedelta``, a ``timedelta64``.

    >>> duration("1 hour 30 minutes") == duration("90m") == duration("1.5 hrs") == 5_400_000_000
    True
    >>> duration(timedelta(minutes=90)) == duration(np.timedelta64(90, "m")) == 5_400_000_000
    True
    """
    if isinstance(given, str):
        return _read(given, field)
    if isinstance(given, timedelta):
        length, rest = divmod(given, timedelta(microseconds=1))
        exact = rest == timedelta(0)  # pandas' durations have nanoseconds
    else:
        unit, size = np.datetime_data(given.dtype)
        if np.isnat(given) or unit not in _NUMPY:
            raise QueryError(f"{field}={given!r} has no fixed length; give a number of microseconds, seconds, "
                             'minutes, hours, days or weeks, for instance "10 minutes"')  # fmt: skip
        length, left = divmod(int(given.astype(np.int64)) * size * _NUMPY[unit], 10**12)
        exact = not left
    if not exact:
        raise QueryError(f"{field}={given!r} is not a whole number of microseconds")
    return int(length)


def _read(text: str, field: str) -> int:
    """Microseconds in a duration that is given as text."""
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        name = _WORDS.get(part[2].lower()) if part else None
        if part is None or name is None:
            number = "; a number of objects is written without quotes" if text.strip().isdecimal() else ""
            raise QueryError(
                f"{field}={text!r} is not a duration; write a number and a unit ({', '.join(_UNITS)}), "
                f'for instance "10 minutes" or "1h 30m"{number}'
            )
        total += float(part[1]) * _UNITS[name]
        position = part.end()
    if position == 0:
        raise QueryError(f'{field}={text!r} is not a duration; write a number and a unit, for instance "10 minutes"')
    if total != int(total):
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
        time: True for a time window, whose positions are event times in microseconds; False for a count window, whose
            positions are object numbers.
        extent: its length: microseconds, or a number of objects.
        every: how far it moves at a time, in the same unit; None if it moves with every arrival.
        on: the event-time column of a time window; the sequence column of a count window, or None if objects are
            numbered in the order in which they arrive.
        late: how far a row may be behind the newest position of the earlier batches. None for a count window with
            ``on``: rows wait until every smaller number has come, however long that takes.

    >>> last("600 secs", every="1 min", on="ts")
    last('10 minutes', every='1 minute')
    """

    time: bool
    extent: int
    every: int | None
    on: str | None
    late: int | None

    @property
    def hopping(self) -> bool:
        """Whether windows come every so often (``every`` is given), rather than moving with every arrival."""
        return self.every is not None

    @property
    def kind(self) -> str:
        """``"hopping"``, or ``"arrival"`` if the window moves with every arrival; algorithms say which they serve."""
        return "hopping" if self.hopping else "arrival"

    @property
    def pane(self) -> int:
        """The length of a pane: every window is a run of whole panes (hopping windows only)."""
        return math.gcd(self.extent, self.slide)

    @property
    def slide(self) -> int:
        """``every``, for code that is for hopping windows only; an error otherwise."""
        if self.every is None:
            raise ValueError("a window that moves with every arrival has no slide")
        return self.every

    def start(self, end: int) -> int:
        """The first position of the window that ends at ``end``; for a count window, never below object 0."""
        return end - self.extent if self.time else max(0, end - self.extent)

    def last_closed(self, frontier: P) -> P:
        """The end of the last hopping window that is closed when all rows before ``frontier`` have come."""
        return frontier // self.slide * self.slide

    def first_end(self, position: P) -> P:
        """The end of the first hopping window that holds ``position``."""
        return self.last_closed(position) + self.slide

    def last_end(self, position: P) -> P:
        """The end of the last hopping window that holds ``position``."""
        return self.last_closed(position + self.extent)

    def pane_of(self, position: P) -> P:
        """The number of the pane that holds ``position``; pane p reaches from ``p * pane`` to ``(p + 1) * pane``."""
        return position // self.pane

    def watermark(self, newest: int) -> int:
        """Once ``newest`` has come, no row before this position is taken any more.

        ``FOREVER`` is the newest position of a stream that has ended.
        """
        return newest if newest >= FOREVER else max(-FOREVER, newest - (self.late or 0))

    def __repr__(self) -> str:
        words = spell if self.time else int
        arguments = [repr(words(self.extent))]
        arguments += [f"every={words(self.slide)!r}"] if self.hopping else []
        arguments += [f"on={self.on!r}"] if self.on and (self.on != EVENT_TIME or not self.time) else []
        arguments += [f"late={words(self.late)!r}"] if self.late is not None and (self.late or not self.time) else []
        return f"last({', '.join(arguments)})"

    def __str__(self) -> str:
        words = spell if self.time else str
        text = f"last {words(self.extent)}"
        text += f" every {words(self.slide)}" if self.hopping else " at every arrival"
        return text + (f" on {self.on}" if self.on else "") + (f" late {words(self.late)}" if self.late else "")


def last(extent: Length, every: Length | None = None, on: str | None = None, late: Length | None = None) -> Window:
    """A sliding window: the last ``extent`` objects, or the last stretch of event time.

    Args:
        extent: how long the window is: ``10_000`` for objects, ``"10 minutes"`` for event time. A duration is a text
            such as ``"90 secs"`` or ``"1h 30m"``, a ``datetime.timedelta`` or a ``numpy.timedelta64``, here and
            everywhere.
        every: how far the window moves at a time, in objects or time like ``extent``, for instance ``"1 minute"``. If
            it is left out, the window moves with every arrival.
        on: for a window of time, the column with the event time (default ``"ts"``). For a window of objects, a column
            that numbers the objects of each partition 0, 1, 2, … without gaps; rows may then come in any order. Left
            out, objects count in the order in which they arrive.
        late: how late a row may come (default ``"0 seconds"``): how far its event time may be behind the newest one
            of the earlier batches. A row that is later still is left out and counted. For a window of objects with
            ``on``: how many numbers it may be behind the newest one; left out, rows wait for every missing number.

    >>> print(last("10 minutes", every="1 minute"))
    last 10 minutes every 1 minute on ts
    >>> print(last(40_000))
    last 40000 at every arrival
    """
    time = isinstance(extent, Duration)
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
        return Window(True, size, slide, on or EVENT_TIME, delay)
    return Window(False, size, slide, on, None if late is None else _length(late, "late", time, least=0))


def _length(value: Length, field: str, time: bool, least: int = 1) -> int:
    if time:
        if not isinstance(value, Duration):
            raise QueryError(f'{field}={value!r} must be a duration such as "1 minute", as the extent is one')
        size: int | None = duration(value, field)
    else:
        size = whole(value)
    if size is None:
        raise QueryError(f"{field}={value!r} must be a whole number of objects"
                         + (' or a duration such as "10 minutes"' if field == "extent" else ", as the extent is one")
                         )  # fmt: skip
    if not least <= size <= MOST:
        raise QueryError(f"{field}={value!r} must be from {least} to {MOST}{' microseconds' if time else ''}")
    return size
