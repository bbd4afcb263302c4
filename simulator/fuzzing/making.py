"""Random scenarios: rules, events, an overlay, who is where, what changes, and what goes wrong.

Faults are such as the protocols promise to survive: links lose, repeat, reorder and delay messages,
are cut for less time than heartbeats take to notice, brokers are slow, and clocks of sources go
wrong. Nothing is lost then, so every sink must get exactly what the oracle says. Rules are
deployed, replaced and removed in mid-stream, by whichever broker, in restless networks often before
the change before is through; some networks order by arrival. In open networks sources and sinks
come in mid-stream, and sinks go. In moving ones sources close, and go on at other brokers under
their names. In fickle ones sinks turn to other filters, and sources un-advertise their types for a
while. In narrow ones sources may not run far ahead of one another, and little fits on a link; in
some others sources lose their links, and are closed. Some networks are torn, or fall into parts
that go on without each other (tearing); of some brokers are drained, or start with a backup
(upkeep). In some every attribute is optional, and often null; in
some brokers take a checkpoint of every few events, and let go of what nobody needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from simulator.fuzzing.case import LEAD_S, Case, Change, Fault, Move, Sink, Then
from simulator.fuzzing.maker import FILTERS, Maker, changed, moment_s, seconds_of
from simulator.fuzzing.nulls import ASKING, asking_for_nulls, with_nulls
from simulator.fuzzing.tearing import (
    PARTING_HEARTBEAT_S,
    made_parting,
    made_storeless,
    torn,
    with_past,
)
from simulator.fuzzing.upkeep import made_drained, made_set_back

AHEAD_MAX_S = 30.0
"""By how much sources' clocks are wrong at most."""
RESTLESS = 0.1
"""The share of networks whose rules change often."""
OPEN = 0.25
"""The share of networks where clients come in mid-stream, and sinks go."""
MOVING = 0.25
"""The share of networks that are not torn where sources go on at other brokers."""
FICKLE = 0.25
"""The share of networks where sinks turn to other filters, and, if they are not torn, sources rest.
"""
TORN = 0.1
"""The share of networks that are torn. They do not order by arrival: events may be lost then."""
NARROW = 0.1
"""The share of networks where sources may not run far ahead of others and get little credit, and
where links soon have all the messages that fit on them."""
LOST = 0.05
"""The share of networks that are not torn where sources lose their links, and rules go on without
those that are lost for long."""
LOST_HEARTBEAT_S = 1.0
"""Of these: so often brokers look for them."""
STORELESS = 0.03
"""The share of networks in which a broker with clients fails. Rules do not change there, nor is
order by arrival."""

SET_BACK = 0.03
"""The share of networks in which a broker starts with a backup, as above."""
DRAINED = 0.08
"""The share of the other networks that are not torn whose brokers are drained. They do not order
by arrival: events that are under way may be lost then."""
NULLABLE = 0.2
"""The share of networks where every attribute is optional."""
PARTING = 0.04
"""The share of networks whose parts forget each other, and go on so."""
PAST = 0.25
"""The share of networks that do not order by arrival, nor fall into parts, in which rules come that
hold from a past instant."""
FORGETFUL = 0.5
"""The share of networks whose brokers let go early of what nobody needs; by arrival they keep
nothing."""


def random_case(seed: int, strategy: str) -> Case:
    """The case of a seed; of two strategies it is the same but for them."""
    random = Random(f"{seed}/narrow")
    made = _random_case(seed, strategy)
    if random.random() < NARROW and made.heartbeat_s != PARTING_HEARTBEAT_S:
        made = made_narrow(made, random)
    random = Random(f"{seed}/nulls")
    if random.random() < NULLABLE:
        made = made_nullable(made, random)
    random = Random(f"{seed}/forgetful")
    if random.random() < FORGETFUL and made.ordering == "watermark":
        made = replace(made, unasked_events_max=random.choice((1, 2, 4, 8)))
    random = Random(f"{seed}/past")
    return with_past(made, random) if random.random() < PAST else made


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
                made = torn(opened, random)
                random = Random(f"{seed}/turning")
                return made_turning(made, random) if random.random() < FICKLE else made
            random = Random(f"{seed}/storeless")
            if random.random() < STORELESS:
                return made_storeless(skewed, random)
            random = Random(f"{seed}/backup")
            if random.random() < SET_BACK:
                return made_set_back(skewed, random)
            random = Random(f"{seed}/parting")
            if random.random() < PARTING:
                made = made_parting(case, random)
                return made_turning(made, random) if random.random() < FICKLE else made
            random = Random(f"{seed}/moving")
            moving = made_moving(opened, random) if random.random() < MOVING else opened
            random = Random(f"{seed}/fickle")
            fickle = made_fickle(moving, random) if random.random() < FICKLE else moving
            random = Random(f"{seed}/restless")
            restless = made_restless(fickle, random) if random.random() < RESTLESS else fickle
            random = Random(f"{seed}/drained")
            if random.random() < DRAINED and restless.ordering == "watermark":
                return made_drained(restless, random)
            random = Random(f"{seed}/lost")
            is_lost = random.random() < LOST and restless.ordering == "watermark"
            return made_lost(restless, random) if is_lost else restless
    raise AssertionError


