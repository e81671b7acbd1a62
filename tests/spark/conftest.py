"""One tuned Spark session for all tests of this directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from skyband.spark.session import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch: Path = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": scratch / "warehouse",
        # Java's quick compiler only: the other one takes half of all the time of so short a run, and never repays it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    running = session("skyband tests", "local[2]", **settings)
    yield running
    running.stop()
