"""The stack machine of :mod:`rules.planning.program` on a device (tesla.md S9, S10).

Law: it computes what the processor's does (:mod:`rules.engine.kernels.expressions`, whose
arithmetic it shares), bit for bit. What is defined stands in the bits of one word, by the depth of
the stack.

All that kernels read stands in one array of words, the *heap*: instructions of two words (what,
event and place in the one, a value in the other), and the attributes of columns, each a segment by
itself. A program's ``LOAD`` names the segment. A *partial sequence* (thesis 6.3) is a number ``p``;
``frames`` say which entry of its column each of its events is, ``slots`` what was computed for it:
both are laid out by event or slot, then by partial sequence.
"""

from __future__ import annotations

import math

from numba import cuda, int64

from rules.engine.kernels.expressions import (
    TWO_63,
    as_float,
    as_word,
    compute_int,
    order_int_float,
)
from rules.engine.kernels.layout import PROBE_FLOAT, PROBE_FLOAT_TO_INT, PROBE_INT_TO_FLOAT
from rules.planning.program import Op

DEPTH = 16
"""Words of the stack."""
INSTRUCTION = 2
"""Words of an instruction: what (8 bits), event (8 bits) and place, and a value."""
LESS, SAME, GREATER = 1, 2, 4
"""How a left operand stands to a right one; a comparison is the sum of what satisfies it."""
BY_INT, BY_FLOAT, BY_INT_FLOAT, BY_FLOAT_INT, BY_KEY = 0, 1, 2, 3, 4
"""How two words compare; BY_KEY: floats for equality, -0.0 being 0.0."""

END, CHECK, LOAD, CONST, SLOT = (
    int(Op.END),
    int(Op.CHECK),
    int(Op.LOAD),
    int(Op.CONST),
    int(Op.SLOT),
)
TO_FLOAT, NEGATE_I, NEGATE_F = int(Op.TO_FLOAT), int(Op.NEGATE_I), int(Op.NEGATE_F)
ADD_I, MODULO_I = int(Op.ADD_I), int(Op.MODULO_I)
ADD_F, SUBTRACT_F, MULTIPLY_F = int(Op.ADD_F), int(Op.SUBTRACT_F), int(Op.MULTIPLY_F)
DIVIDE_F, MODULO_F = int(Op.DIVIDE_F), int(Op.MODULO_F)
COMPARE_I, COMPARE_S = int(Op.COMPARE_I), int(Op.COMPARE_S)
NOT, AND, OR, CHOOSE = int(Op.NOT), int(Op.AND), int(Op.OR), int(Op.CHOOSE)
INT_MIN = -(2**63)


@cuda.jit(device=True)
def relation(how, left, right):
    """LESS, SAME or GREATER; 0 where a float is no number."""
    if how == BY_INT:
        return LESS if left < right else (GREATER if left > right else SAME)
    if how in (BY_FLOAT, BY_KEY):
        one, other = as_float(left), as_float(right)
        if one < other:
            return LESS
        if one > other:
            return GREATER
        return SAME if one == other else 0
    order = order_int_float(left, as_float(right)) if how == BY_INT_FLOAT else 0
    if how == BY_FLOAT_INT:
        order = -order_int_float(right, as_float(left))
    return LESS if order < 0 else (GREATER if order > 0 else SAME)


@cuda.jit(device=True)
def key_word(word, kind):
    """As the processor's function of this name (:mod:`rules.engine.kernels.spans`)."""
    if kind == PROBE_FLOAT:
        return int64(0) if as_float(word) == 0.0 else word, True
    if kind == PROBE_FLOAT_TO_INT:
        number = as_float(word)
        if not (-TWO_63 <= number < TWO_63) or math.floor(number) != number:
            return int64(0), False
        return int64(number), True
    if kind == PROBE_INT_TO_FLOAT:
        number = float(word)
        return as_word(number), number < TWO_63 and int64(number) == word
    return word, True


