"""Which rules are deployed, in which order they run, and up to which instant each has run.

Law 1: a set of rules is taken whole or not at all. It is refused when a name is in use, when it
brings a second schema for a type that deployed rules know (E5), or when the rules together have a
cycle of terminators (S12).

Law 2: simultaneous composite events stand in order of the *place*, (since, position), of their
rules (E4, S15); a position is given once and never again. At one instant rules run in order of
(rank, place), ranks from ``dependencies.arrange`` over all deployed rules, so that the events of
one type come into being in their order.

Law 3: marks never go back. A rule's mark is the least of those of the types that it uses, through
the rules that define these too; rules that use the same types are a *group* and share it, above
each rule's own floor. A type that is defined by a rule, and for which no mark was ever named,
counts as not published: its mark is that of its rules. ``Timer`` is a type like others, with the
mark of the clock.

Law 4: a rule whose composite events no rule uses comes and goes without a look at the others: it
changes neither their ranks nor what is strict for them nor their groups. All else is arranged
anew as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from matcher.identity import Key, rule_key
from matcher.model import TIME_MAX, TIME_MIN, EventType, Int64s
from rules.dependencies import arrange
from rules.engine.groups import Groups
from rules.errors import Problem, RuleErrors
from rules.pattern import Rule, RuleSet, uses_of

Counted = TypeVar("Counted")


@dataclass(frozen=True, slots=True)
class Deployed:
    """One deployed rule: ``strict`` decided, with its place among the others.

    ``since`` is the first instant that the rule sees (S15; TIME_MIN: from the beginning);
    ``position`` counts all rules ever deployed; ``rank`` see ``dependencies.arrange``. ``group``
    holds the types whose marks bind the rule; every instant before ``floor`` is done with,
    whatever they say.
    """

    rule: Rule
    rank: int
    position: int
    since: int
    version: int
    floor: int
    group: frozenset[str] = frozenset()

    @property
    def key(self) -> Key:
        """The seed of the ids of the rule's composite events (tesla.md section 4)."""
        return rule_key(self.rule.name, self.version)

    @property
    def place(self) -> tuple[int, int]:
        """Where the rule's composite events stand among simultaneous ones (E4, S15)."""
        return self.since, self.position


