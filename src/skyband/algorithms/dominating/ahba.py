"""AHBA: the approximate algorithm with the Hoeffding bound."""

import math
from typing import ClassVar

from skyband.algorithms.dominating.ada import ADA
from skyband.errors import QueryError
from skyband.kernels.dominating import events as kernel
from skyband.query import Query

LEAST = 1e-5  # a smaller tolerance would want more points than any window has


class AHBA(ADA):
    """The *approximate Hoeffding bound algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 7.1.

    As ADA, but a sample stands for scores. Where ADA would count the score of a point, a sample of the points on the
    borders of its cell tells how many of them it dominates; what it dominates beyond is known from the cells. The range
    of the scores of a cell is just what is on its borders, so by the Hoeffding bound ln(1 / (1 - delta)) / (2 eps²)
    points are enough for the score to be above the estimate by more than eps of the range with a probability of at most
    1 - delta (equation 11). Only if the k-th score is within twice that error is the score counted.

    Options:
        eps: the tolerance, as a share of the range of the scores of a cell (default: the query's error, or 0.1).
        delta: the confidence (default: 1 less the query's error, or 0.9).
        maxcand: as in ADA.

    Deviations:
        - The sample is of what the cell dominates in part, not of the cell: it gives the score of the point itself, of
          which there is a bound then, rather than the mean score of the cell, above which half of its points are. And
          no scores of samples have to be kept up to date.
        - All cells share one sample of the window: as large as to have so many points on the borders of any cell that
          hold more than 1 in 2 g points, with g cells along a dimension. With more points the error is smaller. Where
          the sample would be more than a quarter of the window, or has fewer points there, the score is counted.
        - Points that were counted because the estimate did not do, and are within four times the error of the k-th, are
          candidates, so that they need not be counted again.
    And those of :class:`skyband.algorithms.dominating.ada.ADA`.
    """

    name = "ahba"
    exact = False
    mode: ClassVar[int] = kernel.AHBA
    options: ClassVar[dict[str, float]] = {"eps": 0.1, "delta": 0.9, **ADA.options}

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        for option, least in (("eps", LEAST), ("delta", 0)):
            if not least < self.parameters[option] < 1:
                raise QueryError(f"{option}={self.parameters[option]:g} must lie between {least:g} and 1")

    def samples(self) -> int:
        return sample_size(self.parameters["eps"], self.parameters["delta"])

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        return {"eps": query.error, "delta": 1 - query.error} if query.error else {}

    def bound(self) -> str:
        eps, delta = self.parameters["eps"], self.parameters["delta"]
        return (
            f"approximate: a score is underestimated by more than {eps:g} of the range of the scores of its "
            f"cell with a probability of at most {1 - delta:g}"
        )


def sample_size(eps: float, delta: float) -> int:
    """Points of a sample on the borders of a cell (equation 11).

    >>> sample_size(0.1, 0.9), sample_size(0.01, 0.99)
    (116, 23026)
    """
    return math.ceil(math.log(1 / (1 - delta)) / (2 * eps * eps))
