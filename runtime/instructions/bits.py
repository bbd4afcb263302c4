"""Words of bits: instructions that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic


@intrinsic
def lowest_bit(_context: Any, _word: Any) -> tuple[Signature, Any]:
    """The number of the lowest bit that is set, of a word that has one."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def number_of_bits(_context: Any, _word: Any) -> tuple[Signature, Any]:
    """How many bits are set."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate
