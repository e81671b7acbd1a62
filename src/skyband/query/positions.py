"""Turns event times and sequence numbers into positions on the axis of a window, and positions into column values."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.expressions import close_to
from skyband.query.windows import FOREVER as FOREVER
from skyband.query.windows import MOST as MOST
from skyband.query.windows import Window

Ints = NDArray[np.int64]

SECOND = 1_000_000


def check_position(schema: pa.Schema, window: Window) -> None:
    """Refuses a schema without the event-time or sequence column that the window needs."""
    names = schema.names
    if window.on is None or window.on in names:
        return
    close = close_to(window.on, names)
    hint = f"; did you mean {close!r}?" if close else "."
    columns = f"The columns are {', '.join(names) or 'none'}"
    if not window.time:
        raise QueryError(f"the window goes by numbers in a sequence, and there is no column {window.on!r} for them"
                         f"{hint} Name the column with on=, or leave on= out to count objects as they come. {columns}"
                         )  # fmt: skip
    times = (field.name for field in schema if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type))
    named = replace(window, on=close or next(times, "time"))
    raise QueryError(f"the window goes by event time, and there is no column {window.on!r} for it{hint} Name the "
                     f"column with on=, for instance sb.{named!r}, or count objects, as in sb.last(1000). {columns}"
                     )  # fmt: skip


def positions(table: pa.Table, on: str, time: bool) -> Ints:
    """Microseconds since the epoch, or sequence numbers, of column ``on``; -FOREVER for NULL, NaN and out of range."""
    column = table.column(on)
    kind = column.type
    if pa.types.is_null(kind):  # only NULLs so far, which do not tell the type
        return np.full(len(column), -FOREVER)
    if not time:
        if not pa.types.is_integer(kind):
            raise QueryError(f"the sequence column {on!r} is of type {kind}; it must be whole numbers")
        return _filled(column.cast(pa.int64(), safe=False), MOST)
    if pa.types.is_timestamp(kind):
        factor = {"s": SECOND, "ms": 1_000}.get(kind.unit, 1)
        nanoseconds = kind.unit == "ns"
        values = _filled(column.cast(pa.int64()), np.iinfo(np.int64).max if nanoseconds else MOST // factor)
        if kind.unit == "us":
            return values
        return np.where(values == -FOREVER, values, values // 1_000 if nanoseconds else values * factor)
    if pa.types.is_date(kind):
        return _filled(column.cast(pa.timestamp("us")).cast(pa.int64()), MOST)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        seconds = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan), np.float64)
        good = np.abs(seconds) <= MOST / SECOND
        position = np.round(np.where(good, seconds, 0) * SECOND).astype(np.int64)
        return np.where(good, position, -FOREVER)  # no double is FOREVER
    raise QueryError(f"the event-time column {on!r} is of type {kind}; it must be a timestamp, a date, or seconds "
                     "since the epoch as a number")  # fmt: skip


def position_type(kind: pa.DataType | None, window: Window) -> pa.DataType:
    """The type of window bounds in the answer: that of the event-time column if it can hold them, else a finer one."""
    if kind is None or not window.time:
        return pa.int64()
    lengths = window.extent, window.every or window.extent
    if pa.types.is_timestamp(kind):
        fits = all(length % {"s": SECOND, "ms": 1_000}.get(kind.unit, 1) == 0 for length in lengths)
        return kind if fits else pa.timestamp("us", kind.tz)
    if pa.types.is_integer(kind):
        return pa.int64() if all(length % SECOND == 0 for length in lengths) else pa.float64()
    return pa.timestamp("us") if pa.types.is_date(kind) or pa.types.is_null(kind) else pa.float64()


def spelled(position: Ints, kind: pa.DataType, time: bool) -> pa.Array:
    """Positions as values of the type that :func:`position_type` gave."""
    if not time:
        return pa.array(position)
    if pa.types.is_timestamp(kind):
        scaled = position * 1_000 if kind.unit == "ns" else position // {"s": SECOND, "ms": 1_000, "us": 1}[kind.unit]
        return pa.array(scaled).cast(kind)
    return pa.array(position // SECOND if pa.types.is_integer(kind) else position / SECOND)


def _filled(column: pa.ChunkedArray, most: int) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, -FOREVER)
    filled: Ints = column.to_numpy()
    if filled.size and (filled.max() > most or filled.min() < -most):
        filled = np.where((filled > most) | (filled < -most), -FOREVER, filled)
    return filled
