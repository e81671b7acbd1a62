"""Finds the files that an argument names, and reads their rows."""

import glob
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skyband.cli import interrupt
from skyband.csvfiles import File, reader, time_type, times
from skyband.errors import SkybandError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.query import Query

KINDS = ("parquet", "csv", "json")
SUFFIXES = {f".{kind}": kind for kind in KINDS} | {".jsonl": "json", ".ndjson": "json"}
STDIN = "/dev/stdin"


class Files(NamedTuple):
    """The files that an argument names.

    Attributes:
        text: the argument.
        kind: parquet, csv or json.
        files: the files that were found.
        root: the directory that was named, or None.
    """

    text: str
    kind: str
    files: list[File]
    root: Path | None


@contextmanager
def found(texts: Sequence[str]) -> Iterator[list[Files]]:
    """The files that arguments name: files, directories, globs, ``-`` for standard input; ``csv:PATH`` tells a format.

    A pipe, which can be read only once, is copied into a file that exists as long as the context.
    """
    with ExitStack() as stack:
        groups = [group for text in texts for group in _named(text, stack)]
        if len(kinds := {group.kind for group in groups}) > 1:
            raise SkybandError(f"the files are of several kinds ({', '.join(sorted(kinds))}); name those of one kind")
        yield groups


def split(text: str) -> tuple[str, str]:
    """The format that an argument names, if any, and the path.

    >>> split("csv:trades"), split("trades.csv"), split("-")
    (('csv', 'trades'), ('', 'trades.csv'), ('', '/dev/stdin'))
    """
    kind, _, rest = text.partition(":")
    kind, rest = (kind, rest) if kind in KINDS else ("", text)
    return kind, STDIN if rest == "-" else rest


def _named(text: str, stack: ExitStack) -> Iterator[Files]:
    kind, rest = split(text)
    path = Path(rest)
    if not path.exists():
        there = sorted(glob.glob(rest, recursive=True))
        if not there:
            raise SkybandError(f"there is nothing at {rest}")
        for name in there:
            for group in _named(f"{kind}:{name}" if kind else name, stack):
                yield group._replace(text=text)
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*.*") if _shows(file.relative_to(path)) and file.is_file())
        kinds = {SUFFIXES[file.suffix] for file in files if file.suffix in SUFFIXES}
        if not kind and len(kinds) != 1:
            raise _untold(path)
        kind = kind or kinds.pop()
        of_kind = [file for file in files if SUFFIXES.get(file.suffix) == kind] or files
        yield Files(text, kind, [File(str(f), str(f), str(f.relative_to(path))) for f in of_kind], path)
    elif path.is_file() and rest != STDIN:
        if not (kind or path.suffix in SUFFIXES):
            raise _untold(path)
        yield Files(text, kind or SUFFIXES[path.suffix], [File(rest, rest)], None)
    else:
        copy = stack.enter_context(_copied(path))
        yield Files(text, kind or _sniffed(copy), [File(_called(rest), copy)], None)


def _shows(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _untold(path: Path) -> SkybandError:
    return SkybandError(f"{path} does not tell what it holds: write parquet:{path}, csv:{path} or json:{path}")


@contextmanager
def _copied(path: Path) -> Iterator[str]:
    """A temporary file with all that comes out of a pipe."""
    copy = Path(tempfile.mkdtemp(prefix="skyband-")) / "rows"
    with interrupt.undoing(lambda: shutil.rmtree(copy.parent, ignore_errors=True)):
        with open(path, "rb") as rows, open(copy, "wb") as file:
            shutil.copyfileobj(rows, file)
        if not copy.stat().st_size:
            raise SkybandError(f"{_called(str(path))} is empty: give it rows, as skyband top - < trades.csv does, or "
                               "name a file")  # fmt: skip
        yield str(copy)


def _called(path: str) -> str:
    return "standard input" if path == STDIN else path


def _sniffed(path: str) -> str:
    """The format of a file without a suffix, guessed from its beginning."""
    with open(path, "rb") as file:
        begin = file.read(100).lstrip()
    return "parquet" if begin.startswith(b"PAR1") else "json" if begin.startswith(b"{") else "csv"


def batches(groups: Sequence[Files], query: "Query", delimiter: str | None) -> "Iterator[pa.Table]":
    """The rows of the files as batches, after an empty batch that shows the columns."""
    import pyarrow as pa

    if groups[0].kind != "csv":
        if delimiter is not None:
            raise SkybandError(f"--delimiter is for CSV, not for {groups[0].kind}")
        for group in groups:
            yield from _dataset(group, query)
        return
    files = [file for group in groups for file in group.files]
    read = reader(files, separator(delimiter), query.window.on if query.window.time else None)
    yield read.schema.empty_table()
    for file in files:
        for batch in read.read(file):
            yield pa.Table.from_batches([batch])


def separator(text: str | None) -> str:
    """The character that ``--delimiter`` names, by default a comma.

    >>> separator(None), separator(";"), separator(r"\\t")
    (',', ';', '\\t')
    """
    delimiter = "," if text is None else "\t" if text in (r"\t", "tab") else text
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise SkybandError(f"--delimiter {text!r} must be one ASCII character, or tab")
    return delimiter


def _dataset(group: Files, query: "Query") -> "Iterator[pa.Table]":
    import pyarrow as pa
    from pyarrow import dataset

    name = query.window.on
    try:
        rows = dataset.dataset(
            [str(file.source) for file in group.files],
            format=group.kind,
            partitioning=dataset.partitioning(flavor="hive") if group.root else None,
            partition_base_dir=None if group.root is None else str(group.root),
        )
        kind = None
        if (
            query.window.time
            and name is not None
            and name in rows.schema.names
            and pa.types.is_string(rows.schema.field(name).type)
        ):
            texts = (batch[0] for batch in rows.to_batches(columns=[name]))
            kind = time_type(texts, name)
        yield _timed(rows.schema.empty_table(), name, kind)
        for batch in rows.to_batches():
            yield _timed(pa.Table.from_batches([batch]), name, kind)
    except pa.ArrowException as error:
        raise SkybandError(f"{group.text} cannot be read as {group.kind}: {error}") from error


def _timed(table: "pa.Table", name: str | None, kind: "pa.DataType | None") -> "pa.Table":
    """The rows with their event-time column as timestamps, if it is text; a text that is no time becomes NULL."""
    if kind is None:
        return table
    return table.set_column(table.column_names.index(name), name, times(table[name], kind))
