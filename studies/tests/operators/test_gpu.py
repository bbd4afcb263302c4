"""The kernels of operators on devices, where there is none: they compile for a GPU."""

import inspect
from typing import Any

import pytest
from numba import types
from ptx import kernels_in, ptx_of

NAMES = (
    *("flag", "gather", "append", "move", "oldest", "arrange", "span", "common", "pair", "total"),
    *("select", "append_values", "aggregate", "combine"),
)
WITH_STACK = {"flag", "append", "pair", "select", "append_values"}
TABLES = {"code", "compared"}
WORDS = {
    *("batch", "results", "counts", "offsets", "places", "out", "ring", "values", "old", "new"),
    *("lows", "turns", "mine", "theirs", "spans", "one", "other", "totals", "pairs", "kinds"),
    *("parts", "conditions"),
}


def kind_of(name: str) -> Any:
    if name in TABLES:
        return types.int64[:, ::1]
    return types.int64[::1] if name in WORDS else types.int64


@pytest.mark.parametrize("name", NAMES)
def test_kernels_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from studies.operators.gpu import kernels

    kernel: Any = getattr(kernels, name)
    signature = tuple(map(kind_of, inspect.signature(kernel.py_func).parameters))
    ptx = ptx_of(kernel, signature, monkeypatch)
    assert (".local" in ptx) == (name in WITH_STACK)  # the stack, and nothing else


def test_no_kernel_is_left_out() -> None:
    from studies.operators.gpu import kernels

    assert kernels_in(kernels) == set(NAMES)
