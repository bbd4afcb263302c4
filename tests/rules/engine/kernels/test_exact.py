"""Sums in digits against Python's rationals: exact, rounded once, whatever the order."""

import math
import random
import struct
import sys
from fractions import Fraction

import numpy as np
import pytest

from rules.engine.kernels import layout
from rules.engine.kernels.exact import (
    FLOAT_UNIT,
    QUOTIENT_ROOM,
    add,
    add_square,
    carry_over,
    deviation,
    digits_needed,
    rounded,
)

ROOM = 160


def word_of(number: int | float) -> int:
    if isinstance(number, int):
        return number
    return struct.unpack("<q", struct.pack("<d", number))[0]


def kind_of(numbers: list[int] | list[float]) -> int:
    return layout.KIND_FLOAT if isinstance(numbers[0], float) else layout.KIND_INT


def digits_of(numbers, squares: bool = False):
    """The digits of a sum, their unit as an exponent, and how many they are."""
    kind, words = kind_of(numbers), np.array([*map(word_of, numbers)], np.int64)
    lowest, top = digits_needed(words, kind)
    digits = np.zeros(ROOM, np.int64)
    for word in words:
        if squares:
            add_square(digits, 0, 2 * lowest, word, kind)
        else:
            add(digits, 0, lowest, word, kind)
    unit = 32 * lowest + FLOAT_UNIT if kind == layout.KIND_FLOAT else 0
    count = top - lowest
    return digits, (2 * unit, 2 * count + 2) if squares else (unit, count + 1)


def value_of(digits, unit: int, count: int) -> Fraction:
    whole = sum(int(digit) << 32 * place for place, digit in enumerate(digits[:count]))
    return Fraction(whole) * Fraction(2) ** unit


