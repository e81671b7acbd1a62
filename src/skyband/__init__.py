"""skyband: continuous top-k queries over sliding windows, exact, in Python and on Spark.

Build a query (:class:`TopK`, :class:`Nearest`, :class:`TopKPairs`, :class:`TopKDominating` or :class:`TopKGroups`) and
hand it to a :class:`Monitor`, which answers it in this process, or to ``skyband.spark.run``, which answers it on Spark.

Numba, Arrow and Spark are imported only when a name that needs them is used, so that ``import skyband`` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from skyband.errors import DataWarning, QueryError, SettingsWarning, SkybandError, StateError

if TYPE_CHECKING:
    from skyband.engine.monitor import Monitor, Stats
    from skyband.engine.planner import explain
    from skyband.query import Nearest, TopK, TopKDominating, TopKGroups, TopKPairs
    from skyband.query.windows import Window, last

__all__ = ["DataWarning", "Monitor", "Nearest", "QueryError", "SettingsWarning", "SkybandError", "StateError", "Stats",
           "TopK", "TopKDominating", "TopKGroups", "TopKPairs", "Window", "explain", "last"]  # fmt: skip
__version__ = "0.1.0"

_HOMES = {
    "engine.monitor": ("Monitor", "Stats"),
    "engine.planner": ("explain",),
    "query": ("Nearest", "TopK", "TopKDominating", "TopKGroups", "TopKPairs"),
    "query.windows": ("Window", "last"),
}


def __getattr__(name: str) -> Any:
    if name == "spark":
        return importlib.import_module("skyband.spark")
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = found = getattr(importlib.import_module(f"skyband.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
