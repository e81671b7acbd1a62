"""skyband: continuous top-k queries over sliding windows, exact, in Python and on Spark."""

from skyband.errors import QueryError, SkybandError, StateError
from skyband.monitor import Monitor, Stats
from skyband.plan import explain
from skyband.queries import Nearest, TopK
from skyband.windows import Window, last

__all__ = ["Monitor", "Nearest", "QueryError", "SkybandError", "StateError", "Stats", "TopK", "Window", "explain",
           "last"]  # fmt: skip
__version__ = "0.1.0"
