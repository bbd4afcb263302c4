"""Asking for memory before it is needed, so that the misses of many places overlap."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

_cgutils: Any = cgutils  # which is not typed
_READ, _KEEP, _DATA = 0, 3, 1
_BYTES, _HINT = ir.IntType(8).as_pointer(), ir.IntType(32)


def ask_for(builder: Any, pointer: Any) -> None:
    """Write the instruction that asks for the cache line at a pointer."""
    form = ir.FunctionType(ir.VoidType(), [_BYTES, _HINT, _HINT, _HINT])
    function = _cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
    hints = (_HINT(hint) for hint in (_READ, _KEEP, _DATA))
    builder.call(function, [builder.bitcast(pointer, _BYTES), *hints])


@intrinsic
def prefetch(_context: Any, array: Any, _index: Any) -> tuple[Signature, Any]:
    """Ask for the cache line of the item at a flat index of a contiguous array; any will do."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        ask_for(builder, builder.gep(data, [index]))
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
