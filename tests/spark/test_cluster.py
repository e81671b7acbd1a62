"""A driver, a master and two workers, each a process of its own."""

import json
import subprocess
import sys
from inspect import cleandoc
from pathlib import Path

import pytest

from tests.support.spark.cluster import cluster, shipped

DRIVER = cleandoc(
    """
    import json, sys
    import pyarrow as pa
    from skyband.spark.session import session

    def where(batches):
        import skyband.kernels.common.order
        for batch in batches:
            yield pa.record_batch({"path": [skyband.kernels.common.order.__file__] * len(batch)})

    master, settings = sys.argv[1], json.loads(sys.argv[2])
    spark = session(master=master, **settings)
    rows = spark.range(0, 100, 1, 8)
    for _ in sys.stdin:
        print(json.dumps([row.path for row in rows.mapInArrow(where, "path string").collect()]), flush=True)
    spark.stop()
    """
)


@pytest.mark.slow
def test_a_job_on_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    with cluster(tmp_path) as running:
        assert running.workers == 2
        settings = json.dumps(shipped(tmp_path))
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, running.url, settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with driver:
            assert driver.stdin is not None and driver.stdout is not None

            def ask() -> list[Path]:
                print(file=driver.stdin, flush=True)
                return [Path(path) for path in json.loads(driver.stdout.readline())]

            paths = ask()
            assert len(paths) == 100
            assert all(path.is_relative_to(tmp_path) and "package" in path.parts for path in paths)
            running.kill("worker-1")
            assert len(ask()) == 100
            driver.stdin.close()
            assert driver.wait(60) == 0
