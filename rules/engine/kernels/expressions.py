"""The stack machine that runs the programs of ``rules.planning.program`` (tesla.md S9, S10).

A word is an int, the bits of a float, 0 or 1, or the code of a string. Beside every word on the
stack stands whether it is defined: division by zero, int overflow and a float that is not finite
make a word undefined, and it makes undefined what is computed from it.
"""

from __future__ import annotations

import math

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.numbers import ABS_I, DIVIDE_I, LOCAL, of_number, of_numbers
from rules.engine.kernels.words import (
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
    END,
    LOAD,
    MODULO_F,
    MODULO_I,
    NEGATE_F,
    NOT,
    OR,
    SLOT,
    TEXT,
    TO_FLOAT,
    as_float,
    as_word,
    compute_float,
    compute_int,
    of_one,
    order_int_float,
)
from rules.planning.program import COMPARISONS
from rules.terms import Comparison
from rules.texts import UNDEFINED
from rules.zones import AHEAD_MAX, AHEAD_MIN

EQUAL = COMPARISONS[Comparison.EQUAL]
UNEQUAL = COMPARISONS[Comparison.UNEQUAL]
LESS = COMPARISONS[Comparison.LESS]
LESS_EQUAL = COMPARISONS[Comparison.LESS_EQUAL]
GREATER = COMPARISONS[Comparison.GREATER]
GREATER_EQUAL = COMPARISONS[Comparison.GREATER_EQUAL]
PREFIX = COMPARISONS[Comparison.PREFIX]
SUFFIX = COMPARISONS[Comparison.SUFFIX]


@kernel
def order_strings(state: int, one: int, other: int) -> int:
    """-1, 0 or 1 by code point: the byte order of UTF-8 is the same."""
    if one == other:
        return 0
    first, first_end = arrays.strings(state)[2 * one], arrays.strings(state)[2 * one + 1]
    second, second_end = arrays.strings(state)[2 * other], arrays.strings(state)[2 * other + 1]
    text = arrays.string_bytes(state)
    for place in range(min(first_end - first, second_end - second)):
        if text[first + place] != text[second + place]:
            return -1 if text[first + place] < text[second + place] else 1
    return -1 if first_end - first < second_end - second else 1


@kernel
def contains(state: int, whole: int, part: int, comparison: int) -> bool:
    """``whole prefix|suffix|contains part``."""
    first, first_end = arrays.strings(state)[2 * whole], arrays.strings(state)[2 * whole + 1]
    second, second_end = arrays.strings(state)[2 * part], arrays.strings(state)[2 * part + 1]
    text = arrays.string_bytes(state)
    slack = (first_end - first) - (second_end - second)
    if slack < 0:
        return False
    low, high = 0, slack
    if comparison == PREFIX:
        high = 0
    elif comparison == SUFFIX:
        low = slack
    for start in range(low, high + 1):
        place = 0
        while place < second_end - second and text[first + start + place] == text[second + place]:
            place += 1
        if place == second_end - second:
            return True
    return False


@kernel
def decide(comparison: int, order: int) -> bool:
    """Whether operands in this order satisfy a comparison."""
    if comparison == EQUAL:
        return order == 0
    if comparison == UNEQUAL:
        return order != 0
    if comparison == LESS:
        return order < 0
    if comparison == LESS_EQUAL:
        return order <= 0
    if comparison == GREATER:
        return order > 0
    return order >= 0


@kernel
def compare(state: int, op: int, comparison: int, left: int, right: int) -> bool:
    """Compare two defined words as ``op`` says."""
    if op == COMPARE_I:
        return decide(comparison, -1 if left < right else (1 if left > right else 0))
    if op == COMPARE_F:
        one, other = as_float(left), as_float(right)
        return decide(comparison, -1 if one < other else (1 if one > other else 0))
    if op == COMPARE_IF:
        return decide(comparison, order_int_float(left, as_float(right)))
    if op == COMPARE_FI:
        return decide(comparison, -order_int_float(right, as_float(left)))
    if comparison >= PREFIX:
        return contains(state, left, right, comparison)
    return decide(comparison, order_strings(state, left, right))


