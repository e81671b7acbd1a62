"""RA: the relaxed candidate pruning algorithm."""

from typing import ClassVar

from skyband.algorithms.objects.arrival import OneBand
from skyband.kernels.objects.bands import PRUNE, Band, empty_band


class RA(OneBand):
    """The *relaxed candidate pruning algorithm* of topkw (section 4.2, Algorithms 3–5).

    It holds a superset of the k-skyband and prunes it (Algorithm 4) only when the candidates, the objects beside the
    top k, have become ``1 + gamma`` times what the last pruning left of them; at first, when they reach 4k.

    Options:
        gamma: the pruning coefficient γ (default 0.2, as in Table IX).

    Deviations and errata:

    - Lines 6–10 of Algorithm 3 move the tail down when the top-k tree holds *more than* k.
    - Instead of three trees there is one sorted array; the time tree of the top-k objects is a lower bound on the
      oldest of them (Lemma 4.8), and the dominator tree a binary heap.
    - The limit is at least γk: by line 17 alone it would be 0 in a stream of rising scores, which leaves no candidates.
    - At the end of each batch expired candidates are dropped.
    - Table VII, step 11: three candidates reach the limit of 3 set in step 10, so o₁₀ must go, as in step 6.
    """

    name = "ra"
    options: ClassVar[dict[str, float]] = {"gamma": 0.2}

    def band(self) -> Band:
        return empty_band(PRUNE, self.query.k, self.ties, gamma=self.parameters["gamma"])
