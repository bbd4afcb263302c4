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
QUOTIENT_DIGITS = 4
"""So many leading digits, more than 96 bits, give 64 of a quotient by less than 2**32."""
QUOTIENT_ROOM = QUOTIENT_DIGITS + 1
VARIANCE_DIGITS = 7
"""So many, more than 192 bits, give 120 of a quotient by the square of such a number."""
VARIANCE_ROOM = VARIANCE_DIGITS + 1
LIMB = 30
"""Bits of a quarter of what a root is taken of, so that its half and what remains fit in words."""
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
def rounded(  # type: ignore[no-untyped-def]
    digits, base: int, count: int, unit: int, divisor: int, spare: int
) -> float:
    """A magnitude times ``2**unit``, divided by an int from 1 to 2**31, as the nearest float.

    Infinite where that is beyond the greatest float. ``QUOTIENT_ROOM`` words from ``spare`` on
    are for the work: the leading digits are enough, with a *sticky* bit that says whether anything
    follows, and so which way to go from what looks like the middle between two floats.
    """
    last, follows = copy_leading(digits, base, count, spare, QUOTIENT_DIGITS)
    if divisor > 1 and divide(digits, spare, QUOTIENT_DIGITS, divisor):
        follows = True
    begin = length_of(digits, spare, QUOTIENT_DIGITS) - 64
    if begin < 0:
        return 0.0  # as only a magnitude of 0 has so few bits
    leading = bits(digits, spare, begin + 32, 32) << np.uint64(32) | bits(digits, spare, begin, 32)
    if follows or any_below(digits, spare, begin):
        leading |= np.uint64(1)
    return nearest(leading, 32 * last + begin + unit)


@kernel
def deviation(  # type: ignore[no-untyped-def]
    digits, base: int, count: int, squares: int, numbers: int, unit: int, spare: int
) -> float:
    """The population standard deviation of ``numbers`` numbers times ``2**unit``, as the nearest
    float.

    ``count`` digits from ``base`` on are the magnitude of their sum, ``2 * count`` from
    ``squares`` on that of the sum of their squares, both carried over; ``2 * count + 2`` words
    from ``spare`` on are for the work, and those from ``base`` on, of which there must be
    ``VARIANCE_ROOM``. The variance is ``(n * squares - sum**2) / n**2``, and its numerator a whole
    number, so that nothing cancels but what is equal.
    """
    length = 2 * count + 2
    multiply_and_subtract(digits, base, count, squares, numbers, spare)
    last, follows = copy_leading(digits, spare, length, base, VARIANCE_DIGITS)
    for _ in range(2):
        if divide(digits, base, VARIANCE_DIGITS, numbers):
            follows = True
    begin = length_of(digits, base, VARIANCE_DIGITS) - 4 * LIMB
    if begin < 0:
        return 0.0  # as only a magnitude of 0 has so few bits
    begin += begin & 1  # the exponent of what is rooted is even: so are those of digits
    root, is_exact = root_of(digits, base, begin)
    leading = root << np.uint64(64 - 2 * LIMB)
    if follows or not is_exact or any_below(digits, base, begin):
        leading |= np.uint64(1)
    return nearest(leading, ((32 * last + begin) >> 1) - (64 - 2 * LIMB) + unit)


@kernel
def multiply_and_subtract(  # type: ignore[no-untyped-def]
    digits, base: int, count: int, squares: int, numbers: int, target: int
) -> None:
    """Write ``numbers`` times a sum of squares less the square of a sum, carried over, into the
    ``2 * count + 2`` digits from ``target`` on.
    """
    for place in range(target, target + 2 * count + 2):
        digits[place] = 0
    for place in range(2 * count):
        product = np.uint64(digits[squares + place]) * np.uint64(numbers)
        digits[target + place] += np.int64(product & np.uint64(_LOW))
        digits[target + place + 1] += np.int64(product >> np.uint64(32))
    for one in range(count):
        for other in range(count):
            product = np.uint64(digits[base + one]) * np.uint64(digits[base + other])
            digits[target + one + other] -= np.int64(product & np.uint64(_LOW))
            digits[target + one + other + 1] -= np.int64(product >> np.uint64(32))
    carry_over(digits, target, 2 * count + 2)


# --- leading digits ------------------------------------------------------------------------------


