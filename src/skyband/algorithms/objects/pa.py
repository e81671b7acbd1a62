"""PA: the probabilistic candidate pruning algorithm."""

from collections.abc import Mapping
from typing import ClassVar

from skyband.algorithms.objects.arrival import OneBand
from skyband.algorithms.objects.limits import guaranteed_limit, limit, timed_limit
from skyband.errors import QueryError
from skyband.kernels.objects.bands import CAP, Band, empty_band
from skyband.query import Query


class PA(OneBand):
    """The *probabilistic candidate pruning algorithm* of topkw (section 4.1, Algorithms 1 and 2).

    It keeps the k + limit best objects, where ``limit`` is such that an object of lower rank at its arrival is unlikely
    ever to reach the top k. Approximate: in a random-order stream of N objects it misses fewer than σN/n top-k objects
    and reports fewer than 1.5σN/n false ones (Lemma 4.6). In streams whose scores fall it errs at every step.

    Options:
        sigma: the probability of error σ (default: the query's ``error``, or 0.001, as in Table IX).
        additional: objects to hold beyond the limit, so that an expiry lowers the threshold instead of lifting it.
        fewest, most: time windows, which are refused without them: how many objects any stretch of the stream as long
            as the window holds, at least and at most.

    For count windows with ``error`` above 0 the bound is a promise, and the limit comes from the tail sum of Definition
    4.5 (:func:`skyband.algorithms.objects.limits.guaranteed_limit`); with ``sigma`` it comes from the rule that gives
    Table V (:func:`skyband.algorithms.objects.limits.limit`), by which the error may be a little larger than σ.

    The paper knows count windows only. In time windows the rate may fall, and then objects of any rank reach the top k,
    for nothing comes in the place of what expires. With ``fewest`` and ``most`` it is promised that fewer than σ top-k
    objects are missed in as much of the stream as the window is long
    (:func:`skyband.algorithms.objects.limits.timed_limit`).

    Errata: in Algorithm 1 the tail moves down when the top-k tree holds *more than* k, and line 1 of Algorithm 2 must
    hold for its tail too (≤).
    """

    name = "pa"
    exact = False
    options: ClassVar[dict[str, float]] = {"sigma": 0.001, "additional": 0, "fewest": 0, "most": 0}

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        return {"sigma": query.error} if query.error else {}

    def bound(self) -> str:
        query, given = self.query, self.parameters
        promised, provided = "below", "the stream is in random order"
        if query.window.time:
            length = str(query.window).partition(" at")[0]
            provided += f" and the {length} always hold from {given['fewest']:g} to {given['most']:g} objects"
        elif not query.error:
            promised = "of about"
        return (f"approximate, a top-k object is missed with probability {promised} {given['sigma']:g} a window length "
                f"if {provided}")  # fmt: skip

    def _check_options(self) -> None:
        super()._check_options()
        _check_rate(self.query, self.parameters)

    def band(self) -> Band:
        k, error, given = self.query.k, self.query.error, self.parameters
        if self.window.time:
            candidates = timed_limit(k, error or given["sigma"], int(given["fewest"]), int(given["most"]))
        elif error:
            candidates = guaranteed_limit(self.window.extent, k, error)
        else:
            candidates = limit(self.window.extent, k, given["sigma"])
        return empty_band(CAP, k, self.ties, limit=candidates, additional=int(given["additional"]), floor=candidates)


def _check_rate(query: Query, given: Mapping[str, float]) -> None:
    """Refuses time windows of which it is not said how many objects they hold, and others of which it is."""
    fewest, most = given["fewest"], given["most"]
    if not query.window.time:
        if fewest or most:
            raise QueryError("options fewest and most of algorithm 'pa' are for time windows; leave them out: a count "
                             "window holds as many objects as it is long")  # fmt: skip
        return
    if not (1 <= fewest <= most and fewest == int(fewest) and most == int(most)):
        raise QueryError(f"algorithm 'pa' with fewest={fewest:g} and most={most:g} cannot tell how much it misses: "
                         "where the rate falls, any object may reach the top k. Say how many objects any stretch of "
                         "the stream as long as the window holds, at least and at most (whole numbers, 1 <= fewest <= "
                         "most), as in 'pa(fewest=500, most=2000)'; or leave the choice of the algorithm to 'auto', "
                         "which is exact for time windows")  # fmt: skip
