"""Blocks: what is refused where one is declared, and which versions of a saved one are read."""

from typing import Annotated, NamedTuple

import numpy as np
import pytest

from skyband import StateError, __version__
from skyband.storage import codec
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, empty, restored, saved, scalars


class Counts(NamedTuple):
    held: int = 0
    bar: float = 0.0


@block(version=1)
class Inner(NamedTuple):
    position: Annotated[Ints, column("rows")]


def declared(version, older=None, name="Queue"):
    """A block of some version; the inner one is the same in all."""

    class Queue(NamedTuple):
        score: Annotated[Floats, column("objects", used="held")]
        arrival: Annotated[Ints, column("objects", used="held", holds=ARRIVAL)]
        inner: Inner
        meta: Annotated[Record, scalars(Counts)]

    Queue.__name__ = name
    return block(version, older)(Queue)


def queue(kind, **values):
    inner = Inner(np.array([3, 4, 5]))
    arrays = dict(score=np.array([1.5, 2.5, 0.0]), arrival=np.array([7, 9, 0]))
    return empty(kind, held=2, bar=2.5, inner=inner)._replace(**arrays, **values)


def stored(kind, prefix="state."):
    """What a block is once it was bytes."""
    return codec.unpack(codec.pack({}, dict(saved(kind, [queue(kind)] * 2, prefix))))[1]


def test_its_own_version():
    kind = declared(3)
    arrays = stored(kind)
    assert {"state.@Queue.3", "state.inner.@Inner.1"} <= arrays.keys()
    for got in restored(kind, arrays, "state."):
        assert got.score.tolist() == [1.5, 2.5] and got.arrival.tolist() == [7, 9]
        assert got.inner.position.tolist() == [3, 4, 5] and got.meta[0].item() == (2, 2.5)


def test_older_versions_are_read_one_step_after_the_other():
    def counted(arrays):  # version 2 had no bar
        return {**arrays, "meta.bar": np.full_like(arrays["meta.held"], 9, float)}

    def spelled(arrays):  # version 3 called the score a weight, and kept it negative
        return {**arrays, "score": -arrays["weight"]}

    arrays = stored(declared(2))
    arrays["state.weight"] = -arrays.pop("state.score")
    del arrays["state.meta.bar"]
    first, second = restored(declared(4, {2: counted, 3: spelled}), arrays, "state.")
    assert first.score.tolist() == [1.5, 2.5] and first.meta[0].item() == (2, 9.0)
    assert second.inner.position.tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("was", "older", "reads"),
    [(1, (), "version 4"), (5, (), "version 4"), (1, (2, 3), "versions 2 to 4"), (1, (1, 3), "versions 3 to 4")],
)
def test_other_versions_are_refused(was, older, reads):
    """With the block, its version and the one that is known here; also where a reader in the chain is missing."""
    kind = declared(4, dict.fromkeys(older, lambda arrays: arrays))
    message = rf"holds Queue in version {was}, and this skyband \({__version__}\) reads {reads} of it: replay"
    with pytest.raises(StateError, match=message):
        restored(kind, stored(declared(was)), "state.")


def test_another_version_within_a_block_is_refused():
    arrays = stored(declared(1))
    arrays["state.inner.@Inner.2"] = arrays.pop("state.inner.@Inner.1")
    with pytest.raises(StateError, match=r"holds Inner in version 2, .* reads version 1 of it"):
        restored(declared(1), arrays, "state.")


def test_another_block_is_refused():
    with pytest.raises(StateError, match="has Heap where Queue was expected"):
        restored(declared(1), stored(declared(1, name="Heap")), "state.")
    with pytest.raises(StateError, match="has nothing where Queue was expected"):
        restored(declared(1), {})


def test_a_group_called_as_a_field_is_refused():
    with pytest.raises(TypeError, match="a column and a row group that are both called 'score'"):

        @block(version=1)
        class Twice(NamedTuple):
            score: Annotated[Floats, column("score")]


def test_a_format_of_another_version_names_both():
    blob = bytearray(codec.pack({}, {}))
    blob[8] += 1
    with pytest.raises(StateError, match=rf"by skyband {__version__} in version {codec.VERSION + 1} of the state "
                                         rf"format, and .* reads version {codec.VERSION}: replay"):  # fmt: skip
        codec.unpack(bytes(blob))
    with pytest.raises(StateError, match="saved by another skyband in version"):
        codec.unpack(bytes(blob[:20]))
