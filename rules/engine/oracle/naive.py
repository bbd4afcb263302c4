"""The oracle: tesla.md's clauses in plain Python, each named beside the line that keeps it.

No cleverness: the whole history is kept, and searched again for every terminator. It is slow on
purpose, so that it can be read beside the text; the other engines are held to it by the tests.

What tesla.md leaves to the engine: the input's least and greatest time, between which timers tick
(S13), are those of everything pushed, whether a rule uses it or not. A finite mark lets timers
tick before it; ``TIME_MAX`` ends the input, and they tick up to its greatest time. A rule that
holds from a ``since`` has its timers tick from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matcher.identity import RULE_SOURCE, composite_key
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, UInt64s, Value
from rules.engine.conflict import Conflict
from rules.engine.engine import Detections, beginning
from rules.engine.oracle.events import COMPOSITE, Occurrence, Order, detections, occurrences
from rules.engine.oracle.matches import matches, matches_together, others_consumed
from rules.engine.oracle.values import Scope, run_of, value_of
from rules.engine.order import timers
from rules.engine.order.catalogue import Deployed
from rules.engine.order.catalogued import Catalogued
from rules.overrun import Overrun
from rules.pattern import Rule, RuleSet
from rules.terms import Aggregate
from rules.zones import zone_of


@dataclass(frozen=True, slots=True)
class _RuleView:
    """The history as one rule sees it at one instant."""

    history: Mapping[str, Sequence[Occurrence]]
    instant: int
    since: int
    consumed: frozenset[Occurrence]

    def events(self, name: str, *, strict: bool) -> Sequence[Occurrence]:
        return [
            event
            for event in self.history.get(name, ())
            if self.sees(event) and not (strict and event.time >= self.instant)  # S12
        ]

    def run(self, aggregate: Aggregate, scope: Scope) -> Sequence[Occurrence]:
        return run_of(aggregate, scope)

    def sees(self, event: Occurrence) -> bool:
        # S15; S11: in every role, before first and last choose.
        return event.time >= self.since and event not in self.consumed


Moment: TypeAlias = tuple[int, Order]
_Match: TypeAlias = tuple[int, tuple[Occurrence, ...], tuple[Value, ...], tuple[Occurrence, ...]]
"""A complete match: which alternative of the rule it is of (X2; else 0), its events, the values of
its composite event, and the other events of the runs that it consumes.
"""


class NaiveEngine(Catalogued):
    """A Detector that is right rather than fast; see :class:`rules.engine.engine.Detector`."""

    def __init__(self, composites_max: int | None = None) -> None:
        self._composites_max = composites_max
        super().__init__()
        self._history: dict[str, list[Occurrence]] = {}  # by type
        self._at: dict[int, list[Occurrence]] = {}  # the same by time
        self._consumed: dict[str, set[Occurrence]] = {}  # by rule
        self._seen: dict[tuple[str, str], Occurrence] = {}
        self._least: int | None = None  # times of the input
        self._greatest: int | None = None
        self._duplicates = self._conflicts = 0
        self._conflict: Conflict | None = None

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._duplicates

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return self._conflicts

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        conflict, self._conflict = self._conflict, None
        return conflict

    def memory(self) -> Mapping[str, int]:
        """How many ``events`` are kept: all that came, and what was detected."""
        return {"events": sum(map(len, self._history.values()))}

    def footprints(self) -> Mapping[str, int]:
        """Nothing: the whole history is everybody's."""
        return {}

    def fresh(self) -> NaiveEngine:
        """A new engine of the same kind."""
        return NaiveEngine(self._composites_max)

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        greatest = TIME_MIN if self._greatest is None else self._greatest
        for deployed in self._catalogue.deploy(rules, beginning(since, greatest), version):
            self._consumed[deployed.rule.name] = set()

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        del self._consumed[name]

    def go_on_from(self, name: str, mark: int) -> None:
        """Evaluate a rule, just deployed, at no instant before a mark."""
        self._catalogue.go_on_from(name, mark)

    def consume(self, name: str, keys: UInt64s) -> None:
        """Let a rule see none of these events any more."""
        gone = set(map(tuple, keys.tolist()))
        events = (event for some in self._history.values() for event in some)
        self._consumed[name].update(event for event in events if event.key in gone)

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        known = self._catalogue.known(batch.type)
        if len(batch) > 0:
            times = batch.time.tolist()
            self._least = min(times if self._least is None else [self._least, *times])
            self._greatest = max(times if self._greatest is None else [self._greatest, *times])
        if known is None:
            return  # no rule uses the type
        for event in occurrences(batch):
            first = self._seen.setdefault((event.source, event.id), event)
            if first is event:
                self._keep(event)
            else:
                self._drop(event, first)

    def _drop(self, event: Occurrence, first: Occurrence) -> None:
        """Count an event whose source and id another one bears (E1)."""
        self._duplicates += 1
        if event.is_explicit and first.is_explicit and event.contents != first.contents:
            self._conflicts += 1
            found = Conflict(event.source, event.id, event.type.name, event.time, first.time)
            self._conflict = self._conflict or found

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        found = self._evaluated(marks)
        while self._catalogue.turn():
            found += self._evaluated({})
        return detections(sorted(found, key=lambda event: event.moment))  # E4

    def _evaluated(self, marks: int | Mapping[str, int]) -> list[Occurrence]:
        """The composite events of the instants that can be evaluated with these marks."""
        due = self._catalogue.advance(marks)
        rules = [rule for rule in self._catalogue.rules if rule.rule.name in due]
        ticks = {rule.rule.name: self._ticks(rule, *due[rule.rule.name]) for rule in rules}
        instants = set(self._at).union(*ticks.values())
        found: list[Occurrence] = []
        for instant in sorted(instants):
            for rule in rules:  # S12: in order of rank
                start, end = due[rule.rule.name]
                if start <= instant < end and not self._catalogue.has_ended(rule.rule.name):
                    tick = ticks[rule.rule.name].get(instant)
                    events = self._at.get(instant, ()) if tick is None else (tick,)
                    found += self._run(rule, instant, tuple(events))
        return found

    def _ticks(self, deployed: Deployed, start: int, end: int) -> Mapping[int, Occurrence]:
        """The timer events of a rule by time, from ``start`` to before ``end`` (S13)."""
        if not timers.uses_timer(deployed.rule):
            return {}
        first = self._least if deployed.since == TIME_MIN else deployed.since
        last = self._greatest if end == TIME_MAX else end - 1
        if first is None or last is None:
            return {}
        times = timers.ticks(deployed.rule, max(start, first), last + 1)
        made = timers.batch(times, zone_of(deployed.rule))
        return {tick.time: tick for tick in occurrences(made, ticks=True)}

    def _run(
        self, deployed: Deployed, instant: int, events: Collection[Occurrence]
    ) -> Sequence[Occurrence]:
        """Evaluate one rule at one instant, whose events are given."""
        rule = deployed.rule
        # S11: all matches of one instant see the same history, so the view is fixed here.
        consumed = frozenset(self._consumed[rule.name])
        view = _RuleView(self._history, instant, deployed.since, consumed)
        complete: list[_Match] = []
        for which, one in enumerate(rule.alternatives or (rule,)):
            for match in _matches(one, instant, events, view):
                values = [value_of(expression, match) for expression in one.values]
                if None not in values:  # S9: nothing is emitted, nothing consumed
                    known = tuple(value for value in values if value is not None)
                    complete.append((which, match.events, known, others_consumed(one, match)))
        for _, match_events, _, others in complete:
            own = (match_events[number] for number in rule.consuming)
            self._consumed[rule.name].update(own, others)
        composites = self._bounded(rule.name, instant, _composites(deployed, instant, complete))
        for event in composites:  # S12: rules of a higher rank see them at their own instant
            self._keep(event)
        return composites

    def _bounded(
        self, name: str, instant: int, composites: list[Occurrence]
    ) -> Sequence[Occurrence]:
        """The composite events of an instant that a rule may yield; the rule ends if that is
        not all.
        """
        most = self._composites_max
        if most is None or len(composites) <= most:
            return composites
        self._end_overrun(Overrun(name, instant, most))
        return composites[:most]

    def _keep(self, event: Occurrence) -> None:
        self._history.setdefault(event.type.name, []).append(event)
        self._at.setdefault(event.time, []).append(event)


