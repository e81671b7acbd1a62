"""A Spark session whose messages go to a file, so that they do not mix with what a program shows."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from skyband.spark.session import session


def quiet_session(app: str, master: str, log: Path, **conf: object) -> SparkSession:
    """A session from :func:`skyband.spark.session` whose Java and workers write their messages to the file ``log``."""
    with _errors_into(log):
        return session(app, master, **conf)


@contextmanager
def _errors_into(log: Path) -> Iterator[None]:
    """Within this context, processes that are started write their standard error to a file; this process does not."""
    ours, saved = sys.stderr, os.dup(2)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    sys.stderr = open(saved, "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    try:
        yield
    finally:
        os.dup2(saved, 2)
        there, sys.stderr = sys.stderr, ours
        there.close()
