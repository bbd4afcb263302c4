"""When the Timers of deployed rules tick, as their marks rise (tesla.md S13).

Law: a rule's clock ticks up to its mark, and up to the greatest time of the input when that has
ended. However far marks jump, ticks are made by portions, so that they take little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, Int64s
from rules.engine import timers
from rules.engine.catalogue import Deployed
from rules.engine.groups import Groups

TICKS_MAX = 65_536
"""So many seconds of ticks are made at a time."""


def portions(
    rules: Sequence[Deployed], old: Int64s, groups: Groups, times: tuple[int, int] | None
) -> Iterator[tuple[int | None, EventBatch]]:
    """The ticks of rules whose groups' marks have risen from ``old``: portions of them, and before
    which instant each is complete; None for the last.

    ``times`` are the least and the greatest of the input so far, in microseconds; None before any.
    """
    found = [(rule, *_interval(rule, old, groups, times)) for rule in rules]
    intervals = [(rule, begin, end) for rule, begin, end in found if begin < end]
    if not intervals:
        return
    start = min(begin for _, begin, _ in intervals)
    last = max(end for _, _, end in intervals)
    while start < last:
        stop = min(last, start + TICKS_MAX * MICROSECONDS)
        parts = [
            timers.ticks(one.rule, max(begin, start), min(end, stop))
            for one, begin, end in intervals
        ]
        ticks = timers.batch(np.unique(np.concatenate(parts)))
        yield (stop if stop < last else None), ticks
        start = stop


def _interval(
    rule: Deployed, old: Int64s, groups: Groups, times: tuple[int, int] | None
) -> tuple[int, int]:
    """From when to when a rule's clock has now to tick; the end excluded."""
    group = groups.numbers[rule.group]
    mark = int(groups.marks[group])
    is_ended = mark == TIME_MAX
    if times is None and (is_ended or rule.since == TIME_MIN):
        return 0, 0
    least, greatest = times or (0, 0)
    first = least if rule.since == TIME_MIN else rule.since
    begin = max(int(old[group]), rule.floor, first)
    return begin, greatest + 1 if is_ended else mark
