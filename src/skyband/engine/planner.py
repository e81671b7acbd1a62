"""Decides which algorithm answers a query, and explains why.

Each family has an ordered tuple of rules, which are small functions (:mod:`skyband.families`). The first rule that
gives an answer decides; :func:`explain` shows the reason that comes with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from skyband import families
from skyband.algorithms.contract import Algorithm
from skyband.query import Query, lowered, names_of


@dataclass(frozen=True)
class Plan:
    """The algorithm for one query, or for several that share its state, and why it was chosen."""

    queries: tuple[Query, ...]
    algorithm: type[Algorithm]
    reason: str
    options: dict[str, float] = field(default_factory=dict)
    places: tuple[int, ...] = (0,)  # the places of the queries in the list that was planned


def plans(queries: Sequence[Query]) -> list[Plan]:
    """A plan for each group of queries that can share one state, in the order of their first queries."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, query in enumerate(queries):
        sharing = families.of(query).sharing
        together = sharing is not None and query.algorithm in ("auto", sharing)
        groups.setdefault(query.shared() if together else (place,), []).append(place)
    return [replace(plan_for(tuple(queries[i] for i in group)), places=tuple(group)) for group in groups.values()]


def plan_for(queries: tuple[Query, ...]) -> Plan:
    """One plan for queries that share a state, by the rules of their family."""
    return Plan(queries, *families.of(queries[0]).choose(queries))


class Answering(Protocol):
    """Something that answers queries, such as a :class:`skyband.Monitor`."""

    queries: tuple[Query, ...]


def explain(query: Query | Sequence[Query] | Answering) -> str:
    """Says in words how a query will be answered: by which algorithm, why, and whether exactly.

    It takes a query, a list of queries, or a monitor.

    >>> import skyband as sb
    >>> print(sb.explain(sb.TopK(k=9, order_by="price DESC", window=sb.last("10 minutes", every="1 minute"))))
    top 9 by price DESC over the last 10 minutes every 1 minute on ts
    event times: times without a zone are UTC
    algorithm: mintopk, because windows hop: the minimal set of candidates, folded in pane by pane
    answers: exact

    Queries that share a state are explained together:

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
    """A plan in words; before each of its queries stands its name."""
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
    """How accurate the answers are; if an error is allowed and they are exact all the same, why."""
    if not algorithm.exact:
        return algorithm.bound()
    if not query.error:
        return "exact"
    asked = query.algorithm != "auto"
    return f"exact, though an error of {query.error:g} is allowed" + (
        "" if asked else ": no approximate algorithm is known to cost less"
    )
