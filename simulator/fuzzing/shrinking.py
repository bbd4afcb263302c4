"""Smaller cases that still fail: one thing left out after another, big things first.

Every reduction leaves less, so there is an end; TRIES_MAX sees to it that it comes soon.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from simulator.fuzzing.case import Case
from simulator.fuzzing.world import RuleText

TRIES_MAX = 1_000
PLAIN = ("1", "true", '"ab"')
"""The values to which one in ``where`` is reduced."""

_T = TypeVar("_T")


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case for which ``fails`` is true, as it is for this one."""
    return reduced(case, _sound, fails, TRIES_MAX)


def reduced(
    case: _T, smaller_than: Callable[[_T], Iterator[_T]], fails: Callable[[_T], bool], tries: int
) -> _T:
    """The case made smaller for as long as it fails; ``tries`` smaller ones are tried at most."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in itertools.islice(smaller_than(case), tries):
            tries -= 1
            if fails(smaller):
                case, is_smaller = smaller, True
                break
    return case


def _sound(case: Case) -> Iterator[Case]:
    for smaller in smaller_cases(case):
        if smaller.is_sound:
            yield smaller


def smaller_cases(case: Case) -> Iterator[Case]:
    """The case with one thing less."""
    for faults in without_some(case.faults):
        yield replace(case, faults=faults)
    if case.message_cost_us:
        yield replace(case, message_cost_us=0.0)
    if case.source_lead_max_s is not None:
        yield replace(case, source_lead_max_s=None)
    if case.publish_credit is not None:
        yield replace(case, publish_credit=None)
    if case.delivery_events_max is not None:
        yield replace(case, delivery_events_max=None)
    if case.unasked_events_max is not None:
        yield replace(case, unasked_events_max=None)
    if case.buffer_max is not None:
        yield replace(case, buffer_max=None)
    elif case.window_max is not None:  # which buffers have to hold
        yield replace(case, window_max=None)
    for changes in without_some(case.changes):
        yield replace(case, changes=changes)
    for coming in without_some(case.coming):
        yield replace(case, coming=coming)
    for moves in without_some(case.moves):
        yield replace(case, moves=moves)
    for place, sink in enumerate(case.sinks):
        for then in without_some(sink.then):
            yield replace(case, sinks=_put(case.sinks, place, replace(sink, then=then)))
        if sink.for_s is not None:
            yield replace(case, sinks=_put(case.sinks, place, replace(sink, for_s=None)))
        elif sink.at_s is not None:
            yield replace(case, sinks=_put(case.sinks, place, replace(sink, at_s=None)))
    if case.ordering != "watermark":
        yield replace(case, ordering="watermark")
    for sinks in without_some(case.sinks):
        if sinks:
            yield replace(case, sinks=sinks)
    for rules in without_some(case.rules):
        yield replace(case, rules=rules)
    for broker in case.brokers:
        yield from _without_broker(case, broker)
    for links in without_some(case.links):
        if _joins_all(case.brokers, links):
            kept = {link[:2] for link in links}
            faults = tuple(
                replace(fault, links=tuple(pair for pair in fault.links if pair in kept))
                for fault in case.faults
                if not fault.links or kept & set(fault.links)
            )
            yield replace(case, links=links, faults=faults)
    for events in without_some(case.events):
        yield _with_events(case, events)
    for place, sink in enumerate(case.sinks):
        for filters in without_some(sink.filters):
            if filters:
                changed = replace(sink, filters=filters)
                yield replace(case, sinks=_put(case.sinks, place, changed))
    for place, rule in enumerate(case.rules):
        for smaller in smaller_rules(rule):
            yield replace(case, rules=_put(case.rules, place, smaller))
    for place, change in enumerate(case.changes):
        if change.since_s is not None:
            now = replace(change, since_s=None)
            yield replace(case, changes=_put(case.changes, place, now))
        for rule in change.rules:
            for smaller in smaller_rules(rule):
                fewer = replace(change, rules=(smaller,))
                yield replace(case, changes=_put(case.changes, place, fewer))


def _with_events(case: Case, events: tuple[object, ...]) -> Case:
    kept = tuple(event for event in case.events if event in events)
    sources = {event.source for event in kept}
    faults = tuple(
        replace(fault, sources=tuple(name for name in fault.sources if name in sources))
        for fault in case.faults
        if not fault.sources or sources.intersection(fault.sources)
    )
    return replace(
        case,
        events=kept,
        faults=faults,
        homes=tuple(home for home in case.homes if home[0] in sources),
        coming=tuple(one for one in case.coming if one[0] in sources),
        moves=tuple(one for one in case.moves if one.source in sources),
    )


def _without_broker(case: Case, broker: str) -> Iterator[Case]:
    """Its neighbours stay joined by way of one of them, to which its clients move."""
    beside = [pair for pair in case.links if broker in pair[:2]]
    others = [link for link in case.links if broker not in link[:2]]
    if not beside:
        return
    near = [one if two == broker else two for one, two, _ in beside]
    heir = near[0]
    joined = {link[:2] for link in others}
    for name in near[1:]:
        one, two = sorted((heir, name), key=case.brokers.index)
        if (one, two) not in joined:
            others.append((one, two, 5.0))
    faults = tuple(
        replace(fault, links=tuple(pair for pair in fault.links if broker not in pair))
        for fault in case.faults
        if not fault.links or any(broker not in pair for pair in fault.links)
        # Only a broker without clients may fail.
        if not {broker, heir}.intersection(fault.brokers)
    )
    yield replace(
        case,
        brokers=tuple(name for name in case.brokers if name != broker),
        links=tuple(others),
        homes=tuple((name, heir if at == broker else at) for name, at in case.homes),
        sinks=tuple(
            replace(sink, broker=heir) if sink.broker == broker else sink for sink in case.sinks
        ),
        faults=faults,
        moves=tuple(
            replace(move, broker=heir) if move.broker == broker else move for move in case.moves
        ),
        changes=tuple(
            replace(change, broker=heir) if change.broker == broker else change
            for change in case.changes
        ),
    )


def _joins_all(brokers: tuple[str, ...], links: tuple[tuple[str, str, float], ...]) -> bool:
    reached, news = set(), [brokers[0]]
    while news:
        name = news.pop()
        if name not in reached:
            reached.add(name)
            news += [two if one == name else one for one, two, _ in links if name in (one, two)]
    return len(reached) == len(brokers)


def smaller_rules(rule: RuleText) -> Iterator[RuleText]:
    """The rule with one thing less."""
    for place in range(1, len(rule.pieces)):
        yield replace(rule, pieces=rule.pieces[:place] + rule.pieces[place + 1 :])
    for place, piece in enumerate(rule.pieces):
        for conditions in without_some(piece.conditions):
            changed = replace(piece, conditions=conditions)
            yield replace(rule, pieces=_put(rule.pieces, place, changed))
    for names in without_some(rule.consuming):
        yield replace(rule, consuming=names)
    for place, assignment in enumerate(rule.where):
        name, old = assignment.split(" = ", 1)
        for value in () if old in PLAIN else PLAIN:
            yield replace(rule, where=_put(rule.where, place, f"{name} = {value}"))


def _put(items: tuple[_T, ...], place: int, item: _T) -> tuple[_T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def without_some(items: tuple[_T, ...]) -> Iterator[tuple[_T, ...]]:
    """Half of the items, then all but one of them."""
    middle = len(items) // 2
    if middle > 1:
        yield items[:middle]
        yield items[middle:]
    for place in range(len(items)):
        yield items[:place] + items[place + 1 :]
