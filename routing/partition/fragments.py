"""The fragments of a node, each derived when somebody asks for it.

Law: a fragment is a function of the node's view of its rule (derivation), so views stand for
fragments until these are needed, and are compared in their place. A node needs its own fragments,
and of its children, where nothing is pulled, no more than the types of which they send events,
which views say. 1,000 rules over three nodes: each of them derives 1,000 fragments at most, some at
a time (``derive``), and the root, which sends nothing up, none.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from routing.partition.derivation import fragment_of
from routing.partition.fragment import Fragment
from routing.partition.masters import Pull
from rules.pattern import Rule


class Sight(Protocol):
    """The origin of a fragment. ``present``: the types that this forwards."""

    @property
    def present(self) -> frozenset[str]: ...  # noqa: D102

    @property
    def fragment(self) -> Fragment: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class View:
    """A node's view of a rule, as in ``fragment_of``; ``present`` is not empty."""

    rule: Rule
    present: frozenset[str]
    sole: frozenset[str]
    pull: Pull | None
    asked: frozenset[str]

    @property
    def fragment(self) -> Fragment:
        """The fragment of the rule for the node."""
        return fragment_of(self.rule, self.present, self.sole, self.pull, self.asked)


@dataclass(frozen=True, slots=True)
class Ready:
    """A fragment that has been derived, or is for no rule in particular."""

    fragment: Fragment

    @property
    def present(self) -> frozenset[str]:
        """The types that it forwards."""
        return self.fragment.forwards


class Fragments(Mapping[str, Fragment]):
    """A node's fragments by rule, each derived once, when it is asked for."""

    def __init__(
        self, sights: Mapping[str, Sight], pulls: Mapping[str, Pull] | None = None
    ) -> None:
        """``pulls``: where static conditions alone count, how rules are pulled then."""
        self._sights = sights
        self._pulls = pulls
        self._derived: dict[str, Fragment] = {}

    def __getitem__(self, rule: str) -> Fragment:
        found = self._derived.get(rule)
        if found is None:
            found = self._sights[rule].fragment
            if self._pulls is not None:
                found = found.whole(self._pulls.get(rule))
            self._derived[rule] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._sights)

    def __len__(self) -> int:
        return len(self._sights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fragments):
            return NotImplemented
        same = self is other or self._sights == other._sights
        return same and self._pulls == other._pulls

    __hash__ = None  # type: ignore[assignment]

    def derive(self, rules: Container[str]) -> Iterator[None]:
        """Derive those of these rules; yields behind each."""
        for rule in self._sights:
            if rule in rules and rule not in self._derived:
                self[rule]
                yield

    def whole(self, pulls: Mapping[str, Pull]) -> Fragments:
        """The same, but static conditions alone count, and being asked for."""
        return Fragments(self._sights, pulls)

    def of_pulled(self, pulls: Container[str]) -> Iterator[tuple[str, Fragment]]:
        """The fragments of the rules that are pulled, ``pulls``: no others keep anything."""
        return ((rule, self[rule]) for rule in self._sights if rule in pulls)

    def pushed(self, pulls: Container[str]) -> frozenset[str]:
        """The types of which events may pass unasked. ``pulls``: the rules that are pulled."""
        found = set[str]()
        for rule, sight in self._sights.items():
            found |= self[rule].pushed if rule in pulls else sight.present
        return frozenset(found)


NO_FRAGMENTS = Fragments({})
