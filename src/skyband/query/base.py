"""What all kinds of query have in common: their common options, how these are checked, and how a query is saved."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query.measures import Measure
from skyband.query.windows import Window, whole
from skyband.storage.codec import fingerprint

Ties = Literal["newest", "all"]
_ALGORITHM = re.compile(r"^\s*([a-z]\w*)\s*(?:\((.*)\))?\s*$")


class Fixed(dict[str, Any]):
    """A mapping from names to values that cannot change and can be hashed, like the query that it is a field of.

    >>> Fixed(x=1, y=2) == Fixed(y=2, x=1), hash(Fixed(x=1, y=2)) == hash(Fixed(y=2, x=1))
    (True, True)
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))  # like equality, whatever the order

    def __reduce__(self) -> tuple[Any, ...]:  # pickle and copy would set item by item
        return Fixed, (dict(self),)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a query does not change; build another one with the mapping that is wanted")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


@dataclass(frozen=True, kw_only=True, repr=False)
class Query(ABC):
    """The base of every kind of query, with the options that they share.

    A subclass adds its own fields (``k`` and ``window`` among them), calls :meth:`check` when it is built, and says in
    :meth:`measure` which numbers it takes from a row.
    """

    family: ClassVar[str]  # the package of its algorithms
    functions: ClassVar[tuple[str, ...]] = ()  # fields that may hold a Python function
    # Fields that name columns; whether the name must match exactly (True) or may differ in case (False).
    naming: ClassVar[Mapping[str, bool]] = {"partition_by": True}

    partition_by: tuple[str, ...] = ()
    where: str | None = None
    select: tuple[str, ...] | None = None
    ties: Ties = "newest"
    error: float = 0.0
    algorithm: str = "auto"
    name: str | None = None

    if TYPE_CHECKING:  # fields of every subclass, each at its place in the order of arguments

        @property
        def k(self) -> int: ...
        @property
        def window(self) -> Window: ...

    @abstractmethod
    def measure(self) -> Measure:
        """What is computed from each row: scores, points, amounts."""

    @abstractmethod
    def describe(self) -> str:
        """The query in words, without its window: the first line of EXPLAIN."""

    def items(self, columns: Sequence[str]) -> list[scoring.Item]:
        """The columns of the stream that the answer shows: those of ``select``, by default all ``columns``."""
        wanted = tuple(map(scoring.quoted, columns)) if self.select is None else self.select
        return list(map(scoring.compile_item, wanted))

    def repeated(self) -> tuple[str, ...]:
        """Columns of the stream that the answer has in any case, so that they are not shown a second time."""
        return self.partition_by

    @property
    def computed(self) -> tuple[tuple[str, Any], ...]:
        """Names and types of the answer's columns that the algorithm computes (``values`` in what it returns)."""
        return ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the computed columns, in the order in which the answer has them."""
        return tuple(name for name, _ in self.computed)

    @property
    def descending(self) -> bool:
        """Whether a larger score is better. (Inside the engine larger is always better: scores are negated if not.)"""
        return True

    @property
    def calls_back(self) -> bool:
        """Whether the algorithm calls a Python function while it takes in a batch."""
        return False

    @property
    def row_condition(self) -> str | None:
        """The condition that a single row must meet to count; None where ``where`` is over pairs, or there is none."""
        return self.where

    def check_names(self, columns: Sequence[str]) -> None:
        """Refuses the query if it names a column that is not among these ``columns`` of the stream."""
        for field, exactly in self.naming.items():
            given = getattr(self, field)
            for name in (given,) if isinstance(given, str) else given or ():
                scoring.find_column(name, columns, exactly, field)

    def check_beside_others(self, columns: Sequence[str]) -> None:
        """Refuses the query, as one of several, if its answer would have a column named ``query``.

        The answer of several queries has a column of that name already: it says which query a row belongs to.
        """
        items = self.items([name for name in columns if name not in self.partition_by])
        if "query" in self.partition_by or any(item.name == "query" for item in items):
            raise QueryError("the answer of several queries has a column 'query' of its own, with its name; give "
                             "the column of the stream another name, with select=('query AS other_name', ...) if "
                             "it is none of partition_by")  # fmt: skip

    def __repr__(self) -> str:
        """The query as it would be written, without arguments that have their default; a function shows as its name."""
        ordered = sorted(fields(self), key=lambda field: bool(field.kw_only))
        given = {field.name: getattr(self, field.name) for field in ordered}
        shown = [f"{f.name}={_written(given[f.name])}" for f in ordered if given[f.name] != _default(f)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def shared(self) -> tuple[object, ...]:
        """A key that is equal for queries that one state could serve.

        Such queries may differ in k, ties and name, and in the length and slide of the window.
        """
        spec = self.spec()
        own = {name: spec.pop(name) for name in ("k", "window", "ties", "name", "select", "algorithm", "error")}
        same = [own["window"][name] for name in ("time", "on", "late")]
        return (
            json.dumps(spec, sort_keys=True),
            *same,
            self.window.hopping,
            *(getattr(self, f) for f in self.functions),
        )

    def measured(self) -> tuple[object, ...]:
        """Equal for queries whose measures of a row are the same."""
        spec = self.spec()
        for name in ("k", "window", "ties", "name", "select", "algorithm", "error", "partition_by"):
            del spec[name]
        return json.dumps(spec, sort_keys=True), *(getattr(self, f) for f in self.functions)

    def but(self, **changes: Any) -> "Query":
        """A copy of the query with some fields changed."""
        return replace(self, **changes)

    def lower(self) -> "Query":
        """The query that an algorithm sees: this one, or for a shorthand such as ``Nearest`` the one it stands for."""
        return self

    def check(self) -> None:
        """Refuses values of the common fields that make no sense, and brings the others into one form."""
        _positive(self.k)
        object.__setattr__(self, "k", int(self.k))
        if not isinstance(self.window, Window):
            given: Any = self.window
            length = repr(given) if isinstance(given, str) or whole(given) else "..."
            raise QueryError(f"window={given!r} is not a window; build one with sb.last({length})")
        object.__setattr__(self, "partition_by", names(self.partition_by, "partition_by"))
        if self.select is not None:
            split = partial(scoring.listed, label=f"select={self.select!r}")
            object.__setattr__(self, "select", names(self.select, "select", split))
        if not isinstance(self.ties, str) or self.ties not in ("newest", "all"):
            raise QueryError(f'ties={self.ties!r} is unknown; it is "newest" or "all"')
        if isinstance(self.error, bool) or not isinstance(self.error, Real) or not 0 <= self.error < 1:
            raise QueryError(f"error={self.error!r} must be a number from 0 (exact) up to, but not including, 1")
        object.__setattr__(self, "error", float(self.error))
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            raise QueryError(f"name={self.name!r} must be a text that is not empty, which the column query of the "
                             "answer shows")  # fmt: skip
        if not isinstance(self.algorithm, str) or _ALGORITHM.match(self.algorithm) is None:
            raise QueryError(f'algorithm={self.algorithm!r} must be a name such as "auto", "rapf" or '
                             '"rapf(buffer=500)"')  # fmt: skip
        chosen, options = self.algorithm_call()
        if chosen == "auto" and options:
            raise QueryError(f'algorithm={self.algorithm!r}: "auto" takes no options; name the algorithm they are for')
        if self.row_condition is not None:
            scoring.compile_condition(self.row_condition)

    def spec(self) -> dict[str, Any]:
        """The query as plain JSON values, for fingerprints and saved states; a function as its name and a digest."""
        values = {"type": type(self).__name__, **asdict(self)}
        for field in self.functions:
            if (given := getattr(self, field)) is not None and not isinstance(given, str):
                values[field] = _function_spec(given)
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    @property
    def fingerprint(self) -> str:
        """A short text that identifies the query in saved states: equal for equal queries."""
        return fingerprint(self.spec())

    def algorithm_call(self) -> tuple[str, dict[str, float]]:
        """The algorithm's name and its options.

        >>> from skyband import TopK, last
        >>> TopK(k=1, order_by="x", window=last(9), algorithm="rapf(buffer=3)").algorithm_call()
        ('rapf', {'buffer': 3.0})
        """
        match = _ALGORITHM.match(self.algorithm)
        assert match is not None
        options: dict[str, float] = {}
        for part in filter(None, (match[2] or "").split(",")):
            name, _, value = (text.strip() for text in part.partition("="))
            if name in options:
                raise QueryError(f"algorithm={self.algorithm!r}: option {name!r} is given twice")
            try:
                options[name] = float(value)
            except ValueError:
                raise QueryError(f"algorithm={self.algorithm!r}: option {part.strip()!r} must be written name=number"
                                 ) from None  # fmt: skip
        return match[1], options


def _function_spec(given: Callable[..., Any] | tuple[Callable[..., Any], str]) -> list[str]:
    function, direction = scoring.split_order(given)
    name = getattr(function, "__qualname__", type(function).__name__)
    code = getattr(function, "__code__", None)
    digest = fingerprint({"code": code.co_code.hex(), "constants": repr(code.co_consts)} if code else {})
    return [f"{function.__module__}.{name}", digest, direction]


def _positive(k: Any) -> None:
    number = whole(k)
    if number is None or number < 1:
        raise QueryError(f"k={k!r} must be a whole number, at least 1")


def _split(text: str) -> tuple[str, ...]:
    return tuple(map(str.strip, text.split(","))) if "," in text else (text,)


def names(
    value: str | Sequence[str] | None, field: str, split: Callable[[str], tuple[str, ...]] = _split
) -> tuple[str, ...]:
    """The names in a field, as a tuple. A text holds one name, or several with commas between them.

    >>> names("symbol, exchange", "partition_by"), names(["a, b"], "partition_by"), names(None, "partition_by")
    (('symbol', 'exchange'), ('a, b',), ())
    """
    if isinstance(value, str):
        listed: tuple[Any, ...] = split(value)
    else:
        listed = () if value is None else tuple(value) if isinstance(value, Sequence) else (value,)
    if not all(isinstance(name, str) and name for name in listed):
        raise QueryError(f'{field}={value!r} must be names, such as ("a", "b") or "a, b"')
    if len(set(listed)) != len(listed):
        raise QueryError(f"{field}={value!r} has a name twice")
    return listed


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _written(value: Any) -> str:
    """A value as it is written in Python; of a function, its name."""
    if isinstance(value, tuple) and any(map(callable, value)):
        return f"({', '.join(map(_written, value))})"
    return str(getattr(value, "__qualname__", type(value).__name__)) if callable(value) else repr(value)
