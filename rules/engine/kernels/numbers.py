"""Functions of numbers in words (tesla.md S9, S10): what :mod:`rules.functions` says of values."""

from __future__ import annotations

import math

from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.words import INT_MIN, TWO_63, as_float, as_word
from rules.planning.program import Op

ABS_I, ABS_F, SQRT = int(Op.ABS_I), int(Op.ABS_F), int(Op.SQRT)
FLOOR, CEIL, ROUND = int(Op.FLOOR), int(Op.CEIL), int(Op.ROUND)
DIVIDE_I, LOCAL = int(Op.DIVIDE_I), int(Op.LOCAL)
LEAST_I, LEAST_F = int(Op.LEAST_I), int(Op.LEAST_F)
GREATEST_I, GREATEST_F = int(Op.GREATEST_I), int(Op.GREATEST_F)
WHOLE = 4503599627370496.0
"""2**52: a float beyond it is a whole number."""


@kernel
def of_number(op: int, word: int) -> tuple[int, bool]:
    """The result of a function of one number, and whether it is defined."""
    if op == ABS_I:
        return abs(word), word != INT_MIN
    number = as_float(word)
    if op == ABS_F:
        return as_word(abs(number)), True
    if op == SQRT:
        return (as_word(math.sqrt(number)), True) if number >= 0.0 else (0, False)
    return whole_of(op, number)


@kernel
def whole_of(op: int, number: float) -> tuple[int, bool]:
    """The whole number below a float, above it, or next to it, of two the even one."""
    if number >= TWO_63 or number < -TWO_63:
        return 0, False
    below = int(number)  # towards 0
    if abs(number) >= WHOLE:
        return below, True
    rest = number - below
    if rest < 0.0:
        below -= 1
        rest += 1.0
    if op == FLOOR or rest == 0.0:
        return below, True
    if op == CEIL:
        return below + 1, True
    is_above = rest > 0.5 or (rest == 0.5 and below % 2 != 0)
    return (below + 1, True) if is_above else (below, True)


@kernel
def of_numbers(op: int, left: int, right: int) -> tuple[int, bool]:
    """The result of a function of two numbers, and whether it is defined."""
    if op == DIVIDE_I:
        if right == 0:
            return 0, False
        if right == -1:
            return (0, False) if left == INT_MIN else (-left, True)
        return left // right, True
    if op == LEAST_I:
        return min(left, right), True
    if op == GREATEST_I:
        return max(left, right), True
    is_less = is_before(as_float(left), as_float(right))
    return (left, True) if is_less == (op == LEAST_F) else (right, True)


@kernel
def is_before(one: float, other: float) -> bool:
    """Whether a float is less than another; of the two zeros -0.0 is (S8)."""
    if one == other:
        return math.copysign(1.0, one) < math.copysign(1.0, other)
    return one < other
