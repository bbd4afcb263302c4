"""How the rules in force are divided over the brokers of a tree, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from matcher.identity import RULE_SOURCE
from matcher.model import EventType
from routing.deployment import Deployed
from routing.partition.placement import Partition, Tree, tree_of
from rules.pattern import Rule


@dataclass(frozen=True)
class Division:
    """How the rules in force are divided over a tree: the same value at every broker of it.

    ``fathers``: of every broker but the root; ``published``: the types that each broker's sources
    publish.
    """

    partition: Partition
    fathers: Mapping[str, str]
    published: Mapping[str, frozenset[str]]
    rules: tuple[Deployed, ...]
    schemas: Mapping[str, EventType]

    @property
    def ends(self) -> Sequence[int | None]:
        """Where the rules end, which does not make them others."""
        return [one.until for one in self.rules]

    def tree(self, root: str) -> Tree:
        """The tree, of which this is the root."""
        return tree_of(root, self.fathers)

    def derive(self, name: str) -> Iterator[None]:
        """Derive the fragments that a broker needs: its own, and those of its children for rules
        that are pulled; yields behind each.
        """
        partition = self.partition
        children = [child for child, father in self.fathers.items() if father == name]
        yield from partition.fragments_of(name).derive(partition.places)
        for child in children if partition.pulls else ():
            yield from partition.fragments_of(child).derive(partition.pulls)

    def side(self, name: str, other: str) -> str | None:
        """The neighbour of a broker on whose side of the tree another one is; None for itself."""
        if name == other:
            return None
        node = other
        while node in self.fathers:
            if self.fathers[node] == name:
                return node
            node = self.fathers[node]
        return self.fathers.get(name)

    def absent_for(self, name: str) -> frozenset[str]:
        """The types that nobody advertises and that a rule needs, perhaps through others."""
        if not self.partition.waiting:
            return frozenset()
        found = set[str]()
        named = self.texts.get(name)
        waiting, seen = [] if named is None else [named], {name}
        while waiting:
            rule = waiting.pop()
            found |= self.partition.waiting.get(rule.name, frozenset())
            below = [one.rule for used in rule.used_types for one in self.defining(used.name)]
            waiting += [one for one in below if one.name not in seen]
            seen.update(one.name for one in below)
        return frozenset(found)

    @cached_property
    def texts(self) -> Mapping[str, Rule]:
        """The rules by name."""
        return {one.rule.name: one.rule for one in self.rules}

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The place of all rules' composite events among simultaneous ones (E4), by source."""
        in_order = sorted(self.rules, key=lambda one: one.place)
        return {RULE_SOURCE + one.rule.name: rank for rank, one in enumerate(in_order)}

    def defining(self, type_name: str) -> Sequence[Deployed]:
        """The rules that define a type."""
        return self._defining.get(type_name, ())

    @cached_property
    def _defining(self) -> Mapping[str, Sequence[Deployed]]:
        defining: dict[str, list[Deployed]] = {}
        for one in self.rules:
            defining.setdefault(one.rule.defines.name, []).append(one)
        return defining


NO_DIVISION = Division(Partition({}, {}, {}), {}, {}, (), {})
