"""Random scenarios: rules, events, an overlay, who is where, what changes, and what goes wrong.

Faults are such as the protocols promise to survive: links lose, repeat, reorder and delay
messages, are cut for less time than heartbeats take to notice, brokers are slow, and clocks of
sources go wrong. Nothing is lost then, so every sink must get exactly what the oracle says. Rules
are deployed, replaced and removed in mid-stream, by whichever broker, in restless networks often
before the change before is through; some networks order by arrival. In open networks sources and
sinks come in mid-stream, and sinks go. In moving ones sources close, and go on at other brokers
under their names. In narrow ones they may not run far ahead of one another. Some networks are torn
(tearing).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from simulator.fuzzing.case import LEAD_S, Case, Change, Fault, Move
from simulator.fuzzing.maker import Maker, changed, moment_s, seconds_of
from simulator.fuzzing.tearing import made_storeless, torn

AHEAD_MAX_S = 30.0
"""By how much sources' clocks are wrong at most."""
RESTLESS = 0.1
"""The share of networks whose rules change often."""
OPEN = 0.25
"""The share of networks where clients come in mid-stream, and sinks go."""
MOVING = 0.25
"""The share of networks that are not torn where sources go on at other brokers."""
TORN = 0.1
"""The share of networks that are torn. They do not order by arrival: events may be lost then."""
NARROW = 0.1
"""The share of networks where sources may not run far ahead of others, and get little credit."""
STORELESS = 0.03
"""The share of networks in which a broker with clients fails. Rules do not change there, nor is
order by arrival."""


def random_case(seed: int, strategy: str) -> Case:
    """The case of a seed; of two strategies it is the same but for them."""
    random = Random(f"{seed}/narrow")
    made = _random_case(seed, strategy)
    return made_narrow(made, random) if random.random() < NARROW else made


def _random_case(seed: int, strategy: str) -> Case:
    for attempt in itertools.count():
        case = Maker(Random(f"{seed}/{attempt}")).case(seed, strategy)
        if case.is_sound:
            # From generators of their own, so that seeds are otherwise what they were before.
            skews = tuple(_skews(Random(f"{seed}/skew"), [name for name, _ in case.homes]))
            skewed = replace(case, faults=(*case.faults, *skews))
            random = Random(f"{seed}/open")
            opened = made_open(skewed, random) if random.random() < OPEN else skewed
            random = Random(f"{seed}/torn")
            if random.random() < TORN:
                return torn(opened, random)
            random = Random(f"{seed}/storeless")
            if random.random() < STORELESS:
                return made_storeless(skewed, random)
            random = Random(f"{seed}/moving")
            moving = made_moving(opened, random) if random.random() < MOVING else opened
            random = Random(f"{seed}/restless")
            return made_restless(moving, random) if random.random() < RESTLESS else moving
    raise AssertionError


def made_narrow(case: Case, random: Random) -> Case:
    """The case with sources that wait for one another, and for credit."""
    lead_max_s = round(random.choice((0.3, 1.0, 5.0)) * random.uniform(0.5, 2.0), 3)
    return replace(case, source_lead_max_s=lead_max_s, publish_credit=random.randint(1, 8))


def made_open(case: Case, random: Random) -> Case:
    """The case with some of its sources and sinks coming in mid-stream, and some sinks going."""
    span_s = seconds_of(case.events)
    names = [name for name, _ in case.homes]
    coming = random.sample(names, random.randint(0, len(names)))
    sinks = tuple(
        replace(
            sink,
            at_s=moment_s(random, span_s),
            for_s=random.choice((None, None, round(random.uniform(0.1, span_s), 3))),
        )
        if random.random() < 0.5
        else sink
        for sink in case.sinks
    )
    late = tuple((name, moment_s(random, span_s)) for name in coming)
    return replace(case, sinks=sinks, coming=late)


def made_moving(case: Case, random: Random) -> Case:
    """The case with some of its sources going on elsewhere, or where they were; often at once."""
    span_s, coming = seconds_of(case.events), dict(case.coming)

    def moves(source: str) -> Iterator[Move]:
        turn_s = coming.get(source, 0.0)
        for _ in range(random.choice((1, 1, 2, 3))):
            at_s = round(turn_s + random.choice((0.0, 1.0, 1.0)) * random.uniform(0.0, span_s), 3)
            away_s = round(random.choice((0.0, random.random(), random.uniform(0.0, 10.0))), 3)
            yield Move(source, at_s, random.choice(case.brokers), away_s)
            turn_s = round(at_s + away_s, 3)

    names = [name for name, _ in case.homes]
    some = random.sample(names, random.randint(1, len(names)))
    return replace(case, moves=tuple(move for name in some for move in moves(name)))


def made_restless(case: Case, random: Random) -> Case:
    """The case with many changes instead of its own, often in little time; they may also fall
    together. As it is where none are found that make sense.
    """
    maker = Maker(random)
    span_s = seconds_of(case.events)

    def changes() -> Iterator[Change]:
        begin_s = random.uniform(0.0, span_s)
        end_s = random.choice((begin_s, begin_s + 0.2, begin_s + 2.0, span_s, span_s))
        times = sorted(random.uniform(begin_s, end_s) for _ in range(random.randint(3, 8)))
        return maker.changes(case.brokers, case.rules, case.events, times)

    return changed(case, changes)


def _skews(random: Random, sources: Sequence[str]) -> Iterator[Fault]:
    """In some cases: each source's clock goes wrong once at most, by seconds or by little."""
    if random.random() < 0.7:
        return
    for source in random.sample(sources, random.randint(1, len(sources))):
        most_s = random.choice((0.01, 1.0, AHEAD_MAX_S))
        at_s, for_s = random.uniform(-LEAD_S / 2, 10), random.uniform(0.1, 60.0)
        value = round(random.uniform(-most_s, most_s), 6)
        yield Fault("skew", round(at_s, 3), round(for_s, 3), value, sources=(source,))
