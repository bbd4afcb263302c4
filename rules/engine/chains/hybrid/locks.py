"""Locks of threads, words that another thread is about to write, and memory from the host.

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
from runtime.instructions.atomics import let_others_run, load, replace, store

_WORD = ir.IntType(64)
TURNS = 64
"""One who waits looks so many times before another thread may run."""


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
