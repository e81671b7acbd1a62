"""Packs state into bytes and back: a versioned header, JSON values and plain arrays. Nothing is ever pickled.

Layout: magic (8 bytes) | version (u32) | length of the header (u32) | CRC-32 of all that follows (u32) | header
(JSON) | the arrays, one after the other. The header says for each array its name, dtype and length and how it is
written (:mod:`skyband.storage.encoding`), and holds ``meta``, a small JSON object, and the version of skyband. Blocks
have an array each whose name says which block it is and in which version (:func:`skyband.storage.blocks.saved`).
Reading never executes anything, and a changed byte anywhere is refused.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from skyband import __version__
from skyband.errors import StateError
from skyband.storage.encoding import decode, encode

MAGIC = b"skyband\0"
VERSION = 5
_HEAD = struct.Struct("<8sIII")

Arrays = Mapping[str, NDArray[Any]]


def pack(meta: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Packs ``meta`` (JSON values) and one-dimensional arrays into bytes."""
    written = list(encode(arrays))
    header = json.dumps({"skyband": __version__, "meta": meta, "arrays": [note for note, _ in written]}).encode()
    parts = [header, *(data for _, data in written)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([_HEAD.pack(MAGIC, VERSION, len(header), checksum), *parts])


def unpack(blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The inverse of :func:`pack`; raises :class:`StateError` for bytes that ``pack`` did not write."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise StateError(f"a saved skyband state is bytes, as dumps() returns them, not {type(blob).__name__}")
    if len(blob) < _HEAD.size or blob[:8] != MAGIC:
        raise StateError("not a saved skyband state: the bytes do not begin with its mark")
    _, version, length, checksum = _HEAD.unpack_from(blob)
    if version != VERSION:
        raise StateError(f"saved by {_writer(blob, length)} in version {version} of the state format, and this skyband "
                         f"({__version__}) reads version {VERSION}: replay the stream to build it anew")  # fmt: skip
    body = memoryview(blob)[_HEAD.size :]
    if zlib.crc32(body) != checksum:
        raise StateError("the saved state is damaged: its bytes do not match their checksum")
    try:
        header = json.loads(bytes(body[:length]))
    except ValueError:  # the length of the header is the one field outside the checksum
        raise StateError("the saved state is damaged: its header cannot be read") from None
    return header["meta"], decode(header["arrays"], body[length:])


def _writer(blob: bytes | bytearray | memoryview, length: int) -> str:
    """Which skyband saved bytes of another version, as far as they tell."""
    try:
        return f"skyband {json.loads(bytes(blob[_HEAD.size : _HEAD.size + length]))['skyband']}"
    except (ValueError, KeyError, TypeError):
        return "another skyband"


def fingerprint(spec: Mapping[str, Any]) -> str:
    """A short text that identifies a spec: equal for equal specs, whatever the order of their fields."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
