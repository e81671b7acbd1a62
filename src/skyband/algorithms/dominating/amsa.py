"""AMSA: the approximate algorithm with least scores."""

from typing import ClassVar

from skyband.algorithms.dominating.ahba import AHBA
from skyband.errors import QueryError
from skyband.kernels.dominating import events as kernel
from skyband.query import Query


class AMSA(AHBA):
    """The *approximate minimum score algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 7.2.

    As ADA, but points of a cell are passed over altogether if the least score that a point of the cell can have is
    further below the k-th score than the k-th is below the first: they are not expected to come so far.

    Options: as AHBA.

    Reading: while the window fills it works as ADA does.
    Deviations:
        - Where cells are large, as in small windows, points of the top k are in cells whose least score is low. So a
          cell is passed over only if also few of its points, if any, can have come near the k-th score: one in 400 if
          they lie evenly in it.
        - Where the first scores twice as much as the k-th the rule would never apply, as in anti-correlated data at
          k = 256; there a quarter of the k-th score stands for the difference.
        - Points of other cells are estimated as in AHBA. Single points too are passed over if an estimate or a count is
          further below the k-th score than this moves: 2 / √k of the difference between the first and the k-th.
        - Every n / 8 updates, and when the k-th score has fallen, what was passed over is seen to again unless its cell
          rules it out. The least scores of cells are counted every n / 64 updates. If too few points are left to fill
          the top k, these are found from scratch.
    And those of :class:`skyband.algorithms.dominating.ahba.AHBA`.
    """

    name = "amsa"
    mode: ClassVar[int] = kernel.AMSA

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        if self.query.error:
            raise QueryError(f"algorithm='amsa' promises nothing, so it cannot keep error={self.query.error:g}; leave "
                             "error out, or take algorithm='ahba'")  # fmt: skip

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        return {}

    def bound(self) -> str:
        return "approximate, without a guarantee: points in cells with low scores are passed over"