@kernel
def run(state: int, first: int) -> bool:
    """Run the program that begins at instruction ``first``.

    A conjunction (with CHECKs): whether all its conditions are true. Any other program: whether
    its value is defined; the value is left in ``stack[0]``. Numbered events are read through
    ``frame``.
    """
    code, heap, frame = arrays.code(state), arrays.heap(state), arrays.frame(state)
    stack, defined = arrays.stack(state), arrays.stack_defined(state)
    top = -1
    place = first
    while True:
        op = code[place].op
        if op == LOAD:
            top += 1
            stack[top] = heap[frame[code[place].event] + code[place].offset]
            defined[top] = True
        elif op == CONST:
            top += 1
            stack[top] = code[place].value
            defined[top] = True
        elif COMPARE_I <= op <= COMPARE_S:
            top -= 1
            if defined[top] and defined[top + 1]:
                stack[top] = compare(state, op, code[place].offset, stack[top], stack[top + 1])
            else:
                defined[top] = False
        elif op == CHECK:
            if not defined[top] or stack[top] == 0:
                return False
            top -= 1
        elif op == END:
            return top < 0 or defined[top]
        elif op >= ABS_I:
            top = run_function(state, place, top)
            if op == LOCAL:
                place += code[place].offset
        else:
            top = run_rare(state, code[place].op, code[place].offset, top)
        place += 1


@kernel
def run_rare(state: int, op: int, offset: int, top: int) -> int:
    """The instructions that hot programs seldom have; gives the new top of the stack."""
    stack, defined = arrays.stack(state), arrays.stack_defined(state)
    if ADD_I <= op <= MODULO_I:
        top -= 1
        result, fits = compute_int(op, stack[top], stack[top + 1])
        stack[top] = result
        defined[top] = defined[top] and defined[top + 1] and fits
    elif ADD_F <= op <= MODULO_F:
        top -= 1
        number = compute_float(op, as_float(stack[top]), as_float(stack[top + 1]))
        stack[top] = as_word(number)
        defined[top] = defined[top] and defined[top + 1] and math.isfinite(number)
    elif op == SLOT:
        top += 1
        stack[top] = arrays.slots(state)[offset]
        defined[top] = arrays.slots_defined(state)[offset]
    elif TO_FLOAT <= op <= NEGATE_F or op == NOT:
        result, fits = of_one(op, stack[top])
        stack[top] = result
        defined[top] = defined[top] and fits
    elif op == CHOOSE:
        top -= 2
        chosen = top + 1 if stack[top] != 0 else top + 2
        stack[top] = stack[chosen]
        defined[top] = defined[top] and defined[chosen]
    elif op == TEXT:
        if defined[top]:
            width = len(arrays.strings(state)) // 2
            stack[top] = arrays.text_results(state)[offset * width + stack[top]]
            defined[top] = stack[top] != UNDEFINED
    else:
        top = connect(stack, defined, top - offset + 1, offset, op == OR)
    return top


@kernel
def run_function(state: int, place: int, top: int) -> int:
    """The instruction at a place that is a function of numbers; gives the new top of the stack."""
    code, stack, defined = arrays.code(state), arrays.stack(state), arrays.stack_defined(state)
    op = code[place].op
    if op == LOCAL:
        result, fits = local_time(code, place, stack[top])
    elif op >= DIVIDE_I:
        top -= 1
        defined[top] = defined[top] and defined[top + 1]
        result, fits = of_numbers(op, stack[top], stack[top + 1])
    else:
        result, fits = of_number(op, stack[top])
    stack[top] = result
    defined[top] = defined[top] and fits
    return top


@kernel
def local_time(code, place: int, time: int) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """Add to a time how far clocks are ahead of it, by the words behind an instruction."""
    if time < AHEAD_MIN or time >= AHEAD_MAX:
        return 0, False
    low, high = place + 1, place + 1 + code[place].offset
    while high - low > 1:
        middle = (low + high) >> 1
        if code[middle].value <= time:
            low = middle
        else:
            high = middle
    return time + code[low].offset, True


@kernel
def connect(stack, defined, first: int, count: int, any_of: bool) -> int:  # type: ignore[no-untyped-def]
    """``and`` or ``or`` of ``count`` truth values, some perhaps undefined (S9)."""
    decisive = 1 if any_of else 0
    known = True
    for place in range(first, first + count):
        if not defined[place]:
            known = False
        elif stack[place] == decisive:
            stack[first] = decisive
            defined[first] = True
            return first
    stack[first] = 1 - decisive
    defined[first] = known
    return first
