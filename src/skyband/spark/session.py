"""Spark sessions that suit skyband: one made here, or one of the user's own put right as far as it still can be."""

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from skyband.spark import java

_log = logging.getLogger(__name__)
_warned: set[str] = set()

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_SETTING = "-Dlog4j2.configurationFile="
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# Arrow's Java code checks every number that it writes against the end of its buffer; Spark makes room before it writes.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access="

# Taken at run time, and left alone where the user has set them.
_TUNING = {
    # A batch then writes what it changed, not a snapshot of the whole state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark's 10,000 rows keep a task busy with crossing to Python and back; beyond 100,000 nothing more is gained.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With any other limit Spark measures the whole batch again after every row that it adds.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Or a driver that dies while it writes down where its first batch begins leaves a checkpoint that Spark refuses.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
# Taken only when Spark starts.
_START = {
    "spark.python.worker.reuse": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOOPBACK = "127.0.0.1"
_NEAR = re.compile(r"local|spark://(127\.0\.0\.1|localhost):")  # masters all of whose processes run on this machine
_RETRIES = 4  # what Spark allows a task on a cluster; a local master allows one attempt unless told otherwise


def session(app: str = "skyband", master: str = "local[*]", **conf: object) -> SparkSession:
    """A Spark session tuned for skyband; the one that is running already, if there is one.

    Args:
        app: the application's name.
        master: ``"local[*]"`` for all cores of this machine, ``"local[4]"`` for four, ``"spark://host:7077"`` for a
            cluster. With a master on this machine Spark listens on the loopback address only; with a local one it
            repeats, as a cluster would, a task whose Python worker died.
        conf: Spark settings, which win over skyband's own: ``session(**{"spark.ui.enabled": True})``.

    Java is found by :func:`skyband.spark.java.ensure`, and Python workers run the interpreter of this process. Under
    ``spark-submit``, which has chosen the master already, make the session yourself and :func:`configure` it.
    """
    near = _NEAR.match(master) is not None
    settings = _START | _TUNING | {_PROVIDER: _ROCKSDB}
    if near:
        settings |= {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
    settings |= {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in conf.items()}
    settings[_JAVA_OPTIONS] = _java_options(settings.get(_JAVA_OPTIONS, ""), master.startswith("local"))
    environment = {"PYSPARK_PYTHON": sys.executable}
    if near:
        environment["SPARK_LOCAL_IP"] = _LOOPBACK  # the web pages heed nothing else
    if (directory := _numba_cache()) is not None:
        environment["NUMBA_CACHE_DIR"] = directory
        settings.setdefault("spark.executorEnv.NUMBA_CACHE_DIR", directory)
    if SparkSession.getActiveSession() is None:
        java.ensure()
    builder = SparkSession.builder.appName(app).master(_retrying(master))
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _set(environment):
        spark = builder.getOrCreate()
    configure(spark)
    return spark


def _java_options(given: str, local: bool) -> str:
    """The user's options for Java, with quiet logs and, where it does the work itself, what makes it faster.

    >>> _java_options("-Dlog4j2.configurationFile=mine", local=False)
    '-Dlog4j2.configurationFile=mine'
    >>> _java_options("-Dlog4j2.configurationFile=mine", local=True).split()[1:]
    ['-XX:+UseParallelGC', '-Darrow.enable_unsafe_memory_access=true']
    >>> _java_options("-XX:+UseZGC -Dlog4j2.configurationFile=mine", local=True).split()[1:]
    ['-Dlog4j2.configurationFile=mine', '-Darrow.enable_unsafe_memory_access=true']
    """
    options = [given] if given else []
    if _LOG_SETTING not in given:
        options.append(_LOG_SETTING + Path(__file__).with_name("log4j2.properties").as_uri())
    if local and not _COLLECTOR.search(given):  # Java refuses two of them
        options.append("-XX:+UseParallelGC")
    if local and _UNCHECKED not in given:
        options.append(_UNCHECKED + "true")
    return " ".join(options)


def configure(spark: SparkSession) -> list[str]:
    """Make a session fit for skyband as far as it can be while it runs; :func:`skyband.spark.run` does it by itself.

    The RocksDB state store, which skyband's operators need, is always chosen. The rest is advice, and followed only
    where the user has set nothing: changes instead of snapshots in checkpoints, larger Arrow batches, and as many
    shuffle partitions as there are cores. (A checkpoint keeps the number of partitions it was begun with.)

    Python workers of a local Spark run the interpreter of this process, where no other one is named.

    Returns:
        What is amiss and can only be set before Spark starts, a sentence each; it is also logged, as warnings, once.
        Nothing is known of that where the session is one of Spark Connect: it is the server's matter.
    """
    spark.conf.set(_PROVIDER, _ROCKSDB)
    given = spark.conf.getAll.keys()
    wanted = dict(_TUNING)
    amiss: list[str] = []
    if not _connected(spark):
        context = spark.sparkContext
        if _master(context).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            # Spark would look for python3 on the path, which is another one where no environment is activated.
            context.pythonExec = sys.executable
        wanted[_PARTITIONS] = str(context.defaultParallelism)
        amiss += _amiss(context)
    for key, value in wanted.items():
        if key not in given:
            spark.conf.set(key, value)
    for sentence in amiss:
        if sentence not in _warned:
            _log.warning("%s", sentence)
    _warned.update(amiss)
    return amiss


def _master(context: SparkContext) -> str:
    return context.master or ""


def _connected(spark: SparkSession) -> bool:
    """Whether Spark runs in a server elsewhere, so that there is no Java here to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _amiss(context: SparkContext) -> Iterator[str]:
    if context.getConf().get("spark.python.worker.reuse", "true") == "false":
        yield (
            "Spark starts a new Python worker for every task, which costs a second each: "
            "set spark.python.worker.reuse=true before the session starts"
        )
    master = _master(context)
    if not master.startswith("local"):
        return
    if master != _retrying(master):
        yield (
            f"with master {master!r} a single lost Python worker ends the query: "
            f"start Spark with {_retrying(master)!r}, which repeats a failed task"
        )
    worker = shutil.which(context.pythonExec)
    if worker is None or Path(worker).parent != Path(sys.executable).parent:
        yield (
            f"Python workers run {worker or context.pythonExec}, not {sys.executable}, and may lack its packages: "
            "set the environment variable PYSPARK_PYTHON to that one before the session starts, or unset it"
        )


def _retrying(master: str) -> str:
    """A local master with a number of attempts a task.

    >>> _retrying("local"), _retrying("local[*]"), _retrying("local[2,1]"), _retrying("spark://host:7077")
    ('local[1,4]', 'local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        return f"local[1,{_RETRIES}]"
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{_RETRIES}]", master)


def _numba_cache() -> str | None:
    """Where workers keep compiled kernels if not beside their source: the directory Numba would choose here.

    Numba goes there by itself in this process; a worker might not, since it may run without a home directory.
    """
    package = find_spec("skyband")
    kernels = [Path(root, "kernels") for root in (package and package.submodule_search_locations) or ()]
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(directory, os.W_OK) for directory in kernels):
        return None
    return str(java.cache().with_name("numba"))


@contextmanager
def _set(environment: dict[str, str]) -> Iterator[None]:
    """Environment variables for what is started meanwhile; those that are set already stay as they are."""
    added = {name: value for name, value in environment.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
