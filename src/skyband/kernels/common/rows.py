"""Rows as kernels take and give them: a list of objects, and the lists of many partitions side by side."""

from typing import Annotated, NamedTuple

from skyband.storage.blocks import ARRIVAL, Floats, Ints, block, column


class Objects(NamedTuple):
    """A list of objects; how many of its entries are in use is counted beside it."""

    score: Floats
    position: Ints
    arrival: Ints


@block(version=1)
class Lists(NamedTuple):
    """Objects of all partitions, one partition after another: ``[offset[partition] : offset[partition + 1]]``."""

    offset: Annotated[Ints, column("bounds")]
    score: Annotated[Floats, column("objects")]
    position: Annotated[Ints, column("objects")]
    arrival: Annotated[Ints, column("objects", holds=ARRIVAL)]


class Closings(NamedTuple):
    """Where each partition stands: windows up to ``closed`` are done, those up to ``frontier`` are to be closed now.

    For time windows there is one entry for all partitions. For count windows ``end`` and ``arrival`` list the windows
    that close and the object whose arrival closes each, partition by partition as in :class:`Lists`; they are empty
    for time windows.
    """

    closed: Ints
    frontier: Ints
    offset: Ints
    end: Ints
    arrival: Ints
