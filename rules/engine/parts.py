"""Rules spread over several engines of their own, and their composite events brought together.

Law 1: what comes out does not depend on how many parts there are. Rules that have to do with each
other's composite events stay in one part, as do rules that define one type; a repeat is told from
its original before the parts, which see different types (tesla.md E1); and what parts detect is
put into the one order of E4.

Law 2: parts share nothing, so that whoever runs them may run them at once. How is the caller's:
``at_once`` is called with a function and the parts, like ``map``.

Law 3: a rule stays where it is, for its part alone knows its past. So a rule that has to do with
the composite events of two parts cannot be deployed: ``refusals`` says so beforehand. Rules that
are deployed together do not come into that, not even if those over the clock alone are deployed
apart, because they hold from another instant: these are all in the first part. (A broker cannot
refuse rules that the root of its network has taken, so brokers do not use this engine yet.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import networkx as nx
import numpy as np

from matcher.errors import SchemaError
from matcher.model import EventBatch, Int64s
from rules.engine.catalogue import Catalogue
from rules.engine.cdp import CdpEngine
from rules.engine.duplicates import DuplicateFilter
from rules.engine.engine import NOTHING, Detections
from rules.engine.merged import Merged
from rules.engine.taken import Taken
from rules.errors import Problem, RuleErrors
from rules.pattern import TIMER, Rule, RuleSet

AtOnce: TypeAlias = Callable[
    [Callable[["_Part"], Detections], Sequence["_Part"]], Iterable[Detections]
]
"""Runs a function on every part; the results in the parts' order."""


class PartedEngine:
    """A Detector made of parts; ``engines`` are new ones, without rules."""

    def __init__(self, engines: Sequence[CdpEngine], at_once: AtOnce) -> None:
        self._parts = [_Part(engine) for engine in engines]
        self._part_of: dict[str, _Part] = {}  # by rule
        self._at_once = at_once
        self._catalogue = Catalogue()
        self._repeats = DuplicateFilter()
        self._pending: dict[str, list[EventBatch]] = {}  # by type: its mark has not passed them
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

    def refusals(self, rules: RuleSet, without: Collection[str] = ()) -> tuple[Problem, ...]:
        """What keeps rules from being deployed once those named are removed (Law 3)."""
        problems = []
        for group, parts in self._groups(rules.rules, without):
            if len(parts) > 1:
                names = ", ".join(rule.name for rule in group)
                problems.append(
                    Problem(
                        f"{names}: it has to do with composite events of rules that run on threads "
                        "of their own",
                        None,
                        "deploy all of these rules in one text, or use one thread",
                    )
                )
        return tuple(problems)

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        if problems := self.refusals(rules):
            raise RuleErrors(problems)
        self._catalogue.deploy(rules, since, version)
        for group, parts in self._groups(rules.rules, ()):
            part = self._parts[parts.pop()] if parts else min(self._parts, key=_Part.load)
            part.take()  # what is older than the rules and of types that the part does not know
            self._give_pending(part, group)
            part.deploy(replace(rules, rules=group), since, version)
            self._part_of.update(dict.fromkeys((rule.name for rule in group), part))
        self._place_rules()

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

    def _groups(
        self, rules: Sequence[Rule], without: Collection[str]
    ) -> list[tuple[tuple[Rule, ...], set[int]]]:
        """Rules that have to stay together, the largest group first, and the parts that each has
        to do with, those ``without`` aside.
        """
        views = [part.without(without) for part in self._parts]
        ties: nx.Graph[str | int] = nx.Graph()
        defined = {rule.defines.name for rule in rules}
        ties.add_nodes_from(defined)
        for rule in rules:
            name, used = rule.defines.name, _used(rule)
            if used == {TIMER.name}:
                ties.add_edge(name, 0)
            ties.add_edges_from((name, other) for other in used if other in defined)
            for number, (parts_defined, parts_used) in enumerate(views):
                shared = name in parts_defined or name in parts_used
                if shared or any(other in parts_defined for other in used):
                    ties.add_edge(name, number)
        groups = []
        for nodes in nx.connected_components(ties):
            group = tuple(rule for rule in rules if rule.defines.name in nodes)
            groups.append((group, {node for node in nodes if isinstance(node, int)}))
        return sorted(groups, key=lambda one: (-sum(map(_weight, one[0])), one[0][0].name))

    def _give_pending(self, part: _Part, rules: Sequence[Rule]) -> None:
        """Events that a part had no use for until now, as far as new rules may see them."""
        for name in sorted(frozenset[str]().union(*map(_used, rules)) - part.used.keys()):
            part.waiting += self._pending.get(name, ())

    def _place_rules(self) -> None:
        """Where the rules of each part stand among those of all (E4)."""
        rules = sorted(self._catalogue.rules, key=lambda one: one.place)
        in_order = [one.rule.name for one in rules]
        self._places = [part.places(in_order) for part in self._parts]

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
        for part in self._parts:
            part.waiting.append(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        found = list(self._at_once(lambda part: part.advance(marks), self._parts))
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
            self.rules[rule.name] = rule
            self.defined[rule.defines.name] += 1
            self.used.update(_used(rule))
            self._load += _weight(rule)

    def remove(self, name: str) -> None:
        """Remove a rule."""
        self.take()
        self.engine.remove(name)
        rule = self.rules.pop(name)
        self.defined, self.used = self._counts_without([rule])
        self._load -= _weight(rule)

    def without(self, names: Collection[str]) -> tuple[Counter[str], Counter[str]]:
        """``defined`` and ``used`` as they were if it had no rules of these names."""
        gone = [self.rules[name] for name in names if name in self.rules]
        return self._counts_without(gone) if gone else (self.defined, self.used)

    def _counts_without(self, rules: Sequence[Rule]) -> tuple[Counter[str], Counter[str]]:
        defined = self.defined - Counter(rule.defines.name for rule in rules)
        return defined, self.used - Counter(name for rule in rules for name in _used(rule))

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


def _used(rule: Rule) -> frozenset[str]:
    return frozenset(type_.name for type_ in rule.used_types)


def _weight(rule: Rule) -> int:
    return 1 + len(rule.clauses)
