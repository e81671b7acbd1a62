"""BFA: the brute-force algorithm."""

from skyband.algorithms.dominating.base import Dominating, Standing
from skyband.kernels.dominating.bfa import brute_force
from skyband.kernels.dominating.space import Points
from skyband.kernels.dominating.tell import Steps, Told


class BFA(Dominating):
    """The *brute-force algorithm* of Kontaki, Papadopoulos and Manolopoulos (TKDE 2012), section 3: the baseline.

    The score of every point of the window is kept: whatever comes or goes is compared with all of them. Each update
    costs about 3 · n dominance checks, and the memory of the points twice over.
    """

    name = "bfa"

    def take(self, state: Standing, rows: Points, steps: Steps, told: Told) -> tuple[Standing, Told]:
        ledger, told = brute_force(state.space, state.ledger, told, rows, steps, self.k, self.ties, self.work)
        return state._replace(ledger=ledger), told
