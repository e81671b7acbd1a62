"""States as they were saved once; ``python -m tests.support.golden`` writes those that are missing or read no more.

There is a file for each algorithm and kind of window, ``<family>-<algorithm>-<kind>.bin``, which a monitor dumped
half-way through a small stream, and a listing of what each block is made of, ``blocks.txt``. The tests read the files,
and hold the listing against the blocks: so nobody changes by accident what is saved. Where an older version of a block
is still read, keep the file from before beside the new one, as ``<family>-<algorithm>-<kind>.<version>.bin``.
"""

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.families import FAMILIES
from skyband.storage.blocks import Declaration, declaration

HERE = Path(__file__).parent
LISTING = HERE / "blocks.txt"
SIZE = 36  # rows of the stream, a second apart
SAVED = 22  # the monitor is dumped after so many
ROOMS = ("algorithms", "engine", "kernels", "storage")  # that may hold blocks
WINDOWS = {
    "hopping": sb.last("12 seconds", every="4 seconds", late="3 seconds"),
    "arrival": sb.last(11),
}
QUERIES = {
    "objects": lambda **fields: sb.TopK(k=3, order_by="x DESC", partition_by="g", **fields),
    "pairs": lambda **fields: sb.TopKPairs(k=3, order_by="abs(a.x - b.x) + abs(a.y - b.y) ASC",
                                           select=("a.id", "b.id"), partition_by="g", **fields),
    "dominating": lambda **fields: sb.TopKDominating(k=3, dimensions={"x": "max", "y": "min"}, partition_by="g",
                                                     **fields),
    "groups": lambda **fields: sb.TopKGroups(k=3, id="o", value="x", partition_by="g", **fields),
}  # fmt: skip


def cases():
    """Each algorithm with each kind of window: the name of its file, and the query."""
    found = {}
    for family, query in QUERIES.items():
        for name, algorithm in FAMILIES[family].algorithms().items():
            for kind in sorted(algorithm.serves):
                found[f"{family}-{name}-{kind}"] = query(window=WINDOWS[kind], algorithm=name)
    return found


def stream():
    """Rows that no generator of random numbers has a part in: they are the same for ever."""
    i = np.arange(SIZE)
    return pa.table({
        "id": i, "g": np.where(i % 5 < 3, "a", "b"), "o": np.array(["p", "q", "r", "s", "t"])[i * 7 % 11 % 5],
        "x": i * 29 % 17 / 4, "y": i * 23 % 13 / 2,
        "ts": pa.array(1_700_000_000_000_000 + 1_000_000 * (i - i * 5 % 3), pa.timestamp("us")),
    })  # fmt: skip


def half_way(query):
    """A monitor that has seen the first rows."""
    monitor, rows = sb.Monitor(query), stream()
    monitor.push(rows.slice(0, 9))
    monitor.push(rows.slice(9, SAVED - 9))
    return monitor


def rest(monitor):
    """What a monitor says to the rest of the stream."""
    rows = stream()
    answers = [monitor.push(rows.slice(SAVED, 5)), monitor.push(rows.slice(SAVED + 5))]
    return pa.concat_tables([*answers, monitor.flush()])


def listing():
    """What each block is made of, by name: its version, then its columns, scalars and blocks, in lines of text."""
    found = {}
    for room in ROOMS:
        package = importlib.import_module(f"skyband.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and hasattr(value, "block_version") and value.__module__ == module.name:
                    found[f"{module.name.removeprefix('skyband.')}.{value.__name__}"] = _described(declaration(value))
    return dict(sorted(found.items()))


def listed():
    """The listing as it was written."""
    found = {}
    for part in LISTING.read_text().split("\n\n"):
        name, _, text = part.strip().partition(" ")
        found[name] = text
    return found


def rewrite(anew=False):
    """Writes the files that are missing or refused, and all of them ``anew``.

    Refuses where a block has changed and its version has not, unless ``anew``.
    """
    now, before = listing(), listed() if LISTING.exists() else {}
    if not anew and (names := changed(now, before)):
        raise SystemExit(f"changed, but its version is the same: {', '.join(names)}. Raise the version in @block(…), "
                         "and say there how states of the older one are read, if they can be. (--anew writes all the "
                         "same, for what was never released.)")  # fmt: skip
    LISTING.write_text("\n\n".join(f"{name} {text}" for name, text in now.items()) + "\n")
    wanted = cases()
    for path in HERE.glob("*.bin"):
        if path.name.removesuffix(".bin") not in wanted and path.name.count(".") == 1:
            path.unlink()
    for name, query in wanted.items():
        path = HERE / f"{name}.bin"
        if anew or not path.exists() or not read(path):
            path.write_bytes(half_way(query).dumps())


def read(path):
    """Whether a file can be read. Those that can are left as they are: what was saved once is to be read later."""
    try:
        sb.Monitor.loads(path.read_bytes())
    except sb.StateError:
        return False
    return True


def changed(now, before):
    """The blocks that are made of something else than before in the same version."""
    return [name for name in now.keys() & before.keys()
            if now[name] != before[name] and now[name].split("\n")[0] == before[name].split("\n")[0]]  # fmt: skip


def _described(declared: Declaration):
    lines = [f"version {declared.version}"]
    for group, names in declared.groups.items():
        for name in names:
            dtype, said = declared.columns[name]
            more = [f"{what} {value}" for what, value in (("used", said.used), ("first", said.first),
                                                          ("holds", said.holds)) if value]  # fmt: skip
            lines.append(" ".join([f"  {group}: {name} {dtype}", *more, *(["wide"] if said.wide else [])]))
    for name, record in declared.scalars.items():
        lines.append(f"  {name}: " + ", ".join(f"{field} {record.dtype[field]}" for field in record.names))
    lines += [f"  {name}: block {kind.__name__}" for name, kind in declared.blocks.items()]
    return "\n".join(lines)