class Catalogue:
    """The deployed rules of one engine and their marks."""

    def __init__(self) -> None:
        self._rules: dict[str, Deployed] = {}
        self.groups = Groups.of((), np.empty(0, np.int64))
        self._type_marks: Int64s | None = None  # of the groups' types, as far as known
        self.is_level = True
        """Whether every type that matters to a mark has the same one, ``floor``: none has one of
        its own, and no rule defines one."""
        self.floor = TIME_MIN
        """The greatest mark named for all types."""
        self._named: dict[str, int] = {}  # the greatest mark named for a type
        self._used: Counter[str] = Counter()  # by how many rules a type is used
        self._defined: dict[str, set[str]] = {}  # by type: the names of the rules
        self._changed: dict[str, Deployed] = {}
        self._members: Counter[frozenset[str]] = Counter()  # by group
        self._ranks: dict[str, int] = {}  # of types that rules define
        self._reaches: dict[str, frozenset[str]] = {}  # of types that rules define
        self._schemas: dict[str, EventType] = {}
        self._next_position = 0

    @property
    def rules(self) -> tuple[Deployed, ...]:
        """The deployed rules in the order in which they run at one instant (Law 2)."""
        return tuple(sorted(self._rules.values(), key=lambda one: (one.rank, one.place)))

    def take_changed(self) -> tuple[Deployed, ...]:
        """The rules that are new, or stand elsewhere, since this was last asked."""
        changed = tuple(self._changed.values())
        self._changed.clear()
        return changed

    @property
    def used(self) -> Collection[str]:
        """The names of the types that some rule uses."""
        return self._used.keys()

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark: all instants before it have been evaluated."""
        return {name: self._mark_of(one) for name, one in self._rules.items()}

    def mark(self, name: str) -> int:
        """One rule's mark."""
        return self._mark_of(self._rules[name])

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """The types that deployed rules use or define, ``Timer`` included if they use it."""
        return self._schemas

    def follow(self, other: Catalogue) -> None:
        """Know the marks that another was told. No rule is deployed yet."""
        self.floor = other.floor
        self._named = dict(other._named)
        self.is_level = not self._named

    def deploy(
        self,
        rules: RuleSet,
        since: int | None,
        version: int,
        marks: Mapping[str, int] | None = None,
    ) -> tuple[Deployed, ...]:
        """Add rules after those already there, and give them as deployed.

        Their marks start at ``since``, or those of rules that were evaluated elsewhere where
        ``marks`` says. Raises RuleErrors, and changes nothing, for what Law 1 refuses.
        """
        self._refuse_conflicts(rules.rules)
        start = TIME_MIN if since is None else since
        floors = marks or {}
        added = [
            Deployed(
                rule,
                0,
                self._next_position + place,
                start,
                version,
                floors.get(rule.name, start),
            )
            for place, rule in enumerate(rules.rules)
        ]
        if not self._admit(added):
            self._arrange([*self._rules.values(), *added])
        self._next_position += len(added)
        return tuple(self._rules[one.rule.name] for one in added)

    def remove(self, name: str) -> Deployed:
        """Remove a rule, and give it back; KeyError when no rule has that name."""
        removed = self._rules[name]
        self._changed.pop(name, None)
        if removed.rule.defines.name in self._used:
            self._arrange([one for one in self._rules.values() if one is not removed])
        else:
            self._discount(removed)
            self._follow_groups()
        return removed

    def advance(self, marks: int | Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
        """Raise the marks; the instants [from, to) that each rule has now to be evaluated at.

        Rules whose marks do not rise are left out.
        """
        old = self.groups.marks
        if not self.advance_groups(marks):
            return {}
        due = {}
        for name, one in self._rules.items():
            group = self.groups.numbers[one.group]
            start, end = max(int(old[group]), one.floor), int(self.groups.marks[group])
            if end > start:
                due[name] = (start, end)
        return due

    def advance_groups(self, marks: int | Mapping[str, int]) -> bool:
        """Raise the marks, those of ``groups``; whether that of any group rises."""
        if isinstance(marks, int):
            if marks > self.floor:
                self.floor = marks
                self._type_marks = None
        else:
            for name, mark in marks.items():
                self._name_mark(name, mark)
        if self.is_level:
            return self.groups.raise_to(self.floor)
        raised = self.groups.raised(self._marks_of_types())
        if raised is not None:
            self.groups = raised
        return raised is not None

    def _name_mark(self, name: str, mark: int) -> None:
        """Take a mark that is named for a type."""
        old = self._named.get(name)
        if old is not None and mark <= old:
            return
        self._named[name] = mark
        self.is_level = False
        place = self.groups.place_of(name)
        if old is None or self._type_marks is None:
            self._type_marks = None
        elif place is not None and mark > self._type_marks[place]:
            self._type_marks[place] = mark

    def _marks_of_types(self) -> Int64s:
        """The marks of the types of the groups."""
        if self._type_marks is None:
            marks = [self.mark_of_type(name) for name in self.groups.types]
            self._type_marks = np.array(marks, np.int64)
        return self._type_marks

    def mark_of_type(self, name: str) -> int:
        """Before it, no event of the type will come from outside."""
        if name in self._defined and name not in self._named:
            return TIME_MAX  # its rules' types, which are within reach as well, decide (Law 3)
        return max(self.floor, self._named.get(name, TIME_MIN))

    def _mark_of(self, one: Deployed) -> int:
        return max(one.floor, int(self.groups.marks[self.groups.numbers[one.group]]))

    def _refuse_conflicts(self, rules: Sequence[Rule]) -> None:
        """Raise RuleErrors for names in use and for second schemas (Law 1)."""
        names = set(self._rules)
        schemas = dict(self._schemas)
        problems = []
        for rule in rules:
            if rule.name in names:
                problems.append(Problem(f"a rule named {rule.name} is already deployed"))
            names.add(rule.name)
            for schema in _types_of(rule):
                known = schemas.setdefault(schema.name, schema)
                if known != schema:
                    problems.append(
                        Problem(f"rule {rule.name}: event {schema} is already known as {known}")
                    )
        if problems:
            raise RuleErrors(problems)

    def _admit(self, added: Sequence[Deployed]) -> bool:
        """Add rules by Law 4; False, and no change, when they must be arranged with the others."""
        defined = {one.rule.defines.name for one in added}
        used = {schema.name for one in added for schema in one.rule.used_types}
        if defined & (used | self._used.keys()) or any(map(_is_strict, added)):
            return False
        ranks: dict[str, int] = {}
        for one in added:
            below = max(self._ranks.get(schema.name, 0) for schema in one.rule.used_types)
            name = one.rule.defines.name
            ranks[name] = max(ranks.get(name, 0), below + 1)
        if any(rank > self._ranks.get(name, rank) for name, rank in ranks.items()):
            return False  # the rules that define the type already would have to follow
        self._ranks = {**ranks, **self._ranks}
        for one in added:
            name = one.rule.defines.name
            group = self._group_of(one.rule)
            self._reaches[name] = self._reaches.get(name, frozenset({name})) | group
            self._count(replace(one, rank=self._ranks[name], group=group))
            self._changed[one.rule.name] = self._rules[one.rule.name]
        self._follow_groups()
        return True

    def _group_of(self, rule: Rule) -> frozenset[str]:
        """The types that a rule uses, through the rules that define them too (Law 3)."""
        names = _used_names(rule)
        return names.union(*(self._reaches[name] for name in names if name in self._reaches))

    def _arrange(self, deployed: Sequence[Deployed]) -> None:
        """Take a new collection of rules: ranks, strict uses, groups; RuleErrors for a cycle.

        A rule whose group changes keeps its mark as its floor. A group starts without a mark:
        the next ``advance`` raises it.
        """
        arrangement = arrange([one.rule for one in deployed])
        reaches = _reaches(arrangement.rules)
        self._reaches = reaches
        arranged = [
            self._arranged(one, rule, rank, self._group_of(rule))
            for one, rule, rank in zip(deployed, arrangement.rules, arrangement.ranks, strict=True)
        ]
        self._ranks = {one.rule.defines.name: one.rank for one in arranged}
        self._rules, self._schemas = {}, {}
        self._used, self._defined, self._members = Counter(), {}, Counter()
        for one in arranged:
            self._count(one)
        self._follow_groups()

    def _arranged(self, one: Deployed, rule: Rule, rank: int, group: frozenset[str]) -> Deployed:
        """A rule in its new place; the same object if that is the old one."""
        if one.rule is rule and (one.rank, one.group) == (rank, group):
            return one
        floor = self._mark_of(one) if one.rule.name in self._rules else one.floor
        changed = replace(one, rule=rule, rank=rank, group=group, floor=floor)
        self._changed[rule.name] = changed
        return changed

    def _count(self, one: Deployed) -> None:
        """Enter a rule, and what it uses and defines."""
        self._rules[one.rule.name] = one
        self._members[one.group] += 1
        self._defined.setdefault(one.rule.defines.name, set()).add(one.rule.name)
        self._used.update(_used_names(one.rule))
        self._schemas.update((schema.name, schema) for schema in _types_of(one.rule))

    def _discount(self, one: Deployed) -> None:
        """Undo ``_count``, and forget the rule, when no rule uses its composite events."""
        name = one.rule.defines.name
        del self._rules[one.rule.name]
        _subtract(self._members, [one.group])
        self._defined[name].remove(one.rule.name)
        _subtract(self._used, _used_names(one.rule))
        for schema in _types_of(one.rule):
            if schema.name not in self._used and not self._defined.get(schema.name):
                del self._schemas[schema.name]
        if self._defined.get(name):
            groups = {self._rules[other].group for other in self._defined[name]}
            self._reaches[name] = frozenset({name}).union(*groups)
        else:
            del self._defined[name], self._ranks[name], self._reaches[name]

    def _follow_groups(self) -> None:
        """Have a mark for each group that has a rule, and for no other."""
        self._type_marks = None
        if self._members.keys() != self.groups.numbers.keys():
            self.groups = self.groups.followed_by(self._members)
        is_any_defined = not self._defined.keys().isdisjoint(self.groups.types)
        self.is_level = not (self._named or is_any_defined)


def _types_of(rule: Rule) -> tuple[EventType, ...]:
    return (rule.defines, *rule.used_types)


def _used_names(rule: Rule) -> frozenset[str]:
    return frozenset(schema.name for schema in rule.used_types)


def _is_strict(one: Deployed) -> bool:
    """Whether the rule comes from a set in which it was part of a cycle."""
    return any(use.strict for use in uses_of(one.rule))


def _subtract(counter: Counter[Counted], items: Iterable[Counted]) -> None:
    """Count items one less, and leave out those that are counted no more."""
    for item in items:
        counter[item] -= 1
        if counter[item] == 0:
            del counter[item]


def _reaches(rules: Sequence[Rule]) -> dict[str, frozenset[str]]:
    """For each defined type, itself and all that its rules use, through rules below them too."""
    uses: dict[str, set[str]] = {}
    for rule in rules:
        uses.setdefault(rule.defines.name, set()).update(_used_names(rule))
    return {name: _closure(name, uses) for name in uses}


def _closure(name: str, uses: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached, waiting = {name}, [name]
    while waiting:
        for used in uses.get(waiting.pop(), ()):
            if used not in reached:
                reached.add(used)
                waiting.append(used)
    return frozenset(reached)
