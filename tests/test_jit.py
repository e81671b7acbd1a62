"""Compiled kernels on disk."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skyband.kernels.jit import TakingTurns
from skyband.kernels.order import better


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
