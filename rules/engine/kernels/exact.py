"""Sums and sums of squares without any rounding: fixed-point numbers in digits of 32 bits.

A number of 64 bits, int or float, is a whole number of at most 64 bits times a power of two. Its
sum with others is kept as *digits*: words of which the place stands for a power of 2**32, signed,
and not carried over, so that adding is a few additions of words and the difference of two prefix
sums is exact although each word wraps around modulo 2**64. Only what is asked for is carried
over, and rounded, once. This is the small superaccumulator of Neal (*Fast exact summation using
small and large superaccumulators*, 2015), limited to the digits that the numbers at hand need.

Law: the result depends on the numbers alone, neither on their order nor on what was added and
taken away before (tesla.md S8, S14).

*Digits* stand in an array from ``base`` on, the lowest first. ``lowest`` is the place of the first
of them: digit 0 begins at bit 0 of an int, and at 2**-1074 for floats (2**-2148 for squares). A
number occupies at most three digits, its square at most five; a window has fewer than 2**31
numbers, so that no word of a difference overflows.
"""

from __future__ import annotations

import math

import numpy as np

from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import KIND_FLOAT

SPREAD = 3
"""Digits that a float may touch."""
INT_DIGITS = 2
FLOAT_UNIT = -1074
"""The exponent of the least positive float."""
_LOW = 0xFFFFFFFF
_FRACTION = (1 << 52) - 1


@kernel
def wrapped_sum(one: int, other: int) -> int:
    """A sum modulo 2**64; signed addition need not be one to the compiler."""
    return np.int64(np.uint64(one) + np.uint64(other))


@kernel
def wrapped_difference(one: int, other: int) -> int:
    """A difference modulo 2**64."""
    return np.int64(np.uint64(one) - np.uint64(other))


@kernel
def position_of(word: int) -> int:
    """The bit, counted from 2**-1074, at which the whole number of a finite float begins."""
    return max(np.int64(0), ((word >> 52) & 0x7FF) - 1)


@kernel
def magnitude_of(word: int, kind: int):  # type: ignore[no-untyped-def]
    """The whole number, unsigned, of which a word is a multiple of a power of two."""
    if kind == KIND_FLOAT:
        hidden = np.int64(1) << 52 if (word >> 52) & 0x7FF else np.int64(0)
        return np.uint64((word & _FRACTION) | hidden)
    return np.uint64(word) if word >= 0 else np.uint64(0) - np.uint64(word)


