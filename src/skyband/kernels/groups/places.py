"""Where the groups of a partition stand in the arrays of its state: a place for each code that has come."""

from typing import Annotated, NamedTuple

from skyband.kernels.common.jit import in_place, outer
from skyband.storage.blocks import TAG, Ints, Record, block, column, scalars

MIXER = 2654435761  # Knuth's: codes that follow a pattern are spread evenly all the same


class PlacesMeta(NamedTuple):
    held: int = 0  # codes that have a place


@block(version=1)
class Places(NamedTuple):
    """The code at each place, and a hash table of the places, which is a power of two long (open addressing)."""

    code: Annotated[Ints, column("places", used="held", holds=TAG)]
    table: Annotated[Ints, column("slots", fill=-1)]
    meta: Annotated[Record, scalars(PlacesMeta)]


@in_place
def _slot(places: Places, code: int) -> int:
    """Where a code stands in the table, or would stand."""
    last = places.table.size - 1
    slot = ((code & 0x7FFFFFFF) * MIXER >> 15) & last
    while places.table[slot] >= 0 and places.code[places.table[slot]] != code:
        slot = (slot + 1) & last
    return slot


@outer
def find(places: Places, codes: Ints, place: Ints, begin: int) -> int:
    """Write down the place of each code, from ``begin`` on; a new one gets the next place. Codes below 0 have none.

    Stops where there is no room for a new one and returns where to go on.
    """
    meta = places.meta[0]
    for i in range(begin, codes.size):
        code = codes[i]
        if code < 0:
            place[i] = -1
            continue
        if meta.held == places.code.size:  # there might be no empty slot to end the search
            return i
        slot = _slot(places, code)
        if places.table[slot] < 0:
            places.table[slot], places.code[meta.held] = meta.held, code
            meta.held += 1
        place[i] = places.table[slot]
    return int(codes.size)


@outer
def fill_table(places: Places) -> None:
    """Put all places into an empty table."""
    for i in range(places.meta[0].held):
        places.table[_slot(places, places.code[i])] = i
