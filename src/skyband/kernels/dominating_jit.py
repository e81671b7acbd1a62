"""How the kernels of this family are compiled: only what Python calls gets the code that unpacks Python's objects."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def inner(function: F) -> F:
    """A kernel that only kernels call."""
    return cast(F, njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def outer(function: F) -> F:
    """A kernel that Python calls."""
    return cast(F, njit(**_OPTIONS)(function))
