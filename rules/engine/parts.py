"""Rules spread over several engines of their own, and their composite events brought together.

Law 1: what comes out does not depend on how many parts there are. Rules that have to do with each
other's composite events stay in one part, as do rules that define one type; a repeat is told from
its original before the parts, which see different types (tesla.md E1); and what parts detect is
put into the one order of E4.

Law 2: parts share nothing, so that whoever runs them may run them at once. How is the caller's:
``at_once`` is called with a function and the parts, like ``map``.

Law 3: a rule stays where it is, for its part alone knows its past, until one comes that has to do
with the composite events of two parts. What is tied together by it then moves into the part that
has most to do, with all that it remembers (:mod:`rules.engine.moving`). That costs as much as to
take in anew what that part holds; rules that are deployed together never need it, not even if
those over the clock alone are deployed apart, because they hold from another instant: these begin
in the first part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import networkx as nx
import numpy as np

from matcher.errors import SchemaError
from matcher.model import EventBatch, Int64s
from rules.engine.catalogue import Catalogue, Deployed
from rules.engine.cdp import CdpEngine
from rules.engine.duplicates import DuplicateFilter
from rules.engine.engine import NOTHING, Detections
from rules.engine.merged import Merged
from rules.engine.taken import Taken
from rules.pattern import TIMER, Rule, RuleSet

AtOnce: TypeAlias = Callable[
    [Callable[["_Part"], Detections], Sequence["_Part"]], Iterable[Detections]
]
"""Runs a function on every part; the results in the parts' order."""
FEW = 128
"""So few events are not worth what it takes to wake others: the parts take their turns."""


