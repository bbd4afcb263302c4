"""Recorded events with what rules made of them: the ground on which ``explain`` stands."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import TypeAlias

import numpy as np

from matcher.errors import EventError
from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Event, EventBatch, EventType
from matcher.spelling import QUOTED, quoted, unquoted
from matcher.times import time_text
from rules.checking.dependencies import arrange
from rules.engine import Detections, make
from rules.engine.conflict import Conflict, refuse
from rules.engine.oracle.events import COMPOSITE, Occurrence, occurrences
from rules.engine.order import timers
from rules.errors import Problem, RuleErrors, did_you_mean
from rules.pattern import Rule, RuleSet
from rules.zones import zone_of

Since: TypeAlias = int | Mapping[str, int] | None
"""From when rules hold (S15): all of them from one instant, or each, by name, from its own."""
Name: TypeAlias = tuple[str, str]
"""An event's source and printed id."""

TICKS_MAX = 65_536
"""So many timer events are made at a time."""
_TICK = re.compile(r"(?:timer#)?timer/(-?\d{1,12})", re.ASCII)

_FULL = re.compile(f"({QUOTED})#(.*)", re.DOTALL)
"""An event's full name with the source in backquotes."""

NEAR_MAX = 2_000
"""So many ids are looked at for one that may have been meant."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A composite event and who caused it, terminator first."""

    event: Event
    causes: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in the order of (time, E4), and their times beside them."""

    events: Sequence[Occurrence]
    times: Sequence[int]

    @classmethod
    def of(cls, events: Iterable[Occurrence]) -> Timeline:
        """The events in their order."""
        return cls.ordered(sorted(events, key=lambda event: event.moment))

    @classmethod
    def ordered(cls, events: Sequence[Occurrence]) -> Timeline:
        """Events that are in order already."""
        return cls(events, [event.time for event in events])

    def bounds(self, start: int, end: int) -> tuple[int, int]:
        """The places, from and up to, of the events from ``start`` to ``end``, both included."""
        return bisect_left(self.times, start), bisect_right(self.times, end)

    def between(self, start: int, end: int) -> Sequence[Occurrence]:
        """The events from ``start`` to ``end``, both included."""
        first, last = self.bounds(start, end)
        return self.events[first:last]


class Recording:
    """Events, and the rules that were run over them.

    ``batches`` in any order; ``since`` says from when the rules hold. ``engine`` is a name of
    ``rules.engine.ENGINES``. Raises what the engine raises, and what ``on_conflict`` does where an
    id repeats with other contents: by default, EventError. ``duplicates`` and ``conflicts`` are as
    the engine has them.

    The rules are run over it first; composite events and, from their causes, what was consumed
    (S11) are read off the result. An event is one :class:`Occurrence`, made when its type is first
    asked for and then kept, so that events are told apart by identity, as the oracle does.
    """

    def __init__(
        self,
        rules: RuleSet,
        batches: Iterable[EventBatch],
        *,
        since: Since = None,
        engine: str = "auto",
        on_conflict: Callable[[Conflict], None] = refuse,
    ) -> None:
        self.duplicates = self.conflicts = 0
        self.rules = {rule.name: rule for rule in arrange(rules.rules).rules}
        self._since = since
        self._batches, self._detections = self._detect(rules, batches, engine, on_conflict)
        self._timelines: dict[str, Timeline] = {}
        self._firings: dict[str, list[Firing]] | None = None

    # --- rules -------------------------------------------------------------------------------

    def rule(self, name: str) -> Rule:
        """The rule of a name; RuleErrors when there is none."""
        return rule_named(name, self.rules.values())

    def since(self, rule: Rule) -> int:
        """The first instant that a rule sees (S15)."""
        if isinstance(self._since, Mapping):
            return self._since.get(rule.name, TIME_MIN)
        return TIME_MIN if self._since is None else self._since

    def firings(self, rule: Rule) -> Sequence[Firing]:
        """The composite events of a rule, in order."""
        if self._firings is None:
            self._firings = {}
            for batch in self._detections.batches:
                for event, causes in zip(batch.events(), _causes(batch), strict=True):
                    name = event.source.removeprefix(RULE_SOURCE)
                    self._firings.setdefault(name, []).append(Firing(event, causes))
            for found in self._firings.values():
                found.sort(key=lambda firing: firing.event.time)
        return self._firings.get(rule.name, ())

    # --- events ------------------------------------------------------------------------------

    def timeline(self, type_: EventType) -> Timeline:
        """All events of a type, primitive and composite, but for the ticks of Timer."""
        if type_.name not in self._timelines:
            self._timelines[type_.name] = Timeline.of(self._occurrences(type_.name))
        return self._timelines[type_.name]

    def terminators(self, rule: Rule) -> Iterator[Occurrence]:
        """The events that may be a rule's terminator, in order; ticks are made on the way."""
        if len(rule.opening) > 1:
            timelines = [self.timeline(type_).events for type_ in dict.fromkeys(rule.opening)]
            yield from merge(*timelines, key=lambda event: event.moment)
            return
        if not timers.uses_timer(rule):
            yield from self.timeline(rule.terminator).events
            return
        first, last = self._span(rule)
        step = TICKS_MAX * timers.period(rule) * MICROSECONDS
        for start in range(first, last + 1, step):
            times = timers.ticks(rule, start, min(start + step, last + 1))
            yield from occurrences(timers.batch(times, zone_of(rule)), ticks=True)

    def find(self, text: str, rule: Rule) -> Occurrence:
        """The event of an ``id`` or ``source#id``; EventError when there is none, or several.

        Of several, the one that may be the rule's terminator is meant. A source in backquotes ends
        there, whatever else has a ``#``.
        """
        if timers.uses_timer(rule) and (tick := self._tick(text, rule)) is not None:
            return tick
        named = [(batch, place) for batch in self._all() for place in _places(batch, text)]
        found = [self._occurrence(batch, place) for batch, place in named]
        found = [event for event in found if f"{event.source}#{event.id}" == text] or found
        if len(found) > 1:
            found = [event for event in found if event.type in rule.opening] or found
        if len(found) > 1:
            names = ", ".join(map(_full_name, found[:5]))
            raise EventError(f"{len(found)} events have the id {text}, say which: {names}")
        if not found:
            raise EventError(f"no event has the id {text}{self._hint(text)}")
        return found[0]

    def row(self, event: Occurrence) -> Event:
        """An event to be shown."""
        data = event.type.data(event.values)
        return Event(event.type.name, event.time, event.source, event.id, data, event.sequence)

    def _all(self) -> Sequence[EventBatch]:
        return (*self._batches, *self._detections.batches)

    def _occurrences(self, name: str) -> Iterator[Occurrence]:
        for batch in self._batches:
            if batch.type.name == name:
                yield from occurrences(batch)
        # The common order of the detections is that of E4, so a place in it will do for an order.
        places = np.argsort(self._detections.order)
        first = 0
        for batch in self._detections.batches:
            if batch.type.name == name:
                ranks = places[first : first + len(batch)].tolist()
                for event, rank in zip(occurrences(batch), ranks, strict=True):
                    yield replace(event, order=(COMPOSITE, rank))
            first += len(batch)

    def _occurrence(self, batch: EventBatch, place: int) -> Occurrence:
        event = batch.event(place)
        return next(
            one
            for one in self.timeline(batch.type).between(event.time, event.time)
            if (one.source, one.id) == (event.source, event.id)
        )

    def _span(self, rule: Rule) -> tuple[int, int]:
        """The least and the greatest time at which a rule's Timer may tick (S13)."""
        times = [batch.time for batch in self._batches if len(batch)]
        if not times:
            return 0, -1
        since = self.since(rule)
        least = min(int(column.min()) for column in times) if since == TIME_MIN else since
        return least, max(int(column.max()) for column in times)

    def _tick(self, text: str, rule: Rule) -> Occurrence | None:
        found = _TICK.fullmatch(text)
        if found is None:
            return None
        time = int(found[1]) * MICROSECONDS
        first, last = self._span(rule)
        if not first <= time <= last or len(timers.ticks(rule, time, time + 1)) == 0:
            raise EventError(f"the Timer of rule {rule.name} does not tick at {time_text(time)}")
        times = np.array([time], np.int64)
        return next(occurrences(timers.batch(times, zone_of(rule)), ticks=True))

    def _hint(self, text: str) -> str:
        """The event that may have been meant, or how an id looks here."""
        printed = (identity for batch in self._all() for identity in batch.ids.printed())
        near = did_you_mean(text, islice(printed, NEAR_MAX))
        example = next((batch.event(0) for batch in self._all() if len(batch)), None)
        if near is not None:
            return f"; {near}"
        if example is None:
            return "; there are no events"
        return f"; an id looks like {example.id}, or in full {example.source}#{example.id}"

    # --- the run -----------------------------------------------------------------------------

    def _detect(
        self,
        rules: RuleSet,
        batches: Iterable[EventBatch],
        engine: str,
        on_conflict: Callable[[Conflict], None],
    ) -> tuple[list[EventBatch], Detections]:
        detector = make(engine)
        groups: dict[int, list[Rule]] = {}
        for rule in rules.rules:
            groups.setdefault(self.since(rule), []).append(rule)
        for since, group in groups.items():
            detector.deploy(RuleSet(tuple(group), rules.schemas), since=since)
        kept = []
        for batch in batches:
            detector.push(batch)
            if (conflict := detector.take_conflict()) is not None:
                on_conflict(conflict)
            kept.append(batch)
        detections = detector.advance(TIME_MAX)
        self.duplicates, self.conflicts = detector.duplicates, detector.conflicts
        if detector.duplicates:
            used = {type_.name for rule in rules.rules for type_ in rule.used_types}
            kept = _without_repeats(kept, used)
        return kept, detections


