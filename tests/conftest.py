"""One Hypothesis profile for all tests; and how they are spread over processes."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# The same examples on every run, and no limit on the time of one.
settings.register_profile("skyband", deadline=None, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # fmt: skip
settings.load_profile("skyband")


def group(nodeid: str) -> str:
    """Tests of one group run in one process, one after the other: most of their time goes into compiling kernels, which
    the first of them does for all. A group is a file and the first parameter, which mostly is the algorithm.

    >>> group("tests/algorithms/test_contract.py::test_ties[mintopk-count-3]")
    'tests/algorithms/test_contract.py mintopk'
    >>> group("tests/cli/test_cli.py::test_help")
    'tests/cli/test_cli.py'
    >>> group("src/skyband/order.py::skyband.order")
    'examples'
    """
    path, _, name = nodeid.partition("::")
    if not path.startswith("tests"):
        return "examples"
    return f"{path} {name.partition('[')[2].rstrip(']').partition('-')[0]}".rstrip()


class Grouped(LoadScopeScheduling):
    """pytest-xdist's schedule by scope, with a scope of our own."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:
    return Grouped(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "spark" in item.path.parts)  # at last: their workers find the kernels compiled


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests/query/test_options.py recorded: pairs of options answered, refused by name, and queries put."""
    totals: dict[str, list[int]] = {}
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        for name, value in getattr(report, "user_properties", []) if getattr(report, "when", "") == "call" else []:
            if name == "options":
                what, *counts = value
                totals[what] = [a + b for a, b in zip(totals.get(what, [0, 0, 0]), counts, strict=True)]
    if totals:
        terminalreporter.section("options: combinations answered as by the oracle, and refused by name")
        for what, (answered, refused, put) in sorted(totals.items()):
            terminalreporter.line(f"{what:34} {answered:7} answered {refused:6} refused  ({put} queries put)")
        answered, refused, put = (sum(column) for column in zip(*totals.values(), strict=True))
        terminalreporter.line(f"{'in all':34} {answered:7} answered {refused:6} refused  ({put} queries put)")
