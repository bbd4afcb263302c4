"""The stack machine of :mod:`rules.planning.program` over columns of words, for any device.

It is the one of :mod:`rules.engine.kernels.expressions` with three differences: events are read
from columns, at a place of one or two tables; which words of the stack are defined stands in the
bits of one int, so that a thread of a device needs no second array; and comparisons are by the
*relation* of their operands, a bit, to be among those wanted.

``code`` int64[instructions, 4]: op, event (0 or 1), offset, value. ``LOAD`` has a column for its
offset, ``TEXT`` a row of ``results``, and comparisons the relations wanted. ``results`` int64, in
rows of ``width``: by text what a function makes of it, -1 where that is undefined.
"""

from __future__ import annotations

import math

import numpy as np

from rules.engine.kernels.expressions import (
    ADD_F,
    ADD_I,
    CHECK,
    CHOOSE,
    COMPARE_F,
    COMPARE_FI,
    COMPARE_I,
    COMPARE_IF,
    COMPARE_S,
    CONST,
    DIVIDE_F,
    END,
    INT_MIN,
    LOAD,
    MODULO_F,
    MODULO_I,
    MULTIPLY_F,
    NEGATE_F,
    NEGATE_I,
    NOT,
    OR,
    SUBTRACT_F,
    TEXT,
    TO_FLOAT,
    as_float,
    as_word,
    compute_int,
    order_int_float,
)
from rules.operators.kernels.compiled import kernel

OP, EVENT, OFFSET, VALUE = 0, 1, 2, 3
"""Columns of code."""
LESS, SAME, GREATER = 1, 2, 4
"""Relations of two words, as bits."""
STACK = 24
"""Words of a stack."""
fmod = np.fmod
"""The remainder with the dividend's sign; a device has another function for it."""


@kernel
def relation_of(op, left, right):
    """The relation of two defined words, compared as ``op`` says; texts by their codes alone."""
    if op == COMPARE_F:
        one, other = as_float(left), as_float(right)
        return LESS if one < other else (GREATER if one > other else SAME)
    if op == COMPARE_IF:
        order = order_int_float(left, as_float(right))
        return LESS if order < 0 else (GREATER if order > 0 else SAME)
    if op == COMPARE_FI:
        order = order_int_float(right, as_float(left))
        return GREATER if order < 0 else (LESS if order > 0 else SAME)
    return LESS if left < right else (GREATER if left > right else SAME)


@kernel
def computed(op, left, right):
    """Arithmetic of two floats; not finite where it is undefined."""
    if op == ADD_F:
        return left + right
    if op == SUBTRACT_F:
        return left - right
    if op == MULTIPLY_F:
        return left * right
    if right == 0.0:
        return np.nan
    if op == DIVIDE_F:
        return left / right
    rest = fmod(left, right)
    if rest != 0.0:
        return rest + right if (rest < 0.0) != (right < 0.0) else rest
    return math.copysign(0.0, right)


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
        elif COMPARE_I <= op <= COMPARE_S:
            top -= 1
            if (known >> top) & 3 == 3:
                wanted = offset & relation_of(op, stack[top], stack[top + 1])
                stack[top] = 1 if wanted != 0 else 0
            else:
                known &= ~(1 << top)
        elif op == CHECK:
            if (known >> top) & 1 == 0 or stack[top] == 0:
                return 0, False
            top -= 1
        elif op == END:
            if top < 0:
                return 1, True
            return stack[0], known & 1 == 1
        else:
            top, known = run_rare(op, offset, results, width, stack, top, known)
        place += 1


@kernel
def run_rare(op, offset, results, width, stack, top, known):
    """The instructions that hot programs seldom have; the new top, and what is known."""
    if op == TO_FLOAT:
        stack[top] = as_word(np.float64(stack[top]))
    elif op == NEGATE_I:
        if stack[top] == INT_MIN:
            known &= ~(1 << top)
        else:
            stack[top] = -stack[top]
    elif op == NEGATE_F:
        stack[top] = as_word(-as_float(stack[top]))
    elif op == NOT:
        stack[top] = 1 - stack[top]
    elif op == TEXT:
        if (known >> top) & 1 == 1:
            stack[top] = results[offset * width + stack[top]]
            if stack[top] < 0:
                known &= ~(1 << top)
    elif op == CHOOSE:
        top -= 2
        chosen = top + 1 if stack[top] != 0 else top + 2
        stack[top] = stack[chosen]
        if (known >> top) & 1 == 0 or (known >> chosen) & 1 == 0:
            known &= ~(1 << top)
    else:
        top -= 1
        both = (known >> top) & 3
        stack[top], is_known = of_two(op, stack[top], stack[top + 1], both)
        known = known | (1 << top) if is_known else known & ~(1 << top)
    return top, known


@kernel
def of_two(op, left, right, both):
    """Arithmetic, ``and`` and ``or`` of two words of which the bits of ``both`` say whether they
    are defined: the result, and whether it is.
    """
    if ADD_I <= op <= MODULO_I:
        if both != 3:
            return 0, False
        return compute_int(op, left, right)
    if ADD_F <= op <= MODULO_F:
        if both != 3:
            return 0, False
        number = computed(op, as_float(left), as_float(right))
        return as_word(number), math.isfinite(number)
    decisive = 1 if op == OR else 0
    if (both & 1 == 1 and left == decisive) or (both & 2 == 2 and right == decisive):
        return decisive, True
    return 1 - decisive, both == 3
