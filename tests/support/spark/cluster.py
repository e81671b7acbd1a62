"""A Spark cluster on this machine, from what pip installs: a master and some workers, each a process of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pyspark

import skyband
from skyband.spark import java

HOST = "127.0.0.1"
PATIENCE = 120.0  # seconds


class Cluster:
    """A running cluster; made by :func:`cluster`."""

    def __init__(self, directory: Path, cores: int, memory: str) -> None:
        self.directory = directory
        self.cores = cores
        self.memory = memory
        self.address = f"{HOST}:{_free_port()}"
        self.url = f"spark://{self.address}"
        self._page = f"http://{HOST}:{_free_port()}/json/"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        port, page = self.address.split(":")[1], self._page.split(":")[2].split("/")[0]
        self._start("master", "org.apache.spark.deploy.master.Master", "--port", port, "--webui-port", page)
        self._wait(lambda: self.workers == 0, "the master to answer")

    @property
    def workers(self) -> int | None:
        """How many workers the master believes to be alive; None if it does not answer."""
        try:
            with urlopen(self._page, timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError, KeyError):
            return None

    def add(self, name: str) -> None:
        """Start a worker, and wait until the master knows it."""
        before = self.workers or 0
        size = ["--cores", str(self.cores), "--memory", self.memory]
        place = ["--work-dir", str(self.directory / name), "--webui-port", "0"]
        self._start(name, "org.apache.spark.deploy.worker.Worker", *size, *place, self.url)
        self._wait(lambda: self.workers == before + 1, f"{name} to register")

    def kill(self, name: str) -> None:
        """End a worker and its executors at once, as if its machine had lost power."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # executors that outlived their worker
            process.wait()
        self._processes.clear()

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, role: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.directory / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
        }
        with open(self.directory / f"{name}.log", "wb") as log:
            self._processes[name] = subprocess.Popen(
                [home / "bin" / "spark-class", role, "--host", HOST, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a process group, which executors join: one signal reaches all
            )

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            dead = [name for name, process in self._processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                name = (dead or list(self._processes))[-1]
                raise RuntimeError(f"waited in vain for {what}; the log of {name}:\n{self.log(name)}")
            time.sleep(0.2)


@contextmanager
def cluster(directory: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A master and workers called ``worker-0``, ``worker-1`` …, all of whose processes are gone at the end."""
    java.ensure()
    running = None
    try:
        running = Cluster(directory, cores, memory)
        for index in range(workers):
            running.add(f"worker-{index}")
        yield running
    finally:
        if running is not None:
            running.stop()
        shutil.rmtree(directory / "scratch", ignore_errors=True)


def shipped(directory: Path) -> dict[str, str]:
    """Settings that bring this very package to executors that do not have it, compiled kernels included.

    An archive is unpacked where it arrives, so Numba finds its files beside their sources. From a zip file on the
    path (``addPyFile``) it would not, and would compile every kernel anew in every executor of every application.
    """
    archive = directory / "package.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for root in map(Path, skyband.__path__):
            for source in sorted(root.rglob("*")):
                if source.suffix in {".py", ".nbi", ".nbc"}:
                    file.write(source, Path("skyband") / source.relative_to(root))
    return {"spark.archives": f"{archive}#package", "spark.executorEnv.PYTHONPATH": "package"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