def random_numbers(random_: random.Random):
    if random_.random() < 0.3:
        bits = random_.choice((3, 31, 32, 33, 63))
        return [random_.randint(-(2**bits), 2**bits - 1) for _ in range(random_.randint(1, 30))]
    low, high = random_.choice(((-1074, -1000), (-1074, 1023), (-30, 30), (900, 1023), (0, 1)))
    return [
        math.ldexp(random_.uniform(-1, 1), random_.randint(low, high))
        for _ in range(random_.randint(1, 30))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_digits_hold_the_exact_sum_and_the_exact_sum_of_squares(seed: int):
    random_ = random.Random(seed)
    for _ in range(300):
        numbers = random_numbers(random_)
        digits, (unit, count) = digits_of(numbers)
        assert value_of(digits, unit, count) == sum(map(Fraction, numbers)), f"seed {seed}"
        digits, (unit, count) = digits_of(numbers, squares=True)
        squares = sum(Fraction(number) ** 2 for number in numbers)
        assert value_of(digits, unit, count) == squares, f"seed {seed}"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_carried_over_is_the_same_magnitude(seed: int):
    random_ = random.Random(seed)
    for _ in range(300):
        numbers = random_numbers(random_)
        digits, (unit, count) = digits_of(numbers)
        is_negative = carry_over(digits, 0, count)
        exact = sum(map(Fraction, numbers))
        assert is_negative == (exact < 0)
        assert all(0 <= digit < 2**32 for digit in digits[:count])
        assert value_of(digits, unit, count) == abs(exact), f"seed {seed}"


def quotient(numbers, divisor: int = 1) -> float:
    """The sum of numbers, divided, as kernels round it."""
    digits, (unit, count) = digits_of(numbers)
    sign = -1 if carry_over(digits, 0, count) else 1
    return sign * rounded(digits, 0, count, unit, divisor, ROOM - QUOTIENT_ROOM)


def nearest(number: Fraction) -> float:
    """The nearest float as Python finds it, infinite where there is none."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


@pytest.mark.parametrize("seed", range(4))
def test_quotients_of_sums_are_rounded_as_rationals_are(seed: int):
    random_ = random.Random(seed)
    for _ in range(500):
        numbers = random_numbers(random_)
        divisor = random_.choice((1, 2, 3, len(numbers), 2**31 - 1, random_.randint(1, 2**31)))
        exact = sum(map(Fraction, numbers)) / divisor
        assert quotient(numbers, divisor) == nearest(exact), f"seed {seed}"


@pytest.mark.parametrize("seed", range(4))
def test_quotients_beside_the_middle_of_two_floats_go_the_right_way(seed: int):
    random_ = random.Random(seed)
    for _ in range(500):
        divisor, exponent = random_.randint(2, 2**31), random_.randint(-900, 900)
        middle = 2 * random_.randint(2**52, 2**53 - 1) + 1
        numbers = [math.ldexp(middle >> 27, exponent + 27), math.ldexp(middle % 2**27, exponent)]
        numbers *= divisor if divisor < 50 else 1
        numbers += [random_.choice((-1, 0, 1)) * 5e-324]
        exact = sum(map(Fraction, numbers)) / divisor
        assert quotient(numbers, divisor) == nearest(exact), f"seed {seed}"


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([2.0**53, 1.0], 2.0**53),  # a tie goes to the even one
        ([2.0**53, 1.0, 2.0**-1074], 2.0**53 + 2),  # and the last bit of all decides it
        ([2.0**53 + 2, 1.0], 2.0**53 + 4),
        ([2.0**53 + 2, 1.0, -(2.0**-1074)], 2.0**53 + 2),
        ([1e16, 1.0, -1e16], 1.0),
        ([5e-324, -5e-324], 0.0),
        ([0.0, -0.0], 0.0),
    ],
)
def test_rounding_looks_at_every_bit(numbers: list[float], expected: float):
    assert quotient(numbers) == expected


def deviation_of(numbers) -> float:
    """The deviation as kernels work it out."""
    sums, (unit, count) = digits_of(numbers)
    squares, (_, more) = digits_of(numbers, squares=True)
    digits = np.concatenate([sums, squares, np.zeros(2 * ROOM, np.int64)])
    carry_over(digits, 0, count)
    carry_over(digits, ROOM, more)
    return deviation(digits, 0, count, ROOM, len(numbers), unit, 2 * ROOM)


def assert_nearest_root(root: float, number: Fraction) -> None:
    """That no float is nearer to the square root of a number, which is not worked out."""
    above = Fraction(math.nextafter(root, math.inf)) if root < sys.float_info.max else 2**1024
    below, middle = Fraction(math.nextafter(root, -1.0)), Fraction(root)
    low, high = (below + middle) / 2, (above + middle) / 2
    assert low < 0 or low**2 <= number
    assert number <= high**2
    if number in (low**2, high**2):
        assert struct.unpack("<q", struct.pack("<d", root))[0] % 2 == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_deviation_is_the_nearest_float(seed: int):
    random_ = random.Random(seed)
    for _ in range(300):
        numbers = random_numbers(random_)
        mean = sum(map(Fraction, numbers)) / len(numbers)
        variance = sum((Fraction(one) - mean) ** 2 for one in numbers) / len(numbers)
        assert_nearest_root(deviation_of(numbers), variance)


@pytest.mark.parametrize("seed", range(4))
def test_deviations_beside_the_middle_of_two_floats_go_the_right_way(seed: int):
    random_ = random.Random(seed)
    for _ in range(300):
        middle = 2 * random_.randint(2**52, 2**53 - 1) + 1
        assert deviation_of([middle, -middle]) == float(middle)
        high, low = float(middle & -(2**20)), float(middle % 2**20)
        tiny = math.ldexp(random_.choice((-1.0, 1.0)), random_.randint(-60, -1))
        numbers = [high, -high, low, -low, tiny]  # the deviation of these is none of them
        exact = sum(Fraction(one) ** 2 for one in numbers) / 5 - (Fraction(tiny) / 5) ** 2
        assert_nearest_root(deviation_of(numbers), exact)


def test_prefix_sums_may_wrap_around():
    digits = np.array([2**63 - 5, -(2**63) + 3], np.int64)
    before = digits.copy()
    for word in (2**40 + 7, -9, 2**62):
        add(digits, 0, 0, word, layout.KIND_INT)
    difference = (digits.astype(object) - before.astype(object)) % 2**64
    signed = [one - 2**64 if one >= 2**63 else one for one in difference]
    assert signed[0] + (signed[1] << 32) == 2**40 + 7 - 9 + 2**62
