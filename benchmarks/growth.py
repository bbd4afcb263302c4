"""What it buys that large arrays of engines grow where they are (runtime.memory), beside a copy."""

from collections.abc import Iterator
from time import perf_counter
from unittest.mock import patch

import numpy as np

from benchmarks.report import Row
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine.cdp import CdpEngine
from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import Arrays
from runtime.memory import Array, zeros

READING = EventType.of("Reading", key="int", value="float")
RULE = """
event Reading(key: int, value: float)
event End(key: int)
define Found(n: int) from End(key = $k) and last Reading(key = $k) as r within 10 h from End
where n = r.key
"""
STEP = 2_000
"""Events of a step, a microsecond apart."""


def run(quick: bool = False) -> Iterator[Row]:
    count = 100_000 if quick else 1_000_000
    in_place, copied = measure(count), measure(count, is_copied=True)
    names = ("longest step", "all steps", "longest growth of one array")
    for name, ours, theirs in zip(names, in_place, copied, strict=True):
        label = f"{count:,} events that are kept: {name}"
        yield Row(label, 1e3 * ours, "ms", "arrays that are copied", 1e3 * theirs)


def measure(count: int, is_copied: bool = False) -> tuple[float, float, float]:
    """The least of three runs of each figure, in seconds."""
    runs = [kept(count, is_copied) for _ in range(3)]
    longest, total, growth = (min(figures) for figures in zip(*runs, strict=True))
    return longest, total, growth


def kept(count: int, is_copied: bool) -> tuple[float, float, float]:
    """Seconds of the longest step, of all, and of the longest growth of one array."""
    growths, steps, grow = [0.0], [], Arrays.grow

    def timed(self: Arrays, name: str, length: int) -> None:
        begun = perf_counter()
        grow(self, name, length)
        growths.append(perf_counter() - begun)

    engine = CdpEngine()
    engine.deploy(load(RULE))
    with (
        patch.object(Arrays, "grow", timed),
        patch.object(arrays, "grown", copied if is_copied else arrays.grown),
    ):
        for first in range(0, count, STEP):
            batch = readings(first)
            begun = perf_counter()
            engine.push(batch)
            engine.advance(first + STEP)
            steps.append(perf_counter() - begun)
    return max(steps), sum(steps), max(growths)


def copied(array: Array, length: int) -> Array:
    """A larger copy of an array."""
    larger = zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def readings(first: int) -> EventBatch:
    numbers = np.arange(first, first + STEP)
    ids = EventIds(StringColumn.constant("sensors", STEP), numbers + 1)
    return EventBatch(READING, numbers, ids, (numbers % 50_000, numbers.astype(np.float64)))