def _matches(
    rule: Rule, instant: int, events: Collection[Occurrence], view: _RuleView
) -> Iterator[Scope]:
    """Every complete match of a rule at an instant, whose events are given."""
    if rule.together is not None:
        yield from matches_together(rule, instant, view)
        return
    for terminator in events:
        # S15 and S11 hold for the terminator too.
        if terminator.type == rule.terminator and view.sees(terminator):
            yield from matches(rule, terminator, view)


def _place(rule: Rule, match: _Match) -> tuple[int, list[Moment]]:
    """The key that orders the matches of one rule and instant: the causes, terminator first (E4).

    Where events come together, the latest is the terminator, of several the one named first, and
    matches go first of all by which that is (X1); where events may be of either type, by the types
    that were named first (X2).
    """
    which, events, *_ = match
    moments = [event.moment for event in events]
    if rule.together is None:
        return which, moments
    times = [event.time for event in events]
    latest = times.index(max(times))
    return latest, [moments[latest], *moments[:latest], *moments[latest + 1 :]]


def _composites(deployed: Deployed, instant: int, complete: Iterable[_Match]) -> list[Occurrence]:
    """The composite events of a rule's matches at one instant (tesla.md section 4), in order."""
    in_order = sorted(complete, key=lambda match: _place(deployed.rule, match))
    return [
        Occurrence(
            type=deployed.rule.defines,
            time=instant,  # the terminator's
            source=RULE_SOURCE + deployed.rule.name,
            sequence=0,
            text=None,
            digest=composite_key(deployed.key, (event.key for event in events)),
            order=(COMPOSITE, *deployed.place, place),
            values=values,
            causes=(*events, *others),
        )
        for place, (_, events, values, others) in enumerate(in_order)
    ]
