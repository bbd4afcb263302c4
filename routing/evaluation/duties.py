"""Duties of one broker by a division of the rules: which it evaluates, and the types they use.

They follow from the division, and stay as they are until there is another.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from routing.deployment import Deployed
from routing.partition.fragments import NO_FRAGMENTS, Fragments
from routing.partition.places import Division
from routing.watermarks.ends import users_of
from rules.pattern import TIMER, Wiring


@dataclass(frozen=True, slots=True)
class Duties:
    """One broker's, in one tree."""

    rules: Mapping[str, Deployed]
    """The rules that are evaluated here."""
    alike: Mapping[Wiring, Sequence[str]]
    """Their names by wiring."""
    waiting: Sequence[tuple[str, frozenset[str], int]]
    """Of rules of one wiring that do not end: the first, what it uses, and since when it holds."""
    uses: Mapping[str, frozenset[str]]
    """The types that each rule here uses."""
    used: frozenset[str]
    """The types that any of them uses, without Timer."""
    defining: Mapping[str, Sequence[str]]
    """By type, the rules here that define it."""
    users: Mapping[str, Sequence[Wiring]]
    """By type, the rules here whose marks it bears on, through other rules here too."""
    expected: Mapping[str, Sequence[str]]
    """By child, the types that it forwards of its own accord."""
    fragments: Mapping[str, Fragments]
    """By child, what it forwards for which rule."""
    pulled: Container[str]
    """The rules that are pulled."""

    @property
    def timed(self) -> Mapping[str, frozenset[str]]:
        """The rules that depend on Timer, one of those alike, with the types that bear on it."""
        found: dict[Wiring, set[str]] = {one: set() for one in self.users.get(TIMER.name, ())}
        for name, users in self.users.items() if found else ():
            for one in found.keys() & users:
                found[one].add(name)
        return {self.alike[one][0]: frozenset(names) for one, names in found.items()}

    def released(self, before: Duties) -> Iterator[tuple[str, frozenset[str]]]:
        """Children with types of which they kept some for a rule until it asked, by the duties
        ``before``, and forward all that it wants of their own accord from now on.
        """
        for child, fragments in self.fragments.items():
            kept = before.fragments.get(child, NO_FRAGMENTS).of_pulled(before.pulled)
            found = (was.kept & fragments[rule].pushed for rule, was in kept if rule in fragments)
            yield child, frozenset[str]().union(*found)


NO_DUTIES = Duties({}, {}, (), {}, frozenset(), {}, {}, {}, {}, ())


def duties_of(name: str, division: Division) -> Duties:
    """The duties of the broker of that name."""
    places, pulled = division.partition.places, division.partition.pulls
    here = {one.rule.name: one for one in division.rules if places[one.rule.name] == name}
    together: dict[Wiring, list[Deployed]] = {}
    for one in here.values():
        together.setdefault(one.rule.wiring, []).append(one)
    alike, waiting = dict[Wiring, list[str]](), list[Deployed]()
    defining: dict[str, list[str]] = {}
    wirings: dict[str, list[Wiring]] = {}
    for wiring, some in together.items():
        alike[wiring] = [one.rule.name for one in some]
        defining.setdefault(wiring.defined, []).extend(alike[wiring])
        wirings.setdefault(wiring.defined, []).append(wiring)
        if lasting := [one for one in some if one.until is None]:
            waiting.append(min(lasting, key=attrgetter("place")))
    below = {
        child: fragments
        for child, father in sorted(division.fathers.items())
        if father == name and (fragments := division.partition.fragments_of(child))
    }
    binding = users_of({one: one.used for one in alike}, wirings)
    return Duties(
        rules=here,
        alike=alike,
        waiting=[(one.rule.name, one.rule.wiring.used, one.begin) for one in waiting],
        uses={rule: wiring.used for wiring, rules in alike.items() for rule in rules},
        used=frozenset[str]().union(*(one.used for one in alike)) - {TIMER.name},
        defining=defining,
        users=binding,
        expected={child: sorted(own.pushed(pulled)) for child, own in below.items()},
        fragments=below,
        pulled=pulled,
    )
