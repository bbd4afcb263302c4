"""Large pages for what a simulated network is made of."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from runtime import large_pages


def huge() -> int:
    """Bytes of this process that lie in large pages and belong to no file."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith("AnonHugePages"))
    return int(size) * 1024


def test_what_is_there_is_moved_and_stays_what_it_is(monkeypatch) -> None:
    if not Path("/proc/self/smaps_rollup").exists() or not hasattr(mmap, "MADV_HUGEPAGE"):
        pytest.skip("this system does not tell which pages are large")
    modes = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not modes.exists() or "[never]" in modes.read_text():
        pytest.skip("this system has no large pages, or gives none")
    kept = mmap.mmap(-1, 16 * large_pages.PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    values = np.frombuffer(kept, np.int64)
    values[:] = np.arange(len(values))
    before = huge()
    monkeypatch.setattr(large_pages, "WORTH", 16 * large_pages.PAGE)
    large_pages.use_large_pages()
    assert huge() - before >= 8 * large_pages.PAGE
    assert (values == np.arange(len(values))).all()


def test_little_is_left_alone(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("called")

    monkeypatch.setattr("ctypes.CDLL", refuse)
    monkeypatch.setattr(large_pages, "WORTH", 2**62)
    large_pages.use_large_pages()


def test_where_the_system_has_no_such_pages_nothing_happens(monkeypatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    monkeypatch.setattr(large_pages, "WORTH", 1)
    large_pages.use_large_pages()
