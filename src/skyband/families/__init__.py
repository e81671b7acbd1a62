"""The families of queries: one object each, registered here; the rest of skyband asks them and never branches."""

from collections.abc import Mapping
from typing import Any

from skyband.errors import StateError
from skyband.families.dominating import Dominating
from skyband.families.family import Family
from skyband.families.groups import Groups
from skyband.families.objects import Objects
from skyband.families.pairs import Pairs
from skyband.query import Query
from skyband.query.windows import Window

__all__ = ["FAMILIES", "Family", "from_spec", "of", "register"]

FAMILIES: dict[str, Family] = {}


def register(family: Family) -> None:
    """Makes a family known by its name, which its queries have in ``family``."""
    FAMILIES[family.name] = family


for _family in (Objects(), Pairs(), Dominating(), Groups()):
    register(_family)


def of(query: Query) -> Family:
    """The family of a query."""
    return FAMILIES[query.family]


def from_spec(spec: Mapping[str, Any]) -> Query:
    """The query that :meth:`Query.spec` described; not possible for one with a Python function."""
    kinds = {kind.__name__: kind for family in FAMILIES.values() for kind in family.queries}
    kind = kinds.get(spec.get("type", ""))
    if kind is None:
        raise StateError(f"the state belongs to a query of another kind: {spec.get('type')!r}")
    values = {name: value for name, value in spec.items() if name != "type"}
    for name in kind.functions:
        if isinstance(values[name], list):
            raise StateError(f"the state belongs to a query with the function {values[name][0]} for {name}, which is "
                             "not saved with it; hand the query over: loads(blob, query)")  # fmt: skip
    return kind(**{**values, "window": Window(**values["window"])})
