"""The ordered index: candidates by an interval of one of their attributes.

Over a long window the pyramid of an attribute says which blocks can hold a candidate that a
condition like ``price < $p`` admits; the others are passed over. The condition itself stays with
the step's residue, so an interval may be wider than the condition, and never narrower.

The first candidates are tried one after the other, for most questions are answered by them.
"""

from __future__ import annotations

import math

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.coverage import cover
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import (
    FORM_EXTREMES,
    KIND_FLOAT,
    PROBE_FLOAT,
    PROBE_FLOAT_TO_INT,
    PROBE_SAME,
)
from rules.engine.kernels.pyramid import first_within, key_of, last_within
from rules.engine.kernels.words import INT_MIN, TWO_63, as_float, as_word

INT_MAX = 2**63 - 1


@kernel
def next_in_range(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """The first of a list's entries from ``low`` to ``high`` that the step's interval admits;
    ``high``, which is excluded, when there is none. Without room for the index, ``low``.
    """
    least, greatest = interval(state, step)
    if least > greatest:
        return high
    summary = cover_range(state, step, number, low, high)
    if summary < 0:
        return low
    first = arrays.lists(state)[number].first
    record = arrays.summaries(state)[summary]
    return first_within(state, record, first + low, first + high, least, greatest) - first


@kernel
def last_in_range(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """The last such entry; ``low - 1`` when there is none. Without room, ``high - 1``."""
    least, greatest = interval(state, step)
    if least > greatest:
        return low - 1
    summary = cover_range(state, step, number, low, high)
    if summary < 0:
        return high - 1
    first = arrays.lists(state)[number].first
    record = arrays.summaries(state)[summary]
    return last_within(state, record, first + low, first + high, least, greatest) - first


@kernel
def cover_range(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """The pyramid of the step's ordered attribute, brought to cover entries; -1 without room."""
    return cover(
        state, number, FORM_EXTREMES, step.type, step.ordered, step.ordered_kind, low, high
    )


@kernel
def interval(state: int, step) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The least and the greatest key that the step admits; nothing where a bound is undefined."""
    least, greatest = np.int64(INT_MIN), np.int64(INT_MAX)
    if step.lower >= 0:
        if not run(state, step.lower):
            return 1, 0
        key, exists = lower_key(arrays.stack(state)[0], step.lower_kind, step.lower_strict != 0)
        if not exists:
            return 1, 0
        least = key
    if step.upper >= 0:
        if not run(state, step.upper):
            return 1, 0
        key, exists = upper_key(arrays.stack(state)[0], step.upper_kind, step.upper_strict != 0)
        if not exists:
            return 1, 0
        greatest = key
    return least, greatest


@kernel
def lower_key(word: int, conversion: int, is_strict: bool) -> tuple[int, bool]:
    """The least key above a value, or not below it, and whether there is one."""
    if conversion == PROBE_SAME:
        return (word + 1 if is_strict else word), not (is_strict and word == INT_MAX)
    if conversion == PROBE_FLOAT_TO_INT:
        number = as_float(word)
        if number >= TWO_63:
            return 0, False
        if number < -TWO_63:
            return np.int64(INT_MIN), True
        return (math.floor(number) + 1 if is_strict else math.ceil(number)), True
    number, is_strict = float_bound(word, conversion, is_strict)
    if number == 0.0:  # -0.0 is as great
        return (1 if is_strict else -1), True
    return key_of(as_word(number), KIND_FLOAT) + (1 if is_strict else 0), True


@kernel
def upper_key(word: int, conversion: int, is_strict: bool) -> tuple[int, bool]:
    """The greatest key below a value, or not above it, and whether there is one."""
    if conversion == PROBE_SAME:
        return (word - 1 if is_strict else word), not (is_strict and word == INT_MIN)
    if conversion == PROBE_FLOAT_TO_INT:
        number = as_float(word)
        if number >= TWO_63:
            return np.int64(INT_MAX), True
        if number < -TWO_63 or (is_strict and number == -TWO_63):
            return 0, False
        return (math.ceil(number) - 1 if is_strict else math.floor(number)), True
    number, is_strict = float_bound(word, conversion, is_strict)
    if number == 0.0:
        return (-2 if is_strict else 0), True
    return key_of(as_word(number), KIND_FLOAT) - (1 if is_strict else 0), True


@kernel
def float_bound(word: int, conversion: int, is_strict: bool) -> tuple[float, bool]:
    """A bound of floats, and whether it is left out: not where it is an int that was rounded."""
    if conversion == PROBE_FLOAT:
        return as_float(word), is_strict
    number = np.float64(word)
    return number, is_strict and number < TWO_63 and np.int64(number) == word
