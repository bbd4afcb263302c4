"""Programs of the plan as instructions for the kernels' stack machine."""

from __future__ import annotations

import struct

from matcher.model import Value
from rules.engine.kernels import layout
from rules.engine.linking.interner import Interner
from rules.planning.program import TRUE, Instruction, Op, Program


class Assembler:
    """Programs of one rule, or one column, as instructions one behind the other.

    ``texts`` are the codes of their constants, ``functions`` the numbers of functions of strings
    that they use, to be given back (``Interner.drop``).
    """

    def __init__(self, strings: Interner) -> None:
        self._strings = strings
        self.instructions: list[tuple[int, int, int, int]] = []
        self.texts: list[int] = []
        self.functions: list[int] = []
        self.depth = 1

    def condition(self, program: Program) -> int:
        """Where a program begins, counted from the first; -1 when there is nothing to test."""
        return -1 if program is TRUE else self.program(program)

    def program(self, program: Program) -> int:
        """Append a program: where it begins, counted from the first."""
        first = len(self.instructions)
        self.instructions.extend(map(self._instruction, program.code))
        self.depth = max(self.depth, program.depth)
        return first

    def _instruction(self, instruction: Instruction) -> tuple[int, int, int, int]:
        offset = instruction.offset
        if instruction.op is Op.LOAD:
            offset = layout.offset_of(offset)
        if instruction.function is not None:
            offset = self._strings.use(instruction.function)
            self.functions.append(offset)
        word = word_of(instruction.value, self._strings)
        if isinstance(instruction.value, str):
            self.texts.append(word)
        return int(instruction.op), instruction.event, offset, word


def loaded(program: Program) -> tuple[int, int] | None:
    """Frame place and offset in the row of the attribute that a program merely reads, if so."""
    match program.code:
        case (Instruction(op=Op.LOAD, event=event, offset=offset), Instruction(op=Op.END)):
            return event, layout.offset_of(offset)
        case _:
            return None


def word_of(value: Value, strings: Interner) -> int:
    """A constant as the word that rows hold for it."""
    if isinstance(value, str):
        return strings.code(value)
    if isinstance(value, float):
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    return int(value)
