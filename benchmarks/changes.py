"""Filters that come and go one by one: what one waits for, and what it waits for when things grow.

From none to 250,000 filters, each with a number, a text and an interface of its own or, every
other time, with the same names as many others, so that groups are made; between them events are
matched. Figures are microseconds of the thread's CPU time for one filter more or less; the 99th
percentile says what filters wait for, the longest what growth costs.

Law: what disturbs a measurement only ever adds to it, so each filter counts with its least time of
three passes, each of which is a process of its own: memory is as new in all of them, and grows at
the same filters.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import numpy as np

from benchmarks.report import Row, figure
from matcher.filters.constraint import Constraint, Filter, Operator
from matcher.filters.mixed import MixedEvents
from matcher.methods.choose import AutoMatcher
from matcher.model import AnyArray

FILTERS, PASSES = 250_000, 3
GOALS_US = {"p99": 20.0, "longest": 5_000.0}
BETWEEN, EVENTS = 1_000, 64
"""Filters that come from one batch of events to the next, and events of a batch. The first filter
after events finds nothing in the caches, and takes several times as long as others."""


def run(quick: bool) -> list[Row]:
    count = FILTERS // 50 if quick else FILTERS
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:
        passes = list(alone.map(one_pass, repeat(count, PASSES)))
    label = f"changes/{count:,} filters one by one"
    added, removed = (np.minimum.reduce(each) for each in zip(*passes, strict=True))
    return [*_rows(f"{label}, added", added), *_rows(f"{label}, removed", removed)]


def one_pass(count: int) -> tuple[AnyArray, AnyArray]:
    """Nanoseconds for each filter that comes, and for each that goes."""
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
    return np.array(added), np.array(removed)


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


def _rows(label: str, spent: AnyArray) -> Iterator[Row]:
    values = {f"p{part:g}": float(np.percentile(spent, part)) for part in (50, 99, 99.9)}
    for name, value in (values | {"longest": float(spent.max())}).items():
        goal = GOALS_US.get(name)
        note = "" if goal is None else f"goal: at most {figure(goal)}"
        yield Row(f"{label}, {name}", value / 1e3, "us", note=note)
