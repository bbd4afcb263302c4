"""Words that several threads share: steps that none of them sees half done.

Numba has none of these for the processor; LLVM has them all, so each is one instruction of its own
here. All are ordered as a single sequence that every thread agrees on.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_ORDER = "seq_cst"
_types: Any = types
let_others_run = _types.ExternalFunction("sched_yield", _types.int32())
"""Have the operating system run another thread, if one is ready to."""


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def place_of(_context: Any, array: Any, _index: Any) -> tuple[Signature, Any]:
    """The address of an item of a contiguous array, counted as it lies in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        return builder.ptrtoint(builder.gep(data, [index]), _WORD)

    return types.int64(array, types.intp), generate


@intrinsic
def load(_context: Any, _address: Any) -> tuple[Signature, Any]:
    """The word at an address, as the last thread to write it has left it."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(builder, arguments[0]), _ORDER, 8)

    return types.int64(types.int64), generate


@intrinsic
def store(_context: Any, _address: Any, _word: Any) -> tuple[Signature, Any]:
    """Write a word for all threads to see, and with it all that was written before."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _pointer(builder, arguments[0]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def add(_context: Any, _address: Any, _number: Any) -> tuple[Signature, Any]:
    """Add to the word at an address: what it was before."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(builder, arguments[0]), arguments[1], _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def replace(_context: Any, _address: Any, _old: Any, _new: Any) -> tuple[Signature, Any]:
    """Write a word in place of another; whether that one still stood there."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, old, new = arguments
        pair = builder.cmpxchg(_pointer(builder, address), old, new, _ORDER, _ORDER)
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate
