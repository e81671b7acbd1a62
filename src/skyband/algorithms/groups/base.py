"""What the algorithms have in common that keep a state of groups for each partition by itself."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Changes, Emission, Ints, Rows
from skyband.algorithms.partitioned import PerKey
from skyband.kernels.groups.view import Log
from skyband.query import Query, TopKGroups
from skyband.storage.blocks import Record, block, empty, plain, restored, saved, scalars

S = TypeVar("S", bound=tuple[Any, ...])


class StreamsMeta(NamedTuple):
    coded: int = 0


@block(version=1)
class Streams(NamedTuple):
    """How many streams were given a code so far, where their names were not known: they are never forgotten."""

    meta: Annotated[Record, scalars(StreamsMeta)]

    def see(self, query: TopKGroups, rows: Rows) -> None:
        """Takes note of the streams of some rows."""
        if query.coded and rows.score.size:
            _, stream, *_ = rows.tags.T
            self.meta["coded"] = max(plain(StreamsMeta, self.meta).coded, int(stream.max()) + 1)

    def tags(self, query: TopKGroups) -> tuple[Ints, ...]:
        """Their codes, as the column of tags that they are, if they are one."""
        return (np.arange(plain(StreamsMeta, self.meta).coded),) if query.coded else ()


class OverGroups(PerKey[S]):
    """An algorithm over groups. A subclass says what is kept of a partition, and how it advances."""

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.streams = empty(Streams)

    @property
    def groups(self) -> TopKGroups:
        """The query."""
        return cast(TopKGroups, self.query)

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        self.streams.see(self.groups, rows)
        return super().update(rows, frontier)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield from saved(Streams, [self.streams], "streams.")
        yield from super().arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        (self.streams,) = restored(Streams, arrays, "streams.")
        super().restore(arrays)


def changes_of(log: Log) -> Changes:
    """What was told, as an algorithm returns it."""
    return Changes(log.trigger, log.at, NOTHING, log.op, log.arrival, log.score, values=log.values.T)
