"""A family that skyband knows nothing of (tests/support/longest.py) on Spark, where two tasks share one ranking."""

import zipfile
from pathlib import Path

import pytest

from skyband.spark.run import _Inputs
from skyband.spark.testing import assert_same_on_spark, frame
from tests.support import longest


@pytest.fixture(scope="module", autouse=True)
def sent(spark, tmp_path_factory):
    """The module travels to the workers as any module of one's own does."""
    archive = tmp_path_factory.mktemp("sent") / "tests.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("tests/__init__.py", "tests/support/__init__.py"):
            file.writestr(name, "")
        file.write(Path(longest.__file__), "tests/support/longest.py")
    spark.sparkContext.addPyFile(str(archive))


def test_spread_over_two_tasks(spark):
    query, batches = longest.query(), list(longest.batches())
    (job,) = _Inputs(frame(spark, batches[0]), "final", None).jobs((query,), 2, None)
    assert job.spread and len(job.shards) == 2
    assert_same_on_spark(spark, query, batches, shards=2)


def test_by_partition(spark):
    assert_same_on_spark(spark, longest.query(partition_by="g"), list(longest.batches()), shards=2)
