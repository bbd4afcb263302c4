"""Networks that are looked after: brokers are drained and started again, or start with a backup.

Sources, and durable sinks, of a broker that drains go on at others: nothing is lost, comes twice,
or is late. What was acknowledged after a backup may be lost with the broker that starts with it
(simulator.losses), and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from simulator.fuzzing.case import Case, Fault, Sink
from simulator.fuzzing.maker import moment_s, seconds_of
from simulator.fuzzing.tearing import made_changing, made_storeless

DURABLE = 0.7
"""The share of the sinks that always want the same which are durable, where brokers drain."""
OLDEST_S = 20.0
"""The greatest age of a backup."""


def made_drained(case: Case, random: Random) -> Case:
    """The case with brokers drained, one after another or at any moments, and started again a
    while after each has left. One stays: if all drain at once each waits for another one. No source
    un-advertises its types: if that is asked again in another tree, it may hear that it has done so
    before. Where rules go by the clock none comes late, or after a goodbye: when who evaluated them
    has left nobody knows how far they have come without it.
    """
    span_s = seconds_of(case.events)
    names = random.sample(case.brokers, random.randint(1, len(case.brokers) - 1))
    times = [moment_s(random, span_s) for _ in names]
    if random.random() < 0.5:
        times.sort()
    drains = tuple(
        Fault("drain", at_s, _while_s(random), None, brokers=(name,))
        for name, at_s in zip(names, times, strict=True)
    )

    def kept(sink: Sink) -> Sink:
        is_steady = sink.at_s is None and sink.for_s is None and not sink.then
        return replace(sink, durable=True) if is_steady and random.random() < DURABLE else sink

    sinks, faults = tuple(map(kept, case.sinks)), (*case.faults, *drains)
    moves = tuple(move for move in case.moves if move.broker is not None)
    made = replace(case, faults=faults, sinks=sinks, moves=moves, changes=())
    if any("Timer(" in str(rule) for rule in case.rules):
        made = replace(made, coming=(), moves=tuple(one for one in moves if not one.says_goodbye))
    return made_changing(made, random)


def made_set_back(case: Case, random: Random) -> Case:
    """The case with a broker that is killed and starts with a backup, and no other that fails."""
    made = made_storeless(case, random)
    older_s = round(random.choice((random.random(), random.uniform(0.0, OLDEST_S))), 3)
    faults = (
        replace(one, kind="backup", value=older_s) if one.kind == "crash" else one
        for one in made.faults
    )
    return replace(made, faults=tuple(faults))


def _while_s(random: Random) -> float:
    return round(random.choice((random.uniform(0.1, 1.0), random.uniform(0.1, 20.0))), 3)