class PartedEngine:
    """A Detector made of parts; ``engines`` are new ones, without rules."""

    def __init__(self, engines: Sequence[CdpEngine], at_once: AtOnce) -> None:
        self._parts = [_Part(engine) for engine in engines]
        self._part_of: dict[str, _Part] = {}  # by rule
        self._at_once = at_once
        self._catalogue = Catalogue()
        self._repeats = DuplicateFilter()
        self._pending: dict[str, list[EventBatch]] = {}  # by type: its mark has not passed them
        self._waiting = 0  # events pushed since the last advance, and those that waited then
        self._places = [np.empty(0, np.int64)] * len(engines)  # by part: see Merged

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        return self._catalogue.marks

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        return self._catalogue.mark(name)

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._repeats.dropped

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The names of the rules of each part."""
        return tuple(tuple(part.rules) for part in self._parts)

    def fresh(self) -> PartedEngine:
        """A new engine of as many parts."""
        return PartedEngine([part.engine.fresh() for part in self._parts], self._at_once)

    # --- rules -----------------------------------------------------------------------------

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self._catalogue.deploy(rules, since, version)
        for group in _together(rules.rules):
            part = self._part_for(group)
            part.take()  # what is older than the rules and of types that the part does not know
            self._give_pending(part, group)
            part.deploy(replace(rules, rules=group), since, version)
            self._part_of.update(dict.fromkeys((rule.name for rule in group), part))
        self._place_rules()

    def _part_for(self, group: Sequence[Rule]) -> _Part:
        """The part that rules which have to stay together belong to (Law 3)."""
        tied = [part for part in self._parts if part.is_tied(group)]
        if not tied:
            is_of_clock = all(_used(rule) == {TIMER.name} for rule in group)
            return self._parts[0] if is_of_clock else min(self._parts, key=_Part.load)
        part = max(tied, key=_Part.load)
        for other in tied:
            if other is not part:
                self._move(part, other, other.tied(group))
        return part

    def _move(self, part: _Part, other: _Part, rules: Sequence[Rule]) -> None:
        """Let a part evaluate rules of another from now on."""
        names = {rule.name for rule in rules}
        part.take()
        other.take()
        staying = names | part.rules.keys()
        part.join(other, rules, [one for one in self._in_order() if one.rule.name in staying])
        for rule in rules:
            other.remove(rule.name)
        self._part_of.update(dict.fromkeys(names, part))
        for name in sorted(part.used):
            part.waiting += self._pending.get(name, ())

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        self._part_of.pop(name).remove(name)
        self._pending = {
            type_: batches
            for type_, batches in self._pending.items()
            if type_ in self._catalogue.used
        }
        self._place_rules()

    def _give_pending(self, part: _Part, rules: Sequence[Rule]) -> None:
        """Events that a part had no use for until now, as far as new rules may see them."""
        for name in sorted(frozenset[str]().union(*map(_used, rules)) - part.used.keys()):
            part.waiting += self._pending.get(name, ())

    def _place_rules(self) -> None:
        """Where the rules of each part stand among those of all (E4)."""
        in_order = [one.rule.name for one in self._in_order()]
        self._places = [part.places(in_order) for part in self._parts]

    def _in_order(self) -> list[Deployed]:
        return sorted(self._catalogue.rules, key=lambda one: one.place)

    # --- events ----------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        name = batch.type.name
        known = self._catalogue.schemas.get(name)
        if name == TIMER.name or (known is not None and known != batch.type):
            raise SchemaError(f"event {batch.type} is already known as {known or TIMER}")
        if known is not None:
            batch = self._repeats.accept(batch)
            if len(batch):
                self._pending.setdefault(name, []).append(batch)
                self._waiting += len(batch)
        for part in self._parts:
            part.waiting.append(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        at_once = self._at_once if self._waiting > FEW else map
        found = list(at_once(lambda part: part.advance(marks), self._parts))
        self._catalogue.advance_groups(marks)
        self._forget()
        some = [
            (one, places)
            for one, places in zip(found, self._places, strict=True)
            if isinstance(one, Taken)
        ]
        if len(some) < 2:
            return some[0][0] if some else NOTHING
        return Merged(some)

    def _forget(self) -> None:
        """Forget pending events that a mark has passed, and ids that nothing can see."""
        for name, batches in list(self._pending.items()):
            mark = self._catalogue.mark_of_type(name)
            left = [batch.take(batch.time >= mark) for batch in batches if batch.time.max() >= mark]
            self._pending[name] = left
        self._waiting = sum(len(one) for batches in self._pending.values() for one in batches)
        horizons = [part.engine.horizon for part in self._parts if part.rules]
        if horizons:
            self._repeats.forget(min(horizons))


class _Part:
    """One engine, its rules by name, and the events that it has yet to take.

    ``defined`` and ``used`` count its rules by the names of types.
    """

    def __init__(self, engine: CdpEngine) -> None:
        engine.trust_ids()
        self.engine = engine
        self.rules: dict[str, Rule] = {}
        self.defined: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.waiting: list[EventBatch] = []
        self._load = 0

    def load(self) -> int:
        """How much its rules have to do, roughly."""
        return self._load

    def deploy(self, rules: RuleSet, since: int | None, version: int) -> None:
        """Add rules; events that wait are theirs too."""
        self.engine.deploy(rules, since=since, version=version)
        for rule in rules.rules:
            self._count(rule)

    def _count(self, rule: Rule) -> None:
        self.rules[rule.name] = rule
        self.defined[rule.defines.name] += 1
        self.used.update(_used(rule))
        self._load += _weight(rule)

    def remove(self, name: str) -> None:
        """Remove a rule."""
        self.take()
        self.engine.remove(name)
        rule = self.rules.pop(name)
        self.defined -= Counter([rule.defines.name])
        self.used -= Counter(_used(rule))
        self._load -= _weight(rule)

    def is_tied(self, group: Sequence[Rule]) -> bool:
        """Whether rules have to do with its composite events, or it with theirs."""
        defined = {rule.defines.name for rule in group}
        used = frozenset[str]().union(*map(_used, group))
        mine = self.defined.keys()
        return not (mine.isdisjoint(defined | used) and defined.isdisjoint(self.used.keys()))

    def tied(self, group: Sequence[Rule]) -> tuple[Rule, ...]:
        """Those of its rules that would have to stay with others, directly or through others."""
        names = {rule.name for rule in group}
        for together in _together([*self.rules.values(), *group]):
            if any(rule.name in names for rule in together):
                return tuple(rule for rule in together if rule.name not in names)
        return ()

    def join(self, other: _Part, moved: Sequence[Rule], rules: Sequence[Deployed]) -> None:
        """Take over rules of another part; ``rules`` are all that there will be, by place (E4)."""
        self.engine = self.engine.joined([other.engine], rules)
        self.engine.trust_ids()
        for rule in moved:
            self._count(rule)

    def take(self) -> None:
        """Let the engine take the events that wait."""
        for batch in self.waiting:
            self.engine.push(batch)
        self.waiting.clear()

    def places(self, in_order: Sequence[str]) -> Int64s:
        """For the places that its rules have in the engine, those that they have ``in_order``."""
        found = {
            self.engine.place_of(name): place
            for place, name in enumerate(in_order)
            if name in self.rules
        }
        places = np.zeros(1 + max(found, default=0), np.int64)
        places[list(found)] = list(found.values())
        return places

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Take them, and evaluate."""
        self.take()
        return self.engine.advance(marks)


def _together(rules: Sequence[Rule]) -> list[tuple[Rule, ...]]:
    """Rules that have to do with each other's composite events, those with most to do first."""
    ties: nx.Graph[str] = nx.Graph()
    defined = {rule.defines.name for rule in rules}
    ties.add_nodes_from(defined)
    for rule in rules:
        ties.add_edges_from((rule.defines.name, used) for used in _used(rule) & defined)
    number_of = {
        name: number for number, names in enumerate(nx.connected_components(ties)) for name in names
    }
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(number_of[rule.defines.name], []).append(rule)
    return sorted(
        map(tuple, groups.values()), key=lambda group: (-sum(map(_weight, group)), group[0].name)
    )


def _used(rule: Rule) -> frozenset[str]:
    return frozenset(type_.name for type_ in rule.used_types)


def _weight(rule: Rule) -> int:
    return 1 + len(rule.clauses)
