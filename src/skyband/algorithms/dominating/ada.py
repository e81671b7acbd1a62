"""ADA: the advanced algorithm."""

from typing import ClassVar

from skyband.algorithms.dominating.eva import EVA
from skyband.errors import QueryError
from skyband.kernels.dominating import events as kernel
from skyband.query import Query


class ADA(EVA):
    """The *advanced algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 5: EVA and three things.

    Advanced event times (section 5.1): counters in points and cells tell how many newer points dominate a point. As
    long as enough of those are not in the top k themselves, it waits behind them (Lemma 2). Candidates (section 5.2):
    points whose event is near, within Δt updates, are not left to their events; their scores are kept up to date as
    those of the top k are. Δt grows by one in an update that counts scores, and shrinks when there are too many
    candidates. Obsolete events (section 5.3), due only after the point has expired, are not kept; the bound that was
    made for them is, so that the point still serves as a reference point.

    Options:
        maxcand: how many candidates there may be, as a share of the window (default 0.01).

    Errata:
        - Lemma 2 does not hold as stated. A point that waits behind r others gets in when *together* more than r of the
          top k have expired or have been overtaken; the lemma lets r expire and r be overtaken. Here r is divided
          between the two in the way that gives the longest safe interval.
    Deviations:
        - Which dominators of a point are in the top k is counted when its event is made, not kept in its counter: that
          would change the counters of most points with each change in the top k.
        - Points on the borders of cells are not added to the counters when scores are counted, and cells take notice of
          n / 64 arrivals at a time: that is one sum over all cells; each arrival alone would change many of them.
        - Candidates also stand in for points of the top k that expire: a point waits until a + 1 of the k + a best of
          the top k and the candidates have expired, or until it may have come up to the last of these, for the best of
          some a. With the top k alone (Lemma 1) every point that waits behind no other is due as soon as one of them
          expires. As many candidates as there are in the top k are found to begin with.
        - The largest score that a point of a cell can have (section 7.1), counted every n / 64 updates, is a bound too.
        - At most maxcand candidates: then Δt shrinks by an eighth rather than by one, and those beyond it get events.
    And as :class:`skyband.algorithms.dominating.eva.EVA`.
    """

    name = "ada"
    mode: ClassVar[int] = kernel.ADA
    per_cell = 8  # finer than EVA's: the counters then know of more dominators
    options: ClassVar[dict[str, float]] = {"maxcand": 0.01}

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        if not 0 <= self.parameters["maxcand"] <= 1:
            raise QueryError(f"maxcand={self.parameters['maxcand']:g} must be from 0 to 1: a share of the window")
