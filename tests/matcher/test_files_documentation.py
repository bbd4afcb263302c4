"""The example of docs/files.md runs as it is printed."""

import doctest
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "files.md"


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("temps.jsonl").write_text(
        '{"type": "Temp", "time": 1, "data": {"area": "a1", "value": 46.5}}\n'
        '{"type": "Temp", "time": 2, "data": {"area": "a2", "value": 43.5}}\n'
    )
    failed, attempted = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert (failed, attempted > 3) == (0, True)
