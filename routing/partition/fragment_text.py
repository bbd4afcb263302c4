"""Fragments in words, for status and for tests.

The words are near to TESLA's: ``join`` lines say what must be there for an event to have an
assignment around it, ``send`` lines what is forwarded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matcher.spelling import spelled
from routing.partition.fragment import Chosen, Fragment, Joined, Near, Plain, Role
from routing.partition.places import Division
from routing.partition.predicates import Keys, Predicate
from routing.partition.windows import Span
from rules.explaining.rewording import Rewording, elapsed_text
from rules.pattern import Rule
from rules.terms import CANDIDATE, name_of


def tell_fragment(rule: Rule | None, fragment: Fragment) -> Iterator[str]:
    """A fragment line by line. One for no rule in particular lets types pass whole."""
    if rule is None:
        return (f"send all {spelled(predicate.type.name)}()" for predicate in fragment.plain)
    return _Telling(rule, fragment).lines()


def division_facts(division: Division | None) -> dict[str, Any]:
    """Where rules are evaluated, and what each broker's fragments let pass, by rule."""
    if division is None:
        return {"places": {}, "fragments": {}}
    rules = {one.rule.name: one.rule for one in division.rules}
    return {
        "places": dict(sorted(division.partition.places.items())),
        "fragments": {
            broker: {
                name: list(tell_fragment(rules.get(name), fragment))
                for name, fragment in sorted(fragments.items())
            }
            for broker, fragments in sorted(division.partition.fragments.items())
            if fragments
        },
    }


class _Telling:
    """The words of one fragment."""

    def __init__(self, rule: Rule, fragment: Fragment) -> None:
        self.rule = rule
        self.fragment = fragment
        self.words = Rewording(rule)

    def lines(self) -> Iterator[str]:
        for member in self.fragment.members:
            for predicate, duration in member.absent:
                name = self.rule.event_names[member.event]
                yield f"join no {self.event(predicate)} within {elapsed_text(duration)} from {name}"
        for link in self.fragment.links:
            first, second = self.name(link.first), self.name(link.second)
            line = f"join {self.apart(first, second, link.span)}"
            line += self.equal(first, second, link.first, link.second, link.keys)
            for predicate in link.absent:
                line += f", no {self.event(predicate)} between"
            yield line
        for role in self.fragment.roles:
            yield f"send {self.role(role)}"

    def role(self, role: Role) -> str:
        match role:
            case Plain():
                return f"all {self.event(role.predicate)}{self.around(role.predicate)}"
            case Joined():
                member = self.fragment.members[role.member]
                return f"{self.event(member.predicate)} as {self.name(role.member)}"
            case Near():
                event, other = self.event(role.predicate), self.name(role.member)
                line = self.apart(event, other, role.span) + self.shared(role, other)
                return line if role.guarded else f"{line}, whatever is negated"
            case Chosen():
                event, other = self.event(role.predicate), self.name(role.member)
                which = f"{role.count}-" if role.count > 1 else ""
                duration = elapsed_text(role.duration)
                line = f"{which}{role.policy.value} {event} within {duration} from {other}"
                return line + self.shared(role, other)

    def around(self, predicate: Predicate) -> str:
        """Around which events it is asked for, if it waits for that."""
        pull, name = self.fragment.pull, predicate.type.name
        if pull is None or name not in self.fragment.kept:
            return ""
        (window,) = (one for one in pull.around if one.type == name)
        before, after = elapsed_text(window.before), elapsed_text(window.after)
        own, its = predicate.type, pull.master.type
        keys = "".join(
            f"{name_of(own, one)} = {its.name}.{name_of(its, pull.values[place])}, "
            for one, place in window.keys
        )
        master = self.event(pull.master)
        return f" that are asked for, {keys}from {before} before to {after} after {master}"

    def name(self, member: int) -> str:
        told = self.fragment.members[member]
        ways = self.rule.alternatives or (self.rule,)
        names = (
            way.event_names[told.event]
            for way in ways
            if told.predicate.type
            == (way.terminator, *(one.type for one in way.selected))[told.event]
        )
        return next(names)

    def event(self, predicate: Predicate) -> str:
        conditions = ", ".join(
            self.words.expression(condition, CANDIDATE, predicate.type)
            for condition in predicate.conditions
        )
        return f"{spelled(predicate.type.name)}({conditions})"

    def apart(self, first: str, second: str, span: Span) -> str:
        """How far the second is after the first."""
        if span.least == 0:
            return f"{first} within {elapsed_text(span.most)} from {second}"
        if span.most == 0:
            return f"{first} up to {elapsed_text(-span.least)} after {second}"
        before, after = elapsed_text(span.most), elapsed_text(-span.least)
        return f"{first} from {before} before to {after} after {second}"

    def equal(self, first: str, second: str, one: int, other: int, keys: Keys) -> str:
        own, its = (self.fragment.members[place].predicate.type for place in (one, other))
        return "".join(f", {first}.{name_of(own, a)} = {second}.{name_of(its, b)}" for a, b in keys)

    def shared(self, role: Near | Chosen, other: str) -> str:
        own, its = role.predicate.type, self.fragment.members[role.member].predicate.type
        return "".join(f", {name_of(own, a)} = {other}.{name_of(its, b)}" for a, b in role.keys)
