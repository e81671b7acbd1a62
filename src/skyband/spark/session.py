"""Spark sessions that suit skyband: a new one, or one of the user's own, changed where that is still possible."""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, overload

from pyspark import SparkContext
from pyspark.sql import SparkSession

from skyband.errors import QueryError, SettingsWarning
from skyband.spark import java

_told: set[str] = set()  # what this process has warned of

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_SETTING = "-Dlog4j2.configurationFile="
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# Arrow's Java code checks for every number that it writes whether there is room. Spark has made room before.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access="

# Advice, each with its reason; taken at run time, and left alone where the user has set another value.
_TUNING = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": (
        "true", "a batch then writes what it changed, and not a snapshot of the whole state"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": (
        "100000", "Spark's 10,000 rows keep a task busy with crossing to Python and back"),
    "spark.sql.execution.arrow.maxBytesPerBatch": (
        str(2**31 - 1), "with any other limit Spark measures the whole batch again after every row that it adds"),
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": (
        "false", "or a driver that dies while it writes down where its first batch begins leaves a checkpoint that "
        "Spark refuses"),
}  # fmt: skip
_WHY_PARTITIONS = "every micro-batch starts so many tasks, 200 by default, and so many shards hold its state"
# Taken only when Spark starts.
_START = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOOPBACK = "127.0.0.1"
_NEAR = re.compile(r"local|spark://(127\.0\.0\.1|localhost):")  # masters whose processes all run on this machine
_RETRIES = 4  # attempts that a cluster gives a task; a local master gives one unless told otherwise


