"""Warns the user when a stream loses many of its rows, which is hardly intended."""

from collections.abc import Iterator

FEW = 20  # fewer rows are too few to judge by; smaller batches are judged together
LATE, INVALID = 0.1, 0.5  # a larger share of late or invalid rows is worth a warning


class Losses:
    """Watches the counts of one stream; warns once if many rows are late, and once if many are invalid.

    Args:
        on: the event-time or sequence column, if there is one.
        judged: counts of the rows seen, late and invalid before, which are not judged again.
    """

    def __init__(self, on: str | None, judged: tuple[int, int, int] = (0, 0, 0)) -> None:
        self._judged = judged
        self._advice = {
            "late": f"they came too late: sort the rows by {on!r} first, or allow for their delay with late= of "
            "the window",
            "invalid": f"their score{f' or {on!r}' if on else ''} is NULL, NaN or out of range: look at the columns "
            "that it is computed of",
        }

    def found(self, seen: int, late: int, invalid: int) -> Iterator[str]:
        """The warnings about the rows that came since the last call.

        >>> list(Losses("ts").found(seen=30, late=3, invalid=15))
        []
        """
        rows = seen - self._judged[0]
        if rows < FEW:
            return
        shares = {"late": (late - self._judged[1], LATE), "invalid": (invalid - self._judged[2], INVALID)}
        self._judged = seen, late, invalid
        for what, (lost, share) in shares.items():
            if lost > share * rows and what in self._advice:
                yield (f"{lost:,} of {rows:,} rows were left out, since {self._advice.pop(what)}. This is said once; "
                       f"stats.{what} goes on counting")  # fmt: skip
