"""``rexmq bench`` on the project's own folder, at its smallest size."""

import json
from pathlib import Path

import pytest

from broker.cli import bench, main


def test_figures_are_printed_and_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    assert main(["bench", "files", "--quick", "--json", str(figures)]) == 0
    heading, _, *rows = capfd.readouterr().out.splitlines()
    assert heading.startswith("measurement ")
    written = json.loads(figures.read_text())
    assert written["machine"]["cores"] >= 1
    measured = written["benchmarks"]["files"]
    assert len(measured) == len(rows) > 5
    assert all(row["value"] > 0 and row["unit"] == "events/s" for row in measured)
    compared = [row for row in measured if row["baseline_value"]]
    assert compared
    assert all(
        row["ratio"] == pytest.approx(row["value"] / row["baseline_value"]) for row in compared
    )


def test_an_unknown_name_is_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nothing"]) == 2
    assert "there is no 'nothing'; there are" in capfd.readouterr().err


def test_without_a_checkout_there_are_no_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "FOLDER", tmp_path / "benchmarks")
    assert main(["bench"]) == 2
    assert "needs a source checkout" in capfd.readouterr().err
