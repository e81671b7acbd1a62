"""The experiments run to their end on generated data, and show a ranking."""

import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("[!_]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", EXPERIMENTS, ids=lambda script: script.stem)
def test_runs(script):
    done = subprocess.run([sys.executable, script, "--rows", "3000", "--batches", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "until" in done.stdout and "rank" in done.stdout
