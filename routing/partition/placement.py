"""Where in a tree each rule is evaluated, and what every node forwards for it (thesis 7.3.5).

Law 1: a rule goes to the deepest node whose subtree has all advertisers of all types that it needs.
A type is advertised by local sources, and by the node that evaluates the rules that define it (g):
one node for all rules that define one type, so that the order of its simultaneous events (E4) is
decided in one place.

Law 2: rules whose memory no window bounds (consumption, cycles) stay at the root, where neither
sources nor rules that come and go can move them; and so do the rules above them, by Law 1 (h).

Law 3: all of this is a function of the tree, of what is advertised where, and of the rules in the
order of their deployment. Who follows one partition after another does something about what differs
between them, and about nothing else (tree_evaluator, forwarder).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from routing.partition.fragments import NO_FRAGMENTS, Fragments, View
from routing.partition.masters import Pull, pull_of
from rules.checking.dependencies import arrange
from rules.pattern import TIMER, Rule

NOTHING_PULLED: Mapping[str, int] = {}
"""The masters of no rule: all is sent as it comes."""


@dataclass(frozen=True)
class Tree:
    """A processing tree: the children of each node, ``root`` on top. Nodes have names."""

    root: str
    children: Mapping[str, tuple[str, ...]]

    @cached_property
    def fathers(self) -> Mapping[str, str]:
        """The father of every node but the root."""
        return {child: node for node, below in self.children.items() for child in below}

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How far each node is from the root; nodes in order, fathers first."""
        depths = {self.root: 0}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            for child in self.children.get(node, ()):
                depths[child] = depths[node] + 1
                waiting.append(child)
        return depths

    def path(self, node: str) -> tuple[str, ...]:
        """The nodes from one up to the root, both included."""
        path = [node]
        while path[-1] != self.root:
            path.append(self.fathers[path[-1]])
        return tuple(path)

    def below(self, node: str) -> list[str]:
        """All nodes below one, in order."""
        found: list[str] = []
        waiting = list(self.children.get(node, ()))
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(self.children.get(node, ()))
        return sorted(found)

    def meeting(self, nodes: Iterable[str]) -> str:
        """The deepest node that has all the given ones in its subtree; the root for none."""
        paths = [self.path(node) for node in nodes]
        common = set(paths[0]).intersection(*paths[1:]) if paths else {self.root}
        return max(common, key=self.depths.__getitem__)


def tree_of(root: str, fathers: Mapping[str, str]) -> Tree:
    """The tree in which these are the fathers of all nodes but the root."""
    children: dict[str, tuple[str, ...]] = {}
    for name, father in fathers.items():
        children[father] = (*children.get(father, ()), name)
    return Tree(root, children)


@dataclass(frozen=True)
class Partition:
    """Where the rules of a tree are evaluated, and what is forwarded for them.

    ``places``: the node of each rule, by name; ``fragments``: by node, then by rule;
    ``waiting``: for each rule that cannot fire yet, the types that nobody advertises; ``pulls``:
    the rules that are pulled, and how (7.3.7).
    """

    places: Mapping[str, str]
    fragments: Mapping[str, Fragments]
    waiting: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pulls: Mapping[str, Pull] = field(default_factory=dict)

    def fragments_of(self, node: str) -> Fragments:
        """The fragments of a node; none for the root."""
        return self.fragments.get(node, NO_FRAGMENTS)

    def keeps(self, node: str) -> bool:
        """Whether a node keeps something until it is asked for it."""
        return any(one.kept for _, one in self.fragments_of(node).of_pulled(self.pulls))

    def whole(self, defined: Container[str]) -> Partition:
        """The same, but fragments let pass all that satisfies static conditions.

        ``defined``: the types that rules define, whose events wait nowhere.
        """
        pulls = {name: one for name, was in self.pulls.items() if (one := was.without(defined))}
        fragments = {node: own.whole(pulls) for node, own in self.fragments.items()}
        return Partition(self.places, fragments, self.waiting, pulls)