def session(app: str = "skyband", master: str = "local[*]", **conf: object) -> SparkSession:
    """Starts a Spark session tuned for skyband, or returns the one that is running already.

    Args:
        app: the application's name.
        master: where Spark runs: ``"local[*]"`` for all cores of this machine, ``"local[4]"`` for four,
            ``"spark://host:7077"`` for a cluster. If the master is on this machine, Spark listens on the loopback
            address only. With a local master, a task whose Python worker died is repeated, as on a cluster.
        conf: Spark settings, which take precedence over skyband's: ``session(**{"spark.ui.enabled": True})``.

    A Java is found by itself (:func:`skyband.spark.java.ensure`), and Python workers run the interpreter of this
    process. Under ``spark-submit``, which has chosen the master already, make the session yourself, and then
    :func:`configure` it.
    """
    near = _NEAR.match(master) is not None
    settings = _START | _tuning() | {_PROVIDER: _ROCKSDB}
    if near:
        settings |= {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
    settings |= {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in conf.items()}
    settings[_JAVA_OPTIONS] = _java_options(settings.get(_JAVA_OPTIONS, ""), master.startswith("local"))
    environment = {"PYSPARK_PYTHON": sys.executable}
    if near:
        environment["SPARK_LOCAL_IP"] = _LOOPBACK  # the only setting that Spark's web pages obey
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
    """The user's options for Java, with options for quiet logs and, if the driver does the work itself, for speed.

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
    return _faster(" ".join(options)) if local else " ".join(options)


def _faster(given: str) -> str:
    """Options for a Java that does the work itself."""
    options = [given] if given else []
    if not _COLLECTOR.search(given):  # Java refuses two of them
        options.append("-XX:+UseParallelGC")
    if _UNCHECKED not in given:
        options.append(_UNCHECKED + "true")
    return " ".join(options)


@overload
def configure(target: SparkSession) -> list[str]: ...
@overload
def configure(target: SparkSession.Builder) -> SparkSession.Builder: ...
def configure(target: Any) -> Any:
    """Set what suits skyband: for a session that is to be built as much as it needs, else what can still be set.

    :func:`skyband.spark.run` changes no setting, and warns once of those that it would like. The RocksDB state store,
    without which it refuses a stream, is always chosen here. The rest is advice, and followed only where the user has
    set nothing: changes instead of snapshots in checkpoints, larger Arrow batches, and as many shuffle partitions as
    there are cores. (A checkpoint keeps the number of partitions it was begun with.)

    The Python workers of a local Spark run the interpreter of this process, unless another one is named.

    Args:
        target: a session that runs, or the builder of one: ``configure(SparkSession.builder.master("local[*]"))``.
            What is set on a builder before is left alone. One with a local master also gets the options of Java that
            make Spark faster there, and a master that repeats a failed task.

    Returns:
        Of a builder, the builder. Of a session, what is amiss and can only be set before Spark starts, a sentence each;
        it is also warned of, once. Nothing is known of that where the session is one of Spark Connect: it is the
        server's matter.
    """
    if hasattr(target, "getOrCreate"):
        return _configure_builder(target)
    if not (isinstance(target, SparkSession) or _connected(target)):
        raise QueryError(f"configure takes a SparkSession or the builder of one, not {type(target).__name__}")
    target.conf.set(_PROVIDER, _ROCKSDB)
    for key, (value, _) in _wanted(target).items():
        target.conf.set(key, value)
    if _connected(target):
        return []
    target.sparkContext.pythonExec = _interpreter(target.sparkContext)
    amiss = list(_amiss(target.sparkContext))
    for sentence in amiss:
        if sentence not in _told:
            warnings.warn(sentence, SettingsWarning, stacklevel=2)
    _told.update(amiss)
    return amiss


def _configure_builder(builder: SparkSession.Builder) -> SparkSession.Builder:
    given = builder._options  # there is no other way to see what is set
    settings = {key: value for key, value in _tuning().items() if key not in given} | {_PROVIDER: _ROCKSDB}
    master = str(given.get("spark.master", ""))
    if master.startswith("local"):
        settings["spark.master"] = _retrying(master)
        settings[_JAVA_OPTIONS] = _faster(str(given.get(_JAVA_OPTIONS, "")))
        if _PARTITIONS not in given:
            settings[_PARTITIONS] = _cores(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def check(spark: SparkSession, streaming: bool) -> None:
    """Refuses a session in which a stream cannot run; warns once of what would suit skyband better. Sets nothing."""
    if streaming and "RocksDB" not in (spark.conf.get(_PROVIDER) or ""):
        raise QueryError(f"the state of a stream wants Spark's RocksDB state store, which this session has not chosen: "
                         f"call sb.spark.configure(spark), or set {_PROVIDER} to {_ROCKSDB}")  # fmt: skip
    wanted = [f"{key}={value}: {why}" for key, (value, why) in _wanted(spark).items()]
    amiss = [] if _connected(spark) else [*_amiss(spark.sparkContext)]
    if {*wanted, *amiss} <= _told:
        return
    if wanted:
        wanted = ["sb.spark.run changes no setting. In this session it would like the following, which "
                  "sb.spark.configure(spark) sets", *wanted]  # fmt: skip
    _told.update(wanted, amiss)
    warnings.warn("\n- ".join([*wanted, *amiss]), SettingsWarning, stacklevel=4)


@contextmanager
def own_interpreter() -> Iterator[None]:
    """While it lasts, functions are made for workers that run the interpreter of this process, if Spark is local.

    Spark would look for python3 on the path, which is another one where no environment is activated.
    """
    context = SparkContext._active_spark_context
    if context is None:  # Spark Connect, or no Spark at all
        yield
        return
    before = context.pythonExec
    context.pythonExec = _interpreter(context)
    try:
        yield
    finally:
        context.pythonExec = before


def _tuning() -> dict[str, str]:
    return {key: value for key, (value, _) in _TUNING.items()}


def _wanted(spark: SparkSession) -> dict[str, tuple[str, str]]:
    """The settings that suit skyband and that nobody has set, with the reason for each."""
    wanted = dict(_TUNING)
    if not _connected(spark):
        wanted[_PARTITIONS] = str(spark.sparkContext.defaultParallelism), _WHY_PARTITIONS
    given = spark.conf.getAll.keys()
    return {key: reasoned for key, reasoned in wanted.items() if key not in given}


def _interpreter(context: SparkContext) -> str:
    """What Python workers run of what is built by skyband."""
    own = _master(context).startswith("local") and "PYSPARK_PYTHON" not in os.environ
    return sys.executable if own else str(context.pythonExec)


def _cores(master: str) -> str:
    """How many tasks a local master runs at once.

    >>> _cores("local"), _cores("local[3]"), _cores("local[4,2]")
    ('1', '3', '4')
    """
    found = re.match(r"local\[\s*(\d+|\*)", master)
    if found is None:
        return "1"
    return str(os.cpu_count() or 1) if found[1] == "*" else found[1]


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
    named = _interpreter(context)
    worker = shutil.which(named)
    if worker is None or Path(worker).parent != Path(sys.executable).parent:
        yield (
            f"Python workers run {worker or named}, not {sys.executable}, and may lack its packages: "
            "set the environment variable PYSPARK_PYTHON to that one before the session starts, or unset it"
        )


def _retrying(master: str) -> str:
    """The master, with a number of attempts for each task if it is a local one that names none.

    >>> _retrying("local"), _retrying("local[*]"), _retrying("local[2,1]"), _retrying("spark://host:7077")
    ('local[1,4]', 'local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        return f"local[1,{_RETRIES}]"
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{_RETRIES}]", master)


def _numba_cache() -> str | None:
    """The directory for compiled kernels, if they cannot be kept beside their source: the one that Numba chooses here.

    A worker has to be told, since it may run without a home directory and so not choose the same one.
    """
    package = find_spec("skyband")
    kernels = [Path(root, "kernels") for root in (package and package.submodule_search_locations) or ()]
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(directory, os.W_OK) for directory in kernels):
        return None
    return str(java.cache().with_name("numba"))


@contextmanager
def _set(environment: dict[str, str]) -> Iterator[None]:
    """Within this context, environment variables have these values; those that are set already stay as they are."""
    added = {name: value for name, value in environment.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
