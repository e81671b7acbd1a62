"""Sessions made by skyband, and sessions of the user's own."""

import doctest
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark
from skyband.datasets import trades
from skyband.spark.testing import collect, stream, write_batches
from skyband.testing import answer, assert_same_rows

module = import_module("skyband.spark.session")  # the package has a function of the same name


def python(job: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process, and so in a Spark, of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    return subprocess.run(
        [sys.executable, "-c", cleandoc(job)], env=inherited | environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(skyband.spark.__path__)])
def test_docstrings(name: str) -> None:
    examples = import_module(f"skyband.spark.{name}")
    assert doctest.testmod(examples, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_settings(spark: SparkSession) -> None:
    expected = {
        "spark.sql.streaming.stateStore.providerClass": module._ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    assert {key: spark.conf.get(key) for key in expected} == expected
    assert spark.sparkContext.uiWebUrl is None
    assert module.configure(spark) == []


def test_the_running_session_is_returned(spark: SparkSession) -> None:
    assert module.session().sparkContext is spark.sparkContext


def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"path": [sys.executable]})

    [row] = spark.range(1).coalesce(1).mapInArrow(interpreter, "path string").collect()
    assert row.path == sys.executable


def test_a_lost_worker_is_replaced(spark: SparkSession) -> None:
    def deadly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    assert spark.range(10).mapInArrow(deadly, "id long").count() == 10


