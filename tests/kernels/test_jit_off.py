"""The kernels give the same answers as plain Python: a part of each suite with the JIT switched off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHOSEN = {
    "contract": (["algorithms/test_contract.py"],
                 "test_equals_the_oracle and (tied or broken) or test_saving_and_loading_does_not_matter and random"),
    "arrivals": (["algorithms/objects/test_arrivals.py"],
                 "brute_force and tied and (count or jittered) or do_not_matter or hopping and tied or options or "
                 "stretches"),
    "scase": (["algorithms/objects/test_scase.py"],
              "one_query and (tied or saw) or tree or staircase or (several and infinite) or silences"),
    "pairs": (["algorithms/pairs/test_pairs.py"], "test_equals_brute_force and (jittered_tied or broken or tiny)"),
    "dominating": (["algorithms/dominating/test_dominating.py"],
                   "test_equals_the_oracle and (tied or saw or rising) and not 500 or test_the_local_step"),
    "groups": (["algorithms/groups/test_aggregates.py"],
               "products_are or null or fails or test_equals_the_oracle and jittered_tied or "
               "test_cutting and min"),
    "streams": (["algorithms/groups/test_streams.py", "algorithms/groups/test_approx.py"],
                "test_equals_the_oracle and (sum or product) or test_buffers_views or test_cutting and once or "
                "test_sketches"),
}  # fmt: skip


@pytest.mark.parametrize("suite", CHOSEN)
def test_without_jit(suite: str) -> None:
    files, chosen = CHOSEN[suite]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", chosen],
        cwd=Path(__file__).parents[1], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
