"""Networks that are torn: links cut, and brokers failing, for so long that trees are built anew.

Links are cut until the network falls apart for a while, brokers without clients crash, and any stop
and go on. Sinks come and go within moments of that; rules come, end and take the place of others
meanwhile, asked for at brokers that never fail. Some brokers are killed and go on with what their
stores have kept, and now and then all are at once. Or a network falls into two parts for so long
that they forget each other, or a broker is away for so long. Where one with clients crashes
(storeless), nothing may differ but for what may be lost with it (simulator.losses).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import networkx as nx

from routing.overlay.config import OverlayConfig
from simulator.faults import FAILURES
from simulator.fuzzing.case import Case, Change, Fault, Sink, used
from simulator.fuzzing.maker import Maker, changed, moment_s, seconds_of
from simulator.fuzzing.nulls import asking_for_nulls
from simulator.fuzzing.world import RuleText

CHANGING, ENDING, REPLACING = 0.5, 0.5, 0.5
"""The shares of torn networks where rules come, where one ends, and where one takes the place of
another."""
STOPPING = 0.5
"""The share of torn networks where brokers may stop and go on."""
DURABLE = 0.7
"""The share of sinks at brokers with stores that are durable."""
STORING, CUT = 0.6, 0.3
"""The share of brokers that stop which are killed, and have a store; and of torn networks where all
are at once."""
SYNC_S = (0.0005, 0.004, 0.05)
"""Seconds that a store takes to keep something."""
VISITED = 0.5
"""The share of torn networks where sinks come and go while links are cut and brokers fail."""
LONG = 0.5
"""The share of torn networks that are so for longer than all events take."""
AWAY = 0.25
"""The share of networks that fall apart where that is a broker that stops."""
PARTING_HEARTBEAT_S, NEAR_MS = 0.2, 5.0
"""Of networks whose parts forget each other, so that they do so while events come; and the longest
delay of their links."""
STORELESS_FORGET_S = 60.0
"""Of networks where a broker with clients fails: longer than that takes. Who had closed at one that
was the root is waited for so long."""
TORN_HEARTBEAT_S = 2.0
"""So short that a long cut is noticed."""
WAYS = 5
"""So often what a source asks for goes through a network at most, pause and plan included."""
TOGETHER_S = 10.0
"""So long after a cut neighbours have surely found each other again."""


def torn(case: Case, random: Random) -> Case:
    """The case torn, with all that happens then. From generators of their own: ``random`` draws the
    cuts, so that these are what they were before.
    """
    seed = case.seed
    failing = with_crashes(made_torn(case, random), Random(f"{seed}/crashes"))
    longer = made_longer(failing, Random(f"{seed}/longer"))
    stopping = with_stops(longer, Random(f"{seed}/stops"))
    storing = with_stores(stopping, Random(f"{seed}/stores"))
    changing = made_changing(storing, Random(f"{seed}/changing"))
    ending = made_ending(changing, Random(f"{seed}/ending"))
    replacing = made_replacing(ending, Random(f"{seed}/replacing"))
    visited = with_visitors(replacing, Random(f"{seed}/visitors"))
    cut = with_power_cut(visited, Random(f"{seed}/power"))
    return with_durables(with_sources_while_whole(cut), Random(f"{seed}/durables"))


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


def made_parting(case: Case, random: Random) -> Case:
    """The case with a network that falls into two parts for so long that they forget each other, or
    with a broker that stops for so long. All that could have a part see something else of the
    others, or later, is left out.
    """
    part = _side_of_a_cut(case, random)
    least_s = OverlayConfig("any", heartbeat_s=PARTING_HEARTBEAT_S).least_forget_s
    forget_s = round(random.uniform(least_s, 2 * least_s), 3)
    half_s = seconds_of(case.events) / 2
    at_s = moment_s(random, half_s)
    for_s = round(forget_s + random.uniform(3.0, 3.0 + half_s), 3)
    apart = tuple((one, other) for one, other, _ in case.links if (one in part) != (other in part))
    fault = Fault("cut", at_s, for_s, None, apart)
    if random.random() < AWAY:
        fault = Fault("stop", at_s, for_s, None, brokers=(random.choice(case.brokers),))
    return replace(
        case,
        links=tuple((one, other, min(delay_ms, NEAR_MS)) for one, other, delay_ms in case.links),
        sinks=tuple(replace(sink, at_s=None, for_s=None) for sink in case.sinks),
        coming=(),
        changes=(),
        ordering="watermark",
        heartbeat_s=PARTING_HEARTBEAT_S,
        forget_s=forget_s,
        message_cost_us=0.0,  # or some heartbeat would always be waiting for a processor
        faults=(fault,),
    )


def _side_of_a_cut(case: Case, random: Random) -> set[str]:
    """One of two parts of the network, both of which stay connected by themselves."""
    graph = nx.Graph()
    for rank, (one, other, _) in enumerate(random.sample(case.links, len(case.links))):
        graph.add_edge(one, other, weight=rank)
    inner = nx.Graph(links := list(nx.minimum_spanning_edges(graph, data=False)))
    one, other = random.choice(links)
    inner.remove_edge(one, other)
    return set(nx.node_connected_component(inner, one))


def with_crashes(case: Case, random: Random) -> Case:
    """The case with some of the brokers that have no clients failing, each for a while. Whoever has
    clients would lose what it has taken over.
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


