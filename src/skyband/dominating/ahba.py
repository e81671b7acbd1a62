"""AHBA: the approximate algorithm with the Hoeffding bound."""

import math
from typing import ClassVar

from skyband.dominating.ada import ADA
from skyband.errors import QueryError
from skyband.kernels.dominating import events as kernel
from skyband.queries import Query


class AHBA(ADA):
    """The *approximate Hoeffding bound algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 7.1.

    As ADA, but cells whose points may score about as much as the k-th have a sample, of which the exact scores are
    kept. The mean of the sample stands for the score of a point of the cell that would otherwise be counted. By the
    Hoeffding bound, ln(1 / (1 - delta)) / (2 eps²) points are enough for the mean of the cell to be above that of the
    sample by more than eps of the range of its scores with a probability of at most 1 - delta (equation 11).

    Options:
        eps: the tolerance, as a share of the range of the scores of a cell (default 0.1).
        delta: the confidence (default 0.9).
        maxcand: as in ADA.

    Readings: while the window fills it works as ADA does. For an arriving point the upper confidence limit stands for
    the mean: eps of the range is added to that of the sample. At events it is the mean itself, for a point that was
    once counted. After four estimates in a row, or one for an arriving point, the score is counted, since "AHBA may
    detect a change in TOPK after some updates" (section 9).
    Deviations: cells in which every estimate would be above the k-th score have no sample. Samples are looked at every
    n / 64 updates, and drawn again when half of one is gone; every n / 2 the top k are found from scratch.
    Those of :class:`skyband.dominating.ada.ADA`.
    """

    name = "ahba"
    exact = False
    mode: ClassVar[int] = kernel.AHBA
    options: ClassVar[dict[str, float]] = {"eps": 0.1, "delta": 0.9, **ADA.options}

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        for option in ("eps", "delta"):
            if not 0 < self.parameters[option] < 1:
                raise QueryError(f"{option}={self.parameters[option]:g} must lie between 0 and 1")

    def samples(self) -> int:
        return sample_size(self.parameters["eps"], self.parameters["delta"])

    @classmethod
    def bound(cls, query: Query) -> str:
        share = query.error or cls.options["eps"]
        return (
            "approximate: the mean score of a cell, by which its points are judged, is underestimated by more than "
            f"{share:g} of the range of its scores with a probability of at most {share:g}"
        )


def sample_size(eps: float, delta: float) -> int:
    """Points in the sample of a cell (equation 11).

    >>> sample_size(0.1, 0.9), sample_size(0.01, 0.99)
    (116, 23026)
    """
    return math.ceil(math.log(1 / (1 - delta)) / (2 * eps * eps))
