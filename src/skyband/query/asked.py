"""The aggregates that a query over groups asks for, and how its score, outputs and condition follow from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.expressions import Call, Expression, read_call, read_condition, scoring

Floats = NDArray[np.float64]

LARGEST = 1e300  # larger numbers are no values: with them a sum could leave the range of a double


class Input(NamedTuple):
    """What an aggregate needs from each row: a number, or only whether there is a value.

    Attributes:
        of: the SQL expression.
        number: whether its value is needed, which must be a number; if False, only whether it has a value.
        weighted: whether the value is multiplied by the weight of the row's stream.
    """

    of: str
    number: bool
    weighted: bool


@dataclass(frozen=True)
class Asked:
    """All aggregates that a query over groups asks for, and what it does with them.

    Attributes:
        calls: the aggregates, each once; the first is the one ranked by.
        outputs: the names of the columns that the answer shows, each with the place of its aggregate in ``calls``.
        terms: the same for the aggregates within ``having``. Each is replaced there by a column; this is its name.
        having: the condition over these columns, the outputs and ``score``.
    """

    calls: tuple[Call, ...]
    outputs: tuple[tuple[str, int], ...] = ()
    terms: tuple[tuple[str, int], ...] = ()
    having: scoring.Condition | None = None

    @property
    def alone(self) -> bool:
        """Whether the score is all that is asked for; then every valid row of a group has a value."""
        return not self.outputs and self.having is None

    @property
    def of_rows(self) -> bool:
        """Whether some aggregate counts the rows themselves, as ``count(*)`` does: then no row is without a value."""
        return any(call.of is None for call in self.calls)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What the aggregates need from each row, each once. Unless the score is all, these are ``Rows.values``."""
        return tuple(dict.fromkeys(wanted for call in self.calls if (wanted := input_of(call)) is not None))

    @cached_property
    def distinct(self) -> tuple[str, ...]:
        """The expressions within ``count(DISTINCT …)``."""
        found = (call.of for call in self.calls if call.how == "count_distinct" and call.of is not None)
        return tuple(dict.fromkeys(found))

    @property
    def columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The names and types of the outputs, by name."""
        return tuple((name, _type(self.calls[place])) for name, place in self.outputs)

    def shown(self, values: Floats) -> Floats:
        """The outputs, given the values of all calls."""
        return values[:, [place for _, place in self.outputs]]

    def scores(self, values: Floats) -> Floats:
        """The score of each group, given the values of all calls; NaN for those that are not to be ranked."""
        score = values[:, 0]
        if self.having is None:
            return score
        table = {"score": pa.array(score, from_pandas=True)}
        for name, place in (*self.outputs, *self.terms):
            table[name] = pa.array(values[:, place], from_pandas=True).cast(_type(self.calls[place]))
        return np.where(self.having.evaluate(pa.table(table)), score, np.nan)


def asked_of(ranked: Call, outputs: Mapping[str, str], having: str | None) -> Asked:
    """Reads what a query asks for: the aggregate ranked by, ``outputs`` and ``having``.

    Aggregates are kept in an order of their own, so that queries that only show outputs in another order keep equal
    states.
    """
    places: dict[Call, int] = {ranked: 0}
    shown = {name: places.setdefault(read_call(text, f"outputs[{name!r}]={text!r}"), len(places))
             for name, text in sorted(outputs.items())}  # fmt: skip
    for call in places:
        if call.of is not None:
            Expression(call.of, f"outputs: {call.how}({call.of})")
    if having is None:
        return Asked(tuple(places), tuple(shown.items()))
    label = f"having={having!r}"
    if not isinstance(having, str):
        raise QueryError(f'{label} must be an SQL condition over aggregates, such as "count(*) >= 3"')
    text, calls = read_condition(having, label)
    condition = scoring.Condition(Expression(text, label))
    terms = {name: places.setdefault(call, len(places)) for name, call in calls.items()}
    for call in calls.values():
        if call.of is not None:
            Expression(call.of, f"{label}: {call.how}({call.of})")
    try:
        condition.source.needs(("score", *shown, *terms))
    except QueryError as error:
        raise QueryError(f"{error}. A condition on groups is over score, outputs and aggregates, not over columns of "
                         "rows: for those there is where=") from None  # fmt: skip
    asked = Asked(tuple(places), tuple(shown.items()), tuple(terms.items()), condition)
    asked.scores(np.empty((0, len(places))))  # refuses what is no condition
    return asked


def input_of(call: Call) -> Input | None:
    """What an aggregate needs from each row; None for ``count(*)``, which counts the rows themselves."""
    return None if call.of is None else Input(call.of, not call.counts, call.weighted)


class Reader:
    """Computes one input for every row of a table.

    Args:
        wanted: the input.
        label: what error messages call it.
    """

    def __init__(self, wanted: Input, label: str) -> None:
        self.number = scoring.compile_number(wanted.of, label) if wanted.number else None
        self.item = scoring.Item(Expression(wanted.of, label), label)

    def read(self, table: pa.Table) -> Floats:
        """For each row the number, or 1 if only the presence of a value matters; NaN if there is none. Read-only."""
        if self.number is not None:
            amount = self.number.evaluate(table)
            good = np.abs(amount) <= LARGEST  # false for NaN
            return amount if good.all() else np.where(good, amount, np.nan)
        there = self.known(table).is_valid()
        return np.where(np.asarray(there, bool), 1.0, np.nan)

    def known(self, table: pa.Table) -> pa.ChunkedArray:
        """The values themselves, NULL where there is none; equal numbers are made identical (-0 becomes 0)."""
        column = self.item.evaluate(table)
        column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not pa.types.is_floating(column.type):
            return column
        column = pc.add(column.cast(pa.float64()), 0.0)  # + 0.0 makes -0 and 0 the same
        return pc.if_else(pc.less_equal(pc.abs(column), LARGEST), column, pa.scalar(None, pa.float64()))

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns needed, as they are called among ``names``."""
        return self.item.needs(names)


def _type(call: Call) -> Any:
    return pa.int64() if call.counts else pa.float64()