def with_stops(case: Case, random: Random) -> Case:
    """The case, or it with some brokers that stop for a while, each once, and keep what they know:
    such as have clients, too.
    """
    if random.random() >= STOPPING:
        return case
    crashing = _failing(case, "crash")
    others = [name for name in case.brokers if name not in crashing]
    stops = tuple(
        Fault(
            "stop",
            moment_s(random, seconds_of(case.events)),
            round(random.choice((random.uniform(0.1, 10.0), random.uniform(5.0, 120.0))), 3),
            None,
            brokers=(name,),
        )
        for name in random.sample(others, random.randint(0, min(2, len(others) - 1)))
    )
    return replace(case, faults=(*case.faults, *stops))


def with_stores(case: Case, random: Random) -> Case:
    """The case, with some of the brokers that stop killed instead: they go on with what their
    stores have kept.
    """
    faults = (
        replace(one, kind="restart", value=random.choice(SYNC_S))
        if one.kind == "stop" and random.random() < STORING
        else one
        for one in case.faults
    )
    return replace(case, faults=tuple(faults))


def with_power_cut(case: Case, random: Random) -> Case:
    """The case, or it with all brokers killed at once, in the place of those that fail by
    themselves. Nobody is there meanwhile to be asked for rules.
    """
    if random.random() >= CUT:
        return case
    at_s, for_s = moment_s(random, seconds_of(case.events)), round(random.uniform(0.1, 30.0), 3)
    fault = Fault("restart", at_s, for_s, random.choice(SYNC_S), brokers=case.brokers)
    others = (one for one in case.faults if one.kind not in FAILURES)
    return replace(case, changes=(), faults=(*others, fault))


def with_durables(case: Case, random: Random) -> Case:
    """The case, with some of the sinks durable whose brokers have stores, and that always want the
    same.
    """
    kept = _failing(case, "restart")

    def is_steady(sink: Sink) -> bool:
        return sink.at_s is None and not sink.then and sink.broker in kept

    sinks = (
        replace(one, durable=True) if is_steady(one) and random.random() < DURABLE else one
        for one in case.sinks
    )
    return replace(case, sinks=tuple(sinks))


def with_past(case: Case, random: Random) -> Case:
    """The case with rules that hold from a past instant, of which brokers have kept little but in
    their stores; where all brokers fail, once they are back. None ends again where links are cut:
    who is asked may not have heard of it. As it is by arrival, where rules cannot, where brokers
    lose what came to them, or are closed, and where they drain: a broker that has left takes its
    log with it.
    """
    if case.ordering != "watermark" or case.forget_s is not None or _failing(case, "drain"):
        return case
    steady, begin_s = _steady(case), 0.0
    if not steady:
        ends = (one.at_s + one.for_s for one in case.faults if one.kind in ("cut", *FAILURES))
        steady, begin_s = list(case.brokers), max(ends) + TOGETHER_S
    maker = Maker(random)
    every = [*case.rules, *(rule for change in case.changes for rule in change.rules)]
    are_nullable = any(rule.optional for rule in case.rules)

    def changes() -> list[Change]:
        found = [*maker.past_rules(steady, every, case.events, begin_s)]
        if case.heartbeat_s == TORN_HEARTBEAT_S:
            found = [one for one in found if not one.removed]
        if are_nullable:
            found = [
                replace(one, rules=tuple(asking_for_nulls(random, rule) for rule in one.rules))
                for one in found
            ]
        return _with(case.changes, *found)

    return changed(replace(case, unasked_events_max=random.choice((1, 1, 2))), changes)


