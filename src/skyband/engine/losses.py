"""When to tell the user that a stream loses many of its rows: most likely it is not what was meant."""

from collections.abc import Iterator

FEW = 20  # rows that are too few to tell; smaller batches are judged together
LATE, INVALID = 0.1, 0.5  # larger shares of the rows are many


class Losses:
    """Watches the counts of one stream; tells once that many rows are late, and once that many are invalid.

    Args:
        on: the column of positions, if there is one.
        judged: rows seen, late and invalid up to now, of which nothing is to be said.
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
        """What there is to tell of the rows that came since the last time.

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
