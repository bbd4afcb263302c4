"""The next entry of a long list that an inequality admits, by the list's summary (``ranges``)."""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import (
    LATE_SUMMARIES,
    LOAD_SUMMARIES,
    SCAN_MAX,
    SUMMARY_FINDS_LAST,
    SUMMARY_FINDS_NEXT,
    WISH,
)


@kernel
def is_far(state: int, failed: int, left: int) -> bool:
    """Whether so many candidates failed, and so many are left, that the index is worth asking."""
    near = arrays.counters(state)[SCAN_MAX]
    return 4 * failed >= near and left > near


@kernel
def next_in_range(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """As ``ranges.next_in_range``; ``low`` as long as summaries are not loaded."""
    summaries = arrays.late(state)[LATE_SUMMARIES]
    if summaries == 0:
        arrays.counters(state)[WISH] = LOAD_SUMMARIES
        return low
    place = arrays.address_of(step)
    return arrays.call(summaries, state, SUMMARY_FINDS_NEXT, place, number, low, high)


@kernel
def last_in_range(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """As ``ranges.last_in_range``; ``high - 1`` as long as summaries are not loaded."""
    summaries = arrays.late(state)[LATE_SUMMARIES]
    if summaries == 0:
        arrays.counters(state)[WISH] = LOAD_SUMMARIES
        return high - 1
    place = arrays.address_of(step)
    return arrays.call(summaries, state, SUMMARY_FINDS_LAST, place, number, low, high)
