"""Places for groups: found by their codes, given to codes that are new, and given up again."""

import numpy as np

from skyband.algorithms.contract import Ints
from skyband.kernels.groups.places import Places, PlacesMeta, fill_table, find
from skyband.storage.blocks import TAG, plain, renumbered, resized, taken

LEAST = 16  # places that there is room for at the beginning


def held(places: Places) -> int:
    """How many codes have a place."""
    return plain(PlacesMeta, places.meta).held


def placed(places: Places, codes: Ints) -> tuple[Places, Ints]:
    """The place of each code; a new one gets the next place. Codes below 0 have none."""
    place = np.empty(codes.size, np.int64)
    done = find(places, codes, place, 0)
    while done < codes.size:
        places = _hashed(places)
        done = find(places, codes, place, done)
    return places, place


def kept(places: Places, which: Ints) -> Places:
    """Some of the places, in this order, numbered anew."""
    places = taken(places, "places", which)
    places.meta["held"] = which.size
    return _hashed(places)


def retagged(places: Places, codes: Ints) -> Places:
    """The places of codes that are numbered anew."""
    return _hashed(renumbered(places, TAG, codes))


def _hashed(places: Places) -> Places:
    """The places with room for more, and a table made anew that is half empty when they are all in use."""
    room = max(LEAST, 1 << held(places).bit_length())
    places = resized(resized(resized(places, "places", room), "slots", 0), "slots", 2 * room)
    fill_table(places)
    return places


def check(places: Places) -> None:
    """Asserts that each code has one place, where it is found."""
    codes = places.code[: held(places)]
    assert np.unique(codes).size == codes.size, "a code has two places"
    assert (places.table >= 0).sum() == codes.size, "the table is not that of the places"
    again, place = placed(places, codes)
    assert held(again) == codes.size and (place == np.arange(codes.size)).all(), "a place is not found"
