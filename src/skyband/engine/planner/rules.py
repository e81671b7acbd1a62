"""What a rule is, and the one that every family begins with."""

from collections.abc import Callable

from skyband.query import Query

Choice = tuple[str, str, dict[str, float]]  # the algorithm, the reason, its options
Rule = Callable[[tuple[Query, ...]], Choice | None]


def named(queries: tuple[Query, ...]) -> Choice | None:
    """The algorithm that the query asks for."""
    name, options = queries[0].algorithm_call()
    return None if name == "auto" else (name, "the query names it", options)
