"""The cache of compiled kernels saves time and does nothing else."""

import os
from pathlib import Path

import numpy as np
import pytest

from rules.engine.kernels import compiled
from rules.engine.kernels.compiled import KernelCache, kernel
from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import is_kept

DAMAGE = {
    "empty": b"",
    "cut off": b"\x80",
    "no pickle": b"not a cache",
    "of a class that is gone": b"\x80\x04cnowhere\nGone\n.",
}


def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return tmp_path


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix}"))


def test_what_was_compiled_is_kept_and_found(folder: Path):
    assert kernel(double)(21) == 42
    assert len(files(folder, ".nbc")) == 1
    again = kernel(double)
    assert again(21) == 42
    assert sum(again.stats.cache_hits.values()) == 1


def test_one_can_ask_whether_a_kernel_is_kept(folder: Path):
    assert not is_kept(kernel(double))
    kernel(double)(1)
    assert is_kept(kernel(double))
    assert not is_kept(double)
    (index,) = files(folder, ".nbi")
    index.write_bytes(DAMAGE["no pickle"])
    assert not is_kept(kernel(double))


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_costs_the_compilation_only(folder: Path, suffix: str, damage: str):
    kernel(double)(1)
    (damaged,) = files(folder, suffix)
    damaged.write_bytes(DAMAGE[damage])
    assert kernel(double)(21) == 42
    again = kernel(double)
    assert again(21) == 42
    assert sum(again.stats.cache_hits.values()) == 1  # it was replaced


def test_an_index_whose_stamp_names_a_class_that_is_gone(folder: Path):
    kernel(double)(1)
    (index,) = files(folder, ".nbi")
    version = index.read_bytes().split(b".", 1)[0]  # the first pickle, up to its end
    index.write_bytes(version + b"." + DAMAGE["of a class that is gone"])
    assert kernel(double)(21) == 42


def test_a_cache_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_arguments: object) -> None:
        raise PermissionError("read-only")

    function = kernel(double)
    monkeypatch.setattr(function.kept()._cache_file, "_save_index", refuse)
    assert function(21) == 42
    assert files(folder, ".nbc") == []


def test_no_place_for_a_cache_at_all(monkeypatch: pytest.MonkeyPatch):
    def nowhere(self: KernelCache, *_arguments: object) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(KernelCache, "__init__", nowhere)
    assert kernel(double)(21) == 42


def test_an_edit_of_any_source_makes_the_cache_stale(folder: Path, monkeypatch: pytest.MonkeyPatch):
    kernel(double)(1)
    monkeypatch.setattr(compiled, "STAMP", (("memory.py", "edited"),))
    edited = kernel(double)
    assert edited(np.int64(21)) == 42
    assert not edited.stats.cache_hits


def test_a_copy_of_the_sources_is_no_edit(tmp_path: Path):
    source = tmp_path / "memory.py"
    source.write_text("ROOM = 16\n")
    stamp = stamp_of([source])
    os.utime(source, (0, 0))
    assert stamp_of([source]) == stamp
    source.write_text("ROOM = 32\n")
    assert stamp_of([source]) != stamp


def test_what_a_kernel_calls_is_compiled_with_it_alone(folder: Path):
    inner = kernel(double)

    def quadruple(number: int) -> int:
        return inner(inner(number))

    outer = kernel(quadruple)
    assert outer(21) == 84
    assert (inner.signatures, len(files(folder, ".nbc"))) == ([], 1)
    assert inner(21) == 42  # as a function of its own, now that Python asks for it
    assert len(files(folder, ".nbc")) == 2
    assert kernel(quadruple)(21) == 84
