"""PA: the probabilistic candidate pruning algorithm."""

from typing import ClassVar

from skyband.algorithms.objects.arrival import OneBand
from skyband.algorithms.objects.limits import guaranteed_limit, limit
from skyband.kernels.objects.bands import CAP, Band, empty_band
from skyband.query import Query

POPULATION = 10**9  # how many objects a time window is taken to hold; ten times as many need 3 to 5 candidates more


class PA(OneBand):
    """The *probabilistic candidate pruning algorithm* of topkw (section 4.1, Algorithms 1 and 2).

    It keeps the k + limit best objects, where ``limit`` is such that an object of lower rank at its arrival is unlikely
    ever to reach the top k. Approximate: in a random-order stream of N objects it misses fewer than σN/n top-k objects
    and reports fewer than 1.5σN/n false ones (Lemma 4.6). In streams whose scores fall it errs at every step.

    Options:
        sigma: the probability of error σ (default: the query's ``error``, or 0.001, as in Table IX).
        additional: objects to hold beyond the limit, so that an expiry lowers the threshold instead of lifting it.

    With ``error`` above 0 the bound is a promise, and the limit comes from the tail sum of Definition 4.5
    (:func:`skyband.algorithms.objects.limits.guaranteed_limit`); otherwise from the rule that gives Table V
    (:func:`skyband.algorithms.objects.limits.limit`). The paper knows count windows only. A time window is taken to
    hold a thousand million objects: the limit grows with n, so that with fewer the error is only smaller.

    Errata: in Algorithm 1 the tail moves down when the top-k tree holds *more than* k, and line 1 of Algorithm 2 must
    hold for its tail too (≤).
    """

    name = "pa"
    exact = False
    options: ClassVar[dict[str, float]] = {"sigma": 0.001, "additional": 0}

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        return {"sigma": query.error} if query.error else {}

    def bound(self) -> str:
        return (f"approximate, a top-k object is missed with probability below {self.parameters['sigma']:g} a window "
                "length if the stream is in random order")  # fmt: skip

    def band(self) -> Band:
        k, error = self.query.k, self.query.error
        n = POPULATION if self.window.time else self.window.extent
        candidates = guaranteed_limit(n, k, error) if error > 0 else limit(n, k, self.parameters["sigma"])
        return empty_band(CAP, k, self.ties, limit=candidates, additional=int(self.parameters["additional"]),
                          floor=candidates)  # fmt: skip
