"""``rexmq bench`` on the project's own folder, at its smallest size."""

import json
from pathlib import Path

import pytest

from benchmarks.soak import Sample, growth
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


def test_a_soak_finds_what_grows() -> None:
    flat = [Sample(100 + place % 3, {"entries": 90_000 + place % 7}) for place in range(20)]
    assert growth(flat) == []
    leaking = [Sample(100 + 2 * place, {"entries": 90_000}) for place in range(20)]
    assert growth(leaking) == ["the process: 118.0 MiB, then 138.0 MiB"]
    kept = [Sample(100, {"entries": 10_000 * place, "rows/A": 5}) for place in range(20)]
    assert growth(kept) == ["entries: 90,000, then 190,000"]
