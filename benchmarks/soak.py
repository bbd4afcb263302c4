"""A long run of one engine: does its memory stay flat? ``make soak``, or ``MINUTES=5 make soak``.

What no rule can use any more is gone, whether terminators come or not (Retention). So in a stream
that goes on in the same way, with rules deployed and removed all the time, neither the engine's
columns nor the process may keep growing. After a first part that fills the windows, the greatest
figures of the last half are held against those of the half before it.

The stream is as hard on memory as we know: keys that are texts and never come again, stretches in
which no terminator comes, consumption, negation, aggregates, rules over composite events, and rules
whose windows are longer than those before.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.campaign import Outcome
from benchmarks.processes import resident_mib
from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine import make
from rules.engine.cdp import CdpEngine

EVENTS_PER_S = 2_000
"""Of event time."""
CHUNK = 1_000
RULES = 60
"""So many are deployed; with each chunk one goes and another comes."""
OLD_PLACES = 20
WARM_UP_SHARE = 0.25
"""Of the run; then two halves are compared."""
GROWTH_MAX = 1.05
RSS_SLACK_MIB = 8.0
"""Allocators give memory back in their own time."""
SAMPLES = 400
"""Of a run, however long: they are kept, and must not be what grows."""
REPORT_S = 30.0
SEED = 3

READING = EventType.of("Reading", place="string", value="float", count="int")
ALARM = EventType.of("Alarm", place="string", level="int")
SHAPES = (
    "define {type}(place: string, v: float) from Alarm(place = $p) as a and last"
    " Reading(place = $p, value > {level}) as r within {window} s from a"
    " where place = $p, v = r.value consuming r",
    "define {type}(n: int) from Alarm(level > {level}) as a and each Reading(count = {number})"
    " as r within 3 s from a and not Alarm(level = 0) between r and a where n = r.count",
    "define {type}(m: float) from Reading(value > 0.99) as r"
    " and $m = Avg(Reading(place = r.place).value within {window} s from r) where m = $m",
    "define {type}(n: int) from Alarm() as a and last Reading(count = {number}) as r within"
    " {window} s from a and last Reading(value < r.value) as s within 2 s from r"
    " where n = s.count",
    "define {type}(n: int) from Found() as f and last Alarm() as a within {window} s from f"
    " where n = a.level",
)
KNOWN = {type_.name: type_ for type_ in (READING, ALARM, EventType.of("Found", place="string"))}
BASE = (
    f"event {READING} event {ALARM} rule found: define Found(place: string) from"
    " Alarm(place = $p, level > 5) as a and Count(Reading(place = $p) within 5 s from a) > 0"
    " where place = $p"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was held at a moment: the process's memory, and the engine's figures."""

    rss_mib: float
    engine: Mapping[str, int]


def campaign(_folder: Path, minutes: float = 60.0) -> Iterator[Outcome]:
    """Soak an engine for so long."""
    samples = list(soak(60 * minutes))
    grown = growth(samples[int(WARM_UP_SHARE * len(samples)) :])
    yield Outcome(f"{minutes:g} minutes", [f"grows: {line}" for line in grown])


def soak(seconds: float) -> Iterator[Sample]:
    """Run for so long, and give SAMPLES samples, of the figures that every run has."""
    engine = make("auto")
    assert isinstance(engine, CdpEngine)
    engine.deploy(load(BASE))
    rng = np.random.default_rng(SEED)
    begun = sampled = reported = time.monotonic()
    events = composites = chunk = 0
    while (now := time.monotonic()) < begun + seconds:
        change_rules(engine, chunk, chunk * CHUNK * MICROSECONDS // EVENTS_PER_S)
        for batch in batches(chunk, rng):
            engine.push(batch)
            events += len(batch)
        chunk += 1
        composites += len(engine.advance(chunk * CHUNK * MICROSECONDS // EVENTS_PER_S))
        if now < sampled + seconds / SAMPLES:
            continue
        sampled = now
        gc.collect()
        figures = engine.memory().items()
        sample = Sample(
            resident_mib(os.getpid()), {name: held for name, held in figures if "/T" not in name}
        )
        yield sample
        if now >= reported + REPORT_S:
            reported = now
            held = ", ".join(f"{name} {figure:,}" for name, figure in sample.engine.items())
            print(
                f"{now - begun:,.0f} s: {events:,} events, {composites:,} composite events,"
                f" {chunk:,} rules came and went; {sample.rss_mib:.1f} MiB; {held}",
                flush=True,
            )


def change_rules(engine: CdpEngine, chunk: int, since: int) -> None:
    """Let the next rule come, and the oldest go."""
    shape = SHAPES[chunk % len(SHAPES)]
    text = shape.format(
        type=f"T{chunk % (2 * RULES)}",
        level=(chunk % 7) / 10 if "Reading(place = $p, value" in shape else chunk % 7,
        number=chunk % 50,
        window=2 + chunk % 9,
    )
    engine.deploy(load(f"rule r{chunk}: {text}", known=KNOWN), since=since)
    if chunk >= RULES:
        engine.remove(f"r{chunk - RULES}")


def batches(chunk: int, rng: np.random.Generator) -> Iterator[EventBatch]:
    """The events of a chunk; in every third minute of event time there are no alarms."""
    numbers = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
    times = numbers * MICROSECONDS // EVENTS_PER_S
    is_quiet = (times[0] // (60 * MICROSECONDS)) % 3 == 2
    is_alarm = rng.random(CHUNK) < (0.0 if is_quiet else 0.1)
    # Half of the events are of places that are new, and gone with the chunk.
    names = tuple(
        f"place-{place}" if place < OLD_PLACES else f"place-{chunk}-{place}"
        for place in range(OLD_PLACES + CHUNK)
    )
    numbered = np.arange(CHUNK) + OLD_PLACES
    is_old = rng.random(CHUNK) < 0.5
    places = np.where(is_old, rng.integers(0, OLD_PLACES, CHUNK), numbered).astype(np.int32)
    for type_, chosen in ((READING, ~is_alarm), (ALARM, is_alarm)):
        count = int(chosen.sum())
        if count == 0:
            continue
        place = StringColumn(places[chosen], names)
        columns = (
            (place, rng.random(count), rng.integers(0, 50, count))
            if type_ is READING
            else (place, rng.integers(0, 10, count))
        )
        ids = EventIds(StringColumn.constant("soak", count), numbers[chosen])
        yield EventBatch(type_, times[chosen], ids, columns)


def growth(samples: list[Sample]) -> list[str]:
    """What is greater in the second half of the samples than in the first, in words."""
    middle = len(samples) // 2
    before, after = samples[:middle], samples[middle:]
    found = []
    greatest = [max(sample.rss_mib for sample in half) for half in (before, after)]
    if greatest[1] > GROWTH_MAX * greatest[0] + RSS_SLACK_MIB:
        found.append(f"the process: {greatest[0]:.1f} MiB, then {greatest[1]:.1f} MiB")
    for name in sorted({name for sample in samples for name in sample.engine}):
        first, second = (
            max(sample.engine.get(name, 0) for sample in half) for half in (before, after)
        )
        if second > GROWTH_MAX * first + CHUNK:
            found.append(f"{name}: {first:,}, then {second:,}")
    return found
