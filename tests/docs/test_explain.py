"""docs/explain.md: its commands print what it shows, and it names every field of the JSON."""

import doctest
import re
from dataclasses import fields
from pathlib import Path

import pytest

from broker.cli import main
from rules.explaining import explanation
from rules.explaining.explanation import Fate

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SHOWN = [block.split("\n", 1) for kind, block in BLOCKS if kind == "console"]
DOCUMENTED = ("Explanation", "Branch", "Step", "Considered", "Candidate", "Check", "Term")


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_the_commands_print_what_is_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    output: str,
):
    blocks = dict(BLOCKS)
    (tmp_path / "fire.tesla").write_text(blocks["tesla"])
    (tmp_path / "events.jsonl").write_text(blocks["json"])
    monkeypatch.chdir(tmp_path)
    assert main(command.removeprefix("$ rexmq ").split()) == 0
    assert capsys.readouterr().out == output


def test_the_python_examples_run():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 8
    assert found.failed == 0


@pytest.mark.parametrize("name", [*DOCUMENTED, "Summary", "Stage"])
def test_every_field_is_documented(name: str):
    rows = re.findall(r"^\| ([\w ]*)\| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    documented: dict[str, set[str]] = {}
    current = ""
    for kind, names in rows:
        current = kind.strip() or current
        documented.setdefault(current, set()).update(re.findall(r"`(\w+)`", names))
    known = {field.name for field in fields(getattr(explanation, name))}
    computed = {"fired", "count", "matches"} if name == "Explanation" else set()
    assert documented[name.lower()] == known | computed


def test_every_fate_is_documented():
    for fate in Fate:
        assert f"| `{fate.value}` |" in PAGE.read_text()
