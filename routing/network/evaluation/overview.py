"""Status of a network by one of its brokers, and of the rules that are evaluated elsewhere.

Every broker knows who is linked to whom, its own place in the trees, and where each rule is
evaluated. How far a rule has come, and whose promise it waits for, the broker knows that evaluates
it; where rules are divided it names a broker below, which can be asked in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from matcher.model import TIME_MAX, TIME_MIN
from routing.delivery.sink import Sink
from routing.deployment import Deployed
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.network.agreement.remote_sources import RemoteSources
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.origins import Names, Origins, remote_names
from routing.network.evaluation.processing_tree import ProcessingTree
from routing.network.evaluation.router import Router
from routing.overlay.overlay import Overlay
from routing.partition.fragment_text import division_facts
from routing.partition.places import Division
from routing.serving.status import (
    STALLED_AFTER_S,
    UNKNOWN,
    Facts,
    Holder,
    described,
    joined_holders,
    sink_facts,
    source_facts,
    source_holder,
    time_or_none,
    type_facts,
)
from routing.serving.tables import Tables
from routing.watermarks.ends import CLOSED
from rules.pattern import TIMER


def broker_facts(
    overlay: Overlay,
    router: Router,
    strategy: str,
    detection: DividedDetection,
    division: Division | None,
) -> Facts:
    """The network, and what this broker does in it for which rules."""
    trees = sorted(detection.trees.items())
    network = {
        "strategy": strategy,
        "root": router.root,
        "father": router.father,
        **overlay.facts,
        **division_facts(division),
        "sink_trees": [_tree_facts(tree) for _, tree in trees],
    }
    facts: dict[str, Any] = {
        "root": router.root,
        "father": router.father,
        "evaluates": sorted(
            {name for evaluator in detection.evaluators for name in evaluator.rules}
        ),
        "forwards": detection.evaluator.forwards,
        "forwards_for": {
            root: tree.evaluator.forwards for root, tree in trees if tree.evaluator.forwards
        },
        "kept": len(detection.replay_buffer),
        "kept_below": sum(evaluator.kept for evaluator in detection.evaluators),
        "given_up": detection.replay_buffer.given_up,
    }
    return {"network": network, **facts}


def _tree_facts(tree: ProcessingTree) -> Facts:
    """One tree for sinks, and how the rules there are divided."""
    return {
        "root": tree.root,
        "number": tree.generation.number,
        "father": tree.father,
        "children": sorted(tree.children),
        "filters": [f"{text:.200}" for text in tree.filters],
        **division_facts(tree.division),
    }


class Overview:
    """Reads the parts of a broker, and changes none of them. Of a rule it tells what it is on the
    single tree, if that has it; else in the tree of this broker's own sinks; else in one in which
    it is evaluated here; else in the first that has it. ``now`` is in seconds.

    ``division`` says how they are divided; ``remote_sources``: the sources at other brokers, at the
    root.
    """

    def __init__(
        self,
        name: str,
        division: Callable[[], Division | None],
        remote_sources: RemoteSources,
        detection: DividedDetection,
        tables: Tables,
    ) -> None:
        self._name = name
        self._division = division
        self._remote_sources = remote_sources
        self._detection = detection
        self._deployments = tables.deployments
        self._advertisements = tables.advertisements
        self._sources = tables.sources
        self._sinks = tables.sinks

    def facts(self, now: float) -> Facts:
        """Sources, types, rules and sinks; of rules also who may hold one beyond the broker below
        that it waits for.

        What other brokers pass on of rules (``rules``) lacks that: it says the same as ever.
        """
        given, names = self._detection.evaluator.progress.types, remote_names(self._remote_sources)
        origins: dict[int, Origins] = {}
        rules = zip(self._deployments.in_force, self.rules_in_force(now), strict=True)
        return {
            "sources": [source_facts(source) for source in self._sources],
            "types": [
                type_facts(known, given, self._detection.engine.counts)
                for known in self._advertisements
            ],
            "rules": [
                self._traced(deployed, rule, names, origins) if rule["held_by"] else rule
                for deployed, rule in rules
            ],
            "sinks": [{**sink_facts(sink), "ended": self._has_ended(sink)} for sink in self._sinks],
            "matching": list(self._matched),
        }

    @property
    def filters(self) -> Iterator[tuple[str, str]]:
        """The filters of its sinks, and of all beyond the neighbours in the tree, by type."""
        for sink in self._sinks:
            yield from ((one.type_name, one.text) for one in sink.interests)
        for branch in self._detection.branches.values():
            for name in branch.types:
                yield from ((name, text) for text in branch.texts(name))

    @property
    def _matched(self) -> Iterator[Facts]:
        """Matching of subscriptions, where they are many: of sinks here, and beyond neighbours."""
        for name, facts in self._sinks.matched:
            yield {"type": name, "to": None, **facts}
        for neighbour, branch in sorted(self._detection.branches.items()):
            for name, facts in branch.matched:
                yield {"type": name, "to": neighbour, **facts}

    def _has_ended(self, sink: Sink) -> bool:
        """Whether a sink has subscribed to composite events, and no more of them can come."""
        names = {one.type_name for one in sink.interests}
        rules = [rule for name in names for rule in self._deployments.defining(name)]
        return bool(rules) and self._detection.complete_to(rules) == TIME_MAX

    # --- rules ---

    def rules_in_force(self, now: float) -> list[Facts]:
        """The facts of all rules in force, with what each has cost here, and takes."""
        costs, footprints = self._detection.costs, self._detection.footprints
        deployed = list(self._deployments.in_force)
        return [
            {**facts, "cost": costs.get(one.rule.name), "memory": footprints.get(one.rule.name)}
            for one, facts in zip(deployed, self.rules(deployed, now), strict=True)
        ]

    def rules(self, deployed: Iterable[Deployed], now: float) -> list[Facts]:
        """The facts of these rules, which are in force. Before one holds there is nothing of it."""
        reached = self._detection.reached
        return [self._rule(one, max(reached(one.rule.name), one.begin), now) for one in deployed]

    def _rule(self, deployed: Deployed, mark: int, now: float) -> Facts:
        """One rule: what it is, and whether it runs. One that no tree has waits for types, or is
        idle.
        """
        single, (evaluator, division) = self._division(), self._tree(deployed)
        needs = self._deployments.needs(deployed.rule.name)
        place, absent = self._place(deployed, division), self._absent(deployed, division)
        state = "waiting" if absent else "elsewhere" if place else "running"
        if place == UNKNOWN and single is not None and self._is_idle(deployed):
            published = frozenset[str]().union(*single.published.values())
            place, absent = "", sorted(needs - published - {TIMER.name})
            state = "waiting" if absent else "idle"
        is_here = state == "running"
        holders = self._holders(deployed, evaluator, now) if is_here else []
        if evaluator.progress.front >= mark and any(one.stalls for one in holders):
            state = "stalled"  # events wait here for its mark
        placement = evaluator.placement(deployed.rule.name) if is_here else None
        facts = {
            "name": deployed.name,
            "type": deployed.rule.defines.name,
            "since": deployed.since,
            "version": deployed.version,
            "owner": deployed.owner or None,
            "mark": time_or_none(mark),
            "state": state,
            "place": place or None,
            "waits_for": absent,
            "without": sorted(filter(self._detection.is_given_up, needs)),
            "held_by": [one.facts for one in holders],
            "evaluated_on": None if placement is None else placement.device,
            "evaluated_why": None if placement is None else placement.reason or None,
        }
        return described(facts)

    def _tree(self, deployed: Deployed) -> tuple[TreeEvaluator, Division | None]:
        """The broker's part in the tree that is told of, and how the rules there are divided."""
        single, name = self._division(), deployed.rule.name
        if single is None or name in single.partition.places:
            return self._detection.evaluator, single
        trees = [tree for _, tree in sorted(self._detection.trees.items()) if name in tree.rules]
        if not trees:
            return self._detection.evaluator, None if self._is_idle(deployed) else single
        here = [tree for tree in trees if name in tree.evaluator.rules]
        own = [tree for tree in trees if tree.is_root]
        tree = (*own, *here, *trees)[0]
        return tree.evaluator, tree.division

    def _place(self, deployed: Deployed, division: Division | None) -> str:
        """The broker that evaluates a rule; "" for this one."""
        places = {} if division is None else division.partition.places
        unplanned = self._name if self._detection.is_alone else UNKNOWN
        place = places.get(deployed.rule.name, unplanned)
        return "" if place == self._name else place

    def absent(self, deployed: Deployed) -> list[str]:
        """The types that a rule waits for, since nobody in the network has advertised them. Who is
        alone knows all, before any plan has it.
        """
        return self._absent(deployed, self._tree(deployed)[1])

    def _absent(self, deployed: Deployed, division: Division | None) -> list[str]:
        name = deployed.rule.name
        if self._detection.is_alone:
            return sorted(filter(self._detection.is_absent, self._deployments.needs(name)))
        return [] if division is None else sorted(division.partition.waiting.get(name, ()))

    def _is_idle(self, deployed: Deployed) -> bool:
        """Whether no tree has a rule, since nobody wants it: it is for trees of sinks alone."""
        found = self._detection
        return deployed.rule.defines.name in found.tree_table.kinds.own and not any(
            deployed.rule.name in tree.rules for tree in found.trees.values()
        )

    # --- who holds a rule ---

    def _traced(
        self, deployed: Deployed, rule: Facts, names: Names, origins: dict[int, Origins]
    ) -> Facts:
        _, division = self._tree(deployed)
        if division is None:
            return rule
        found = origins.get(id(division))
        if found is None:  # there may be thousands of rules, and few divisions
            found = origins[id(division)] = Origins(division, self._name, names)
        held_by = [
            {**one, "origins": found.of(one["types"], one["broker"])} if one["broker"] else one
            for one in rule["held_by"]
        ]
        return described({**rule, "held_by": held_by})

    def _holders(self, deployed: Deployed, evaluator: TreeEvaluator, now: float) -> list[Holder]:
        """Own sources, and brokers below that forward a type, with the least mark."""
        found: list[Holder] = []
        for name in self._types_here(deployed, evaluator):
            found += [
                replace(source_holder(source, [name], now), promise=source.mark(name))
                for source in self._detection.publishers.of(name)
                if source.is_open and name in source.floors
            ]
            if name in self._detection.publishers.waited_for:
                found.append(Holder("", (name,), "gone", TIME_MIN, stalls=True))
            for child, mark in evaluator.said_of(name).items():
                if mark != CLOSED:
                    silent_s = now - evaluator.watermarks.inputs.heard_at(child, name)
                    stalls = silent_s >= STALLED_AFTER_S
                    found.append(Holder("", (name,), "linked", mark, stalls, child))
        least = min((one.promise for one in found), default=CLOSED)
        return joined_holders(one for one in found if one.promise == least)

    def _types_here(self, deployed: Deployed, evaluator: TreeEvaluator) -> list[str]:
        """The types that a rule needs of sources and brokers below, through the rules here."""
        found: dict[str, None] = {}
        rules = [deployed]
        while rules:
            for used in rules.pop().rule.used_types:
                if used != TIMER and used.name not in found:
                    found[used.name] = None
                    rules += [
                        one
                        for one in self._deployments.defining(used.name)
                        if one.rule.name in evaluator.rules
                    ]
        return sorted(found)
