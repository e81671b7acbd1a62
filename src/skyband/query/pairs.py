"""Top-k pairs: a score for every two objects of the window."""

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
    """The k best pairs of objects of a sliding window.

    Each unordered pair is considered once: ``a`` is the older object and ``b`` the newer one, unless ``where`` is not
    true of them and is true the other way round. Equal scores: the pair whose older object is newer comes first.

    Args:
        k: how many.
        order_by: an SQL expression over the columns of both objects, ``a.`` and ``b.``, ending in ``ASC`` (the
            default) or ``DESC``; or a function of two mappings from column name to array that returns an array of
            scores, or the pair ``(function, "DESC")``. Two objects whose score is NULL or NaN are no pair: so it is
            with a division by zero. A row with NULL or NaN in a number or time that the score uses is invalid; which
            ones a function uses is found out by calling it with the first row, as both objects of a pair.
        window: see :func:`skyband.last`. A pair is in a window if both objects are.
        where: an SQL condition over both objects, such as ``"a.id < b.id AND a.seller <> b.seller"``.
        same: columns in which the two objects must agree (the pair is *homochromatic*); NULL is a value like others.
        different: columns in each of which they must differ (*heterochromatic*).
        partition_by: columns whose every combination of values gets windows and pairs of its own.
        select: the columns of the answer, such as ``("a.id", "b.id", "abs(a.price - b.price) AS gap")``; all columns
            of both objects by default. ``a.id`` is called ``a_id``.
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
        self.terms  # noqa: B018 - reads order_by and where, and refuses what cannot be read
        for item in self.select or ():
            scoring.compile_item(item, NAMES)

    @cached_property
    def terms(self) -> Terms:
        """``order_by`` and ``where``, read."""
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
    """The numbers of each row from which the scores of its pairs follow; tags: what must be the same or different."""

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
