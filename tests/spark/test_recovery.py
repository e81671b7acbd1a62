"""Processes that are killed at any moment: the answer is that of a run that was left alone."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from inspect import cleandoc
from pathlib import Path

import pyarrow as pa
import pytest

from skyband.datasets import trades
from skyband.spark.testing import write_batches
from skyband.testing import assert_same_rows
from tests.support.spark.changes import Changes
from tests.support.spark.sink import written

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells of files and processes"),
]

FILES = 40  # two in a micro-batch: enough that the stream outlasts all kills
PATIENCE = 300  # seconds
DRIVER = cleandoc(
    """
    import sys
    import skyband as sb
    from skyband.spark import run, session
    from skyband.spark.testing import files

    here, kind = sys.argv[1:]
    largest = sb.TopK(k=3, order_by="price * volume DESC", window=sb.last("5 seconds"), partition_by=("symbol",))
    hopping = sb.last("4 seconds", every="2 seconds", late="1 second")
    query = {
        "hopping": largest.but(window=sb.last("10 seconds", every="5 seconds", late="1 second")),
        "moving": largest,
        "numbered": largest.but(window=sb.last(1_000, every=100, on="id"), partition_by=()),
        "pairs": sb.TopKPairs(k=3, order_by="abs(a.price - b.price) DESC", same="symbol", window=hopping),
        "dominating": sb.TopKDominating(k=3, dimensions={"price": "max", "volume": "max"}, window=hopping),
        "sums": sb.TopKGroups(k=3, id="symbol", value="price * volume", window=hopping),
    }[kind]
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = session(master="local[2]", **{"spark.sql.shuffle.partitions": 2, **quick})
    chunks = 3 if query.partition_by else None
    answer = run(files(spark, f"{here}/in", together=2), query, chunks=chunks)
    sink = answer.writeStream.format("parquet").option("checkpointLocation", f"{here}/checkpoint")
    running = sink.trigger(availableNow=True).start(f"{here}/out")
    running.awaitTermination()
    """
)


def prepare(here: Path) -> None:
    table = trades(15_000, seed=3)
    size = table.num_rows // FILES
    write_batches([table.slice(start, size) for start in range(0, table.num_rows, size)], here / "in")


def start(here: Path, kind: str) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own, which its Java and Python processes join."""
    with open(here / "errors.log", "ab") as errors:
        return subprocess.Popen([sys.executable, "-c", DRIVER, str(here), kind], stderr=errors, start_new_session=True)


def end(driver: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def finish(here: Path, kind: str) -> pa.Table:
    driver = start(here, kind)
    try:
        assert driver.wait(PATIENCE) == 0, errors_of(here)
    finally:
        end(driver)
    return written(here)


def errors_of(here: Path) -> str:
    return (here / "errors.log").read_text(errors="replace")[-4000:]


def workers_of(driver: subprocess.Popen[bytes]) -> list[int]:
    """The Python workers of a driver: forked by a daemon of Spark's, whose name they keep."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            number, parent = int(entry.name), parent_of(int(entry.name))
            names = ((Path("/proc") / str(n) / "cmdline").read_bytes() for n in (number, parent))
            if all(b"pyspark.daemon" in name for name in names) and descends(parent, driver.pid):
                found.append(number)
    return found


def parent_of(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[1])


def descends(number: int, ancestor: int) -> bool:
    while number > 1 and number != ancestor:
        number = parent_of(number)
    return number == ancestor


@pytest.fixture(scope="module")
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    here = tmp_path_factory.mktemp(f"undisturbed-{request.param}")
    prepare(here)
    answer = finish(here, request.param)
    assert answer.num_rows > 50
    return request.param, answer


@pytest.mark.parametrize(
    ("undisturbed", "seed"),
    [("hopping", 0), ("moving", 1), ("numbered", 2), ("pairs", 3), ("dominating", 4), ("sums", 5)],
    indirect=["undisturbed"],
)
def test_driver_killed_again_and_again(undisturbed: tuple[str, pa.Table], seed: int, tmp_path: Path) -> None:
    """As it writes any file of the checkpoint or the answer, or a moment later: three times in the first micro-batch,
    then wherever it is."""
    kind, expected = undisturbed
    dice = random.Random(seed)
    prepare(tmp_path)
    places = [tmp_path / "checkpoint", tmp_path / "out"]
    for place in places:
        place.mkdir()
    for most in (30, 30, 30, 60, 60, 60):
        with Changes(places) as changes:
            driver = start(tmp_path, kind)
            try:
                assert changes.follow(dice.randint(1, most), PATIENCE), errors_of(tmp_path)
                time.sleep(dice.choice([0, dice.uniform(0, 0.2)]))
                assert driver.poll() is None, errors_of(tmp_path)
            finally:
                end(driver)
    assert_same_rows(finish(tmp_path, kind), expected)


@pytest.mark.parametrize(
    ("undisturbed", "seed"), [("hopping", 0), ("moving", 0), ("pairs", 0), ("dominating", 0)], indirect=["undisturbed"]
)
def test_killed_workers(undisturbed: tuple[str, pa.Table], seed: int, tmp_path: Path) -> None:
    """Spark repeats the task of a Python worker that died."""
    kind, expected = undisturbed
    dice = random.Random(seed)
    prepare(tmp_path)
    driver = start(tmp_path, kind)
    killed = 0
    try:
        while driver.poll() is None and killed < 3:
            time.sleep(dice.uniform(0.5, 3))
            if workers := workers_of(driver):
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(workers), signal.SIGKILL)
                    killed += 1
        assert driver.wait(PATIENCE) == 0, errors_of(tmp_path)
    finally:
        end(driver)
    assert killed
    assert_same_rows(written(tmp_path), expected)
