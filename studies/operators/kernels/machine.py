"""The stack machine of :mod:`rules.planning.program` over columns of words, for any device.

What it makes of words is in :mod:`rules.engine.kernels.words`, as for all machines. Events are read
from columns, at a place of one or two tables; which words of the stack are defined stands in the
bits of one int, so that a thread of a device needs no second array.

``code`` int64[instructions, 4]: op, event (0 or 1), offset, value. ``LOAD`` has a column for its
offset, ``TEXT`` a row of ``results``, and comparisons the relations wanted. ``results`` int64, in
rows of ``width``: by text what a function makes of it, -1 where that is undefined.
"""

from __future__ import annotations

from rules.engine.kernels.words import CHECK, CONST, END, LOAD, TEXT, step, with_bit
from studies.operators.kernels.compiled import kernel

OP, EVENT, OFFSET, VALUE = 0, 1, 2, 3
"""Columns of code."""
STACK = 24
"""Words of a stack."""


@kernel
def run(code, first, results, width, one, one_step, one_at, other, other_step, other_at, stack):
    """Run the program that begins at ``first``: its value, and whether that is defined.

    A conjunction (with CHECKs) gives 1 and True where all its conditions are true, else False.
    Column ``c`` of the first event is ``one[c * one_step + one_at]``, and so of the other.
    """
    top, known, place = -1, 0, first
    while True:
        op, offset = code[place, OP], code[place, OFFSET]
        if op == LOAD:
            top += 1
            if code[place, EVENT] == 0:
                stack[top] = one[offset * one_step + one_at]
            else:
                stack[top] = other[offset * other_step + other_at]
            known |= 1 << top
        elif op == CONST:
            top += 1
            stack[top] = code[place, VALUE]
            known |= 1 << top
        elif op == CHECK:
            if (known >> top) & 1 == 0 or stack[top] == 0:
                return 0, False
            top -= 1
        elif op == END:
            if top < 0:
                return 1, True
            return stack[0], known & 1 == 1
        elif op == TEXT:
            if (known >> top) & 1 == 1:
                stack[top] = results[offset * width + stack[top]]
                known = with_bit(known, top, 1 if stack[top] >= 0 else 0)
        else:
            top, known = step(op, offset, stack, top, known)
        place += 1