def made_changing(case: Case, random: Random) -> Case:
    """The case, or it with rules under new names that come while events do."""
    if random.random() >= CHANGING:
        return case
    maker = Maker(random)
    return changed(case, lambda: maker.additions(_steady(case), case.rules, case.events))


def made_ending(case: Case, random: Random) -> Case:
    """The case, or it with a rule removed while events come."""
    free = _unused(case)
    if not free or random.random() >= ENDING:
        return case

    def changes() -> list[Change]:
        at_s, broker = moment_s(random, seconds_of(case.events)), random.choice(_steady(case))
        return _with(case.changes, Change(at_s, broker, removed=random.choice(free).name))

    return changed(case, changes)


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

    return changed(case, changes)


def with_visitors(case: Case, random: Random) -> Case:
    """The case, or it with sinks that come and go, most of them within moments of when something is
    cut or fails, or is back.
    """
    if random.random() >= VISITED:
        return case
    torn = [one for one in case.faults if one.kind in ("cut", *FAILURES)]
    turns = [time_s for one in torn for time_s in (one.at_s, one.at_s + one.for_s)]
    span_s = seconds_of(case.events)

    def visiting(sink: Sink) -> Sink:
        near_s = random.choice(turns) + random.choice((0.0, random.uniform(-0.3, 3.0)))
        at_s = random.choice((near_s, near_s, random.uniform(0.0, span_s)))
        for_s = random.choice((None, random.uniform(0.05, 1.0), random.uniform(0.1, span_s)))
        return replace(
            sink,
            at_s=round(max(at_s, 0.0), 3),
            for_s=None if for_s is None else round(for_s, 3),
        )

    sinks = (visiting(one) if random.random() < 0.7 else one for one in case.sinks)
    return replace(case, sinks=tuple(sinks))


def _unused(case: Case) -> list[RuleText]:
    """The rules of the beginning whose types no other uses, then or later: until when they held may
    be told by nothing but what was delivered of them (RuleBook.conclude).
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
        forget_s=STORELESS_FORGET_S,
        faults=(*(one for one in case.faults if one.kind != "crash"), crash),
    )


def _steady(case: Case) -> list[str]:
    """The brokers that never fail: one that is back, and cut off from those that know more, would
    deploy rules as if nothing had been published (docs/networks.md); of one that stops, clients
    that ask have no answer.
    """
    failing = _failing(case, *FAILURES)
    return [name for name in case.brokers if name not in failing]


def _failing(case: Case, *kinds: str) -> set[str]:
    return {name for fault in case.faults if fault.kind in kinds for name in fault.brokers}


def _with_clients(case: Case) -> set[str]:
    """The brokers that have clients."""
    return {broker for _, broker in case.homes} | {sink.broker for sink in case.sinks}


def _crash(case: Case, random: Random) -> Fault:
    """A failure while events come, for a while."""
    at_s = moment_s(random, seconds_of(case.events))
    return Fault("crash", at_s, round(random.uniform(0.1, 30.0), 3), None)


def with_sources_while_whole(case: Case) -> Case:
    """The case with all sources there from the first that would come while something is cut or has
    failed, or so shortly before that they are not admitted by then: to a part that is apart nobody
    can say what has been evaluated elsewhere, so that what they bring may be too late there, and is
    not refused.
    """
    admitted_s = WAYS * sum(delay_ms for _, _, delay_ms in case.links) / 1_000.0
    spans = [
        (one.at_s - admitted_s, one.at_s + one.for_s + TOGETHER_S)
        for one in case.faults
        if one.kind in ("cut", *FAILURES)
    ]
    coming = tuple(
        (name, at_s)
        for name, at_s in case.coming
        if not any(begin <= at_s <= end for begin, end in spans)
    )
    return replace(case, coming=coming)
