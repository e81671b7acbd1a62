"""What is counted of an algorithm's work: the figures by which Kontaki et al. (TKDE 2012) compare them, Table 4."""

from typing import NamedTuple

from skyband.storage.blocks import record_type


class Work(NamedTuple):
    """Counts since the algorithm was made."""

    comparisons: int = 0  # of the coordinates of two points
    scores: int = 0  # exact scores that were counted
    events: int = 0  # points that were looked at because they came or because their event was due


WORK = record_type(Work)