def rule_named(name: str, rules: Iterable[Rule], file: str = "<rules>") -> Rule:
    """The rule of a name; RuleErrors, with a hint, when ``file`` has none."""
    known = {rule.name: rule for rule in rules}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known) or f"the rules are {', '.join(known) or 'none'}"
    raise RuleErrors([Problem(f"no rule is called {name}", None, hint)], file=file)


def _without_repeats(batches: Sequence[EventBatch], used: Collection[str]) -> list[EventBatch]:
    """The batches of types in use without events whose name one before them bears (E1)."""
    seen: set[Name] = set()
    kept = []
    for batch in batches:
        if batch.type.name in used:
            names = list(zip(batch.ids.source.tolist(), batch.ids.printed(), strict=True))
            first = np.zeros(len(batch), np.bool_)
            for place, name in enumerate(names):
                first[place] = name not in seen
                seen.add(name)
            kept.append(batch.take(first))
        else:
            kept.append(batch)
    return kept


def _full_name(event: Occurrence) -> str:
    """The source and id of an event, by which it can be asked for."""
    source = quoted(event.source) if "#" in event.source + event.id else event.source
    return f"{source}#{event.id}"


def _places(batch: EventBatch, text: str) -> Iterator[int]:
    """The places in a batch of the events that are called so: ``id`` or ``source#id``."""
    full = _FULL.fullmatch(text)
    name = (unquoted(full[1]), full[2]) if full else None
    for place, printed in enumerate(batch.ids.printed()):
        if not text.endswith(printed):
            continue
        source = batch.ids.source[place]
        if printed == text or f"{source}#{printed}" == text or (source, printed) == name:
            yield place


def _causes(batch: EventBatch) -> Iterator[tuple[Name, ...]]:
    """The causes of each composite event of a batch, by source and id."""
    assert batch.causes is not None  # it comes from an engine
    sources = iter(batch.causes.ids.source.tolist())
    for printed in batch.causes.printed_rows():
        yield tuple((next(sources), identity) for identity in printed)
