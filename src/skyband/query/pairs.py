"""The query that ranks pairs of objects of a window by a score of two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query.base import Query, names
from skyband.query.measures import Measure, Measured
from skyband.query.sides import NAMES, SIDES, Terms
from skyband.query.windows import Window

PairFunction = Callable[[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]], ArrayLike]


@dataclass(frozen=True, repr=False)
class TopKPairs(Query):
    """Ranks all pairs of objects of a sliding window by a score of two, and gives the k best.

    The two objects of a pair are called ``a`` and ``b``. Each pair is considered once, with the older object as ``a``;
    only if ``where`` fails so, and holds with the two exchanged, is the newer one ``a``. Of two pairs with equal
    scores, the one whose older object is newer comes first.

    Args:
        k: how many pairs to give.
        order_by: the score: an SQL expression over the columns of both objects, such as ``"abs(a.price - b.price)"``,
            ending in ``ASC`` (smallest first; the default) or ``DESC``. Or a Python function, for ``DESC`` the pair
            ``(function, "DESC")``. It is called with two mappings from column names to arrays, one for each object,
            and returns an array of scores. Two objects whose score is NULL or NaN, after a division by zero for
            instance, are not a pair. A row with NULL or NaN in a number or time that the score uses is invalid. To
            find out which columns a function uses, it is called once with the first row as both objects.
        window: see :func:`skyband.last`. A pair is in a window if both of its objects are.
        where: an SQL condition over both objects, such as ``"a.id < b.id AND a.seller <> b.seller"``.
        same: columns in which the two objects must agree (*homochromatic* pairs). NULL is a value like any other.
        different: columns in each of which the two objects must differ (*heterochromatic* pairs).
        partition_by: one or more columns. Each combination of their values has windows and pairs of its own.
        select: the columns that the answer shows, such as ``("a.id", "b.id", "abs(a.price - b.price) AS gap")``; by
            default all columns of both objects. The column ``a.id`` is called ``a_id`` in the answer.
        ties, error, algorithm, name: as in :class:`TopK`.

    >>> import skyband as sb
    >>> query = TopKPairs(k=1, order_by="abs(a.x - b.x)", window=sb.last(3), select=("a.x", "b.x"))
    >>> sb.Monitor(query).push({"x": [1.0, 5.0, 4.5]}).to_pylist()[-1]
    {'at': 2, 'op': '+', 'score': 0.5, 'a_x': 5.0, 'b_x': 4.5}
    """

    family: ClassVar[str] = "pairs"
    functions: ClassVar[tuple[str, ...]] = ("order_by",)
    naming: ClassVar[Mapping[str, bool]] = {"partition_by": True, "same": False, "different": False}

    k: int
    order_by: str | PairFunction | tuple[PairFunction, str]
    window: Window
    same: tuple[str, ...] | None = None
    different: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.check()
        for field in ("same", "different"):
            if (given := getattr(self, field)) is not None:
                object.__setattr__(self, field, names(given, field))
                for name in getattr(self, field):
                    if name.startswith(SIDES):
                        raise QueryError(f"{field}={name!r} names a column of the stream, not of one object; write "
                                         f"{name[2:]!r}")  # fmt: skip
        if both := set(self.same or ()) & set(self.different or ()):
            raise QueryError(f"same={self.same!r} and different={self.different!r} both name {min(both)!r}: no pair "
                             "can agree and differ in it")  # fmt: skip
        self.terms  # noqa: B018 - parses order_by and where, and refuses what cannot be parsed
        for item in self.select or ():
            scoring.compile_item(item, NAMES)

    @cached_property
    def terms(self) -> Terms:
        """``order_by`` and ``where``, parsed."""
        return Terms(self.order_by, self.where, self.same or (), self.different or ())  # type: ignore[arg-type]

    def measure(self) -> Measure:
        return PairMeasure(self.terms)

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        if self.select is None:
            return [scoring.compile_item(f"{side}.{scoring.quoted(name)}", NAMES) for side in NAMES for name in columns]
        return [scoring.compile_item(item, NAMES) for item in self.select]

    @property
    def calls_back(self) -> bool:
        return not isinstance(self.order_by, str)

    @property
    def row_condition(self) -> str | None:
        return None

    @property
    def descending(self) -> bool:
        return self.terms.score.descending

    def describe(self) -> str:
        text = f"top {self.k} pairs by {self.order_by if isinstance(self.order_by, str) else 'a Python function'}"
        text += f" where {self.where}" if self.where else ""
        text += f" with the same {', '.join(self.same)}" if self.same else ""
        return text + (f" with different {', '.join(self.different)}" if self.different else "")


class PairMeasure(Measure):
    """Takes from each row the numbers that the scores of its pairs need; its tags are what must agree or differ."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.tags = terms.tags

    def evaluate(self, table: pa.Table) -> Measured:
        fitted = self.terms.fit(table.schema)
        values = fitted.numbers(table)
        return Measured(np.where(fitted.lacking(table, values), np.nan, 0.0), values)

    def form(self, schema: pa.Schema) -> object:
        fitted = self.terms.fit(schema)
        return fitted.values, fitted.colours

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        return self.terms.needs(names)