@kernel
def digits_needed(words, kind: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The least range of digits, from the first to the second excluded, that holds all words."""
    if kind != KIND_FLOAT:
        return 0, INT_DIGITS
    least, greatest = np.int64(1 << 20), np.int64(-1)
    for word in words:
        if word << 1 != 0:  # zeros need no digit
            position = position_of(word)
            least, greatest = min(least, position), max(greatest, position)
    if greatest < 0:
        return 0, 0
    return least >> 5, (greatest >> 5) + SPREAD


@kernel
def add(digits, base: int, lowest: int, word: int, kind: int) -> None:  # type: ignore[no-untyped-def]
    """Add a number to digits that have room for it."""
    if kind != KIND_FLOAT:
        digits[base] = wrapped_sum(digits[base], word & _LOW)
        digits[base + 1] = wrapped_sum(digits[base + 1], word >> 32)
        return
    if word << 1 == 0:
        return
    magnitude, position = magnitude_of(word, kind), position_of(word)
    place, shift = base + (position >> 5) - lowest, np.uint64(position & 31)
    high = magnitude >> np.uint64(32)
    first = np.int64((magnitude << shift) & np.uint64(_LOW))
    second = np.int64((magnitude >> (np.uint64(32) - shift)) & np.uint64(_LOW))
    third = np.int64(high >> (np.uint64(32) - shift))
    if word < 0:
        first, second, third = -first, -second, -third
    digits[place] = wrapped_sum(digits[place], first)
    digits[place + 1] = wrapped_sum(digits[place + 1], second)
    digits[place + 2] = wrapped_sum(digits[place + 2], third)


@kernel
def add_square(digits, base: int, lowest: int, word: int, kind: int) -> None:  # type: ignore[no-untyped-def]
    """Add the square of a number; ``lowest`` is the digits' own, twice that of the numbers."""
    if word << 1 == 0 and kind == KIND_FLOAT:
        return
    magnitude = magnitude_of(word, kind)
    position = 2 * position_of(word) if kind == KIND_FLOAT else np.int64(0)
    place, shift = base + (position >> 5) - lowest, np.uint64(position & 31)
    low, high = magnitude & np.uint64(_LOW), magnitude >> np.uint64(32)
    lows, mixed, highs = low * low, low * high, high * high
    part = (lows >> np.uint64(32)) + ((mixed & np.uint64(_LOW)) << np.uint64(1))
    rest = (part >> np.uint64(32)) + ((mixed >> np.uint64(32)) << np.uint64(1))
    rest += highs & np.uint64(_LOW)
    carry = np.uint64(0)
    for number in (
        lows & np.uint64(_LOW),
        part & np.uint64(_LOW),
        rest & np.uint64(_LOW),
        (rest >> np.uint64(32)) + (highs >> np.uint64(32)),
    ):
        shifted = (number << shift) | carry
        digits[place] = wrapped_sum(digits[place], np.int64(shifted & np.uint64(_LOW)))
        carry = shifted >> np.uint64(32)
        place += 1
    if carry:
        digits[place] = wrapped_sum(digits[place], np.int64(carry))


@kernel
def carry_over(digits, base: int, count: int) -> bool:  # type: ignore[no-untyped-def]
    """Bring digits into the form of a magnitude, each from 0 to 2**32 - 1; whether it is negative.

    The last of the ``count`` digits takes what the others carry: it must have been 0.
    """
    if _carry(digits, base, count) >= 0:
        return False
    for place in range(base, base + count):
        digits[place] = -digits[place]
    _carry(digits, base, count)
    return True


@kernel
def _carry(digits, base: int, count: int) -> int:  # type: ignore[no-untyped-def]
    """Carry from each digit to the next: what is carried out of the last."""
    carried = np.int64(0)
    for place in range(base, base + count):
        total = digits[place] + carried
        digits[place] = total & _LOW
        carried = total >> 32
    return carried


@kernel
def rounded(digits, base: int, count: int) -> tuple[float, int]:  # type: ignore[no-untyped-def]
    """A magnitude as a float and a power of two by which to multiply it.

    The float is 0 or at least 2**63; it is the only thing that is rounded: 64 leading bits, of
    which the last also says whether anything follows, suffice to round as all bits would.
    """
    top = base + count - 1
    while top >= base and digits[top] == 0:
        top -= 1
    if top < base:
        return 0.0, 0
    second = np.uint64(digits[top - 1]) if top > base else np.uint64(0)
    third = np.uint64(digits[top - 2]) if top > base + 1 else np.uint64(0)
    leading = (np.uint64(digits[top]) << np.uint64(32)) | second
    shift = np.uint64(0)
    while leading >> np.uint64(63) == np.uint64(0):
        leading <<= np.uint64(1)
        shift += np.uint64(1)
    leading |= third >> (np.uint64(32) - shift)
    follows = (third << shift) & np.uint64(_LOW) != np.uint64(0)
    for place in range(base, top - 2):
        if digits[place] != 0:
            follows = True
    if follows:
        leading |= np.uint64(1)
    return np.float64(leading), 32 * (top - base - 1) - np.int64(shift)


@kernel
def deviation(  # type: ignore[no-untyped-def]
    digits, base: int, count: int, squares: int, numbers: int, spare: int
) -> tuple[float, int]:
    """The population standard deviation of ``numbers`` numbers: a float and a power of two.

    ``count`` digits from ``base`` on are the magnitude of their sum, ``2 * count`` from
    ``squares`` on that of the sum of their squares, both carried over; ``2 * count + 2`` words
    from ``spare`` on are for the work. The variance is ``(n * squares - sum**2) / n**2``, and its
    numerator a whole number, so that nothing cancels but what is equal.
    """
    length = 2 * count + 2
    for place in range(spare, spare + length):
        digits[place] = 0
    for place in range(2 * count):
        product = np.uint64(digits[squares + place]) * np.uint64(numbers)
        digits[spare + place] += np.int64(product & np.uint64(_LOW))
        digits[spare + place + 1] += np.int64(product >> np.uint64(32))
    for one in range(count):
        for other in range(count):
            product = np.uint64(digits[base + one]) * np.uint64(digits[base + other])
            digits[spare + one + other] -= np.int64(product & np.uint64(_LOW))
            digits[spare + one + other + 1] -= np.int64(product >> np.uint64(32))
    carry_over(digits, spare, length)
    variance, exponent = rounded(digits, spare, length)
    if exponent & 1:
        variance *= 2.0
        exponent -= 1
    return math.sqrt(variance) / numbers, exponent >> 1
