"""Which algorithm answers a query, with which options, and why.

The rules are an ordered tuple of small functions; the first one that has an answer decides, and its reason is what
:func:`explain` shows.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from skyband import objects
from skyband.errors import QueryError
from skyband.objects.base import Algorithm
from skyband.queries import Query, TopK


@dataclass(frozen=True)
class Plan:
    """An algorithm for some queries that share it."""

    queries: tuple[TopK, ...]
    algorithm: type[Algorithm]
    reason: str
    options: dict[str, float] = field(default_factory=dict)
    places: tuple[int, ...] = (0,)  # where the queries stand among those that were planned together


@cache
def algorithms() -> dict[str, type[Algorithm]]:
    """Every algorithm in the package, by name; a new module in a family's package is found by itself."""
    found: dict[str, type[Algorithm]] = {}
    for module in pkgutil.iter_modules(objects.__path__, f"{objects.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Algorithm) and "name" in vars(value):
                found[value.name] = value
    return dict(sorted(found.items()))


def plans(queries: Sequence[TopK]) -> list[Plan]:
    """A plan for each group of queries that can share one state, in the order of their first queries."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, query in enumerate(queries):
        window = query.window
        shared = (window.time, window.hopping, window.on, window.late, query.order_by, query.where, query.partition_by)
        alone = query.algorithm not in ("auto", "scase")
        groups.setdefault((place,) if alone else shared, []).append(place)
    return [replace(plan_for(tuple(queries[i] for i in group)), places=tuple(group)) for group in groups.values()]


def plan_for(queries: tuple[TopK, ...]) -> Plan:
    """The first rule that has an answer."""
    for rule in RULES:
        if (choice := rule(queries)) is not None:
            name, reason, options = choice
            found = algorithms()
            if name not in found:
                raise QueryError(f"algorithm={name!r} is unknown; there are {', '.join(found)}")
            kind = queries[0].window.kind
            if kind not in found[name].serves:
                able = [n for n, a in found.items() if kind in a.serves]
                raise QueryError(f"algorithm={name!r} cannot serve a window that "
                                 f"{'hops' if kind == 'hopping' else 'moves with every arrival'}; "
                                 f"these can: {', '.join(able)}")  # fmt: skip
            return Plan(queries, found[name], reason, options)
    raise AssertionError("the last rule always has an answer")


def explain(query: Query) -> str:
    """What will be done for a query, and why.

    >>> import skyband as sb
    >>> print(sb.explain(sb.TopK(k=9, order_by="price DESC", window=sb.last("10 minutes", every="1 minute"))))
    top 9 by price DESC over the last 10 minutes every 1 minute on ts
    algorithm: mintopk, because windows hop: the minimal set of candidates, folded in pane by pane
    answers: exact
    """
    topk = query.lower()
    plan = plan_for((topk,))
    order = topk.order_by if isinstance(topk.order_by, str) else "a Python function"
    options = "".join(f", {name}={value:g}" for name, value in plan.options.items())
    lines = [f"top {topk.k} by {order} over the {topk.window}"]
    lines += [f"for each {', '.join(topk.partition_by)}"] if topk.partition_by else []
    lines += [f"algorithm: {plan.algorithm.name}{options}, because {plan.reason}"]
    lines += ["answers: exact" if plan.algorithm.exact else
              f"answers: approximate, a top-k object is missed with probability below {topk.error or 0.001:g} a window "
              "length if the stream is in random order"]  # fmt: skip
    return "\n".join(lines)


Choice = tuple[str, str, dict[str, float]]


def _named(queries: tuple[TopK, ...]) -> Choice | None:
    name, options = queries[0].algorithm_call()
    return None if name == "auto" else (name, "the query names it", options)


def _shared(queries: tuple[TopK, ...]) -> Choice | None:
    if len(queries) == 1:
        return None
    return "scase", f"{len(queries)} queries share their scores: one K-skyband serves every k and window length", {}


def _hopping(queries: tuple[TopK, ...]) -> Choice | None:
    if not queries[0].window.hopping:
        return None
    return "mintopk", "windows hop: the minimal set of candidates, folded in pane by pane", {}


def _approximate(queries: tuple[TopK, ...]) -> Choice | None:
    if not queries[0].error:
        return None
    return "pa", f"an error of {queries[0].error:g} is allowed: only objects with a fair chance are kept", {}


def _late(queries: tuple[TopK, ...]) -> Choice | None:
    if not queries[0].window.late:
        return None
    return "scase", "rows may come late: the staircase drops those that cannot matter", {}


def _every_arrival(queries: tuple[TopK, ...]) -> Choice | None:
    return "rapf", "the window moves with every arrival: the fastest exact algorithm for it", {}


RULES: tuple[Callable[[tuple[TopK, ...]], Choice | None], ...] = (
    _named, _shared, _hopping, _approximate, _late, _every_arrival,
)  # fmt: skip
