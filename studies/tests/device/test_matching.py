"""``studies.device.matching``, at tiny sizes where a device is simulated."""

from collections.abc import Iterator

import pytest

from benchmarks.matching import Scenario
from benchmarks.report import Row
from studies.device import matching as gpu_matching


def test_the_benchmark_runs() -> None:
    rows = list(gpu_matching.run(quick=True))
    names = [row.name for row in rows]
    for name in ("CCM, launched", "CCM, by graph", "batched, launched", "batched, by graph"):
        assert any(f"{name}, kernels alone" in one for one in names)
    beside = [row for row in rows if row.name.endswith("one event, p50")]
    assert [row.ratio is None for row in beside] == [True, False, False, False]
    assert all(row.value > 0 for row in rows), names


def test_a_part_of_the_benchmark_that_fails_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row_of(work: gpu_matching.Work) -> Iterator[Row]:
        yield work.rate_row("batched", 1.0)

    def failing(work: gpu_matching.Work, name: str, *, recorded: bool) -> Iterator[Row]:
        yield work.rate_row(name, 2.0)
        raise RuntimeError("an illegal address")

    monkeypatch.setattr(gpu_matching, "on_processor", lambda work: iter(()))
    monkeypatch.setattr(gpu_matching, "by_ccm", failing)
    monkeypatch.setattr(gpu_matching, "by_batches", row_of)
    rows = list(gpu_matching.measure(Scenario("s", constraints=40), 8, few=True))
    assert [(row.name, row.value, row.note) for row in rows] == [
        ("gpu matching/s/launched", 2.0, ""),
        ("gpu matching/s/CCM, launched", None, "RuntimeError: an illegal address"),
        ("gpu matching/s/by graph", 2.0, ""),
        ("gpu matching/s/CCM, by graph", None, "RuntimeError: an illegal address"),
        ("gpu matching/s/batched", 1.0, ""),
    ]
