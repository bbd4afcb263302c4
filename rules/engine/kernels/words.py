"""Arithmetic and comparisons of words, the same for every stack machine (tesla.md S9, S10).

Law: an instruction of :mod:`rules.planning.program` has one meaning. The machines differ in where
they read their operands: the processor's (:mod:`expressions`) in rows of events, those of devices
and of operators in columns. What they do with two words they ask here, so that 2**62 + 2**62 is
undefined on each of them.

A word is an int, the bits of a float, 0 or 1, or the code of a string.
"""

from __future__ import annotations

import math

import numpy as np

from rules.engine.kernels.compiled import kernel
from rules.planning.program import COMPARISONS, Op
from rules.terms import Comparison

TO_FLOAT, NEGATE_I, NEGATE_F = int(Op.TO_FLOAT), int(Op.NEGATE_I), int(Op.NEGATE_F)
ADD_I, SUBTRACT_I, MULTIPLY_I = int(Op.ADD_I), int(Op.SUBTRACT_I), int(Op.MULTIPLY_I)
MODULO_I = int(Op.MODULO_I)
ADD_F, SUBTRACT_F, MULTIPLY_F = int(Op.ADD_F), int(Op.SUBTRACT_F), int(Op.MULTIPLY_F)
DIVIDE_F, MODULO_F = int(Op.DIVIDE_F), int(Op.MODULO_F)
COMPARE_I, COMPARE_F, COMPARE_IF = int(Op.COMPARE_I), int(Op.COMPARE_F), int(Op.COMPARE_IF)
COMPARE_FI, COMPARE_S = int(Op.COMPARE_FI), int(Op.COMPARE_S)
NOT, AND, OR, CHOOSE = int(Op.NOT), int(Op.AND), int(Op.OR), int(Op.CHOOSE)
END, CHECK, LOAD, CONST = int(Op.END), int(Op.CHECK), int(Op.LOAD), int(Op.CONST)
SLOT, TEXT, OPERAND = int(Op.SLOT), int(Op.TEXT), int(Op.OPERAND)

LESS, SAME, GREATER = 1, 2, 4
"""Relations of a left word to a right one; a comparison wants the sum of those that satisfy it."""
WANTED = {
    COMPARISONS[Comparison.EQUAL]: SAME,
    COMPARISONS[Comparison.UNEQUAL]: LESS | GREATER,
    COMPARISONS[Comparison.LESS]: LESS,
    COMPARISONS[Comparison.LESS_EQUAL]: LESS | SAME,
    COMPARISONS[Comparison.GREATER]: GREATER,
    COMPARISONS[Comparison.GREATER_EQUAL]: GREATER | SAME,
}
"""The relations that satisfy each comparison, by its number."""

INT_MIN = -(2**63)
TWO_63 = 9223372036854775808.0
fmod = np.fmod
"""The remainder with the dividend's sign; a device has another function for it."""
HALF = 2**31
"""The product of two ints that are nearer to 0 has less than 64 bits."""


@kernel
def as_float(word: int) -> float:
    """The float whose bits a word is."""
    return np.int64(word).view(np.float64)


@kernel
def as_word(number: float) -> int:
    """The bits of a float."""
    return np.float64(number).view(np.int64)


@kernel
def order_int_float(number: int, other: float) -> int:
    """-1, 0 or 1 as an int is less than, equal to or greater than a float, exactly (S10)."""
    if other >= TWO_63:
        return -1
    if other < -TWO_63:
        return 1
    whole = np.int64(other)
    if number != whole:
        return -1 if number < whole else 1
    rest = other - np.float64(whole)
    if rest > 0.0:
        return -1
    return 1 if rest < 0.0 else 0


