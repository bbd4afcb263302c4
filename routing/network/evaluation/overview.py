"""Status of a network by one of its brokers, and of the rules that are evaluated elsewhere.

Every broker knows who is linked to whom, its own place in the trees, and where each rule is
evaluated. How far a rule has come, and whose promise it waits for, the broker knows that evaluates
it; where rules are divided it names a broker below, which can be asked in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from matcher.model import TIME_MIN
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.network.agreement.remote_sources import RemoteSources
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.origins import Names, Origins, remote_names
from routing.network.evaluation.processing_tree import ProcessingTree
from routing.network.evaluation.router import Router
from routing.overlay.overlay import Overlay
from routing.partition.fragment_text import tell_fragment
from routing.partition.places import Division
from routing.serving.deployment import Deployed
from routing.serving.status import STALLED_AFTER_S, UNKNOWN, Facts, Holder, Overview, source_holder
from routing.serving.tables import Tables
from routing.watermarks.ends import CLOSED
from rules.engine.engine import Placement
from rules.pattern import TIMER


def network_facts(overlay: Overlay, router: Router, strategy: str) -> Facts:
    """Overlay and trees, as this broker knows them."""
    reachable = overlay.part.nodes
    return {
        "strategy": strategy,
        "root": router.root,
        "father": router.father,
        "centre": overlay.part.centre,
        "settled": overlay.is_settled,
        "brokers": [
            {
                "name": state.origin,
                "reachable": state.origin in reachable,
                "neighbours": [
                    {"name": name, "delay_us": delay_us} for name, delay_us in state.neighbours
                ],
            }
            for state in overlay.states
        ],
        "links": [channel.facts for _, channel in sorted(overlay.neighbours.items())],
        "trees": [
            {
                "root": tree.root,
                "epoch": tree.epoch,
                "father": tree.father,
                "children": sorted(tree.children),
            }
            for tree in sorted(overlay.trees, key=lambda tree: tree.root)
            if not tree.orphan
        ],
    }


def division_facts(division: Division | None) -> Facts:
    """Where rules are evaluated, and what each broker's fragments let pass, by rule."""
    if division is None:
        return {"places": {}, "fragments": {}}
    texts = {one.rule.name: one.rule for one in division.rules}
    return {
        "places": dict(sorted(division.partition.places.items())),
        "fragments": {
            broker: {
                name: list(tell_fragment(texts.get(name), fragment))
                for name, fragment in sorted(fragments.items())
            }
            for broker, fragments in sorted(division.partition.fragments.items())
            if fragments
        },
    }


def broker_facts(
    overlay: Overlay,
    router: Router,
    strategy: str,
    detection: DividedDetection,
    division: Division | None,
) -> Facts:
    """The network, and what this broker does in it for which rules."""
    network = network_facts(overlay, router, strategy) | division_facts(division)
    trees = sorted(detection.trees.items())
    network["sink_trees"] = [tree_facts(tree) for _, tree in trees]
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


