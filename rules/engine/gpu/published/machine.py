"""The stack machine on the device: programs of ``rules.planning.program`` (tesla.md S9, S10).

The arithmetic is that of the processor's machine (:mod:`rules.engine.kernels.expressions`). What
is defined on the stack is told by the bits of one word. Whoever calls brings the stack: under the
simulator threads can make arrays in the modules of kernels alone.
"""

from __future__ import annotations

import math

from numba import cuda, int64

from rules.engine.gpu.machine import compute_float
from rules.engine.gpu.published.layout import EVENT, OFFSET, OP, VALUE
from rules.engine.kernels.expressions import (
    ADD_I,
    CHECK,
    CHOOSE,
    COMPARE_F,
    COMPARE_FI,
    COMPARE_I,
    COMPARE_IF,
    COMPARE_S,
    CONST,
    END,
    INT_MIN,
    LOAD,
    MODULO_F,
    MODULO_I,
    NEGATE_F,
    NEGATE_I,
    NOT,
    OR,
    SLOT,
    TO_FLOAT,
    as_float,
    as_word,
    compute_int,
    decide,
    order_int_float,
)


@cuda.jit(device=True)
def order_of(op, left, right):
    """-1, 0 or 1 as the left of two defined words is less than, equal to or greater than the right,
    compared as ``op`` says. Strings are only ever compared for equality.
    """
    if op == COMPARE_F:
        one, other = as_float(left), as_float(right)
        return -1 if one < other else (1 if one > other else 0)
    if op == COMPARE_IF:
        return order_int_float(left, as_float(right))
    if op == COMPARE_FI:
        return -order_int_float(right, as_float(left))
    return -1 if left < right else (1 if left > right else 0)


@cuda.jit(device=True)
def connect(stack, defined, first, count, any_of):
    """Leave ``and`` or ``or`` of ``count`` truth values in the first place; what is defined."""
    decisive = 1 if any_of else 0
    known = int64(1)
    for place in range(first, first + count):
        if not (defined >> place) & 1:
            known = int64(0)
        elif stack[place] == decisive:
            stack[first] = decisive
            return defined | (int64(1) << first)
    stack[first] = 1 - decisive
    return (defined & ~(int64(1) << first)) | (known << first)


@cuda.jit(device=True)
def run_rare(op, offset, stack, defined, top):
    """The instructions that hot programs seldom have: the new top of the stack, and what is
    defined on it.
    """
    if op == TO_FLOAT:
        stack[top] = as_word(float(stack[top]))
        return top, defined
    if op == NEGATE_I:
        if stack[top] == INT_MIN:
            return top, defined & ~(int64(1) << top)
        stack[top] = -stack[top]
        return top, defined
    if op == NEGATE_F:
        stack[top] = as_word(-as_float(stack[top]))
        return top, defined
    if op == NOT:
        stack[top] = 1 - stack[top]
        return top, defined
    if op == CHOOSE:
        top -= 2
        chosen = top + 1 if stack[top] != 0 else top + 2
        stack[top] = stack[chosen]
        both = (defined >> top) & (defined >> chosen) & 1
        return top, (defined & ~(int64(1) << top)) | (both << top)
    if ADD_I <= op <= MODULO_F:
        top -= 1
        both = (defined >> top) & (defined >> (top + 1)) & 1
        fits = True
        if op <= MODULO_I:
            word, fits = compute_int(op, stack[top], stack[top + 1])
            stack[top] = word
        else:
            number = compute_float(op, as_float(stack[top]), as_float(stack[top + 1]))
            stack[top] = as_word(number)
            fits = math.isfinite(number)
        if not fits:
            both = int64(0)
        return top, (defined & ~(int64(1) << top)) | (both << top)
    first = top - offset + 1
    return first, connect(stack, defined, first, offset, op == OR)


@cuda.jit(device=True)
def run_on(stack, code, first, arena, sequences, row, candidate, address):
    """Run the program that begins at instruction ``first`` on a stack of DEPTH words.

    Events are read from the arena: that of frame place ``candidate`` at ``address``, others where
    row ``row`` of the partial sequences says. Gives a word and whether it is defined; of a
    conjunction (with CHECKs) the second tells whether all its conditions are true.
    """
    defined, top, place = int64(0), int64(-1), int64(first)
    while True:
        op = code[place, OP]
        if op == LOAD:
            top += 1
            event = code[place, EVENT]
            at = address if event == candidate else sequences[row, event - 1]
            stack[top] = arena[at + code[place, OFFSET]]
            defined |= int64(1) << top
        elif op == CONST:
            top += 1
            stack[top] = code[place, VALUE]
            defined |= int64(1) << top
        elif COMPARE_I <= op <= COMPARE_S:
            top -= 1
            both = (defined >> top) & (defined >> (top + 1)) & 1
            order = order_of(op, stack[top], stack[top + 1])
            stack[top] = 1 if decide(code[place, OFFSET], order) else 0
            defined = (defined & ~(int64(1) << top)) | (both << top)
        elif op == CHECK:
            if not (defined >> top) & 1 or stack[top] == 0:
                return int64(0), False
            top -= 1
        elif op == END:
            return stack[0], top < 0 or (defined & 1) == 1
        elif op == SLOT:
            top += 1
            stack[top] = sequences[row, code[place, OFFSET]]
            known = (sequences[row, code[place, VALUE]] >> code[place, EVENT]) & 1
            defined = (defined & ~(int64(1) << top)) | (known << top)
        else:
            top, defined = run_rare(op, code[place, OFFSET], stack, defined, top)
        place += 1