@kernel
def relation(op: int, left: int, right: int) -> int:
    """The relation of two words, compared as ``op`` says; strings by their codes, so that it tells
    of them if they are equal and no more.
    """
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
def compute_int(op: int, left: int, right: int) -> tuple[int, bool]:
    """Arithmetic of ints, undefined beyond 64 bits.

    It is done on unsigned words, which wrap: the compiler may take signed ones never to. Whether a
    product has wrapped is told by a division, which takes a device as long as all else; short
    factors do without.
    """
    if op == ADD_I:
        result = np.int64(np.uint64(left) + np.uint64(right))
        return result, ((left ^ result) & (right ^ result)) >= 0
    if op == SUBTRACT_I:
        result = np.int64(np.uint64(left) - np.uint64(right))
        return result, ((left ^ right) & (left ^ result)) >= 0
    if op == MULTIPLY_I:
        result = np.int64(np.uint64(left) * np.uint64(right))
        if -HALF < left < HALF and -HALF < right < HALF:
            return result, True
        if left == 0 or right == 0:
            return 0, True
        if left == -1:
            return result, right != INT_MIN
        if right == -1:
            return result, left != INT_MIN
        return result, result // right == left
    if right == 0:
        return 0, False
    if right == -1:
        return 0, True  # the machine's remainder of INT_MIN by -1 would trap
    return left % right, True


@kernel
def compute_float(op: int, left: float, right: float) -> float:
    """Arithmetic of floats; not finite where undefined."""
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
    rest = fmod(left, right)
    if rest != 0.0:
        return rest + right if (rest < 0.0) != (right < 0.0) else rest
    return math.copysign(0.0, right)


@kernel
def of_one(op: int, word: int) -> tuple[int, bool]:
    """The result of an instruction with one operand, and whether it is defined."""
    if op == TO_FLOAT:
        return as_word(np.float64(word)), True
    if op == NEGATE_F:
        return as_word(-as_float(word)), True
    if op == NEGATE_I:
        return -word, word != INT_MIN
    return 1 - word, True  # NOT


@kernel
def of_two(op: int, wanted: int, left: int, right: int) -> tuple[int, bool]:
    """The result of an instruction with two operands, of a comparison whether their relation is
    among those ``wanted``; and whether it is defined.
    """
    if op >= COMPARE_I:
        return np.int64(relation(op, left, right) & wanted != 0), True
    if op <= MODULO_I:
        return compute_int(op, left, right)
    number = compute_float(op, as_float(left), as_float(right))
    return as_word(number), math.isfinite(number)


@kernel
def step(op: int, offset: int, stack, top: int, known: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """Do an instruction that takes all its operands from a stack, whose last word is at ``top``,
    and leaves one there: the new top, and which words are defined. Bit ``k`` of ``known`` says it
    of word ``k``.
    """
    if ADD_I <= op <= COMPARE_S:
        top -= 1
        if (known >> top) & 3 != 3:
            return top, with_bit(known, top, 0)
        word, fits = of_two(op, offset, stack[top], stack[top + 1])
        stack[top] = word
        return top, known if fits else with_bit(known, top, 0)
    if op == CHOOSE:
        top -= 2
        chosen = top + 1 if stack[top] != 0 else top + 2
        stack[top] = stack[chosen]
        return top, with_bit(known, top, (known >> top) & (known >> chosen) & 1)
    if op == AND or op == OR:  # noqa: SIM109 (a device compares faster than it looks up)
        top -= offset - 1
        return top, connect(stack, known, top, offset, op == OR)
    word, fits = of_one(op, stack[top])
    stack[top] = word
    return top, known if fits else with_bit(known, top, 0)


@kernel
def with_bit(known: int, place: int, bit: int) -> int:
    """An int with one bit as given."""
    return (known & ~(1 << place)) | (bit << place)


@kernel
def connect(stack, known: int, first: int, count: int, any_of: bool) -> int:  # type: ignore[no-untyped-def]
    """``and`` or ``or`` of ``count`` truth values, in the place of the first; some may be undefined
    (S9).
    """
    decisive = 1 if any_of else 0
    is_known = 1
    for place in range(first, first + count):
        if (known >> place) & 1 == 0:
            is_known = 0
        elif stack[place] == decisive:
            stack[first] = decisive
            return with_bit(known, first, 1)
    stack[first] = 1 - decisive
    return with_bit(known, first, is_known)
