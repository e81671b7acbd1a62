"""Checks where a stream writes: not where it reads, not over another answer, and its checkpoint apart from its rows."""

import glob
import shutil
from pathlib import Path

from skyband.errors import SkybandError
from skyband.spark.sources import FILES, Place

_OF_A_CHECKPOINT = ("metadata", "offsets")
_OF_AN_ANSWER = "_spark_metadata"


def check(source: Place, sink: Place, checkpoint: str | None, overwrite: bool) -> None:
    """Refuses directories that lie within each other, and an answer that exists, unless it goes on or is replaced.

    Paths in other file systems are not checked, since only Spark can look into them.
    """
    if overwrite and (sink.kind not in FILES or sink.remote):
        raise SkybandError(f"--overwrite replaces an answer in files on this machine, not {str(sink)!r}")
    out = _local(sink)
    state = _local(sink.checkpoint(checkpoint))
    for option, place in (("--to", out), ("--checkpoint", state)):
        if place is not None and (read := _read_there(source, place)):
            raise SkybandError(f"{option} {place}: rows are read from {read}; write to a place apart from it")
    if out is None or state is None:
        return
    if out.is_relative_to(state) or (state.is_relative_to(out) and not _hidden(state.relative_to(out))):
        raise SkybandError(f"--checkpoint {state} and --to {out} lie in each other; keep them apart, or let the name "
                           "of a checkpoint within the answer begin with _, or it would be read as rows")  # fmt: skip
    if out.exists() and not out.is_dir():
        raise SkybandError(f"--to {str(sink)!r}: {out} is a file; an answer is a directory of files")
    if overwrite:
        _refuse_foreign(out, state)
    elif _rows(out) and not (_entries(state) and (out / _OF_AN_ANSWER).is_dir()):
        of_a_stream = (out / _OF_AN_ANSWER).is_dir()
        what = f"the answer of another stream: its checkpoint is not {state}" if of_a_stream else "files of others"
        raise SkybandError(f"--to {str(sink)!r} has {what}; name " + (
            "that one with --checkpoint, another directory with --to, or replace the answer with --overwrite"
            if of_a_stream else "another directory with --to"))  # fmt: skip


def clear(sink: Place, checkpoint: str | None) -> None:
    """Removes an answer and its checkpoint; call :func:`check` first."""
    for place in (_local(sink), _local(sink.checkpoint(checkpoint))):
        if place is not None and place.exists():
            shutil.rmtree(place)


def _local(place: Place | None) -> Path | None:
    """The real path of a directory on this machine; None for a place that is no directory or is elsewhere."""
    return None if place is None or place.kind not in FILES or place.remote else Path(place.path).resolve()


def _read_there(source: Place, place: Path) -> str | None:
    """The path of a source that lies at, in or around a place, if there is one."""
    if source.kind not in FILES or source.remote:
        return None
    for name in [source.path, *glob.glob(source.path)]:
        read = Path(name).resolve()
        if place.is_relative_to(read) or read.is_relative_to(place) or place.match(str(read)):
            return name
    return None


def _refuse_foreign(out: Path, state: Path) -> None:
    """Refuses a directory with files that no stream has written, so that none of these is ever removed."""
    if _rows(out) and not (out / _OF_AN_ANSWER).is_dir():
        raise SkybandError(f"--overwrite replaces the answers of streams, and {out} has other files; name another "
                           "directory with --to")  # fmt: skip
    if _entries(state) and not any((state / name).exists() for name in _OF_A_CHECKPOINT):
        raise SkybandError(f"--overwrite replaces checkpoints, and {state} is none; name another directory with "
                           "--checkpoint")  # fmt: skip


def _entries(directory: Path) -> list[Path]:
    return list(directory.iterdir()) if directory.is_dir() else []


def _rows(directory: Path) -> list[Path]:
    """What is in the directory of an answer, without the checkpoint."""
    return [path for path in _entries(directory) if path.name == _OF_AN_ANSWER or not _hidden(Path(path.name))]


def _hidden(path: Path) -> bool:
    return path.parts[:1] != () and path.parts[0].startswith(("_", "."))