class NetworkOverview(Overview):
    """An Overview of a broker that evaluates its part of the rules, in several trees. Of a rule it
    tells what it is on the single tree, if that has it; else in the tree of this broker's own
    sinks; else in one in which it is evaluated here; else in the first that has it.

    ``division`` says how they are divided; ``remote_sources``: the sources at other brokers, at the
    root.
    """

    _detection: DividedDetection

    def __init__(
        self,
        name: str,
        division: Callable[[], Division | None],
        remote_sources: RemoteSources,
        detection: DividedDetection,
        tables: Tables,
    ) -> None:
        super().__init__(detection, tables)
        self._name = name
        self._division = division
        self._remote_sources = remote_sources

    @property
    def filters(self) -> Iterator[tuple[str, str]]:
        """The filters of its sinks, and of all beyond the neighbours in the tree."""
        yield from super().filters
        for branch in self._detection.branches.values():
            for name in branch.types:
                for text in branch.texts(name):
                    yield name, text

    @property
    def matched(self) -> Iterator[Facts]:
        """As of one broker; and of what neighbours in the tree are sent."""
        yield from super().matched
        for neighbour, branch in sorted(self._detection.branches.items()):
            for name, facts in branch.matched:
                yield {"type": name, "to": neighbour, **facts}

    def facts(self, now: float) -> Facts:
        """As of one broker; and who may hold a rule beyond the broker below that it waits for.

        What other brokers pass on of rules (``rules``) lacks that: it says the same as ever.
        """
        facts = super().facts(now)
        sources = remote_names(self._remote_sources)
        origins: dict[int, Origins] = {}
        facts["rules"] = [
            self._traced(deployed, rule, sources, origins) if rule["held_by"] else rule
            for deployed, rule in zip(self._deployments.in_force, facts["rules"], strict=True)
        ]
        return facts

    def _traced(
        self, deployed: Deployed, rule: Facts, sources: Names, origins: dict[int, Origins]
    ) -> Facts:
        _, division = self._tree(deployed)
        if division is None:
            return rule
        found = origins.get(id(division))
        if found is None:  # there may be thousands of rules, and few divisions
            found = origins[id(division)] = Origins(division, self._name, sources)
        held_by = [
            {**one, "origins": found.of(one["types"], one["broker"])} if one["broker"] else one
            for one in rule["held_by"]
        ]
        return self.said({**rule, "held_by": held_by})

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

    @property
    def _is_alone(self) -> bool:
        """Whether all that is known is known here, before any plan has it."""
        return self._detection.is_alone

    def _is_idle(self, deployed: Deployed) -> bool:
        """Whether no tree has a rule, since nobody wants it: it is for trees of sinks alone."""
        found = self._detection
        return deployed.rule.defines.name in found.kinds.own and not any(
            deployed.rule.name in tree.rules for tree in found.trees.values()
        )

    def rule(self, deployed: Deployed, mark: int, now: float) -> Facts:
        """One rule; one that no tree has waits for types, or is idle."""
        facts = super().rule(deployed, mark, now)
        single = self._division()
        if single is None or facts["place"] != UNKNOWN or not self._is_idle(deployed):
            return facts
        published = frozenset[str]().union(*single.published.values())
        needs = self._deployments.needs(deployed.rule.name)
        absent = sorted(needs - published - {TIMER.name})
        state = "waiting" if absent else "idle"
        return self.said({**facts, "place": None, "waits_for": absent, "state": state})

    def place(self, deployed: Deployed) -> str:
        """The broker that evaluates a rule; "" for this one."""
        _, division = self._tree(deployed)
        places = {} if division is None else division.partition.places
        place = places.get(deployed.rule.name, self._name if self._is_alone else UNKNOWN)
        return "" if place == self._name else place

    def placement(self, deployed: Deployed) -> Placement | None:
        """On which device a rule is evaluated here, where there is more than one."""
        evaluator, _ = self._tree(deployed)
        return evaluator.placement(deployed.rule.name)

    def absent(self, deployed: Deployed) -> list[str]:
        """The types that nobody in the network has advertised."""
        if self._is_alone:
            return super().absent(deployed)
        _, division = self._tree(deployed)
        waiting = {} if division is None else division.partition.waiting
        return sorted(waiting.get(deployed.rule.name, ()))

    def holders(self, deployed: Deployed, now: float) -> list[Holder]:
        """Own sources, and brokers below that forward a type, with the least mark."""
        found: list[Holder] = []
        evaluator, _ = self._tree(deployed)
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
                    stalls = now - evaluator.heard_at(child, name) >= STALLED_AFTER_S
                    found.append(Holder("", (name,), "linked", mark, stalls, child))
        least = min((one.promise for one in found), default=CLOSED)
        return _joined(one for one in found if one.promise == least)

    def pending(self, deployed: Deployed, mark: int) -> bool:
        """Whether events wait here for a rule's mark."""
        evaluator, _ = self._tree(deployed)
        return evaluator.progress.front >= mark

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


def tree_facts(tree: ProcessingTree) -> Facts:
    """One tree for sinks, and how the rules there are divided."""
    return {
        "root": tree.root,
        "number": tree.generation.number,
        "father": tree.father,
        "children": sorted(tree.children),
        "filters": list(tree.filters),
        **division_facts(tree.division),
    }


def _joined(holders: Iterable[Holder]) -> list[Holder]:
    """One for each source and broker, with all of its types."""
    found: dict[tuple[str, str], Holder] = {}
    for one in holders:
        key = one.broker, one.name
        if key in found:
            one = replace(one, types=(*found[key].types, *one.types))
        found[key] = one
    return [found[key] for key in sorted(found)]
