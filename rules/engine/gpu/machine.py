"""The stack machine of :mod:`rules.planning.program` on a device (tesla.md S9, S10).

It computes what the processor's does (:mod:`rules.engine.kernels.expressions`), bit for bit: what
both make of words is in :mod:`rules.engine.kernels.words`. What is defined stands in the bits of
one word, by the depth of the stack.

All that kernels read stands in one array of words, the *heap*: instructions of two words (what,
event and place in the one, a value in the other), and the attributes of columns, each a segment by
itself. A program's ``LOAD`` names the segment. A *partial sequence* (thesis 6.3) is a number ``p``;
``frames`` say which entry of its column each of its events is, ``slots`` what was computed for it,
``operands`` what is the same for all candidates of a step: all are laid out by event, slot or
operand, then by partial sequence.
"""

from __future__ import annotations

import math

from numba import cuda, int64, uint64

from rules.engine.gpu.words import of_one, of_two, step
from rules.engine.kernels.layout import PROBE_FLOAT, PROBE_FLOAT_TO_INT, PROBE_INT_TO_FLOAT
from rules.engine.kernels.words import (
    ADD_I,
    CHECK,
    COMPARE_S,
    CONST,
    END,
    LOAD,
    OPERAND,
    SLOT,
    TWO_63,
    as_float,
    as_word,
    with_bit,
)

DEPTH = 16
"""Words of the stack."""
WIDE = 4
"""Candidates that a program is run for together."""
WIDE_DEPTH = 8
"""Words of the stack that each of them has then."""
WIDE_STACK = WIDE * WIDE_DEPTH
"""Words of both stacks: numba sets them to zero, in each thread, which is not for nothing."""
INSTRUCTION = 2
"""Words of an instruction: what (8 bits), event (8 bits) and place, and a value."""


@cuda.jit(device=True)
def word_at(words, place):
    """A word by its place, which is never negative: a signed one costs three operations more."""
    return words[uint64(place)]


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
def run(heap, code, operands, frames, slots, stride, p, own, candidate, stack):
    """Run a program for a partial sequence: its word, and whether it is defined.

    ``code`` is the heap's word at which it begins. Frame place ``own`` is that of the candidate,
    whose entry is ``candidate``; ``stack`` int64[DEPTH] is the thread's own (made in the kernel:
    the simulator knows no local memory elsewhere). Of a conjunction (with CHECKs) the second says
    whether all its conditions are true. The top of the stack is kept beside it, in ``top``.
    """
    known, depth, place, top = int64(0), int64(0), int64(code), int64(0)
    while True:
        word = word_at(heap, place)
        op = word & 255
        if op == LOAD:
            if depth > 0:
                stack[depth - 1] = top
            event, entry = (word >> 8) & 255, candidate
            if event != own:
                entry = word_at(frames, (event - 1) * stride + p)
            top = word_at(heap, (word >> 16) + entry)
            known |= int64(1) << depth
            depth += 1
        elif ADD_I <= op <= COMPARE_S:
            depth -= 1
            fits = (known >> (depth - 1)) & 3 == 3
            if fits:
                top, fits = of_two(op, word >> 16, stack[depth - 1], top)
            if not fits:
                known = with_bit(known, depth - 1, int64(0))
        elif op == CONST or op == OPERAND or op == SLOT:  # noqa: SIM109 (a device compares faster)
            if depth > 0:
                stack[depth - 1] = top
            number, is_known = word >> 16, int64(1)
            if op == CONST:
                top = word_at(heap, place + 1)
            elif op == OPERAND:
                top = word_at(operands, number * stride + p)
            else:
                top = word_at(slots, 2 * number * stride + p)
                is_known = int64(word_at(slots, (2 * number + 1) * stride + p) != 0)
            known = with_bit(known, depth, is_known)
            depth += 1
        elif op == CHECK:
            depth -= 1
            if (known >> depth) & 1 == 0 or top == 0:
                return int64(0), False
            if depth > 0:
                top = stack[depth - 1]
        elif op == END:
            return (top, known & 1 == 1) if depth > 0 else (int64(1), True)
        else:
            stack[depth - 1] = top
            depth, known = step(op, word >> 16, stack, depth - 1, known)
            top = stack[depth]
            depth += 1
        place += INSTRUCTION


@cuda.jit(device=True)
def run_wide(heap, code, operands, stride, p, entries, fit, stack):
    """Run a straight conjunction (records.STRAIGHT) for WIDE candidates of a partial sequence:
    those of ``fit``, a bit each, for which all its conditions are true.

    To find out what an instruction is takes longer than to do it: here it is found out once.
    Whatever is undefined makes its condition untrue, so that a candidate is out at once, and
    nothing notes what is defined. ``entries`` int64[WIDE] are the candidates', all of them to be
    read; ``stack`` int64[WIDE_STACK]. Of events it reads the candidate alone.
    """
    top, place = int64(-WIDE), int64(code)
    while fit != 0:
        word = word_at(heap, place)
        op, offset = word & 255, word >> 16
        if op == LOAD:
            top += WIDE
            for k in range(WIDE):
                stack[uint64(top + k)] = word_at(heap, offset + word_at(entries, k))
        elif ADD_I <= op <= COMPARE_S:
            top -= WIDE
            for k in range(WIDE):
                if (fit >> k) & 1 != 0:
                    left, right = word_at(stack, top + k), word_at(stack, top + WIDE + k)
                    result, is_known = of_two(op, offset, left, right)
                    stack[uint64(top + k)] = result
                    if not is_known:
                        fit &= ~(int64(1) << k)
        elif op == CHECK:
            for k in range(WIDE):
                if word_at(stack, top + k) == 0:
                    fit &= ~(int64(1) << k)
            top -= WIDE
        elif op == END:
            break
        elif op == CONST or op == OPERAND:  # noqa: SIM109 (a device compares faster)
            top += WIDE
            value = word_at(heap, place + 1)
            if op == OPERAND:
                value = word_at(operands, offset * stride + p)
            for k in range(WIDE):
                stack[uint64(top + k)] = value
        else:
            for k in range(WIDE):
                if (fit >> k) & 1 != 0:
                    result, is_known = of_one(op, word_at(stack, top + k))
                    stack[uint64(top + k)] = result
                    if not is_known:
                        fit &= ~(int64(1) << k)
        place += INSTRUCTION
    return fit
