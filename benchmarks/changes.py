"""Filters that come and go one by one: what one waits for, and what it waits for when things grow.

From none to 250,000 filters, each with a number, a text and an interface of its own or, every
other time, with the same names as many others, so that groups are made; between them events are
matched. Figures are microseconds of this thread's CPU time for one filter more or less; the 99th
percentile says what filters wait for, the longest what growth costs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from benchmarks.report import Row
from matcher.choose import AutoMatcher
from matcher.constraint import Constraint, Filter, Operator
from matcher.mixed import MixedEvents

FILTERS = 250_000
BETWEEN, EVENTS = 1_000, 64
"""Filters that come from one batch of events to the next, and events of a batch. The first filter
after events finds nothing in the caches, and takes several times as long as others."""


def run(quick: bool) -> list[Row]:
    count = FILTERS // 50 if quick else FILTERS
    matcher = AutoMatcher()
    filters = [_filter(number) for number in range(count)]
    events = MixedEvents.of([{"a": place, "b": f"t{place}"} for place in range(EVENTS)])
    gc.disable()
    try:
        added = _spent(
            (lambda n=n, one=one: matcher.add(n, n, one) for n, one in enumerate(filters)),
            lambda: matcher.match(events),
        )
        removed = _spent(lambda n=n: matcher.remove(n) for n in range(count))
    finally:
        gc.enable()
    label = f"changes/{count:,} filters one by one"
    return [*_rows(f"{label}, added", added), *_rows(f"{label}, removed", removed)]


def _filter(number: int) -> Filter:
    if number % 2:
        return Filter((Constraint("a", Operator.GREATER, number),))
    equal = Constraint("a", Operator.EQUAL, number)
    return Filter((equal, Constraint("b", Operator.PREFIX, f"t{number}")))


def _spent(
    actions: Iterable[Callable[[], object]], between: Callable[[], object] | None = None
) -> list[int]:
    """Nanoseconds of this thread for each action; ``between``: what is done now and then."""
    spent = []
    for number, action in enumerate(actions):
        if between is not None and number % BETWEEN == 0:
            between()
        begun = time.thread_time_ns()
        action()
        spent.append(time.thread_time_ns() - begun)
    return spent


def _rows(label: str, spent: list[int]) -> Iterator[Row]:
    for percentile in (50, 99, 99.9):
        value = float(np.percentile(spent, percentile)) / 1e3
        yield Row(f"{label}, p{percentile:g}", value, "us")
    yield Row(f"{label}, longest", max(spent) / 1e3, "us")
