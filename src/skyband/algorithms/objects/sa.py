"""SA: the strict candidate pruning algorithm."""

from skyband.algorithms.objects.arrival import OneBand
from skyband.kernels.objects.bands import PRUNE, Band, empty_band


class SA(OneBand):
    """The *strict candidate pruning algorithm* of Böhm et al. (ICDE 2007), as topkw describes it.

    After every arrival it holds exactly the k-skyband of the window (topkw, Definition 3.8): the objects with fewer
    than k others that are both newer and better, k(1 + H(n) - H(k)) of them on average in a random-order stream.

    It is RA with γ = 0 (section 8.2): each arrival prunes by a scan of the whole band (Algorithm 4), the O(n') of
    section 7.2. In a stream of falling scores the band, and the scan, grow to the whole window.
    """

    name = "sa"

    def band(self) -> Band:
        return empty_band(PRUNE, self.query.k, self.ties)
