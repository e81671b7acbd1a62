"""The kernels give the same answers as plain Python: part of the contract suite with the JIT switched off."""

import os
import subprocess
import sys
from pathlib import Path

CHOSEN = "test_equals_the_oracle and (tied or broken) or test_saving_and_loading_does_not_matter and random"


def test_contract_without_jit():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_contract.py", "-k", CHOSEN],
        cwd=Path(__file__).parent, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
