"""Random scenarios: rules, events, an overlay, who is where, what changes, and what goes wrong.

Faults are such as the protocols promise to survive: links lose, repeat, reorder and delay
messages, are cut for less time than heartbeats take to notice, brokers are slow, and clocks of
sources go wrong. Nothing is lost then, so every sink must get exactly what the oracle says. Rules
are deployed, replaced and removed in mid-stream, by whichever broker, in restless networks often
before the change before is through; some networks order by arrival. In open networks sources and
sinks come in mid-stream, and sinks go. In torn networks links are cut for so long that trees are
built anew, or that the network falls apart for a while, and brokers without clients fail. Where one
with clients does, nothing may differ but for what may be lost with it (simulator.losses).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from simulator.fuzzing.case import LEAD_S, Case, Change, Fault, used
from simulator.fuzzing.maker import Maker, seconds_of
from simulator.fuzzing.world import RuleText

AHEAD_MAX_S = 30.0
"""By how much sources' clocks are wrong at most."""
RESTLESS = 0.1
"""The share of networks whose rules change often."""
OPEN = 0.25
"""The share of networks where clients come in mid-stream, and sinks go."""
TORN = 0.1
"""The share of networks that are torn. They do not order by arrival: events may be lost then."""
CHANGING, ENDING, REPLACING = 0.5, 0.5, 0.5
"""The shares of torn networks where rules come, where one ends, and where one takes the place of
another."""
LONG = 0.5
"""The share of torn networks that are so for longer than all events take."""
STORELESS = 0.03
"""The share of networks in which a broker with clients fails. As in torn ones, rules do not change,
nor do they order by arrival."""
TORN_HEARTBEAT_S = 2.0
"""So short that a long cut is noticed."""
TOGETHER_S = 10.0
"""So long after a cut neighbours have surely found each other again."""
ATTEMPTS_MAX = 50
"""At many changes in a row that leave no rule waiting for a type."""


def random_case(seed: int, strategy: str) -> Case:
    """The case of a seed; of two strategies it is the same but for them."""
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
                torn = with_crashes(made_torn(opened, random), Random(f"{seed}/crashes"))
                longer = made_longer(torn, Random(f"{seed}/longer"))
                changing = made_changing(longer, Random(f"{seed}/changing"))
                ending = made_ending(changing, Random(f"{seed}/ending"))
                replacing = made_replacing(ending, Random(f"{seed}/replacing"))
                return with_sources_while_whole(replacing)
            random = Random(f"{seed}/storeless")
            if random.random() < STORELESS:
                return made_storeless(skewed, random)
            random = Random(f"{seed}/restless")
            return made_restless(opened, random) if random.random() < RESTLESS else opened
    raise AssertionError


def made_torn(case: Case, random: Random) -> Case:
    """The case with some links cut for seconds, so that neighbours seem lost. All sinks are there
    from the first: what is sent again may be from before a subscription, and come behind the rest.
    """
    span_s = seconds_of(case.events)
    some = random.sample(case.links, random.randint(1, min(4, len(case.links))))
    cuts = [
        Fault(
            "cut",
            round(random.uniform(0.0, span_s), 3),
            round(random.uniform(0.2, 40.0), 3),
            None,
            ((one, other),),
        )
        for one, other, _ in some
    ]
    others = [fault for fault in case.faults if fault.kind not in ("cut", "crash")]
    return replace(
        case,
        sinks=tuple(replace(sink, at_s=None, for_s=None) for sink in case.sinks),
        changes=(),
        ordering="watermark",
        heartbeat_s=TORN_HEARTBEAT_S,
        faults=(*others, *cuts),
    )


def with_crashes(case: Case, random: Random) -> Case:
    """The case with some of the brokers that have no clients failing, each for a while. Whoever has
    clients loses what it has taken over, since there is no store.
    """
    idle = [name for name in case.brokers if name not in _with_clients(case)]
    crashes = tuple(
        replace(_crash(case, random), brokers=(name,))
        for name in random.sample(idle, random.randint(0, min(2, len(idle))))
    )
    return replace(case, faults=(*case.faults, *crashes))


def made_longer(case: Case, random: Random) -> Case:
    """The case, or it with cuts and failures that last for long."""
    if random.random() >= LONG:
        return case
    faults = (
        replace(one, for_s=round(random.uniform(5.0, 120.0), 3))
        if one.kind in ("cut", "crash")
        else one
        for one in case.faults
    )
    return replace(case, faults=tuple(faults))


def made_changing(case: Case, random: Random) -> Case:
    """The case, or it with rules under new names that come while events do."""
    if random.random() >= CHANGING:
        return case
    maker = Maker(random)
    return _changed(case, lambda: maker.additions(_steady(case), case.rules, case.events))


