"""Parses SQL aggregates such as ``sum(x)``, by themselves and within a condition."""

from dataclasses import dataclass

from sqlglot import exp

from skyband.errors import QueryError
from skyband.expressions.tree import read

_KINDS: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max",
}  # fmt: skip
_NAMES = ("mean", "product", "count_distinct")  # functions that sqlglot does not know to be aggregates
_CALLS = "count(*), count(e), count(distinct e), sum(e), mean(e), avg(e), min(e), max(e), product(e)"
_OWN = "skyband: "  # the prefix of columns that stand for aggregates; names of outputs cannot have it


@dataclass(frozen=True)
class Call:
    """One aggregate over the rows of a group.

    Attributes:
        how: ``"count"``, ``"count_distinct"``, ``"sum"``, ``"mean"``, ``"min"``, ``"max"`` or ``"product"``.
        of: the SQL expression that is aggregated; None if the rows themselves are counted.
        weighted: whether each value is multiplied by the weight of its stream.
    """

    how: str
    of: str | None
    weighted: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is a count, which gives a whole number."""
        return self.how in ("count", "count_distinct")


def read_call(text: str, label: str) -> Call:
    """Parses a single aggregate.

    >>> read_call("count(DISTINCT lower(host))", "n")
    Call(how='count_distinct', of='LOWER(host)', weighted=False)
    """
    call = _call(read(text, label), label) if isinstance(text, str) and text.strip() else None
    if call is None:
        raise QueryError(f"{label} must be one aggregate: {_CALLS}, of an SQL expression e")
    return call


def read_condition(text: str, label: str) -> tuple[str, dict[str, Call]]:
    """Parses a condition over aggregates; returns it with columns in their place, and what each column stands for.

    >>> read_condition("max(x) > 2 OR n = 1", "having")
    ('"skyband: max x" > 2 OR n = 1', {'skyband: max x': Call(how='max', of='x', weighted=False)})
    """
    calls: dict[str, Call] = {}

    def replaced(node: exp.Expr) -> exp.Expr:
        call = _call(node, label)
        if call is None:
            return node
        name = f"{_OWN}{call.how} {'rows' if call.of is None else call.of}"
        calls[name] = call
        return exp.column(exp.to_identifier(name, quoted=True))

    return read(text, label).transform(replaced).sql(comments=False), calls


def _call(node: exp.Expr, label: str) -> Call | None:
    """The aggregate that a node of the tree stands for; None if it stands for none."""
    how, arguments = _KINDS.get(type(node)), [node.this, *(node.args.get("expressions") or ())]
    if how is None:
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in _NAMES:
            return None
        how, arguments = node.name.lower(), node.expressions
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        if how == "count":
            how = "count_distinct"
        elif how not in ("min", "max"):  # for which DISTINCT makes no difference
            raise QueryError(f"{label}: {node.sql()}: DISTINCT is served in count(DISTINCT e) only")
        arguments = arguments[0].expressions
    if len(arguments) != 1 or arguments[0] is None:
        hint = "; the largest of several columns of a row is greatest(...)" if how == "max" else ""
        raise QueryError(f"{label}: {node.sql()}: an aggregate is of one expression{hint}")
    if how == "count" and isinstance(arguments[0], exp.Star):
        return Call(how, None)
    return Call(how, arguments[0].sql(comments=False))
