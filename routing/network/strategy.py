"""Where rules are evaluated, and what is asked of the brokers below: one class a strategy (7.3).

A strategy is a function of the processing tree, of what is published where, and of the rules; it
gives a :class:`routing.partition.placement.Partition`. All that concerns time, order and loss is
the brokers' business and the same for all, so a strategy of one's own is as exact as these. It is
a class with a ``name`` and a ``divide``, made known by ``register`` and chosen by its name for a
whole network; all of its brokers must have the same one. docs/strategies.md has an example.

Law: what a partition names is complete. Each rule has one place, every type that a rule needs is
forwarded on the whole way from those who advertise it to that place, whole or by fragments that
routing.partition.derivation made, and the rules that define one type have one place. fire is at b2:
b3 below it, which publishes Temp, has a fragment for Temp.

A strategy that *chooses* goes by what the root has measured, too: the plan bears its Choice. One
with ``sink_trees = True`` is asked for the single tree, and for each tree of a broker
with sinks, with the rules that belong there (routing.network.ways.sink_trees).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from matcher.model import EventType
from routing.partition.fragment import Fragment, Plain
from routing.partition.fragments import Fragments, Ready
from routing.partition.master_choice import Weights
from routing.partition.masters import masters_of
from routing.partition.placement import Partition, Tree, partition
from routing.partition.predicates import Predicate
from rules.pattern import TIMER, Rule

Published: TypeAlias = Mapping[str, Sequence[EventType]]
"""The types that each node's sources publish."""
Divide: TypeAlias = Callable[[Tree, Published, Sequence[Rule]], Partition]
"""As Strategy.divide."""
WHOLE = ""
"""In place of a rule's name: a fragment that is for no rule in particular."""


RATES_S = 1_000
"""Rates are said as events in so many seconds, so that they are whole numbers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The measurements and the choice of the root, as a plan says them.

    ``rates``: types, and how many events of each come in RATES_S seconds; ``candidate``: by which
    of CANDIDATES ``adaptive`` divides, "" with any other strategy.
    """

    rates: tuple[tuple[str, int], ...] = ()
    candidate: str = ""

    @property
    def often(self) -> dict[str, float]:
        """Events a second, by type."""
        return {name: count / RATES_S for name, count in self.rates}


class Strategy(Protocol):
    """How rules are divided over a processing tree."""

    name: ClassVar[str]

    def divide(self, tree: Tree, published: Published, rules: Sequence[Rule]) -> Partition:
        """Divide rules over a tree. ``published``: what each node's sources publish.

        RuleErrors for rules that cannot be deployed together (S12).
        """
        ...


class Centralized:
    """Every event goes to the centre, and rules are evaluated there (7.4, the baseline).

    Those that no rule needs go there too, as in the thesis.
    """

    name: ClassVar[str] = "centralized"

    def divide(self, tree: Tree, published: Published, rules: Sequence[Rule]) -> Partition:
        """All rules at the root; from every other node, all that its subtree publishes."""
        below: dict[str, dict[str, EventType]] = {}
        for node, types in published.items():
            for above in tree.path(node):
                below.setdefault(above, {}).update((one.name, one) for one in types)
        fragments = {
            node: Fragments({WHOLE: Ready(_whole(types[name] for name in sorted(types)))})
            for node, types in below.items()
            if node != tree.root and types
        }
        known = {one.name for types in published.values() for one in types}
        known |= {rule.defines.name for rule in rules}
        known.add(TIMER.name)
        places = {rule.name: tree.root for rule in rules}
        waiting = [rule for rule in rules if not rule.wiring.used <= known]
        absent = {rule.name: rule.wiring.used - known for rule in waiting}
        return Partition(places, fragments, absent)


class DistributedSingleTree:
    """Rules go to the deepest brokers of the single tree that see all they need (7.3.5).

    Brokers below send what fragments of the rules let pass, and nothing else.
    """

    name: ClassVar[str] = "distributed-st"

    def divide(self, tree: Tree, published: Published, rules: Sequence[Rule]) -> Partition:
        """As routing.partition.placement has it."""
        return partition(tree, _names(published), rules)


class DistributedMultipleTrees(DistributedSingleTree):
    """The same along one tree for each broker with sinks (7.3.2, Distributed (MT)).

    What the sinks of a broker want is found along its own tree; what may be evaluated in one place
    only, along the single tree.
    """

    name: ClassVar[str] = "distributed-mt"
    sink_trees: ClassVar[bool] = True


class PushPullSingleTree:
    """As DistributedSingleTree, but of each rule only what its master needs is sent (7.3.7).

    Before anything is known of rates every rule has a master if it can have one: its terminator, or
    what is selected first. Then masters are chosen by what they cost, and some rules have none.
    """

    name: ClassVar[str] = "push-pull-st"
    chooses: ClassVar[Sequence[str]] = ("",)

    def divide(self, tree: Tree, published: Published, rules: Sequence[Rule]) -> Partition:
        """As routing.partition.placement has it, every rule with a master if it can have one."""
        defined = {rule.defines.name for rule in rules}
        masters = {
            rule.name: numbers[0] for rule in rules if (numbers := masters_of(rule, defined))
        }
        return partition(tree, _names(published), rules, masters)

    def divide_by(
        self, tree: Tree, published: Published, rules: Sequence[Rule], choice: Choice
    ) -> Partition:
        """The same with the masters that cost least, once there are rates (choosing)."""
        if not choice.rates:
            return self.divide(tree, published, rules)
        names, rates = _names(published), choice.often
        return partition(tree, names, rules, Weights(tree, names, rules, rates).choose())


