"""Writes the answer to a file: never to one that is read or was there before, and as a whole or not at all."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from skyband.cli import interrupt
from skyband.cli.files import KINDS, SUFFIXES, Files, split
from skyband.errors import SkybandError

if TYPE_CHECKING:
    import pyarrow as pa

Write = Callable[["pa.Table"], None]


class Target(NamedTuple):
    """A file to write, and its format."""

    kind: str
    path: Path


def target(to: str) -> Target | None:
    """The file that ``--to`` names; None for the console.

    >>> target("largest.csv"), target("json:rows"), target("console")
    (Target(kind='csv', path=PosixPath('largest.csv')), Target(kind='json', path=PosixPath('rows')), None)
    """
    if to == "console":
        return None
    kind, _, rest = to.partition(":")
    if kind in KINDS and rest:
        return Target(kind, Path(rest))
    if Path(to).suffix in SUFFIXES:
        return Target(SUFFIXES[Path(to).suffix], Path(to))
    raise SkybandError(f"--to {to!r} is unknown; it is console, a file named .parquet, .csv, .json or .jsonl, or "
                       "parquet:PATH, csv:PATH or json:PATH")  # fmt: skip


def check(target: Target, sources: Sequence[Files], overwrite: bool) -> None:
    """Refuses to write to a file that is read; and, unless ``--overwrite`` was given, to one that exists."""
    path = target.path
    for group in sources:
        named = Path(split(group.text)[1])
        inside = group.root is not None and path.resolve().is_relative_to(group.root.resolve())
        among = any(_same(path, place) for place in (str(named), *(str(file.source) for file in group.files)))
        if inside or among or path.resolve().match(str(named.resolve())):
            raise SkybandError(f"--to {path} is among what is read ({group.text}); write to another place")
    if path.is_dir():
        raise SkybandError(f"--to {path} is a directory; name a file")
    if not path.parent.is_dir():
        raise SkybandError(f"--to {path}: there is no directory {path.parent}; make it first")
    if path.is_file() and not overwrite:
        raise SkybandError(f"--to {path} exists; name another file, or replace it with --overwrite")


def _same(one: Path, other: str | Path) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)


@contextmanager
def writer(target: Target) -> Iterator[Write]:
    """A function that writes rows to a file; the file appears under its name when all is written."""
    with replacing(target.path) as file:
        if target.kind == "json":
            yield lambda rows: file.writelines(_json_lines(rows))
        else:
            with _columns_writer(target.kind, file) as write:
                yield write


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces another if the context ends without an error; until then it stands beside it.

    A pipe or a device, such as ``/dev/stdout``, is written to directly.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = path.resolve()  # a link stays one
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
    with interrupt.undoing(lambda: unfinished.unlink(missing_ok=True)):
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _columns_writer(kind: str, file: IO[bytes]) -> Iterator[Write]:
    from pyarrow import csv, parquet

    make = parquet.ParquetWriter if kind == "parquet" else csv.CSVWriter
    writer = None

    def write(rows: "pa.Table") -> None:
        nonlocal writer
        writer = writer or make(file, rows.schema)
        writer.write_table(rows)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _json_lines(rows: "pa.Table") -> Iterator[bytes]:
    import json

    for row in rows.to_pylist():
        yield json.dumps(row, default=_plain, ensure_ascii=False).encode() + b"\n"


def _plain(value: object) -> object:
    """Whole decimals are numbers in JSON as well, which sets them no limit; all else that it does not know is text."""
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else str(value)
