"""What every task of a run needs to know. No pyspark here: it is the part that travels to the workers."""

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from skyband.layout import Layout
from skyband.plan import Plan, plan_for
from skyband.queries import TopK
from skyband.scoring import compile_order

Emit = Literal["final", "changes", "latest"]

# Columns that travel beside the user's own.
SCORE, TIME, TIE, PART, PASSES = "__score", "__time", "__tie", "__part", "__passes"


@dataclass(frozen=True)
class Job:
    """One query put to a DataFrame.

    Attributes:
        query: as the user gave it.
        schema: the user's columns that must travel: of the partitions, and of the answer.
        emit: what is wanted.
        shards: how many tasks share the state; partitions of the stream are spread over them by hash.
        chunks: pieces of the state of a shard, so that a batch rewrites only those it touches.
    """

    query: TopK
    schema: pa.Schema
    emit: Emit
    shards: int
    chunks: int

    @property
    def pruned(self) -> bool:
        """Whether tasks send only the top k of each pane: exact for hopping windows whose panes a row shows."""
        window = self.query.window
        return window.hopping and window.on is not None and self.plan.algorithm.name == "mintopk"

    @property
    def counted(self) -> bool:
        """Whether windows close as their numbers are complete: pruned rows of a sequence."""
        return self.pruned and not self.query.window.time

    @property
    def plan(self) -> Plan:
        return plan_for((self.scored,))

    @property
    def scored(self) -> TopK:
        """The query over rows that carry their score and position already."""
        direction = "DESC" if compile_order(self.query.order_by).descending else "ASC"
        window = self.query.window
        return replace(
            self.query,
            order_by=f'"{SCORE}" {direction}',
            where=None,
            window=window if window.on is None else replace(window, on=TIME),
            select=self.query.select if self.query.select is not None else self._all_columns(),
        )

    def layout(self) -> Layout:
        """How the answer is written."""
        return Layout(self.scored, self.travelling(), compile_order(self.scored.order_by))

    def travelling(self) -> pa.Schema:
        """The columns of rows on their way: the user's, and the score and position."""
        schema = self.schema.append(pa.field(SCORE, pa.float64()))
        kind = pa.timestamp("us", "UTC") if self.query.window.time else pa.int64()
        return schema.append(pa.field(TIME, kind)).append(pa.field(TIE, pa.int64()))

    def _all_columns(self) -> tuple[str, ...]:
        return tuple('"' + name.replace('"', '""') + '"' for name in self.schema.names
                     if name not in self.query.partition_by)  # fmt: skip
