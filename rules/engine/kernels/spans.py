"""Where a step looks: which list its access and probes name, and which of its entries lie in the
step's span of time (tesla.md S1, S6, S12).
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.buckets import find_list
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import PROBE_FLOAT, PROBE_FLOAT_TO_INT, PROBE_SAME, ROW_TIME
from rules.engine.kernels.memory import find_time
from rules.engine.kernels.words import TWO_63, as_float, as_word
from rules.planning.plan import StepKind

NEGATE = int(StepKind.NEGATE)
TIME_LEAST = -(2**63)


@kernel
def key_word(word: int, kind: int) -> tuple[int, bool]:
    """A probe's value as a key word, and whether any entry can have it."""
    if kind == PROBE_SAME:
        return word, True
    if kind == PROBE_FLOAT:
        number = as_float(word)
        return (np.int64(0) if number == 0.0 else word), True
    if kind == PROBE_FLOAT_TO_INT:
        number = as_float(word)
        if not (-TWO_63 <= number < TWO_63) or np.floor(number) != number:
            return 0, False
        return np.int64(number), True
    number = np.float64(word)
    return as_word(number), number < TWO_63 and np.int64(number) == word


@part
def probe(state: int, event: int, offset: int, program: int) -> tuple[int, bool]:
    """The value that a key must have, and whether it is defined."""
    if event >= 0:
        return arrays.heap(state)[arrays.frame(state)[event] + offset], True
    if run(state, program):
        return arrays.stack(state)[0], True
    return 0, False


@kernel
def list_of(state: int, step) -> int:  # type: ignore[no-untyped-def]
    """The list that a step's access and probes name, or -1."""
    if step.first_probe < 0:
        return arrays.accesses(state)[step.access].list
    second = np.int64(0)
    word, found = probe(state, step.first_event, step.first_offset, step.first_probe)
    if not found:
        return -1
    first, found = key_word(word, step.first_kind)
    if not found:
        return -1
    if step.second_probe >= 0:
        word, found = probe(state, step.second_event, step.second_offset, step.second_probe)
        if not found:
            return -1
        second, found = key_word(word, step.second_kind)
        if not found:
            return -1
    return find_list(state, step.access, first, second)


@part
def earliest(state: int, step, since: int) -> int:  # type: ignore[no-untyped-def]
    """The early end of a step's span, included; never before the rule holds (S15)."""
    if step.earlier >= 0:
        time = arrays.heap(state)[arrays.frame(state)[step.earlier + 1] + ROW_TIME]
        if step.kind == NEGATE:
            time += 1  # a negation between two events leaves the earlier one's instant out (S6)
    else:
        late = arrays.heap(state)[arrays.frame(state)[step.anchor + 1] + ROW_TIME]
        time = back_from(late, step.duration)
    return max(time, since)


@part
def back_from(late: int, duration: int) -> int:
    """The instant so long before another one, or the first that there is.

    Compiled code takes it that sums never leave their 64 bits, so nothing shows afterwards that
    one has: it must not be made.
    """
    return max(late, TIME_LEAST + duration) - duration


@part
def end_of(state: int, step) -> int:  # type: ignore[no-untyped-def]
    """The late end of a step's span, excluded: no later than the terminator if it is strict (S12).

    No event of a match is as late as TIME_GREATEST: that instant is never over.
    """
    time = arrays.heap(state)[arrays.frame(state)[step.anchor + 1] + ROW_TIME] + 1
    if step.strict:
        time = min(time, arrays.heap(state)[arrays.frame(state)[1] + ROW_TIME])
    return time


@kernel
def bounds(state: int, step, number: int, since: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The entries of a list inside a step's span: from the first, to the second excluded."""
    low = find_time(state, number, earliest(state, step, since))
    return low, end_of_span(state, step, number)


@part
def end_of_span(state: int, step, number: int) -> int:  # type: ignore[no-untyped-def]
    """How many entries of a list are not later than a step's span."""
    return find_time(state, number, end_of(state, step))
