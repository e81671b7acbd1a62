"""ADA, AHBA and AMSA in turn, as the load asks for."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from skyband.algorithms.contract import Emission, Rows
from skyband.algorithms.dominating.ahba import AHBA
from skyband.algorithms.dominating.eva import Expectant
from skyband.errors import QueryError
from skyband.kernels.dominating import events as kernel
from skyband.kernels.dominating.events import EventsMeta
from skyband.kernels.dominating.harvest import BIG
from skyband.kernels.dominating.space import Points
from skyband.kernels.dominating.tell import Steps, Told
from skyband.query import Query
from skyband.storage.blocks import Record, block, empty, plain, restored, saved, scalars

LIGHT, HEAVY = 1, 4  # budgets up to which ADA, and then AHBA, is at work


class LoadMeta(NamedTuple):
    rows: int = 0


@block(version=1)
class Load(NamedTuple):
    """How many rows have piled up for an update of late: one figure for all partitions."""

    meta: Annotated[Record, scalars(LoadMeta)]

    @property
    def rows(self) -> int:
        """The figure."""
        return plain(LoadMeta, self.meta).rows


class Adaptive(AHBA):
    """Exact while it can be, approximate under load: what section 10 of Kontaki et al. (TKDE 2012) proposes.

    The load is the number of rows that have piled up for an update, or half of what it was before if that is more: so
    it rises at once and falls off slowly. Up to ``budget`` rows ADA is at work, up to four times as many AHBA, and
    beyond that AMSA. The measure is the batch, not the clock: the same batches give the same answers anywhere. Back
    from AHBA or AMSA, the top k are found from scratch, and are exact again.

    Options:
        budget: how many rows an update may have for an exact answer (default 10 000).
        eps, delta, maxcand: as in AHBA and ADA.
    """

    name = "adaptive"
    options: ClassVar[dict[str, float]] = {"budget": 10_000, **AHBA.options}

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        if not self.parameters["budget"] >= 1:
            raise QueryError(f"budget={self.parameters['budget']:g} must be at least 1: rows in an update")
        self.load = empty(Load)

    @property
    def working(self) -> str:
        """The algorithm at work."""
        return ("eva", "ada", "ahba", "amsa")[self._mode()]

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        self.load.meta["rows"] = max(rows.score.size, self.load.rows // 2)
        return super().update(rows, frontier)

    def take(self, state: Expectant, rows: Points, steps: Steps, told: Told) -> tuple[Expectant, Told]:
        events, mode, before = state.events, self._mode(), plain(EventsMeta, state.events.meta).mode
        if before != mode:
            if before != kernel.ADA:  # what was guessed or passed over is unknown
                events.base[:] = BIG
                events.meta["forced"] = 1
            events.meta["mode"], events.meta["refreshed"] = mode, -BIG
        return super().take(state, rows, steps, told)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield from saved(Load, [self.load], "load.")
        yield from super().arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        (self.load,) = restored(Load, arrays, "load.")

    def _mode(self) -> int:
        budget = self.parameters["budget"]
        if self.load.rows <= LIGHT * budget:
            return kernel.ADA
        return kernel.AHBA if self.load.rows <= HEAVY * budget else kernel.AMSA

    def bound(self) -> str:
        above = super().bound()
        return f"exact up to its budget of rows in an update; above, {above}; far above, without a guarantee"
