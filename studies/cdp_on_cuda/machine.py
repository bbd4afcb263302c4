"""The stack machine of ``rules.planning.program`` (tesla.md S9, S10) on the reference's rows.

What is made of words is in :mod:`rules.engine.kernels.words`, for all machines. Whoever calls
brings the stack: under the simulator threads can make arrays in the modules of kernels alone.
"""

from __future__ import annotations

from numba import cuda, int64

from rules.engine.gpu.words import step
from rules.engine.kernels.words import CHECK, CONST, END, LOAD, SLOT, with_bit
from studies.cdp_on_cuda.layout import EVENT, OFFSET, OP, VALUE


@cuda.jit(device=True)
def run_on(stack, code, first, arena, sequences, row, candidate, address):
    """Run the program that begins at instruction ``first`` on a stack of DEPTH words.

    Events are read from the arena: that of frame place ``candidate`` at ``address``, others where
    row ``row`` of the partial sequences says. Gives a word and whether it is defined; of a
    conjunction (with CHECKs) the second tells whether all its conditions are true.
    """
    known, top, place = int64(0), int64(-1), int64(first)
    while True:
        op, offset = code[place, OP], code[place, OFFSET]
        if op == LOAD:
            top += 1
            event = code[place, EVENT]
            at = address if event == candidate else sequences[row, event - 1]
            stack[top] = arena[at + offset]
            known |= int64(1) << top
        elif op == CONST:
            top += 1
            stack[top] = code[place, VALUE]
            known |= int64(1) << top
        elif op == SLOT:
            top += 1
            stack[top] = sequences[row, offset]
            is_known = (sequences[row, code[place, VALUE]] >> code[place, EVENT]) & 1
            known = with_bit(known, top, is_known)
        elif op == CHECK:
            if (known >> top) & 1 == 0 or stack[top] == 0:
                return int64(0), False
            top -= 1
        elif op == END:
            return stack[0], top < 0 or known & 1 == 1
        else:
            top, known = step(op, offset, stack, top, known)
        place += 1
