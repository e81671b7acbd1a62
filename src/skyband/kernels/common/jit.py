"""How kernels are compiled, kept on disk for the next process, and that it is said where it takes long.

Numba's options ``no_cfunc_wrapper``, ``no_cpython_wrapper`` and ``_nrt``, and the file of its cache, are no part of
what it promises: ``pyproject.toml`` says with which versions they work, and ``tests/kernels/test_jit.py`` tells when
they do not.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event
from numba.core.caching import IndexDataCacheFile

if sys.platform != "win32":
    import fcntl

F = TypeVar("F", bound=Callable[..., Any])
_OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OUTER, "no_cpython_wrapper": True}  # the code that unpacks Python's objects takes long

_log = logging.getLogger("skyband")
PATIENCE = 2.0  # seconds of compiling before it is said
NOTICE = "compiling for this kind of query, which may take up to a minute; it is kept for the next time"


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


class Notice(event.Listener):
    """Says once that compiling takes long: on standard error where somebody watches, as a log record elsewhere.

    Numba tells when it begins and ends to compile a kernel, one within another, in one thread at a time; of a kernel
    that is on disk, or compiled already, it tells nothing.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._left = patience
        self._depth = 0
        self._said = False
        self._began = 0.0
        self._timer = threading.Timer(patience, self._say)

    def on_start(self, event: event.Event) -> None:
        self._depth += 1
        if self._depth == 1 and not self._said:
            self._began = monotonic()
            self._timer = threading.Timer(self._left, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._timer.cancel()
            self._left = max(0.0, self._left - (monotonic() - self._began))

    def _say(self) -> None:
        self._said = True
        if watched():
            print(f"skyband: {NOTICE}", file=sys.stderr, flush=True)
        else:
            _log.info(NOTICE)


def watched() -> bool:
    """Whether somebody sees at once what is written to standard error: on a terminal, or in a notebook."""
    shell = sys.modules.get("IPython")
    notebook = shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
    return notebook or (sys.stderr is not None and sys.stderr.isatty())


event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]
