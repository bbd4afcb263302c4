"""Guarded memory ends a process that touches what is outside an array, and engines live in it."""

import ctypes
import signal
import subprocess
import sys

import numpy as np
import pytest

from runtime.guarded import Side, holds, memory_of
from runtime.memory import first_length, grown, guarding, is_guarded, sheltered, zeros

TOUCH = """
import ctypes, numpy as np
from runtime.guarded import Side
from runtime.memory import grown, guard, zeros
guard(Side.{side})
array = zeros((10,), np.int64)
address = array.ctypes.data
{then}
ctypes.string_at(address + {offset}, 8)
"""


@pytest.mark.parametrize(
    ("side", "offset", "then"),
    [("FRONT", -8, ""), ("END", 80, ""), ("FRONT", 0, "array = grown(array, 20)")],
    ids=["before the first item", "behind the last item", "where it was before it grew"],
)
def test_touching_memory_outside_an_array_ends_the_process(side: str, offset: int, then: str):
    command = [sys.executable, "-c", TOUCH.format(side=side, offset=offset, then=then)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (-signal.SIGSEGV, -signal.SIGBUS), ended.stderr


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("size", [0, 1, 4096, 5000])
def test_all_bytes_of_an_array_can_be_read_and_written(side: Side, size: int):
    memory = memory_of(size, side)
    assert len(memory) == size
    assert not memory.any()
    memory[:] = 7
    assert ctypes.string_at(memory.ctypes.data, size) == b"\7" * size


@pytest.fixture(autouse=True)
def without_guards():
    with guarding(None):
        yield


def test_arrays_are_in_guarded_memory_meanwhile_and_begin_small():
    assert not holds(zeros((4,), np.int64))
    with guarding(Side.END):
        assert is_guarded()
        assert first_length(64) == 1
        array = zeros((4,), np.int64)
        assert holds(array)
        assert holds(grown(array, 5))
        assert holds(sheltered(np.arange(3)))
        assert sheltered(array) is array
    assert not is_guarded()
    assert first_length(64) == 64
