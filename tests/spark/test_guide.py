"""The guide to Spark runs: its examples one after the other, and they print what it says."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "spark.md"
_BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = _BLOCK.findall(GUIDE.read_text())
    assert blocks
    for code, printed in blocks:
        capsys.readouterr()
        exec(compile(code, str(GUIDE), "exec"), names)
        assert capsys.readouterr().out.rstrip() == printed.rstrip(), code
