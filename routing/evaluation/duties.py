"""Duties of one broker by a division of the rules: which it evaluates, and the types they use.

They follow from the division, and stay as they are until there is another.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matcher.identity import RULE_SOURCE
from routing.deployment import Deployed
from routing.partition.fragments import NO_FRAGMENTS, Fragments
from routing.partition.places import Division
from routing.watermarks.ends import users_of
from rules.pattern import TIMER, Rule


@dataclass(frozen=True, slots=True)
class Duties:
    """One broker's, in one tree."""

    rules: Mapping[str, Deployed]
    """The rules that are evaluated here."""
    texts: Mapping[str, Rule]
    """All rules, by name."""
    ranks: Mapping[str, int]
    """The place of all rules' composite events among simultaneous ones (E4), by source."""
    uses: Mapping[str, frozenset[str]]
    """The types that each rule here uses."""
    used: frozenset[str]
    """The types that any of them uses, without Timer."""
    defining: Mapping[str, Sequence[str]]
    """By type, the rules here that define it."""
    users: Mapping[str, Sequence[str]]
    """By type, the rules here whose marks it bears on, through other rules here too."""
    expected: Mapping[str, Sequence[str]]
    """By child, the types that it forwards of its own accord."""
    fragments: Mapping[str, Fragments]
    """By child, what it forwards for which rule."""
    pulled: Container[str]
    """The rules that are pulled."""

    @property
    def timed(self) -> Mapping[str, frozenset[str]]:
        """The rules that depend on Timer, each with the types that bear on its mark."""
        found: dict[str, set[str]] = {rule: set() for rule in self.users.get(TIMER.name, ())}
        for name, users in self.users.items() if found else ():
            for rule in found.keys() & users:
                found[rule].add(name)
        return {rule: frozenset(names) for rule, names in found.items()}

    def released(self, before: Duties) -> Iterator[tuple[str, frozenset[str]]]:
        """Children with types of which they kept some for a rule until it asked, by the duties
        ``before``, and forward all that it wants of their own accord from now on.
        """
        for child, fragments in self.fragments.items():
            kept = before.fragments.get(child, NO_FRAGMENTS).of_pulled(before.pulled)
            found = (was.kept & fragments[rule].pushed for rule, was in kept if rule in fragments)
            yield child, frozenset[str]().union(*found)


NO_DUTIES = Duties({}, {}, {}, {}, frozenset(), {}, {}, {}, {}, ())


def duties_of(name: str, division: Division) -> Duties:
    """The duties of the broker of that name."""
    places, pulled = division.partition.places, division.partition.pulls
    here = {one.rule.name: one for one in division.rules if places[one.rule.name] == name}
    uses = {rule: one.uses for rule, one in here.items()}
    defining: dict[str, list[str]] = {}
    for rule, one in here.items():
        defining.setdefault(one.rule.defines.name, []).append(rule)
    below = {
        child: fragments
        for child, father in sorted(division.fathers.items())
        if father == name and (fragments := division.partition.fragments_of(child))
    }
    in_order = sorted(division.rules, key=lambda one: one.place)
    return Duties(
        rules=here,
        texts={one.rule.name: one.rule for one in division.rules},
        ranks={RULE_SOURCE + one.rule.name: rank for rank, one in enumerate(in_order)},
        uses=uses,
        used=frozenset[str]().union(*uses.values()) - {TIMER.name},
        defining=defining,
        users=users_of(uses, defining),
        expected={child: sorted(own.pushed(pulled)) for child, own in below.items()},
        fragments=below,
        pulled=pulled,
    )
