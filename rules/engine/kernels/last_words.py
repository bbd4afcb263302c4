"""The handler of a signal that ends the process: it tells which rules were being evaluated.

A handler may call next to nothing of the system and nothing of Python. This one reads and writes
words that the host has laid out, and calls ``write``, ``signal`` and ``raise``. Its own memory is
one word, the address of these words, which ``last_words`` is given first.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from rules.engine.kernels.arrays import bytes_at, words_at
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import (
    NAME_BYTES,
    NAMES_AT,
    NAMES_COUNT,
    PREFIX_AT,
    PREFIX_LENGTH,
    SIGNAL,
    SIGNALS,
    SLOTS,
    WORDS_BYTES,
)

_FIRST_SLOT, _SLOTS_END, _NAMES_MAX = SLOTS[0], SLOTS[-1] + 1, 8
_STANDARD_ERROR = 2
_types: Any = types
_write = _types.ExternalFunction("write", _types.intp(_types.int32, _types.intp, _types.intp))
_signal = _types.ExternalFunction("signal", _types.intp(_types.int32, _types.intp))

_raise = _types.ExternalFunction("raise", _types.int32(_types.int32))


@intrinsic
def _cell(_context: Any) -> tuple[Signature, Any]:
    """The address of a word that lasts as long as the compiled code."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        word = ir.IntType(64)
        cell = builder.module.globals.get("rexmq_last_words")
        if cell is None:
            cell = ir.GlobalVariable(builder.module, word, "rexmq_last_words")
            cell.linkage, cell.initializer = "internal", ir.Constant(word, 0)
        return builder.ptrtoint(cell, word)

    return _types.int64(), generate


@kernel
def last_words(argument: int) -> int:
    """Take the address of the words, of WORDS_BYTES bytes; or handle a signal, by its number."""
    cell = words_at(_cell(), 1)
    if argument >= SIGNALS:
        cell[0] = argument
        return 0
    if cell[0] != 0:
        write_names(cell[0], argument)
    _signal(argument, 0)  # the next one ends the process,
    _raise(argument)  # which comes when the handler returns
    return 0


@kernel
def write_names(address: int, number: int) -> None:
    """Write the names of the rules that are being evaluated, and the number of the signal."""
    words, text = words_at(address, WORDS_BYTES // 8), bytes_at(address, WORDS_BYTES)
    words[SIGNAL] = number
    count = 0
    for slot in range(_FIRST_SLOT, _SLOTS_END):
        if words[slot] != 0 and count < _NAMES_MAX:
            name, start = bytes_at(words[slot], NAME_BYTES), NAMES_AT + count * NAME_BYTES
            length = 0
            while length < NAME_BYTES - 1 and name[length] != 0:
                text[start + length] = name[length]
                length += 1
            _write(_STANDARD_ERROR, address + PREFIX_AT, words[PREFIX_LENGTH])
            text[start + length] = 10  # a line's end, for the message
            _write(_STANDARD_ERROR, address + start, length + 1)
            text[start + length] = 0
            count += 1
    words[NAMES_COUNT] = count
