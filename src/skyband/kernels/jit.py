"""How kernels are compiled: only what Python calls gets the code that unpacks Python's objects, which takes longest."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
_OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OUTER, "no_cpython_wrapper": True}


def inner(function: F) -> F:
    """A kernel that only kernels call."""
    return cast(F, njit(**_INNER)(function))


def outer(function: F) -> F:
    """A kernel that Python calls."""
    return cast(F, njit(**_OUTER)(function))