def partition(
    tree: Tree,
    advertised: Mapping[str, frozenset[str]],
    rules: Sequence[Rule],
    masters: Mapping[str, int] = NOTHING_PULLED,
) -> Partition:
    """Divide rules over a tree.

    ``advertised``: for each node, the types that its local sources publish; ``masters``: of each
    rule that is to be pulled, the number of its master (pulling.masters_of).
    Raises RuleErrors for rules that cannot be deployed together (S12).
    """
    advertisers = _Advertisers(tree, advertised)
    places, waiting = {}, {}
    arranged = arrange(rules)
    for group in _by_type(arranged.rules, arranged.ranks):
        needs = frozenset().union(*(_needs(rule) for rule in group))
        place = tree.root
        if not any(map(is_unbounded, group)):
            place = tree.meeting(node for name in sorted(needs) for node in advertisers.of(name))
        for rule in group:
            places[rule.name] = place
        advertisers.add(group[0].defines.name, place)
    pulls = {
        rule.name: pull
        for rule in arranged.rules
        if rule.name in masters
        and (pull := pull_of(rule, masters[rule.name])) is not None
        and advertisers.of(pull.master.type.name)  # else others would wait for what it is sent
    }
    asking = Counter(name for pull in pulls.values() for name in pull.slaves)
    views: dict[str, dict[str, View]] = {}
    for rule in arranged.rules:
        absent = frozenset(name for name in _needs(rule) if not advertisers.of(name))
        if absent:
            waiting[rule.name] = absent
        needs, own = _needs(rule), pulls[rule.name].slaves if rule.name in pulls else frozenset()
        asked = frozenset(name for name in needs if asking[name] > (name in own))
        pull = pulls.get(rule.name)
        for node in tree.below(places[rule.name]):
            present, sole = advertisers.seen(node, needs)
            if present:
                views.setdefault(node, {})[rule.name] = View(rule, present, sole, pull, asked)
    fragments = {node: Fragments(own) for node, own in views.items()}
    return Partition(places, fragments, waiting, pulls)


class _Advertisers:
    """The nodes that advertise each type: local sources and rules alike."""

    def __init__(self, tree: Tree, advertised: Mapping[str, frozenset[str]]) -> None:
        self._tree = tree
        self._nodes: dict[str, set[str]] = {}
        self._subtrees: dict[str, dict[str, int]] = {}
        for node, names in advertised.items():
            for name in names:
                self.add(name, node)

    def of(self, name: str) -> frozenset[str]:
        """The nodes that advertise a type."""
        return frozenset(self._nodes.get(name, ()))

    def add(self, name: str, node: str) -> None:
        """A node advertises a type; more than once is no news."""
        nodes = self._nodes.setdefault(name, set())
        if node in nodes:
            return
        nodes.add(node)
        for above in self._tree.path(node):
            counts = self._subtrees.setdefault(above, {})
            counts[name] = counts.get(name, 0) + 1

    def seen(self, node: str, names: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Of some types, those advertised in a node's subtree, and those advertised only there."""
        counts = self._subtrees.get(node, {})
        present = frozenset(name for name in names if name in counts)
        return present, frozenset(n for n in present if counts[n] == len(self._nodes[n]))


def _by_type(rules: Sequence[Rule], ranks: Sequence[int]) -> list[list[Rule]]:
    """The rules that define each type, those that others use first."""
    groups: dict[tuple[int, str], list[Rule]] = {}
    for rule, rank in zip(rules, ranks, strict=True):
        groups.setdefault((rank, rule.defines.name), []).append(rule)
    return [groups[key] for key in sorted(groups)]


def _needs(rule: Rule) -> frozenset[str]:
    return frozenset(type_.name for type_ in rule.used_types if type_ != TIMER)


def is_unbounded(rule: Rule) -> bool:
    """Whether no window bounds what the rule remembers."""
    return bool(rule.consuming) or rule.is_strict
