"""Kernels compiled for a GPU where there is none."""

import importlib
import inspect
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HOPPER = (9, 0)
"""The compute capability of an H100 and an H200."""


def ptx_of(kernel: Any, signature: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel as PTX. Functions that it calls are compiled for the current device: be there one
    of HOPPER.
    """
    from numba import cuda

    dispatcher = importlib.import_module(type(kernel).__module__)
    current = SimpleNamespace(compute_capability=HOPPER)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    ptx, _ = cuda.compile_ptx(kernel.py_func, signature, cc=HOPPER)
    assert ".target sm_90" in ptx
    return str(ptx)


def kernels_in(module: ModuleType) -> set[str]:
    """The names of a module's kernels, by its text: no kernel is without a signature here."""
    return set(re.findall(r"^@cuda\.jit\ndef (\w+)", inspect.getsource(module), re.MULTILINE))


def local_bytes(ptx: str) -> int:
    """Bytes of memory of its own that a thread of a kernel needs."""
    return sum(map(int, re.findall(r"__local_depot\d+\[(\d+)\]", ptx)))
