"""What an algorithm over pairs keeps of one partition, and what it is handed to bring that up to date."""

from typing import Annotated, NamedTuple

from skyband.kernels.common.staircase import LATEST
from skyband.kernels.pairs.answers import AnswerLog, Answers, Queries
from skyband.kernels.pairs.band import Pairs, PairStairs
from skyband.kernels.pairs.scan import Scoring, Scratch
from skyband.kernels.pairs.window import Newcomers, WindowObjects
from skyband.storage.blocks import Ints, block, column


@block(version=1)
class PairState(NamedTuple):
    """The objects of the longest window, the pairs of them that are kept (S in the paper), and what is told of them."""

    window: WindowObjects
    band: Pairs
    stairs: PairStairs
    answers: Answers
    ends: Annotated[Ints, column("queries", fill=LATEST)]  # hopping: where the next window of each query ends


class Batch(NamedTuple):
    """Objects to take in, and what else that needs."""

    newcomers: Newcomers
    queries: Queries
    scoring: Scoring
    log: AnswerLog
    scratch: Scratch
    moves: bool  # whether the window moves on with each object
