"""NA: no candidate pruning, the plain reference."""

from skyband.algorithms.objects.arrival import OneBand
from skyband.kernels.objects.bands import KEEP, Band, empty_band


class NA(OneBand):
    """The *no candidate pruning algorithm* of topkw (footnote 8): all objects of the window, sorted.

    Every exact algorithm must give what this one gives. An arrival is put in its place among n objects; objects that
    have expired and are not in the top k are dropped together, when they have become a sixth of what is held.
    """

    name = "na"

    def band(self) -> Band:
        return empty_band(KEEP, self.query.k, self.ties, gamma=0.2)