def made_ending(case: Case, random: Random) -> Case:
    """The case, or it with a rule removed while events come."""
    free = _unused(case)
    if not free or random.random() >= ENDING:
        return case

    def changes() -> list[Change]:
        at_s, broker = _moment_s(random, seconds_of(case.events)), random.choice(_steady(case))
        return _with(case.changes, Change(at_s, broker, removed=random.choice(free).name))

    return _changed(case, changes)


def made_replacing(case: Case, random: Random) -> Case:
    """The case, or it with a rule in the place of one that is not removed."""
    gone = {change.removed for change in case.changes}
    free = [rule for rule in _unused(case) if rule.name not in gone]
    if not free or random.random() >= REPLACING:
        return case
    maker = Maker(random)

    def changes() -> list[Change]:
        old = random.choice(free)
        others = [rule for rule in case.rules if rule != old]
        change = maker.replacement(_steady(case), old.name, others, case.events)
        return _with(case.changes, change)

    return _changed(case, changes)


def _unused(case: Case) -> list[RuleText]:
    """The rules of the beginning whose types no other uses, then or later: until when they held may
    be told by nothing but what was delivered of them (simulator.changes, Law 3).
    """
    coming = [rule for change in case.changes for rule in change.rules]
    every = [*case.rules, *coming]
    return [one for one in case.rules if one.defines not in used([o for o in every if o != one])]


def _with(changes: Iterable[Change], *more: Change) -> list[Change]:
    return sorted((*changes, *more), key=lambda change: change.at_s)


def made_storeless(case: Case, random: Random) -> Case:
    """The case with a broker that has clients failing, and no other: rules are kept by others."""
    crash = _crash(case, random)
    crash = replace(crash, brokers=(random.choice(sorted(_with_clients(case))),))
    return replace(
        case,
        changes=(),
        ordering="watermark",
        heartbeat_s=TORN_HEARTBEAT_S,
        faults=(*(one for one in case.faults if one.kind != "crash"), crash),
    )


def _steady(case: Case) -> list[str]:
    """The brokers that never fail: one that is back, and cut off from those that know more, would
    deploy rules as if nothing had been published (docs/networks.md).
    """
    failing = {name for fault in case.faults if fault.kind == "crash" for name in fault.brokers}
    return [name for name in case.brokers if name not in failing]


def _with_clients(case: Case) -> set[str]:
    """The brokers that have clients."""
    return {broker for _, broker in case.homes} | {sink.broker for sink in case.sinks}


def _crash(case: Case, random: Random) -> Fault:
    """A failure while events come, for a while."""
    at_s = round(random.uniform(0.0, seconds_of(case.events)), 3)
    return Fault("crash", at_s, round(random.uniform(0.1, 30.0), 3), None)


def with_sources_while_whole(case: Case) -> Case:
    """The case with all sources there from the first that would come while something is cut or has
    failed: to a part that is apart nobody can say what has been evaluated elsewhere, so that what
    they bring may be too late there, and is not refused.
    """
    spans = [
        (one.at_s, one.at_s + one.for_s + TOGETHER_S)
        for one in case.faults
        if one.kind in ("cut", "crash")
    ]
    coming = tuple(
        (name, at_s)
        for name, at_s in case.coming
        if not any(begin <= at_s <= end for begin, end in spans)
    )
    return replace(case, coming=coming)


def made_open(case: Case, random: Random) -> Case:
    """The case with some of its sources and sinks coming in mid-stream, and some sinks going."""
    span_s = seconds_of(case.events)
    names = [name for name, _ in case.homes]
    coming = random.sample(names, random.randint(0, len(names)))
    sinks = tuple(
        replace(
            sink,
            at_s=_moment_s(random, span_s),
            for_s=random.choice((None, None, round(random.uniform(0.1, span_s), 3))),
        )
        if random.random() < 0.5
        else sink
        for sink in case.sinks
    )
    late = tuple((name, _moment_s(random, span_s)) for name in coming)
    return replace(case, sinks=sinks, coming=late)


def _moment_s(random: Random, span_s: float) -> float:
    return round(random.uniform(0.0, span_s), 3)


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

    return _changed(case, changes)


def _changed(case: Case, make: Callable[[], Iterable[Change]]) -> Case:
    """The case with other changes, the first that make sense; as it is, where none do."""
    for _ in range(ATTEMPTS_MAX):
        changed = replace(case, changes=tuple(make()))
        if changed.is_sound:
            return changed
    return case


def _skews(random: Random, sources: Sequence[str]) -> Iterator[Fault]:
    """In some cases: each source's clock goes wrong once at most, by seconds or by little."""
    if random.random() < 0.7:
        return
    for source in random.sample(sources, random.randint(1, len(sources))):
        most_s = random.choice((0.01, 1.0, AHEAD_MAX_S))
        at_s, for_s = random.uniform(-LEAD_S / 2, 10), random.uniform(0.1, 60.0)
        value = round(random.uniform(-most_s, most_s), 6)
        yield Fault("skew", round(at_s, 3), round(for_s, 3), value, sources=(source,))
