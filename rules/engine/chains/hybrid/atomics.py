"""Words that several threads share: steps that none of them sees half done.

Numba has none of these for the processor; LLVM has them all, so each is one instruction of its own
here. All are ordered as a single sequence that every thread agrees on, which is what tickets ask
for (:mod:`rules.engine.chains.hybrid.pairing`). As :mod:`matcher.kernels.atomics`, but of words at
addresses: chunks are no items of an array.

Law: a lock is held for a few instructions, or while the host finds memory; never while pairs are
evaluated. One who waits turns a few times and then lets another thread run, so that more threads
than processors do no harm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from rules.engine.chains.hybrid.compiled import kernel

_WORD = ir.IntType(64)
_ORDER = "seq_cst"
_types: Any = types
let_others_run = _types.ExternalFunction("sched_yield", _types.int32())
"""Have the operating system run another thread, if one is ready to."""
TURNS = 64
"""One who waits looks so many times before another thread may run."""


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


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


@intrinsic
def allocated(_context: Any, _function: Any, _words: Any) -> tuple[Signature, Any]:
    """Words from the host, whose function stands at an address; 0 where it has none. It takes the
    interpreter's lock.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        form = ir.FunctionType(_WORD, [_WORD])
        function = builder.inttoptr(arguments[0], form.as_pointer())
        return builder.call(function, [arguments[1]])

    return types.int64(types.int64, types.int64), generate


@kernel
def lock(address: int) -> None:
    """Wait until nobody holds a lock, and hold it."""
    turns = 0
    while not replace(address, 0, 1):
        turns += 1
        if turns % TURNS == 0:
            let_others_run()


@kernel
def unlock(address: int) -> None:
    """Let go of a lock."""
    store(address, 0)


@kernel
def written(address: int, nothing: int) -> int:
    """The word at an address, once another thread that is about to write it has."""
    turns, word = 0, load(address)
    while word == nothing:
        turns += 1
        if turns % TURNS == 0:
            let_others_run()
        word = load(address)
    return word
