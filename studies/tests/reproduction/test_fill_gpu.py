"""One command measures what no device has measured: which parts it runs, and what it keeps."""

from collections import Counter
from pathlib import Path

import pytest

from studies import bench_gpu, fill_gpu
from studies.reproduction import gpu
from studies.reproduction.gpu_tables import Kept


def test_every_section_has_a_part_and_parts_share_the_time_by_what_is_missing() -> None:
    assert set(fill_gpu.PARTS_OF) == {one.name for one in gpu.EXPERIMENTS}
    assert set(fill_gpu.PARTS_OF.values()) <= {part.name for part in bench_gpu.PARTS}
    missing = fill_gpu.unmeasured(Kept((), ()))
    parts = list(fill_gpu.parts_of(missing, 600.0))
    assert parts[0].name == "detection"
    assert sum(part.limit_s for part in parts) == pytest.approx(600.0)
    limits = [part.limit_s for part in parts]
    assert limits == sorted(limits, reverse=True)
    assert min(limits) > fill_gpu.LEAST_S


def test_what_is_measured_is_kept_and_judges_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under numba's simulator, at the smallest size: CCM in the figures of chapter 4."""
    whole = fill_gpu.unmeasured
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    monkeypatch.setattr(
        fill_gpu, "unmeasured", lambda kept: +Counter({"chapter4": whole(kept)["chapter4"]})
    )
    rows = tmp_path / "gpu.jsonl"
    before, after = fill_gpu.fill(rows, tmp_path / "out", 100.0)
    assert before > 15
    assert after < before / 2
    assert Kept.read(rows).devices
    assert whole(Kept.read(rows))["chapter4"] == after
