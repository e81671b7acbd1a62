"""Basic: the K-skyband of pairs with dominance counters, without a staircase."""

from skyband.algorithms.pairs.base import OverPairs
from skyband.kernels.pairs.basic import arrive_basic
from skyband.kernels.pairs.state import Batch, PairState


class Basic(OverPairs):
    """The best pairs as earlier algorithms would keep them, to measure others against.

    The competitor *basic* of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over
    Sliding Windows* (TKDE 2014, section 7.1.4): Algorithm 3 without the K-staircase.

    Every new pair is compared with the pairs of S in rank order until K of them dominate it. A pair in S counts the
    pairs that dominate it, and leaves when there are K of them: what earlier algorithms for skybands do. It is here to
    be measured against :class:`skyband.algorithms.pairs.scase.SCase`, which gives the same answers.
    """

    name = "basic"

    def take_in(self, state: PairState, batch: Batch, first: int) -> int:
        return arrive_basic(state, batch, first)

    def verify(self, state: PairState) -> None:
        super().verify(state)
        self._verify_skyband(state)