class PushPullMultipleTrees(PushPullSingleTree):
    """As DistributedMultipleTrees, but each tree is pulled, with its own masters."""

    name: ClassVar[str] = "push-pull-mt"
    sink_trees: ClassVar[bool] = True


class Centre:
    """Every rule at the root, which is sent what satisfies static conditions of some rule.

    It takes the place of Centralized among the CANDIDATES: it never sends more.
    """

    name: ClassVar[str] = "centre"

    def divide(self, tree: Tree, published: Published, rules: Sequence[Rule]) -> Partition:
        """As if the root published every type, too: so no other broker sees all of any type."""
        names = _names(published)
        names[tree.root] = frozenset[str]().union(*names.values())
        return partition(tree, names, rules)


CANDIDATES: Mapping[str, type[Strategy]] = {
    one.name: one
    for one in (
        DistributedSingleTree,
        Centre,
        DistributedMultipleTrees,
        PushPullSingleTree,
        PushPullMultipleTrees,
    )
}
"""The strategies among which ``adaptive`` chooses, by name; it begins with the first."""


class Adaptive(DistributedSingleTree):
    """The one of CANDIDATES that costs least by what was measured, for all rules.

    The root chooses (routing.network.brokers.measurements), its plan says which.
    """

    name: ClassVar[str] = "adaptive"
    sink_trees: ClassVar[bool] = True
    chooses: ClassVar[Sequence[str]] = tuple(CANDIDATES)

    def divide_by(
        self, tree: Tree, published: Published, rules: Sequence[Rule], choice: Choice
    ) -> Partition:
        """As the candidate that was chosen."""
        if not choice.candidate:
            return self.divide(tree, published, rules)
        return divide_of(CANDIDATES[choice.candidate](), choice)(tree, published, rules)


def _names(published: Published) -> dict[str, frozenset[str]]:
    return {node: frozenset(one.name for one in types) for node, types in published.items()}


def _whole(types: Iterable[EventType]) -> Fragment:
    return Fragment((), (), tuple(Plain(Predicate(one)) for one in types), 0)


@runtime_checkable
class Choosing(Protocol):
    """A strategy that goes by what the root has chosen: among which strategies, and how."""

    chooses: ClassVar[Sequence[str]]
    """Names of CANDIDATES; "" for this strategy itself, which rates alone change."""

    def divide_by(
        self, tree: Tree, published: Published, rules: Sequence[Rule], choice: Choice
    ) -> Partition:
        """As ``divide``. ``choice`` is empty as long as nothing has been measured."""
        ...


def divide_of(strategy: Strategy, choice: Choice) -> Divide:
    """How a strategy divides rules over a tree, by what the plan says."""
    if isinstance(strategy, Choosing):
        return partial(strategy.divide_by, choice=choice)
    return strategy.divide


def chosen_by(strategy: type[Strategy]) -> Sequence[str]:
    """The candidates among which the root chooses where this is the strategy; none where it goes
    by nothing that is measured.
    """
    return getattr(strategy, "chooses", ())


def has_sink_trees(strategy: type[Strategy]) -> bool:
    """Whether brokers with sinks have processing trees of their own, or may have."""
    return getattr(strategy, "sink_trees", False)


def has_sink_trees_by(strategy: type[Strategy], choice: Choice) -> bool:
    """Whether they have with what was chosen."""
    chosen = CANDIDATES[choice.candidate] if choice.candidate else strategy
    return has_sink_trees(chosen)


_STRATEGIES: dict[str, type[Strategy]] = {}


def register(strategy: type[Strategy]) -> None:
    """Make a strategy known by its name.

    ValueError when another one has that name, or when it chooses among CANDIDATES and has no trees
    for sinks, as some of these have.
    """
    if any(chosen_by(strategy)) and not has_sink_trees(strategy):
        raise ValueError(f"the strategy {strategy.name!r} chooses one, and has no sink_trees")
    if _STRATEGIES.setdefault(strategy.name, strategy) is not strategy:
        raise ValueError(f"a strategy named {strategy.name!r} is registered already")


def names() -> tuple[str, ...]:
    """The strategies that are known."""
    return tuple(_STRATEGIES)


def make(name: str) -> Strategy:
    """A new strategy of that name; ValueError for one that is not known."""
    if name not in _STRATEGIES:
        expected = ", ".join(names())
        raise ValueError(f"no strategy is called {name!r}; there are {expected}")
    return _STRATEGIES[name]()


register(Centralized)
register(DistributedSingleTree)
register(DistributedMultipleTrees)
register(PushPullSingleTree)
register(PushPullMultipleTrees)
register(Adaptive)