def made_narrow(case: Case, random: Random) -> Case:
    """The case with sources that wait for one another, and for credit; with few messages under way
    on a link or waiting for it, and few events in a delivery.
    """
    lead_max_s = round(random.choice((0.3, 1.0, 5.0)) * random.uniform(0.5, 2.0), 3)
    return replace(
        case,
        source_lead_max_s=lead_max_s,
        publish_credit=random.randint(1, 8),
        window_max=random.choice((4, 8, 16)),
        delivery_events_max=random.choice((1, 2, 5)),
        buffer_max=random.choice((24, 48, 96, 400)),
    )


def made_nullable(case: Case, random: Random) -> Case:
    """The case with optional attributes; what is asked of sinks' events is often whether they are
    null.
    """
    said = {text: asked for text, asked in ASKING.items() if random.random() < 0.5}

    def asking(filters: Sequence[str]) -> tuple[str, ...]:
        return tuple(said.get(text, text) for text in filters)

    return replace(
        case,
        rules=tuple(asking_for_nulls(random, rule) for rule in case.rules),
        events=with_nulls(random, case.events),
        changes=tuple(
            replace(one, rules=tuple(asking_for_nulls(random, rule) for rule in one.rules))
            for one in case.changes
        ),
        sinks=tuple(
            replace(
                sink,
                filters=asking(sink.filters),
                then=tuple(
                    replace(
                        one, subscribe=asking(one.subscribe), unsubscribe=asking(one.unsubscribe)
                    )
                    for one in sink.then
                ),
            )
            for sink in case.sinks
        ),
    )


def made_lost(case: Case, random: Random) -> Case:
    """The case with sources that lose their links for a while, and brokers that close sources which
    are lost for some seconds.
    """
    span_s, names = seconds_of(case.events), [name for name, _ in case.homes]
    lost = tuple(
        Fault(
            "lost",
            round(random.uniform(-3.0, span_s), 3),
            round(random.uniform(0.5, 20.0), 3),
            None,
            sources=(name,),
        )
        for name in random.sample(names, random.randint(1, len(names)))
    )
    return replace(
        case,
        faults=(*case.faults, *lost),
        heartbeat_s=LOST_HEARTBEAT_S,
        source_silence_max_s=round(random.uniform(1.5, 8.0), 3),
    )


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
    """The case with some of its sources going on elsewhere, or where they were; often at once, and
    often without a word. ``random`` draws what it drew before there was that.
    """
    span_s, coming = seconds_of(case.events), dict(case.coming)
    wordless = Random(f"{case.seed}/wordless")

    def moves(source: str) -> Iterator[Move]:
        turn_s = coming.get(source, 0.0)
        for _ in range(random.choice((1, 1, 2, 3))):
            at_s = round(turn_s + random.choice((0.0, 1.0, 1.0)) * random.uniform(0.0, span_s), 3)
            away_s = round(random.choice((0.0, random.random(), random.uniform(0.0, 10.0))), 3)
            broker, is_told = random.choice(case.brokers), wordless.random() < 0.5
            yield Move(source, at_s, broker, away_s, is_told)
            turn_s = round(at_s + away_s, 3)

    names = [name for name, _ in case.homes]
    some = random.sample(names, random.randint(1, len(names)))
    return replace(case, moves=tuple(move for name in some for move in moves(name)))


def made_turning(case: Case, random: Random) -> Case:
    """The case with some sinks that turn to other filters, and back, often at once."""
    span_s = seconds_of(case.events)
    sinks = tuple(
        replace(sink, then=tuple(_turns(sink, random, span_s))) if random.random() < 0.7 else sink
        for sink in case.sinks
    )
    return replace(case, sinks=sinks)


def made_fickle(case: Case, random: Random) -> Case:
    """The same; and some of the sources that stay where they are rest."""
    case, span_s = made_turning(case, random), seconds_of(case.events)
    moving, coming = {one.source for one in case.moves}, dict(case.coming)
    staying = [name for name, _ in case.homes if name not in moving]
    some = random.sample(staying, random.randint(0, len(staying)))
    rests = tuple(
        Move(name, round(coming.get(name, 0.0) + at_s, 3), None, away_s)
        for name in some
        for at_s, away_s in _rests(random, span_s)
    )
    return replace(case, moves=(*case.moves, *rests))


def _turns(sink: Sink, random: Random, span_s: float) -> Iterator[Then]:
    wanted, begin_s = list(sink.filters), sink.at_s or 0.0
    end_s = span_s if sink.for_s is None else min(span_s, begin_s + sink.for_s)
    apart_s = random.choice((0.05, 1.0, max(0.0, end_s - begin_s)))
    first_s = random.uniform(begin_s, max(begin_s, end_s - apart_s))
    last_s = max(first_s, min(end_s, first_s + apart_s))
    for at_s in sorted(random.uniform(first_s, last_s) for _ in range(random.randint(1, 4))):
        unwanted = random.sample(wanted, random.randint(0, len(wanted)))
        kept = [one for one in wanted if one not in unwanted]
        more = random.sample([*FILTERS], random.randint(0, 3))
        wanted = kept + [one for one in more if one not in kept]
        new = tuple(one for one in wanted if one not in kept)
        yield Then(max(begin_s, round(at_s, 3)), new, tuple(unwanted))


def _rests(random: Random, span_s: float) -> Iterator[tuple[float, float]]:
    turn_s = 0.0
    for _ in range(random.choice((1, 1, 2, 3))):
        at_s = round(turn_s + random.uniform(0.0, span_s), 3)
        away_s = round(random.choice((0.0, random.random(), random.uniform(0.0, 10.0))), 3)
        yield at_s, away_s
        turn_s = round(at_s + away_s, 3)


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
