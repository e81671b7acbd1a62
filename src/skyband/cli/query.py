"""The command-line options that describe a query, the same for every command that takes one."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from skyband.errors import QueryError

if TYPE_CHECKING:
    from skyband.query import Query
    from skyband.query.windows import Window

EVERYTHING = 1 << 40  # objects: the length of a window for all rows, which no file fills


class Ties(StrEnum):
    newest = "newest"
    all = "all"


def _option(text: str, *names: str) -> Any:
    return Option(*names, help=text, rich_help_panel="The query")


K = Annotated[int, _option("How many rows to give for each window.", "--k", "-k")]
OrderBy = Annotated[str | None, _option('What to rank by, as in SQL: "price * volume DESC".')]
NearestTo = Annotated[str | None, _option('Rank by the distance from this point instead: "x=0.2,y=0.7".')]
Metric = Annotated[str, _option("The distance: euclidean, manhattan, chebyshev, or a number p for Lp.")]
Weights = Annotated[str | None, _option('Factors for columns in the distance: "x=2"; 1 for the others.')]
Last = Annotated[str | None, _option('How long the window is: "10 minutes", or a number of rows.')]
Every = Annotated[str | None, _option('How far it moves at a time: "1 minute", or a number of rows; by default with '
                                      "each row.")]  # fmt: skip
On = Annotated[str | None, _option("The event-time column, by default ts. For a window of rows: a column that numbers "
                                   "the rows 0, 1, 2, …")]  # fmt: skip
Late = Annotated[str | None, _option('How late a row may come: "5 seconds"; by default not at all.')]
PartitionBy = Annotated[list[str] | None, _option("Columns; each combination of their values has its own ranking.")]
Where = Annotated[str | None, _option('Which rows count, as in SQL: "price > 0".')]
Select = Annotated[list[str] | None, _option('Columns to show: "symbol, price * 2 AS twice"; by default all.')]
WhichTies = Annotated[Ties, _option("newest: k rows and no more, the newest of equal scores first. all: also every row "
                                    "whose score equals the k-th.")]  # fmt: skip
Error = Annotated[float, _option("Above 0, the answer may be wrong with about this probability.")]
Algorithm = Annotated[str, _option("The name of an algorithm; --explain tells which one is taken.")]
Name = Annotated[str | None, _option("What the query is called.")]
# Options about files rather than the query, for the commands that read or write them.
Overwrite = Annotated[bool, Option("--overwrite", help="Replace what --to names, if it exists.")]
Delimiter = Annotated[str | None, Option(metavar="CHARACTER", help="The character between the fields of CSV that is "
                                         "read; by default a comma. Write tab for a tab.")]  # fmt: skip


def _query(
    k: K = 10,
    order_by: OrderBy = None,
    nearest_to: NearestTo = None,
    metric: Metric = "euclidean",
    weights: Weights = None,
    last: Last = None,
    every: Every = None,
    on: On = None,
    late: Late = None,
    partition_by: PartitionBy = None,
    where: Where = None,
    select: Select = None,
    ties: WhichTies = Ties.newest,
    error: Error = 0.0,
    algorithm: Algorithm = "auto",
    name: Name = None,
) -> "Query":
    """The query that the options of a command describe; without ``--last`` it is over all rows."""
    from skyband.query import Nearest, TopK

    if (order_by is None) == (nearest_to is None):
        raise QueryError("say what to rank by, with either --order-by or --nearest-to")
    rest: dict[str, Any] = dict(
        k=k, window=_window(last, every, on, late), partition_by=_items(partition_by), where=where,
        select=_items(select) or None, ties=ties.value, error=error, algorithm=algorithm, name=name,
    )  # fmt: skip
    if nearest_to is not None:
        factors = {} if weights is None else _values(weights, "--weights")
        return Nearest(to=_values(nearest_to, "--nearest-to"), metric=_number(metric), weights=factors, **rest)
    return TopK(order_by=order_by or "", **rest)


def _window(last: str | None, every: str | None, on: str | None, late: str | None) -> "Window":
    from skyband.query import windows

    if last is None:
        if every or on or late:
            raise QueryError("--every, --on and --late describe a window: say how far it reaches with --last")
        return windows.last(EVERYTHING, every=EVERYTHING)
    extent, slide, delay = (int(text) if text and text.strip().isdecimal() else text for text in (last, every, late))
    assert extent is not None
    return windows.last(extent, every=slide, on=on, late=delay)


def is_everything(query: "Query") -> bool:
    """Whether the query is over all rows, since no window was given."""
    return query.window.extent == EVERYTHING and not query.window.time


def explained(query: "Query") -> str:
    """What will be done for a query, and why."""
    from skyband.engine.planner import explain

    return explain(query).replace(f"the last {EVERYTHING} every {EVERYTHING}", "all rows")


def _items(texts: list[str] | None) -> tuple[str, ...]:
    """The items of comma-separated lists; commas within brackets and quotes do not count.

    >>> _items(["a, greatest(b, c) AS d", "e"])
    ('a', 'greatest(b, c) AS d', 'e')
    """
    items, depth, quote = [""], 0, ""
    for letter in ",".join(texts or ()):
        quote = "" if letter == quote else quote or (letter if letter in "'\"" else "")
        depth += 0 if quote else (letter == "(") - (letter == ")")
        if letter == "," and not depth and not quote:
            items.append("")
        else:
            items[-1] += letter
    return tuple(item.strip() for item in items if item.strip())


def _values(text: str, option: str) -> dict[str, float]:
    """Columns with a number for each, from a text such as ``x=1,y=2``.

    >>> _values("x=0.2, y=0.7", "--nearest-to")
    {'x': 0.2, 'y': 0.7}
    """
    try:
        return {name.strip(): float(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise QueryError(f'{option} {text!r} must give a number to each column, such as "x=0.2,y=0.7"') from None


def _number(text: str) -> str | float:
    with suppress(ValueError):
        return float(text)
    return text


def takes_query(command: Callable[..., None]) -> Callable[..., None]:
    """Decorates a command: it gets the options of :func:`_query`, and the query they describe as first argument."""
    options = inspect.signature(_query).parameters
    own = list(inspect.signature(command).parameters.values())[1:]

    def run(**given: Any) -> None:
        query = _query(**{name: given.pop(name) for name in options})
        command(query, **given)

    run.__signature__ = inspect.Signature([*own, *options.values()])  # type: ignore[attr-defined]
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run