@kernel
def copy_leading(  # type: ignore[no-untyped-def]
    digits, base: int, count: int, target: int, places: int
) -> tuple[int, bool]:
    """Copy ``places`` digits of a magnitude, the first of them not 0, and put a 0 above them.

    The place of the last of them, counted from ``base``, and whether anything follows it. A
    magnitude that has fewer digits gets zeros behind them: that place is negative then.
    """
    top = count - 1
    while top > 0 and digits[base + top] == 0:
        top -= 1
    last = top - places + 1
    for place in range(places):
        digits[target + place] = digits[base + last + place] if last + place >= 0 else 0
    digits[target + places] = 0
    follows = False
    for place in range(base, base + last):
        if digits[place] != 0:
            follows = True
    return last, follows


@kernel
def divide(digits, base: int, count: int, divisor: int) -> bool:  # type: ignore[no-untyped-def]
    """Divide a magnitude by an int from 1 to 2**31, in place; whether anything remains."""
    rest, by = np.uint64(0), np.uint64(divisor)
    for place in range(base + count - 1, base - 1, -1):
        rest = rest << np.uint64(32) | np.uint64(digits[place])
        digits[place] = np.int64(rest // by)
        rest %= by
    return rest != np.uint64(0)


@kernel
def length_of(digits, base: int, count: int) -> int:  # type: ignore[no-untyped-def]
    """The bits of a magnitude, without zeros in front; 0 of 0."""
    top = count - 1
    while top > 0 and digits[base + top] == 0:
        top -= 1
    length, digit = 32 * top, digits[base + top]
    while digit:
        length += 1
        digit >>= 1
    return length


@kernel
def bits(digits, base: int, begin: int, width: int):  # type: ignore[no-untyped-def]
    """At most 32 bits of a magnitude from bit ``begin`` on, unsigned. A digit follows them."""
    place, shift = base + (begin >> 5), np.uint64(begin & 31)
    both = np.uint64(digits[place]) | np.uint64(digits[place + 1]) << np.uint64(32)
    return both >> shift & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))


@kernel
def any_below(digits, base: int, end: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether a magnitude has any bit before bit ``end``."""
    whole = base + (end >> 5)
    for place in range(base, whole):
        if digits[place] != 0:
            return True
    return digits[whole] & ((1 << (end & 31)) - 1) != 0


@kernel
def root_of(digits, base: int, begin: int):  # type: ignore[no-untyped-def]
    """The square root, rounded down, of the 4 * LIMB bits of a magnitude from bit ``begin`` on, of
    which one of the first two is 1; and whether it is exact.

    This is the Karatsuba square root of Zimmermann (1999): the root of the first half, and one
    division for the rest.
    """
    limb = np.uint64(LIMB)
    first = bits(digits, base, begin + 3 * LIMB, LIMB) << limb
    first |= bits(digits, base, begin + 2 * LIMB, LIMB)
    high = np.uint64(math.sqrt(np.float64(first)))
    if high * high > first:  # as the float may have been rounded up
        high -= np.uint64(1)
    rest = (first - high * high) << limb | bits(digits, base, begin + LIMB, LIMB)
    low = rest // (high << np.uint64(1))
    rest = (rest - low * (high << np.uint64(1))) << limb | bits(digits, base, begin, LIMB)
    root = (high << limb) + low
    if rest < low * low:
        rest += (root << np.uint64(1)) - np.uint64(1)
        root -= np.uint64(1)
    return root, rest == low * low


@kernel
def nearest(leading: int, exponent: int) -> float:
    """The float nearest to ``leading * 2**exponent``, of two as near the even one.

    ``leading`` is unsigned and at least 2**63; its last bit may be a sticky one. Rounding is done
    here, for the places of the float that comes of it: the least ones have fewer than 53.
    """
    dropped = max(np.int64(11), FLOAT_UNIT - exponent)
    if dropped > 64:
        return 0.0  # less than half of the least float
    half = np.uint64(1) << np.uint64(dropped - 1)
    kept = leading >> np.uint64(dropped) if dropped < 64 else np.uint64(0)
    rest = leading & (half + half - np.uint64(1))  # all of it where 64 bits are dropped
    if rest > half or (rest == half and kept & np.uint64(1) != np.uint64(0)):
        kept += np.uint64(1)
    return math.ldexp(np.float64(kept), exponent + dropped)
