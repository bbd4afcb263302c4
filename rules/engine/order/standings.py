"""Types that rules define and use, and their order: ranks and reaches of types.

A type that no rule defines has rank 0, another one more than the greatest of those that its rules
use. The *reach* of a defined type is itself and all that its rules use, through the rules that
define these too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from typing import NamedTuple, TypeVar

from rules.pattern import Rule

Counted = TypeVar("Counted")


class Shape(NamedTuple):
    """The names of the types that a rule defines and uses."""

    defines: str
    uses: frozenset[str]

    @classmethod
    def of(cls, rule: Rule) -> Shape:
        """The shape of a rule."""
        return cls(rule.defines.name, frozenset(schema.name for schema in rule.used_types))


class Standings:
    """Owner of the shapes of the rules that there are, and of the ranks and reaches of types.

    Rules that define and use the same types are of one *shape*, and stand alike: what is asked here
    is asked once a shape, however many rules have it.
    """

    def __init__(self) -> None:
        self._rules: dict[Shape, dict[str, Rule]] = {}  # by name, those that came first at first
        self._shapes: dict[str, set[Shape]] = {}  # by the type that they define
        self.defined: KeysView[str] = self._shapes.keys()
        """The names of the types that some rule defines."""
        self._above: dict[str, Counter[str]] = {}  # by type: in how many shapes each is made of it
        self._strict: Counter[str] = Counter()  # by type: how many of its rules are in a cycle
        self._ranks: dict[str, int] = {}
        self._reaches: dict[str, frozenset[str]] = {}

    @property
    def used(self) -> Collection[str]:
        """The names of the types that some rule uses."""
        return self._above.keys()

    def rank(self, name: str) -> int:
        """The rank of a type's rules, 0 where there are none."""
        return self._ranks.get(name, 0)

    def is_made_of(self, name: str, below: str) -> bool:
        """Whether rules that define a type use another, directly or through others."""
        return below in self._reaches.get(name, ())

    def group(self, shape: Shape) -> frozenset[str]:
        """The types that rules of a shape use, through the rules that define them too."""
        reaches = self._reaches
        return shape.uses.union(*(reaches[name] for name in shape.uses if name in reaches))

    def rules_over(self, names: Collection[str]) -> Iterator[str]:
        """The rules that define or use one of these types."""
        for shape, rules in self._rules.items():
            if shape.defines in names or not shape.uses.isdisjoint(names):
                yield from rules

    def add(self, rule: Rule) -> None:
        """Count a rule; ranks and reaches follow with ``follow`` or ``take``."""
        shape = Shape.of(rule)
        rules = self._rules.get(shape)
        if rules is None:
            rules = self._rules[shape] = {}
            self._shapes.setdefault(shape.defines, set()).add(shape)
            for name in shape.uses:
                self._above.setdefault(name, Counter())[shape.defines] += 1
        rules[rule.name] = rule
        if rule.is_strict:
            self._strict[shape.defines] += 1

    def drop(self, rule: Rule) -> None:
        """Undo ``add``."""
        shape = Shape.of(rule)
        rules = self._rules[shape]
        del rules[rule.name]
        if rule.is_strict:
            subtract(self._strict, shape.defines)
        if rules:
            return
        del self._rules[shape]
        self._shapes[shape.defines].remove(shape)
        if not self._shapes[shape.defines]:
            del self._shapes[shape.defines]
        for name in shape.uses:
            subtract(self._above[name], shape.defines)
            if not self._above[name]:
                del self._above[name]

    def follow(self, names: Iterable[str]) -> Collection[str] | None:
        """Rank types anew whose rules have changed, and what is made of them: those that stand
        otherwise than before. None, and no change, where a cycle is among them: then what
        is strict depends on all rules (tesla.md S12).
        """
        ranks, reaches = dict(self._ranks), dict(self._reaches)
        changed: set[str] = set()
        waiting = deque(names)
        while waiting:
            name = waiting.popleft()
            shapes = self._shapes.get(name, ())
            within = frozenset[str]().union(*(shape.uses for shape in shapes))
            reach = within.union(*(reaches[below] for below in within if below in reaches))
            if name in self._strict or name in reach:
                return None
            rank = 1 + max((ranks.get(below, 0) for below in within), default=-1)
            if shapes and (rank, reach | {name}) == (ranks.get(name), reaches.get(name)):
                continue
            if shapes:
                ranks[name], reaches[name] = rank, reach | {name}
            elif ranks.pop(name, None) is not None:
                del reaches[name]
            changed.add(name)
            waiting.extend(self._above.get(name, ()))
        self._ranks, self._reaches = ranks, reaches
        return changed

    def take(self, ranks: Mapping[str, int]) -> None:
        """Take the ranks that all rules together have, and work out the reaches."""
        self._ranks = dict(ranks)
        self._reaches = {name: self._closure(name) for name in self._shapes}

    def _closure(self, name: str) -> frozenset[str]:
        reached, waiting = {name}, [name]
        while waiting:
            for shape in self._shapes.get(waiting.pop(), ()):
                waiting += shape.uses - reached
                reached |= shape.uses
        return frozenset(reached)


def subtract(counter: Counter[Counted], item: Counted) -> None:
    """Count an item one less, and leave it out once it is counted no more."""
    counter[item] -= 1
    if counter[item] == 0:
        del counter[item]
