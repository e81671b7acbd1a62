"""Which algorithm answers a query, with which options, and why.

The rules of each family are an ordered tuple of small functions (:mod:`skyband.families`); the first one that has an
answer decides, and its reason is what :func:`explain` shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from skyband import families
from skyband.algorithms.contract import Algorithm
from skyband.query import Query, lowered, names_of


@dataclass(frozen=True)
class Plan:
    """An algorithm for some queries that share it."""

    queries: tuple[Query, ...]
    algorithm: type[Algorithm]
    reason: str
    options: dict[str, float] = field(default_factory=dict)
    places: tuple[int, ...] = (0,)  # where the queries stand among those that were planned together


def plans(queries: Sequence[Query]) -> list[Plan]:
    """A plan for each group of queries that can share one state, in the order of their first queries."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, query in enumerate(queries):
        together = families.of(query).shares and query.algorithm in ("auto", "scase")
        groups.setdefault(query.shared() if together else (place,), []).append(place)
    return [replace(plan_for(tuple(queries[i] for i in group)), places=tuple(group)) for group in groups.values()]


def plan_for(queries: tuple[Query, ...]) -> Plan:
    """What the family of the queries chooses for them."""
    return Plan(queries, *families.of(queries[0]).choose(queries))


class Answering(Protocol):
    """What has queries to answer: a :class:`skyband.Monitor`."""

    queries: tuple[Query, ...]


def explain(query: Query | Sequence[Query] | Answering) -> str:
    """What will be done for a query, for each of several, or for those of a monitor, and why.

    >>> import skyband as sb
    >>> print(sb.explain(sb.TopK(k=9, order_by="price DESC", window=sb.last("10 minutes", every="1 minute"))))
    top 9 by price DESC over the last 10 minutes every 1 minute on ts
    event times: times without a zone are UTC
    algorithm: mintopk, because windows hop: the minimal set of candidates, folded in pane by pane
    answers: exact

    Queries that share a state stand together:

    >>> print(sb.explain([sb.TopK(k=k, order_by="price DESC", window=sb.last(1000)) for k in (3, 5)]))
    q0: top 3 by price DESC over the last 1000 at every arrival
    q1: top 5 by price DESC over the last 1000 at every arrival
    algorithm: scase, because 2 queries share their scores: one K-skyband serves every k and window length
    answers: exact
    """
    asked: Any = query if isinstance(query, Query | list | tuple) else getattr(query, "queries", query)
    queries = lowered(asked)
    if isinstance(asked, Query) or len(queries) == 1:
        return _explained(plan_for(queries), [""])
    names = names_of(queries)
    return "\n\n".join(_explained(plan, [f"{names[i]}: " for i in plan.places]) for plan in plans(queries))


def _explained(plan: Plan, names: Sequence[str]) -> str:
    """A plan in words; each of its queries with its name before it."""
    lines = []
    for name, query in zip(names, plan.queries, strict=True):
        lines += [f"{name}{query.describe()} over the {query.window}"]
        lines += [f"for each {', '.join(query.partition_by)}"] if query.partition_by else []
    lines += ["event times: times without a zone are UTC"] if plan.queries[0].window.time else []
    options = "".join(f", {name}={value:g}" for name, value in plan.options.items())
    lines += [f"algorithm: {plan.algorithm.name}{options}, because {plan.reason}"]
    algorithm = plan.algorithm(*plan.queries, **plan.options)  # refuses options that make no sense
    answers = dict.fromkeys(_promised(query, algorithm) for query in plan.queries)
    lines += [f"answers: {'; '.join(answers)}"]
    return "\n".join(lines)


def _promised(query: Query, algorithm: Algorithm) -> str:
    """How right the answers are, and why they are exact where they need not be."""
    if not algorithm.exact:
        return algorithm.bound()
    if not query.error:
        return "exact"
    asked = query.algorithm != "auto"
    return f"exact, though an error of {query.error:g} is allowed" + (
        "" if asked else ": no approximate algorithm is known to cost less"
    )
