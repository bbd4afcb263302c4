"""When the Timers of deployed rules tick, as their marks rise (tesla.md S13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, Int64s
from rules.engine.intake.ticking import Ticking
from rules.engine.order.catalogue import Catalogue, Deployed
from rules.engine.order.groups import Groups
from rules.engine.order.timers import batch, period, ticks
from rules.zones import zone_of

TICKS_MAX = 65_536
"""So many ticks of a rule are made at a time, at most."""


def portions(
    rules: Sequence[Deployed],
    old: Int64s,
    catalogue: Catalogue,
    times: tuple[int, int] | None,
    ticking: Ticking,
) -> Iterator[tuple[int | None, Sequence[EventBatch]]]:
    """The ticks of rules whose groups' marks have risen from ``old``: portions of them, and before
    which instant each is complete; None for the last.

    ``times`` are the least and the greatest of the input so far, in microseconds; None before any.
    So they take little memory, however far marks jump.
    """
    due = []
    for rule in rules:
        begin, end = _interval(rule, old, catalogue.groups, times)
        if begin < end:
            every = catalogue.is_above_timers(rule.rule)
            spans = ticking.spans(rule.rule.name, begin, end, every=every)
            if len(spans):
                due.append((rule, spans))
    ticking.release()
    length = TICKS_MAX * MICROSECONDS * min((period(rule.rule) for rule, _ in due), default=1)
    start = min((int(spans[0, 0]) for _, spans in due), default=TIME_MAX)
    while start < TIME_MAX:
        stop = min(TIME_MAX, start + length)
        parts: dict[str, list[Int64s]] = {}
        for rule, spans in due:
            parts.setdefault(zone_of(rule.rule), []).append(_ticks(rule, spans, start, stop))
        made = [batch(np.unique(np.concatenate(times)), zone) for zone, times in parts.items()]
        start = min(_following(spans, stop) for _, spans in due)
        yield (start if start < TIME_MAX else None), [one for one in made if len(one)]


def _ticks(rule: Deployed, spans: Int64s, start: int, stop: int) -> Int64s:
    """The ticks of a rule in its spans, within [start, stop)."""
    found = ticks(rule.rule, max(start, int(spans[0, 0])), min(stop, int(spans[-1, 1])))
    if len(spans) == 1:
        return found
    owner = np.searchsorted(spans[:, 0], found, side="right") - 1
    due: Int64s = found[found < spans[owner, 1]]
    return due


def _following(spans: Int64s, stop: int) -> int:
    """When the first tick from ``stop`` on may be; TIME_MAX when there is none."""
    place = int(np.searchsorted(spans[:, 1], stop, side="right"))
    return max(stop, int(spans[place, 0])) if place < len(spans) else TIME_MAX


def _interval(
    rule: Deployed, old: Int64s, groups: Groups, times: tuple[int, int] | None
) -> tuple[int, int]:
    """From when to when a rule's clock has now to tick; the end excluded. A rule's clock ticks up
    to its mark, and up to the greatest time of the input when that has ended.
    """
    group = groups.numbers[rule.group]
    mark = int(groups.marks[group])
    is_ended = mark == TIME_MAX
    if times is None and (is_ended or rule.since == TIME_MIN):
        return 0, 0
    least, greatest = times or (0, 0)
    first = least if rule.since == TIME_MIN else rule.since
    begin = max(int(old[group]), rule.floor, first)
    return begin, greatest + 1 if is_ended else mark
