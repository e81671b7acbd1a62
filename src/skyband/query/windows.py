"""Sliding windows: what ``last(...)`` means, and the pure arithmetic of panes, window ends and expiry.

Positions on the axis of a window are integers: microseconds since the epoch for time windows, object numbers (from 0)
for count windows. A hopping window is ``[end - extent, end)`` with ``end`` a multiple of ``every``; a *pane* is the
slice between two neighbouring window bounds, ``gcd(extent, every)`` long, so a window is always a run of whole panes.
"""

import math
import operator
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from skyband.errors import QueryError

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
_MOST = 1 << 60  # a position and a length, or two lengths, must add up within 64 bits
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def whole(value: Any) -> int | None:
    """A whole number as Python has it, NumPy's included; None for anything else, truth values too.

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
    """Microseconds in a duration that is written out."""
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
        time: whether positions are event times (microseconds) rather than object numbers.
        extent: its length, in positions.
        every: the slide in positions, or None where the window moves with every arrival.
        on: the event-time column, or for count windows the dense sequence column (None: arrival order).
        late: how far behind the newest position of the earlier batches a row may come. For count windows with ``on``
            None means that rows wait until every earlier number has come.

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
    """The window over the last ``extent`` objects (an int) or stretch of event time (a duration).

    Args:
        extent: how far back the window reaches: ``10_000`` objects, or ``"10 minutes"``. A duration is a text such as
            ``"90 secs"`` or ``"1h 30m"``, a ``datetime.timedelta`` or a ``numpy.timedelta64``, here and everywhere.
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
    if not least <= size <= _MOST:
        raise QueryError(f"{field}={value!r} must be from {least} to {_MOST}{' microseconds' if time else ''}")
    return size
