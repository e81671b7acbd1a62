"""What happens to the files of another process, at the moment it happens (on Linux)."""

import ctypes
import os
import select
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CLOSED, _MOVED_FROM, _MOVED_TO, _MADE, _DELETED = 0x8, 0x40, 0x80, 0x100, 0x200
_DIRECTORY = 0x40000000
_HEAD = struct.Struct("iIII")  # of an event: the watch, what happened, a cookie, the length of the name


class Changes:
    """Follows directories and all below them: files made, written, moved and deleted."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init()
        assert self._handle >= 0, os.strerror(ctypes.get_errno())
        self._watched: dict[int, Path] = {}
        for directory in directories:
            self._watch(directory)

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def follow(self, number: int, patience: float) -> Path | None:
        """Waits for so many changes; where the last of them was. None if they do not come in time (in seconds)."""
        deadline = time.monotonic() + patience
        while select.select([self._handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(self._handle, 1 << 16)
            while data:
                watch, what, _, length = _HEAD.unpack_from(data)
                name = data[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode()
                data = data[_HEAD.size + length :]
                place = self._watched[watch] / name
                if what & _DIRECTORY and what & _MADE:
                    self._watch(place)
                number -= 1
                if not number:
                    return place
        return None

    def _watch(self, directory: Path) -> None:
        kinds = _CLOSED | _MOVED_FROM | _MOVED_TO | _MADE | _DELETED
        watch = self._libc.inotify_add_watch(self._handle, os.fsencode(directory), kinds)
        if watch < 0:  # it is gone already
            return
        self._watched[watch] = directory
        with suppress(OSError):
            for entry in os.scandir(directory):
                if entry.is_dir():
                    self._watch(Path(entry.path))
