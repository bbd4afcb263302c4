"""Kernels are compiled once, one by one, whichever processes need them and however these end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
from runtime.compiling.compiled import compiled

def double(number):
    return 2 * number

def triple(number):
    return 3 * number

double, triple = compiled(double, ()), compiled(triple, ())
"""
PROGRAM = """
from runtime.compiling import awaited
awaited.tell = lambda name: print(name, flush=True)
from kernels import double, triple
input()
assert (double(21), triple(14)) == (42, 42)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def started(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A process that calls both kernels once it is told to go on, and says what it compiles. They
    are kept beside their module, if ``environment`` says nothing else.
    """
    others = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**others, "PYTHONPATH": paths, **environment},
    )


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def told(process: subprocess.Popen[str]) -> list[str]:
    """What a process compiled, in order, once it has ended well."""
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    return [name for name in out.split() if name != "None"]


def test_two_processes_compile_each_kernel_once(folder: Path) -> None:
    both = [started(folder) for _ in range(2)]
    for one in both:
        go_on(one)
    assert sorted(name for one in both for name in told(one)) == ["double", "triple"]


def test_a_process_that_was_killed_left_what_it_had_compiled(folder: Path) -> None:
    first = started(folder)
    go_on(first)
    assert first.stdout is not None
    assert [first.stdout.readline() for _ in range(3)] == ["double\n", "None\n", "triple\n"]
    first.kill()
    first.communicate()
    second = started(folder)
    go_on(second)
    assert told(second) == ["triple"]


def test_without_a_place_for_what_is_compiled_each_process_compiles(folder: Path) -> None:
    (folder / "__pycache__").write_text("no folder")
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    process = started(folder, **nowhere)
    go_on(process)
    told(process)


def test_a_turn_that_cannot_be_taken_is_not_waited_for(folder: Path) -> None:
    go_on(first := started(folder))
    told(first)
    for index in (folder / "__pycache__").glob("*.nbi"):
        index.unlink()
    for lock in (folder / "__pycache__").glob("*.lock"):
        lock.unlink()
        lock.mkdir()  # as good as a folder that is read-only, which root can write to
    go_on(second := started(folder))
    assert told(second) == ["double", "triple"]


UNKNOWN = """
import numba
numba.__version__ = "99.0"
from kernels import compiled
from runtime.compiling.compiled import IS_KNOWN

def double(number):
    return 2 * number

def more(numbers):
    total = 0
    for place in range(len(numbers)):
        total += doubled(numbers[place])
    return total

doubled, more = compiled(double, ()), compiled(more, ())
import numpy as np
assert not IS_KNOWN
assert (doubled(21), more(np.arange(4))) == (42, 12)
"""


def test_with_a_numba_of_which_nothing_is_known_kernels_are_compiled_as_any_function(
    folder: Path,
) -> None:
    program = folder / "unknown.py"
    program.write_text(UNKNOWN.replace("from kernels", "from runtime.compiling.compiled"))
    ended = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
