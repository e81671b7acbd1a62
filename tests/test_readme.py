"""The front page works with what a plain installation brings."""

import os
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
CODE = """
import doctest, sys
class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "pyspark", "py4j"):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Forbidden())
parsed = doctest.DocTestParser().get_doctest(open(sys.argv[1]).read(), {}, "README.md", "README.md", 0)
assert len(parsed.examples) > 10
assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(parsed).failed == 0
"""


def test_the_examples_want_neither_pandas_nor_spark() -> None:
    done = subprocess.run([sys.executable, "-c", CODE, README], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr


def test_touching_nothing_loads_nothing() -> None:
    """What takes long to import waits for a name that needs it."""
    heavy = {"numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy", "sqlglot", "typer"}
    code = "import sys, skyband; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "skyband" in loaded and not heavy & set(loaded)
