"""How kernels are compiled, and kept on disk for the next process."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import IndexDataCacheFile

if sys.platform != "win32":
    import fcntl

F = TypeVar("F", bound=Callable[..., Any])
_OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OUTER, "no_cpython_wrapper": True}  # the code that unpacks Python's objects takes long


def outer(function: F) -> F:
    """A kernel that Python calls."""
    return _compiled(function, _OUTER)


def inner(function: F) -> F:
    """A kernel that only kernels call."""
    return _compiled(function, _INNER)


def inlined(function: F) -> F:
    """An inner kernel of which a call would cost more than what it does."""
    return _compiled(function, {**_INNER, "inline": "always"})


def in_place(function: F) -> F:
    """An inner kernel that allocates nothing.

    It need not count references to the arrays of its arguments, which would otherwise be most of what it costs: every
    call of a function with branches takes and drops one to each array.
    """
    return _compiled(function, {**_INNER, "_nrt": False})


def _compiled(function: F, options: dict[str, Any]) -> F:
    kernel = njit(**options)(function)
    if hasattr(kernel, "_cache"):  # not with NUMBA_DISABLE_JIT
        kernel._cache._cache_file.__class__ = TakingTurns
    return cast(F, kernel)


class TakingTurns(IndexDataCacheFile):
    """Numba's files of one kernel, to which several processes may add at the same time, as Spark's workers do.

    Numba reads the index, picks a file name that is not in it, and writes both. Two processes that compile a kernel for
    two types of arguments at the same time pick the same name, and the index of one may end with the code of the other.
    """

    def save(self, key: Any, data: Any) -> None:
        with _turn(self._cache_path):
            super().save(key, data)  # type: ignore[no-untyped-call]


@contextmanager
def _turn(directory: str) -> Iterator[None]:
    """While it lasts, no other process has a turn in the directory. A process that dies gives up its turn."""
    if sys.platform == "win32":  # no such locks there
        yield
        return
    with open(os.path.join(directory, "kernels.lock"), "a") as lock:
        with suppress(OSError):  # some file systems have no locks either
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        yield
