"""Compiled kernels on disk, and what is said while they are compiled."""

import inspect
import os
import pty
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from skyband.kernels.common.jit import NOTICE, TakingTurns, outer
from skyband.kernels.common.order import better


def test_many_may_keep_kernels_at_once(tmp_path: Path) -> None:
    """Nothing is lost, and every signature finds its own code."""

    def keep(signature: int) -> None:
        TakingTurns(str(tmp_path), "kernel", "stamp").save(signature, f"code {signature}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(80)))
    kept = TakingTurns(str(tmp_path), "kernel", "stamp")
    assert [kept.load(signature) for signature in range(80)] == [f"code {signature}" for signature in range(80)]


def test_kernels_are_kept_so() -> None:
    if hasattr(better, "_cache"):  # not with NUMBA_DISABLE_JIT
        assert isinstance(better._cache._cache_file, TakingTurns)


def last_of(values):
    return values[-1]


needs_jit = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")


@needs_jit
def test_private_parts_of_the_cache_of_numba() -> None:
    """``Dispatcher._cache``, ``Cache._cache_file``, and of that ``save(key, data)`` and ``_cache_path``."""
    plain = numba.njit(cache=True)(last_of)
    assert type(plain._cache._cache_file) is IndexDataCacheFile
    assert list(inspect.signature(IndexDataCacheFile.save).parameters) == ["self", "key", "data"]
    assert Path(plain._cache._cache_file._cache_path).name == "__pycache__"
    ours = outer(last_of)
    assert type(ours._cache._cache_file) is TakingTurns
    assert vars(ours._cache._cache_file) == vars(plain._cache._cache_file)


@needs_jit
@pytest.mark.parametrize(
    ("option", "value", "mark"),
    [("no_cfunc_wrapper", True, "@cfunc."), ("no_cpython_wrapper", True, "@_ZN7cpython"), ("_nrt", False, "@NRT_")],
)
def test_private_options_of_numba(option: str, value: bool, mark: str) -> None:
    """Each leaves out of the code what it is there to leave out."""
    code = []
    for options in ({}, {option: value}):
        kernel = numba.njit(**options)(last_of)
        kernel.compile((numba.float64[::1],))
        [text] = kernel.inspect_llvm().values()
        code.append(text)
    assert mark in code[0] and mark not in code[1]


def test_the_version_of_numba_is_bounded() -> None:
    """The next one may have other private parts: the tests above have to pass with it first."""
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    [wanted] = [line for line in project["dependencies"] if line.startswith("numba")]
    assert "<" in wanted


SLOW = """
import logging, sys, time
from numba import njit
from numba.core import event
from skyband.kernels.common.jit import NOTICE, Notice, watched

records = []
handler = logging.Handler()
handler.emit = lambda record: records.append((record.name, record.levelname, record.getMessage()))
logging.getLogger("skyband").addHandler(handler)
logging.getLogger("skyband").setLevel(logging.INFO)
notice = Notice(float(sys.argv[1]))
event.register("numba:compile", notice)
for number in range(3):
    njit(lambda x: x + number)(number)
time.sleep(0.2)
assert watched() == (sys.argv[2] == "watched")
assert records == ([("skyband", "INFO", NOTICE)] if sys.argv[2] == "logged" else []), records
"""


def compiling(patience: float, how: str, terminal: bool, **environment: str) -> str:
    """What comes on standard error, which may be a terminal, of a process that compiles with so much patience."""
    program = [sys.executable, "-c", SLOW, str(patience), how]
    ours, theirs = pty.openpty() if terminal else os.pipe()
    try:
        done = subprocess.run(program, stderr=theirs, env={**os.environ, **environment}, timeout=120)
    finally:
        os.close(theirs)
    said = b""
    with suppress(OSError):  # a terminal that nobody has any more
        while part := os.read(ours, 1000):
            said += part
    os.close(ours)
    assert done.returncode == 0, said
    return said.decode()


@needs_jit
def test_long_compiling_is_said_once_to_who_watches() -> None:
    assert compiling(0.01, "watched", terminal=True) == f"skyband: {NOTICE}\r\n"


@needs_jit
def test_long_compiling_is_logged_elsewhere() -> None:
    assert compiling(0.01, "logged", terminal=False) == ""


def test_short_compiling_is_not_worth_a_word() -> None:
    assert compiling(100.0, "watched", terminal=True) == ""
    assert compiling(100.0, "quiet", terminal=False) == ""


def test_without_jit_there_is_nothing_to_say() -> None:
    assert compiling(0.0, "quiet", terminal=False, NUMBA_DISABLE_JIT="1") == ""


def test_kernels_from_disk_are_not_compiled() -> None:
    """The second process compiles nothing, so that no time is counted."""
    code = """
from numba.core import event
import skyband as sb

class Count(event.Listener):
    count = 0
    def on_start(self, event): self.count += 1
    def on_end(self, event): pass

count = Count()
event.register("numba:compile", count)
sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(2, every=2))).push({"x": [1.0, 2.0]})
print(count.count)
"""
    program = [sys.executable, "-c", code]
    counts = [int(subprocess.run(program, capture_output=True, text=True, check=True).stdout) for _ in range(2)]
    assert counts[1] == 0