def test_state_goes_to_rocksdb(spark: SparkSession, tmp_path: Path) -> None:
    for low in (0, 100):
        spark.range(low, low + 100).write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    query = (
        stream.groupBy((stream.id % 10).alias("digit"))
        .count()
        .writeStream.outputMode("complete")
        .format("memory")
        .queryName("digits")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert {row["count"] for row in spark.table("digits").collect()} == {20}
    [operator] = json.loads(query.lastProgress.json)["stateOperators"]
    assert operator["numRowsTotal"] == 10
    assert operator["customMetrics"]["rocksdbPutCount"] > 0
    assert list(tmp_path.glob("checkpoint/state/0/*/*.changelog"))


def test_a_driver_that_died_in_its_very_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Half a file, of where the batch begins, is no reason to refuse the checkpoint."""
    table = trades(2_000, seed=1)
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / ".0.8746c53a-d67f-49e0-bb3e-5e1957bad09f.tmp").write_bytes(b"v1")
    query = sb.TopK(k=2, order_by="price DESC", window=sb.last("2 seconds", every="1 second"), select=("id",))
    answers = skyband.spark.run(stream(spark, [table]), query)
    got = pa.concat_tables(collect(answers, checkpoint=tmp_path / "checkpoint"))
    assert_same_rows(got, answer(query, [table], flush=False))


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="reads Linux's tables of sockets")
def test_spark_listens_on_the_loopback_address_only(spark: SparkSession) -> None:
    assert SparkContext._gateway is not None
    process = Path("/proc", str(SparkContext._gateway.proc.pid), "fd")
    inodes = {link.name for link in (Path(os.readlink(handle)) for handle in process.iterdir())}
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in inodes:
                listening.append(local.split(":")[0])
    assert listening
    # 127.0.0.1, alone and as an IPv6 address, in the byte order of this machine
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_a_session_of_the_users_own() -> None:
    done = python(
        """
        import json
        from pyspark.sql import SparkSession
        from skyband.spark import configure, java

        java.ensure()
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", False)
            .config("spark.python.worker.reuse", False)
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", 5000)
            .getOrCreate()
        )
        spark.conf.set("spark.sql.shuffle.partitions", 7)
        zone = spark.conf.get("spark.sql.session.timeZone")
        amiss = configure(spark)
        assert spark.conf.get("spark.sql.session.timeZone") == zone
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "5000"
        assert spark.conf.get("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled") == "true"
        assert spark.conf.get("spark.sql.streaming.stateStore.providerClass").endswith("RocksDBStateStoreProvider")
        print(json.dumps(amiss))
        spark.stop()
        """,
        PYSPARK_PYTHON="/nowhere/python",
    )
    assert done.returncode == 0, done.stderr
    reuse, retries, interpreter = json.loads(done.stdout)
    assert "spark.python.worker.reuse=true" in reuse
    assert "'local[2,4]'" in retries
    assert "PYSPARK_PYTHON" in interpreter and "/nowhere/python" in interpreter
    assert reuse in done.stderr  # a warning, too


def test_run_changes_no_setting() -> None:
    """It says once what it would like, and refuses a stream that could not run."""
    done = python(
        """
        import warnings
        import pyarrow as pa
        import skyband as sb
        from pyspark.sql import SparkSession
        from skyband.spark import configure, java, run
        from skyband.spark.testing import stream

        java.ensure()
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
        table = pa.table({"ts": [1, 2, 3], "x": [0.5, 0.7, 0.6]})
        static, streaming = spark.createDataFrame(table), stream(spark, [table])
        query = sb.TopK(k=1, order_by="x DESC", window=sb.last("3 seconds", every="3 seconds"))
        context = spark.sparkContext
        before = spark.conf.getAll, context.getConf().getAll(), context.pythonExec
        assert "spark.sql.shuffle.partitions" not in before[0]
        setting = type(spark.conf).set

        def blocked(*_):  # as in Spark's declarative pipelines
            raise AssertionError("run sets nothing")

        type(spark.conf).set = blocked
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for emit in ("final", "latest", "final"):
                run(static, query, emit)
            try:
                run(streaming, query)
            except sb.QueryError as error:
                refused = str(error)
        assert (spark.conf.getAll, context.getConf().getAll(), context.pythonExec) == before
        [warned] = [str(one.message) for one in caught if one.category is sb.SettingsWarning]
        assert [one.filename for one in caught if one.category is sb.SettingsWarning] == ["<string>"]
        assert "RocksDB" in refused and "sb.spark.configure(spark)" in refused
        for text in ("changes no setting", "sb.spark.configure(spark)", "spark.sql.shuffle.partitions=2: ",
                     "maxRecordsPerBatch=100000: ", "'local[2,4]'"):
            assert text in warned, (text, warned)
        type(spark.conf).set = setting
        warnings.simplefilter("error")
        assert len(configure(spark)) == 1
        before = spark.conf.getAll
        assert run(streaming, query).isStreaming
        assert spark.conf.getAll == before
        assert before["spark.sql.shuffle.partitions"] == "2"
        spark.stop()
        """
    )
    assert done.returncode == 0, done.stderr


def test_the_builder_of_a_session_is_configured() -> None:
    done = python(
        """
        import warnings
        import pyarrow as pa
        import skyband as sb
        from pyspark.sql import SparkSession
        from skyband.spark import configure, java, run
        from skyband.spark.testing import stream

        warnings.simplefilter("error", sb.SettingsWarning)
        java.ensure()
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
        builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", 5000)
        spark = configure(builder).getOrCreate()
        assert spark.sparkContext.master == "local[2,4]"
        assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "5000"
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
        assert "+UseParallelGC" in spark.conf.get("spark.driver.extraJavaOptions")
        query = sb.TopK(k=1, order_by="x DESC", window=sb.last("3 seconds", every="3 seconds"))
        assert run(stream(spark, [pa.table({"ts": [1, 2, 3], "x": [0.5, 0.7, 0.6]})]), query).isStreaming
        spark.stop()
        """
    )
    assert done.returncode == 0, done.stderr


def test_what_is_no_session_is_not_configured() -> None:
    with pytest.raises(sb.QueryError, match="SparkSession or the builder of one, not dict"):
        module.configure({})


def test_a_plain_session_where_no_environment_is_activated() -> None:
    """The python3 of the path lacks what is needed: workers run the interpreter of this process all the same."""
    done = python(
        """
        import pyarrow as pa
        import skyband as sb
        from pyspark.sql import SparkSession
        from skyband.spark import java, run

        java.ensure()
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
        df = spark.createDataFrame(pa.table({"ts": [1, 2, 3], "x": [0.5, 0.7, 0.6]}))
        query = sb.TopK(k=1, order_by="x DESC", window=sb.last("3 seconds", every="3 seconds"), select=())
        for _ in range(2):
            answer = run(df, query)
        print([row.score for row in answer.orderBy("window_end").collect()])
        spark.stop()
        """,
        PATH="/usr/bin:/bin",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0.7, 0.6]\n"
    assert done.stderr.count("a single lost Python worker ends the query") == 1  # said once, however many queries


@pytest.mark.slow
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    """Spark runs in a server of its own, and this process has nothing but a connection to it."""
    table = trades(4_000, seed=1)
    write_batches([table.slice(0, 2_000), table.slice(2_000)], tmp_path / "in")
    done = python(
        f"""
        import skyband as sb
        from pyspark.sql import SparkSession
        from skyband.spark import configure, java, run

        java.ensure()
        here = "{tmp_path}"
        builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", False)
        builder = builder.config("spark.connect.grpc.binding.address", "127.0.0.1")
        spark = configure(builder.config("spark.sql.shuffle.partitions", 2)).getOrCreate()
        query = sb.TopK(k=2, order_by="price * volume DESC", partition_by=("symbol",), select=("id",),
                        window=sb.last("10 seconds", every="5 seconds"))
        static = spark.read.parquet(f"{{here}}/in")
        run(static, query).write.parquet(f"{{here}}/static")
        stream = spark.readStream.schema(static.schema).option("maxFilesPerTrigger", 1).parquet(f"{{here}}/in")
        sink = run(stream, query).writeStream.option("checkpointLocation", f"{{here}}/checkpoint")
        running = sink.trigger(availableNow=True).start(f"{{here}}/stream")
        running.awaitTermination()
        print([progress.observedMetrics["skyband"]["values"][:3] for progress in running.recentProgress])
        spark.stop()
        """,
        PYSPARK_PYTHON=sys.executable,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[2000, 0, 0], [2000, 0, 0]]\n"  # seen, late, invalid
    query = sb.TopK(k=2, order_by="price * volume DESC", partition_by=("symbol",), select=("id",),
                    window=sb.last("10 seconds", every="5 seconds"))  # fmt: skip
    for name, flush in (("static", True), ("stream", False)):
        expected = answer(query, [table], flush=flush)
        got = parquet.read_table(tmp_path / name)
        assert_same_rows(got.select(expected.column_names).cast(expected.schema), expected)


def test_a_session_is_quiet_and_leaves_the_environment_alone() -> None:
    done = python(
        """
        import os
        from skyband.spark.session import session

        own = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.driver.extraJavaOptions": "-Dskyband.test=yes"}
        spark = session(app="quiet", master="local[1]", **own)
        assert not os.environ.keys() & {"PYSPARK_PYTHON", "SPARK_LOCAL_IP"}
        assert spark.sparkContext.appName == "quiet"
        assert spark.sparkContext.master == "local[1,4]"
        assert spark.sparkContext._jvm.System.getProperty("skyband.test") == "yes"
        beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
        assert spark.sparkContext._jvm.org.apache.arrow.memory.BoundsChecking.BOUNDS_CHECKING_ENABLED is False
        assert "PS Scavenge" in [bean.getName() for bean in beans]
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        print(spark.range(5).mapInArrow(lambda batches: batches, "id long").count())
        spark.stop()
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "5\n"
    own = re.compile(r"WARNING: (Using incubator modules|package \S+ not in java\.base)")  # Java's, of Spark's options
    assert [line for line in done.stderr.splitlines() if not own.match(line)] == []


def test_kernels_are_cached_where_workers_can_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert module._numba_cache() is None
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert module._numba_cache() == str(tmp_path / "numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert module._numba_cache() is None
