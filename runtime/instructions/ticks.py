"""Ticks: how long something takes, by the processor's own counter."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types as numba_types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

_cgutils: Any = cgutils  # which is not typed


@intrinsic
def ticks(_context: Any) -> tuple[Signature, Any]:
    """The counter; always 0 on a machine where programs may not read any. The counter counts at a
    constant rate from whatever beginning, and is compared with itself alone, of two rules say; no
    result depends on it.
    """

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        word = ir.IntType(64)
        form = ir.FunctionType(word, [])
        machine = platform.machine()
        if machine in ("x86_64", "AMD64"):
            name = "llvm.readcyclecounter"
            return builder.call(_cgutils.get_or_insert_function(builder.module, form, name), [])
        if machine in ("aarch64", "arm64"):
            return builder.asm(form, "mrs $0, cntvct_el0", "=r", [], side_effect=True)
        return ir.Constant(word, 0)

    return numba_types.int64(), generate