@cuda.jit(device=True)
def compute_float(op, left, right):
    """As the processor's function of this name, with the remainder that devices have."""
    if op == ADD_F:
        return left + right
    if op == SUBTRACT_F:
        return left - right
    if op == MULTIPLY_F:
        return left * right
    if right == 0.0:
        return math.nan
    if op == DIVIDE_F:
        return left / right
    rest = math.fmod(left, right)
    if rest != 0.0:
        return rest + right if (rest < 0.0) != (right < 0.0) else rest
    return math.copysign(0.0, right)


@cuda.jit(device=True)
def run(heap, code, frames, slots, stride, p, own, candidate, stack):
    """Run a program for a partial sequence: its word, and whether it is defined.

    ``code`` is the heap's word at which it begins. Frame place ``own`` is that of the candidate,
    whose entry is ``candidate``; ``stack`` int64[DEPTH] is the thread's own (made in the kernel:
    the simulator knows no local memory elsewhere). Of a conjunction (with CHECKs) the second says
    whether all its conditions are true. The top of the stack is kept beside it, in ``top``.
    """
    known, depth, place, top = int64(0), int64(0), int64(code), int64(0)
    while True:
        word = heap[place]
        op = word & 255
        if op == LOAD:
            if depth > 0:
                stack[depth - 1] = top
            event = (word >> 8) & 255
            entry = candidate if event == own else frames[(event - 1) * stride + p]
            top = heap[(word >> 16) + entry]
            known |= int64(1) << depth
            depth += 1
        elif ADD_I <= op <= COMPARE_S:
            depth -= 1
            left, is_known = stack[depth - 1], (known >> (depth - 1)) & (known >> depth) & 1
            if op >= COMPARE_I:
                found = relation((word >> 8) & 255, left, top)
                top = int64(1) if found & (word >> 16) != 0 else int64(0)
            elif op <= MODULO_I:
                top, fits = compute_int(op, left, top)
                if not fits:
                    is_known = int64(0)
            else:
                number = compute_float(op, as_float(left), as_float(top))
                top = as_word(number)
                if not math.isfinite(number):
                    is_known = int64(0)
            known = (known & ~(int64(1) << (depth - 1))) | (is_known << (depth - 1))
        elif op == CONST or op == SLOT:  # noqa: SIM109 (a device compares faster than it looks up)
            if depth > 0:
                stack[depth - 1] = top
            known |= int64(1) << depth
            if op == CONST:
                top = heap[place + 1]
            else:
                slot = 2 * (word >> 16)
                top = slots[slot * stride + p]
                if slots[(slot + 1) * stride + p] == 0:
                    known &= ~(int64(1) << depth)
            depth += 1
        elif op == CHECK:
            depth -= 1
            if (known >> depth) & 1 == 0 or top == 0:
                return int64(0), False
            if depth > 0:
                top = stack[depth - 1]
        elif op == END:
            return (top, known & 1 == 1) if depth > 0 else (int64(1), True)
        elif op == NOT:
            top = 1 - top
        elif op == TO_FLOAT:
            top = as_word(float(top))
        elif op == NEGATE_I:
            if top == INT_MIN:
                known &= ~(int64(1) << (depth - 1))
            else:
                top = -top
        elif op == NEGATE_F:
            top = as_word(-as_float(top))
        elif op == CHOOSE:
            depth -= 2
            is_first = stack[depth - 1] != 0
            is_known = (known >> (depth - 1)) & (known >> (depth if is_first else depth + 1)) & 1
            top = stack[depth] if is_first else top
            known = (known & ~(int64(1) << (depth - 1))) | (is_known << (depth - 1))
        else:  # AND, OR
            count = word >> 16
            stack[depth - 1] = top
            depth -= count - 1
            decisive = int64(1) if op == OR else int64(0)
            top, is_known = 1 - decisive, int64(1)
            for at in range(depth - 1, depth - 1 + count):
                if (known >> at) & 1 == 0:
                    is_known = int64(0)
            for at in range(depth - 1, depth - 1 + count):
                if (known >> at) & 1 == 1 and stack[at] == decisive:
                    top, is_known = decisive, int64(1)
            known = (known & ~(int64(1) << (depth - 1))) | (is_known << (depth - 1))
        place += INSTRUCTION
