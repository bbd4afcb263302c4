"""Rules spread over several engines of their own, and their composite events brought together.

Law 1: what comes out does not depend on how many parts there are. Rules that have to do with each
other's composite events stay in one part, as do rules that define one type; a repeat is told from
its original before the parts, which see different types (tesla.md E1); and what parts detect is
put into the one order of E4.

Law 2: parts share nothing, so that whoever runs them may run them at once. How is the caller's:
``at_once`` is called with a function and the parts, like ``map``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import networkx as nx
import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import EventBatch, Int64s
from rules.engine.cdp import CdpEngine
from rules.engine.duplicates import DuplicateFilter
from rules.engine.engine import NOTHING, Detections
from rules.pattern import Rule, RuleSet

AtOnce: TypeAlias = Callable[
    [Callable[["_Part"], Detections], Sequence["_Part"]], Iterable[Detections]
]
"""Runs a function on every part; the results in the parts' order."""


class PartedEngine:
    """An engine made of parts, whose rules are those that it was made with.

    ``engines`` are new ones, without rules; no more of them are used than there are groups of
    rules that can be parted.
    """

    def __init__(self, rules: RuleSet, engines: Sequence[CdpEngine], at_once: AtOnce) -> None:
        groups = parted(rules.rules, len(engines))
        self._parts = [
            _Part(engine, replace(rules, rules=group))
            for engine, group in zip(engines, groups, strict=False)
        ]
        self._at_once = at_once
        self._known = {
            type_.name for rule in rules.rules for type_ in (rule.defines, *rule.used_types)
        }
        self._repeats = DuplicateFilter()
        self._places = {RULE_SOURCE + rule.name: place for place, rule in enumerate(rules.rules)}

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._repeats.dropped

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order."""
        if batch.type.name in self._known:
            batch = self._repeats.accept(batch)
        for part in self._parts:
            part.waiting.append(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        found = list(self._at_once(lambda part: part.advance(marks), self._parts))
        if self._parts:
            self._repeats.forget(min(part.engine.horizon for part in self._parts))
        return in_one_order([one for one in found if len(one)], self._places)


class _Part:
    """One engine, and the events that it has yet to take."""

    def __init__(self, engine: CdpEngine, rules: RuleSet) -> None:
        engine.deploy(rules)
        self.engine = engine
        self.waiting: list[EventBatch] = []

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Take them, and evaluate."""
        for batch in self.waiting:
            self.engine.push(batch)
        self.waiting.clear()
        return self.engine.advance(marks)


def parted(rules: Sequence[Rule], count: int) -> list[tuple[Rule, ...]]:
    """Rules in at most ``count`` groups of about the same number of clauses, in their order.

    Rules that share a defined type, or of which one uses what another defines, stay together.
    """
    ties: nx.Graph[str] = nx.Graph()
    defined = {rule.defines.name for rule in rules}
    ties.add_nodes_from(defined)
    for rule in rules:
        used = (type_.name for type_ in rule.used_types if type_.name in defined)
        ties.add_edges_from((rule.defines.name, name) for name in used)
    component_of = {
        name: number for number, names in enumerate(nx.connected_components(ties)) for name in names
    }
    weights = np.zeros(len(set(component_of.values())), np.int64)
    for rule in rules:
        weights[component_of[rule.defines.name]] += 1 + len(rule.clauses)
    loads = np.zeros(count, np.int64)
    group_of = np.zeros(len(weights), np.int64)
    for component in np.argsort(-weights, kind="stable").tolist():
        group_of[component] = lightest = int(np.argmin(loads))
        loads[lightest] += weights[component]
    groups: list[list[Rule]] = [[] for _ in range(count)]
    for rule in rules:
        groups[group_of[component_of[rule.defines.name]]].append(rule)
    return [tuple(group) for group in groups if group]


def in_one_order(parts: Sequence[Detections], places: Mapping[str, int]) -> Detections:
    """Detections of several engines as those of one, by time, rule and causes (E4).

    ``places`` are the rules' places in the file by the sources of their composite events.
    """
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    times, rules, rows = [], [], []
    first = 0
    for part in parts:
        times.append(np.concatenate([batch.time for batch in part.batches])[part.order])
        of_rules = [_places(batch, places) for batch in part.batches]
        rules.append(np.concatenate(of_rules)[part.order])
        rows.append(first + part.order)
        first += len(part)
    # A rule's events are all of one part and stand there in the order of their causes.
    order = np.lexsort((np.concatenate(rules), np.concatenate(times)))
    batches = tuple(batch for part in parts for batch in part.batches)
    return Detections(batches, np.concatenate(rows)[order])


def _places(batch: EventBatch, places: Mapping[str, int]) -> Int64s:
    source = batch.ids.source
    # A dictionary may hold more than its batch uses.
    by_code = np.array([places.get(name, -1) for name in source.values], np.int64)
    return by_code[source.codes]
