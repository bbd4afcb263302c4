"""``import rexmq`` gives what programs use, and costs next to nothing."""

import subprocess
import sys

import pytest

import rexmq

HEAVY = ("msgspec", "numba", "numpy", "pandas", "polars", "pyarrow", "zmq")


def test_importing_it_imports_nothing_else():
    script = f"import sys, rexmq; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", rexmq.__all__)
def test_every_name_is_there(name):
    assert getattr(rexmq, name).__name__ == name
    assert name in dir(rexmq)


def test_a_name_that_is_not_there_is_told():
    with pytest.raises(AttributeError, match="module 'rexmq' has no attribute 'Enigne'"):
        _ = rexmq.Enigne
