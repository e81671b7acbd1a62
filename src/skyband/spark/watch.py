"""Tells a program how a running stream is doing: how far and how fast it is, what it left out, and why it ended."""

import re
import time
from collections import deque
from dataclasses import dataclass, replace

from pyspark.sql.streaming.query import StreamingQuery

from skyband.errors import SkybandError
from skyband.spark.run import METRICS

_SPAN = 5.0  # seconds over which the rate is taken
_PYTHON = re.compile(r"^([a-zA-Z_][\w.]*(?:Error|Exception)): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Progress:
    """What a stream has done since it was started here.

    Attributes:
        batches: how many micro-batches were done.
        newest: the number of the last of them (a checkpoint goes on counting); -1 before the first.
        seen: rows taken in.
        late, invalid: rows among these that were left out.
        candidates, bytes: objects and bytes of state held, over all shards.
        rate: rows a second, lately.
    """

    batches: int = 0
    newest: int = -1
    seen: int = 0
    late: int = 0
    invalid: int = 0
    candidates: int = 0
    bytes: int = 0
    rate: float = 0.0


class Watch:
    """Follows one streaming query and sums up its reports."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self.progress = Progress()
        self._known: deque[tuple[int, str]] = deque(maxlen=1000)  # more than Spark remembers
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    @property
    def running(self) -> bool:
        return bool(self.query.isActive)

    def poll(self) -> Progress:
        """Takes in Spark's reports since the last call; call it before a hundred more batches are done."""
        for report in self.query.recentProgress:
            # While it waits for rows, Spark's reports carry the number that the next batch will have.
            if (mark := (report.batchId, report.timestamp)) in self._known:
                continue
            self._known.append(mark)
            counts = report.observedMetrics.get(METRICS)
            if counts is None:
                continue
            self.progress = replace(
                self.progress,
                batches=self.progress.batches + 1,
                newest=report.batchId,
                **{name: getattr(self.progress, name) + (counts[name] or 0) for name in ("seen", "late", "invalid")},
                **{name: counts[name] or 0 for name in ("candidates", "bytes")},
            )
        self.progress = replace(self.progress, rate=self._rate())
        return self.progress

    def raise_failure(self) -> None:
        """Raises the error by which the stream ended, if there was one, in one sentence."""
        if (error := self.query.exception()) is not None:
            raise SkybandError(reason(error)) from error

    def _rate(self) -> float:
        now = time.monotonic()
        self._marks.append((now, self.progress.seen))
        while len(self._marks) > 2 and self._marks[1][0] < now - _SPAN:
            self._marks.popleft()
        (began, before), (_, after) = self._marks[0], self._marks[-1]
        return (after - before) / max(now - began, 1e-3)


def reason(error: Exception) -> str:
    """One sentence that says what was wrong, taken from an error of Spark's: that of a Python error within, if any.

    >>> reason(ValueError("[STREAM_FAILED] Query [id = 1] terminated with exception: no such table SQLSTATE: XXKST"))
    'no such table'
    >>> reason(ValueError("[PYTHON_EXCEPTION] Traceback\\nskyband.errors.QueryError: k must be 1\\n SQLSTATE: 38000"))
    'k must be 1'
    >>> reason(ValueError("An error occurred while calling o9.start.\\n: java.io.IOException: mkdir failed\\n\\tat a"))
    'mkdir failed'
    """
    text = re.sub(r"^An error occurred while calling \S+\s+: (?:[\w.$]+: )?", "", str(error))
    within = [match for match in _PYTHON.finditer(text) if not match[1].startswith(("pyspark.", "py4j."))]
    if within:
        name, sentence = within[0].groups()
        return sentence if name.startswith("skyband.") else f"{name}: {sentence}"
    line = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    line = re.sub(r"^\[[\w.]+\] (?:Query \[.*?\] terminated with exception: )?", "", line)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", line)
