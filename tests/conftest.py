"""One Hypothesis profile for all tests; and how they are spread over processes (``pytest -n 2 --dist loadgroup``)."""

import os
from pathlib import Path

# A cache of compiled kernels for each process: numba's may break when two processes add to one function at once.
# This comes before anything imports numba.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parents[1] / ".venv" / "kernels" / worker)

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, and no limit on the time of one.
settings.register_profile("skyband", deadline=None, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # fmt: skip
settings.load_profile("skyband")


def group(item: pytest.Item) -> str:
    """Tests of one group run in one process: one Spark for all that need it, and kernels compiled once for many.

    With pytest 9.2 pytest-xdist 3.8 does not see the groups, and any process may run any test.
    """
    if "spark" in item.path.parts:
        return "spark"
    if isinstance(item, pytest.DoctestItem):
        return "examples"
    algorithm = item.callspec.params.get("algorithm") if hasattr(item, "callspec") else None
    return algorithm if isinstance(algorithm, str) else item.path.stem


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: group(item) != "spark")  # what takes longest begins first
