"""Aggregates over a window (tesla.md S8).

Law: an aggregate is a function of the events in its window alone. Sums of ints and of floats are
exact and rounded once, at the end (``exact``); so an average or a deviation comes out of the same
digits whether they were added up just now or are the difference of two prefix sums.

A window of up to SCAN_MAX entries is scanned, and so is one whose events are chosen by conditions
that no index decides, or of whose events something is computed; any other is answered by a summary
of the list (``summaries``, ``coverage``).
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.compiled import kernel, making
from rules.engine.kernels.coverage import (
    SPARE,
    SQUARES,
    SUM,
    window_digits,
    word_digits,
)
from rules.engine.kernels.emission import search
from rules.engine.kernels.exact import FLOAT_UNIT, carry_over, deviation, rounded
from rules.engine.kernels.expressions import run
from rules.engine.kernels.far import is_far, next_in_range
from rules.engine.kernels.layout import (
    ENTRY_WORDS,
    FORM_EXTREMES,
    FORM_MOMENTS,
    FORM_SUMS,
    KIND_FLOAT,
)
from rules.engine.kernels.memory import row_offset
from rules.engine.kernels.pyramid import extreme_within, is_before, key_of
from rules.engine.kernels.words import as_float, as_word
from rules.terms import Function

FUNCTIONS = {function: number for number, function in enumerate(Function)}
"""The functions' numbers, in their order of declaration."""
AVG, SUM_OF, COUNT = FUNCTIONS[Function.AVG], FUNCTIONS[Function.SUM], FUNCTIONS[Function.COUNT]
MIN, MAX, STDDEV = FUNCTIONS[Function.MIN], FUNCTIONS[Function.MAX], FUNCTIONS[Function.STDDEV]

_INT_MIN = -(2**63)


@making
def evaluate(state: int, step, number: int, low: int, high: int) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """The aggregate of a step over the entries of a list from ``low`` to ``high``, the second
    excluded, one by one: a word, and whether it is defined.
    """
    count = max(0, high - low)
    words = gather(state, step, number, low, low + count)
    return aggregate(state, step.function, step.kind_of_value, words)


@kernel
def form_of(function: int) -> int:
    """The form of summary that answers for a function."""
    if function in (MIN, MAX):
        return FORM_EXTREMES
    return FORM_MOMENTS if function == STDDEV else FORM_SUMS


@kernel
def summarised(  # type: ignore[no-untyped-def]
    state: int, step, number: int, summary: int, low: int, high: int
) -> tuple[int, bool]:
    """The same out of a summary that covers the entries."""
    first = arrays.lists(state)[number].first
    record = arrays.summaries(state)[summary]
    if record.form == FORM_EXTREMES:
        key = extreme_within(state, record, first + low, first + high, step.function == MAX)
        return key_of(key, record.kind), True
    window_digits(state, summary, first + low, first + high)
    return finish(state, step.function, record.kind, high - low, record.lowest, record.digits)


@making
def gather(state: int, step, number: int, low: int, high: int):  # type: ignore[no-untyped-def]
    """The words of what is aggregated of the entries low to high that fit: an attribute, or what
    a program computes; those for which that is undefined are left out. There may be no list
    (``number`` is -1) if there are no entries.
    """
    words = arrays.gathered(state)[:]  # an array like the other one
    if low >= high:
        return words[:0]
    heap = arrays.heap(state)
    start = first_entry(arrays.lists(state)[number])
    if high - low > len(words):
        words = np.empty(high - low, np.int64)
    count, failed, place = 0, 0, low
    while place < high:
        row = row_offset(state, step.type, heap[start + place * ENTRY_WORDS + 1])
        place += 1
        search(state)
        arrays.frame(state)[0] = row
        if step.residue < 0 or run(state, step.residue):
            failed = 0
            if step.program < 0:
                words[count] = heap[row + step.offset] if step.offset >= 0 else 0
                count += 1
            elif run(state, step.program):
                words[count] = arrays.stack(state)[0]
                count += 1
        elif step.ordered >= 0:
            failed += 1
            if is_far(state, failed, high - place):
                place = next_in_range(state, step, number, place, high)
    return words[:count]


@kernel
def aggregate(state: int, function: int, kind: int, words) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """The aggregate of words: a word, and whether it is defined."""
    count = len(words)
    if function == COUNT:
        return count, True
    if count == 0:
        return 0, function == SUM_OF  # 0 and 0.0 are the same word
    if function in (MIN, MAX):
        return extreme(state, words, kind, function == MAX), True
    if kind == KIND_FLOAT and function != STDDEV:
        total, is_exact = sum_simply(words)
        if is_exact:
            return as_word(total / count if function == AVG else total), True
    lowest, digits = word_digits(state, words, kind, function == STDDEV)
    return finish(state, function, kind, count, lowest, digits)


@kernel
def sum_simply(words) -> tuple[float, bool]:  # type: ignore[no-untyped-def]
    """The sum of floats, and whether no addition was rounded: then it is the exact one."""
    total, errors = 0.0, 0.0
    for word in words:
        number = as_float(word)
        before = total
        total = before + number
        part = total - before
        errors += abs((before - (total - part)) + (number - part))  # Knuth's error of the sum
    return total, errors == 0.0  # where it overflows, the errors are no number


@kernel
def extreme(state: int, words, kind: int, greatest: bool) -> int:  # type: ignore[no-untyped-def]
    """The least or greatest of words of a kind."""
    best = key_of(words[0], kind)
    for word in words[1:]:
        key = key_of(word, kind)
        if greatest:
            if is_before(state, kind, best, key):
                best = key
        elif is_before(state, kind, key, best):
            best = key
    return key_of(best, kind)


@kernel
def finish(  # type: ignore[no-untyped-def]
    state: int, function: int, kind: int, count: int, lowest: int, digits: int
) -> tuple[int, bool]:
    """A sum, average or deviation of ``count`` words from the digits of their sums."""
    scratch = arrays.digits(state)
    unit = 32 * lowest + FLOAT_UNIT if kind == KIND_FLOAT else 0
    is_negative = carry_over(scratch, SUM, digits + 1)
    if function == STDDEV:
        carry_over(scratch, SQUARES, 2 * digits + 2)
        result = deviation(scratch, SUM, digits + 1, SQUARES, count, unit, SPARE)
    elif function == SUM_OF and kind != KIND_FLOAT:
        return whole(scratch, is_negative)
    else:
        divisor = count if function == AVG else 1
        result = rounded(scratch, SUM, digits + 1, unit, divisor, SPARE)
        if is_negative:
            result = -result
    return as_word(result), np.isfinite(result)


@kernel
def whole(digits, is_negative: bool) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """A sum of ints, and whether it is one of 64 bits (S9)."""
    magnitude = (np.uint64(digits[SUM + 1]) << np.uint64(32)) | np.uint64(digits[SUM])
    limit = np.uint64(1) << np.uint64(63)
    if is_negative:
        return np.int64(np.uint64(0) - magnitude), digits[SUM + 2] == 0 and magnitude <= limit
    return np.int64(magnitude), digits[SUM + 2] == 0 and magnitude < limit
