"""AMSA: the approximate algorithm with least scores."""

from typing import ClassVar

from skyband.dominating.ada import ADA
from skyband.kernels.dominating import events as kernel
from skyband.queries import Query


class AMSA(ADA):
    """The *approximate minimum score algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 7.2.

    As ADA, but points of a cell are passed over altogether if the least score that a point of the cell can have is
    further below the k-th score than the k-th is below the first: they are not expected to come so far.

    Options: as ADA.

    Reading: while the window fills it works as ADA does.
    Deviations: where the first scores twice as much as the k-th the rule would never apply, as in anti-correlated data
    at k = 256; there a quarter of the k-th score stands for the difference. The least scores of cells are counted every
    n / 64 updates; every n / 2 updates, and if too few points are left to fill the top k, these are found from scratch.
    Those of :class:`skyband.dominating.ada.ADA`.
    """

    name = "amsa"
    exact = False
    mode: ClassVar[int] = kernel.AMSA

    @classmethod
    def bound(cls, query: Query) -> str:
        return "approximate, without a guarantee: points in cells with low scores are passed over"
