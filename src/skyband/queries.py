"""The queries: frozen descriptions of what is wanted, checked when they are built.

A query holds no state; :class:`skyband.Monitor` and :func:`skyband.spark.run` put it to a stream.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from skyband import scoring
from skyband.errors import QueryError, StateError
from skyband.state import fingerprint
from skyband.windows import Window

Ties = Literal["newest", "all"]
_ALGORITHM = re.compile(r"^\s*([a-z]\w*)\s*(?:\((.*)\))?\s*$")


@dataclass(frozen=True)
class TopK:
    """The k best objects of a sliding window.

    Args:
        k: how many.
        order_by: an SQL expression over the columns ending in ``ASC`` (the default, as in SQL) or ``DESC``; or a
            function of a mapping from column name to array that returns an array of scores (smaller is better), or
            the pair ``(function, "DESC")``.
        window: see :func:`skyband.last`.
        partition_by: columns whose every combination of values gets windows and a ranking of its own.
        where: an SQL condition; rows for which it is not true are no part of the stream.
        select: the columns of the answer (names, or expressions such as ``"price * 2 AS twice"``); all by default.
        ties: ``"newest"`` ranks equal scores newest first and returns exactly k; ``"all"`` also returns every object
            whose score equals the k-th (SQL's ``WITH TIES``).
        error: 0 for exact answers; above 0 an approximate algorithm with this bound may be taken.
        algorithm: ``"auto"``, or the name of an algorithm as in its paper, in lower case, with options in brackets if
            wanted: ``"rapf"``, ``"rapf(buffer=500, gamma=0.5)"``.
        name: what the query is called in the output of several queries at once.
    """

    k: int
    order_by: scoring.OrderBy
    window: Window
    partition_by: tuple[str, ...] = ()
    where: str | None = None
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        _positive(self.k)
        object.__setattr__(self, "k", int(self.k))
        if not isinstance(self.window, Window):
            raise QueryError(f"window={self.window!r} is not a window; build one with sb.last(...)")
        object.__setattr__(self, "partition_by", _names(self.partition_by, "partition_by"))
        if self.select is not None:
            object.__setattr__(self, "select", _names(self.select, "select"))
        if self.ties not in ("newest", "all"):
            raise QueryError(f'ties={self.ties!r} is unknown; it is "newest" or "all"')
        if isinstance(self.error, bool) or not isinstance(self.error, int | float) or not 0 <= self.error < 1:
            raise QueryError(f"error={self.error!r} must be a number from 0 (exact) up to, but not including, 1")
        if not isinstance(self.algorithm, str) or _ALGORITHM.match(self.algorithm) is None:
            raise QueryError(f'algorithm={self.algorithm!r} must be a name such as "auto", "rapf" or '
                             '"rapf(buffer=500)"')  # fmt: skip
        scoring.compile_order(self.order_by)
        if self.where is not None:
            scoring.compile_condition(self.where)
        for item in self.select or ():
            scoring.compile_item(item)

    def lower(self) -> "TopK":
        """The object query this one stands for: itself."""
        return self

    def spec(self) -> dict[str, Any]:
        """The query as plain JSON values, for fingerprints and saved states; of a function, its name and a digest."""
        values = {"type": "TopK", **asdict(self)}
        if not isinstance(self.order_by, str):
            function, direction = scoring.split_order(self.order_by)
            name = getattr(function, "__qualname__", type(function).__name__)
            code = getattr(function, "__code__", None)
            digest = fingerprint({"code": code.co_code.hex(), "constants": repr(code.co_consts)} if code else {})
            values["order_by"] = [f"{function.__module__}.{name}", digest, direction]
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    @property
    def fingerprint(self) -> str:
        """Names the query: equal for equal queries."""
        return fingerprint(self.spec())

    def algorithm_call(self) -> tuple[str, dict[str, float]]:
        """The algorithm's name and its options.

        >>> from skyband.windows import last
        >>> TopK(k=1, order_by="x", window=last(9), algorithm="rapf(buffer=3)").algorithm_call()
        ('rapf', {'buffer': 3.0})
        """
        match = _ALGORITHM.match(self.algorithm)
        assert match is not None
        options = {}
        for part in filter(None, (match[2] or "").split(",")):
            name, _, value = (text.strip() for text in part.partition("="))
            try:
                options[name] = float(value)
            except ValueError:
                raise QueryError(f"algorithm={self.algorithm!r}: option {part.strip()!r} must be written name=number"
                                 ) from None  # fmt: skip
        return match[1], options


@dataclass(frozen=True)
class Nearest:
    """The k objects of a sliding window nearest to a point: :class:`TopK` with a distance for a score.

    Args:
        k: how many.
        to: the point, a value for each column that counts.
        window: see :func:`skyband.last`.
        metric: ``"euclidean"``, ``"manhattan"``, ``"chebyshev"``, or a number p ≥ 1 for any Lp.
        weights: a factor for the difference in some of the columns; 1 where none is given.
        partition_by, where, select, ties, error, algorithm, name: as in :class:`TopK`.

    >>> from skyband.windows import last
    >>> Nearest(k=9, to={"x": 0.2, "y": 0.7}, window=last(40_000), metric="manhattan").lower().order_by
    'abs(x - 0.2) + abs(y - 0.7) ASC'
    """

    k: int
    to: Mapping[str, float]
    window: Window
    metric: str | float = "euclidean"
    weights: Mapping[str, float] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    where: str | None = None
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        self.lower()

    def lower(self) -> TopK:
        """The object query this one stands for."""
        return TopK(
            k=self.k,
            order_by=scoring.distance(self.to, self.metric, self.weights) + " ASC",
            window=self.window,
            partition_by=self.partition_by,
            where=self.where,
            select=self.select,
            ties=self.ties,
            error=self.error,
            algorithm=self.algorithm,
            name=self.name,
        )


Query = TopK | Nearest


def from_spec(spec: Mapping[str, Any]) -> TopK:
    """The inverse of :meth:`TopK.spec`; a Python function cannot be brought back."""
    values = {name: value for name, value in spec.items() if name != "type"}
    if spec.get("type") != "TopK":
        raise StateError(f"the state belongs to a query of another kind: {spec.get('type')!r}")
    if not isinstance(values["order_by"], str):
        raise StateError(f"the state belongs to a query ordered by the function {values['order_by'][0]}, which is not "
                         "saved with it; hand the query over: loads(blob, query)")  # fmt: skip
    return TopK(**{**values, "window": Window(**values["window"])})


def _positive(k: Any) -> None:
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise QueryError(f"k={k!r} must be a whole number, at least 1")


def _names(value: str | Sequence[str], field: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else (value,)
    if not all(isinstance(name, str) and name for name in names):
        raise QueryError(f"{field}={value!r} must be column names")
    if len(set(names)) != len(names):
        raise QueryError(f"{field}={value!r} names a column twice")
    return names
