"""Rules that are deployed, the order in which they run, and the instant up to which each has run.

Law 1: a set of rules is taken whole or not at all. It is refused when a name is in use, when it
brings a second schema for a type that deployed rules know (E5), or when the rules together have a
cycle of terminators (S12).

Law 2: simultaneous composite events stand in order of the *place*, (since, position), of their
rules (E4, S15); a position is given once and never again. At one instant rules run in order of
(rank, place), ranks from ``dependencies.arrange`` over all deployed rules, so that the events of
one type come into being in their order.

Law 3: marks never go back. A rule's mark is the least of those of the types that it uses, through
the rules that define these too; rules that use the same types are a *group* and share it, above
each rule's own floor. A type that is defined by a rule, and for which no mark is named, counts as
not published: its mark is that of its rules. ``Timer`` is a type like others, with the mark of the
clock.

Law 4: a rule that comes or goes without closing or opening a cycle concerns only the rules over
its composite events, and these only if its type stands elsewhere then (:mod:`standings`): it
changes neither what is strict for others nor their ranks or groups. All else is arranged anew as
a whole.

Law 5: what is strict at an instant, and in which order rules run there, follows from the rules that
hold there (S12, S15), whenever it is evaluated. Where a rule of a cycle begins later than others of
the cycle have been evaluated up to, there is a *turn*: these, and all above them, wait there, and
are arranged with it once those of the cycle are there. They have one group between them, so none
keeps the others; what is above changes its rank alone. Where one ends it is removed when all have
come there (:mod:`rules.engine.order.intervals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from matcher.errors import SchemaError
from matcher.identity import Key, rule_key
from matcher.model import TIME_MAX, TIME_MIN, EventType
from rules.checking.dependencies import arrange
from rules.engine.order.groups import Groups
from rules.engine.order.standings import Shape, Standings, subtract
from rules.errors import Problem, RuleErrors
from rules.pattern import TIMER, Rule, RuleSet, uses_of

TURN = "\0"
"""Before the name of a rule, in groups, in place of a type: its mark is where the rule begins
(Law 5)."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """One deployed rule: ``strict`` decided, with its place among the others.

    ``since`` is the first instant that the rule sees (S15; TIME_MIN: from the beginning);
    ``position`` counts all rules ever deployed; ``rank`` see ``dependencies.arrange``. ``group``
    holds the types whose marks bind the rule; every instant before ``floor`` is done with,
    whatever they say. One that ``has_ended`` (:mod:`rules.overrun`) is evaluated no more,
    and its marks go on.
    """

    rule: Rule
    rank: int
    position: int
    since: int
    version: int
    floor: int
    group: frozenset[str] = frozenset()
    has_ended: bool = False

    @property
    def key(self) -> Key:
        """The seed of the ids of the rule's composite events (tesla.md section 4)."""
        return rule_key(self.rule.name, self.version)

    @property
    def types(self) -> tuple[EventType, ...]:
        """The types that the rule defines and uses; one may be both."""
        return tuple(dict.fromkeys((self.rule.defines, *self.rule.used_types)))

    @property
    def place(self) -> tuple[int, int]:
        """Where the rule's composite events stand among simultaneous ones (E4, S15)."""
        return self.since, self.position


class _Turn(NamedTuple):
    """Where a rule of a cycle begins (Law 5), the type that it defines, and the cycle's rules."""

    instant: int
    type: str
    cycle: tuple[str, ...]


class Catalogue:
    """The deployed rules of one engine and their marks."""

    def __init__(self) -> None:
        self._rules: dict[str, Deployed] = {}
        self.groups = Groups.of((), np.empty(0, np.int64))
        self._is_told = False
        """Whether ``groups`` know the marks of their types."""
        self.is_level = True
        """Whether every type that matters to a mark has the same one, ``floor``: none has one of
        its own, and no rule defines one."""
        self.floor = TIME_MIN
        """The greatest mark named for all types."""
        self._named: dict[str, int] = {}  # the greatest mark named for a type
        self._standings = Standings()
        self._changed: dict[str, Deployed] = {}
        self._members: Counter[frozenset[str]] = Counter()  # by group
        self._schemas: dict[str, EventType] = {}
        self._equal: dict[str, EventType] = {}  # what was last found to be the known schema
        self._next_position = 0
        self._turns: dict[str, _Turn] = {}
        """The turns of Law 5, by the name that stands for each in groups."""
        self.has_turns = False
        """Whether rules wait where a rule of a cycle begins (Law 5)."""

    @property
    def rules(self) -> tuple[Deployed, ...]:
        """The deployed rules in the order in which they run at one instant (Law 2)."""
        return tuple(sorted(self._rules.values(), key=lambda one: (one.rank, one.place)))

    @property
    def is_in_order(self) -> bool:
        """Whether rules run at one instant in the order of their places (E4)."""
        rules = self.rules
        return all(one.place < other.place for one, other in pairwise(rules))

    def take_changed(self) -> tuple[Deployed, ...]:
        """The rules that are new, or stand elsewhere, since this was last asked."""
        changed = tuple(self._changed.values())
        self._changed.clear()
        return changed

    def known(self, type_: EventType) -> EventType | None:
        """The schema that rules know of a type, if some do; SchemaError when it is another."""
        known = self._schemas.get(type_.name)
        if known is type_ or (known is not None and self._equal.get(type_.name) is type_):
            return known
        if type_.name == TIMER.name or known not in (None, type_):
            raise SchemaError(f"event {type_} is already known as {known or TIMER}")
        self._equal[type_.name] = type_
        return known

    @property
    def used(self) -> Collection[str]:
        """The names of the types that some rule uses."""
        return self._standings.used

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark: all instants before it have been evaluated."""
        marks = {group: self.groups.mark(group) for group in self.groups.numbers}
        return {name: max(one.floor, marks[one.group]) for name, one in self._rules.items()}

    def mark(self, name: str) -> int:
        """One rule's mark."""
        one = self._rules[name]
        return max(one.floor, self.groups.mark(one.group))

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
        since: int,
        version: int,
        marks: Mapping[str, int] | None = None,
    ) -> tuple[Deployed, ...]:
        """Add rules after those already there, and give them as deployed.

        Their marks start at ``since``, or those of rules that were evaluated elsewhere where
        ``marks`` says. Raises RuleErrors, and changes nothing, for what Law 1 refuses.
        """
        self._refuse_conflicts(rules.rules)
        floors = marks or {}
        added = [
            Deployed(
                rule,
                0,
                self._next_position + place,
                since,
                version,
                floors.get(rule.name, since),
            )
            for place, rule in enumerate(rules.rules)
        ]
        if not self._admit(added):
            self._arrange([*self._rules.values(), *added])
        self._next_position += len(added)
        return tuple(self._rules[one.rule.name] for one in added)

    def go_on_from(self, name: str, mark: int) -> None:
        """Have a rule evaluated at no instant before a mark."""
        one = self._rules[name]
        self._rules[name] = self._changed[name] = replace(one, floor=max(mark, one.floor))

    def remove(self, name: str) -> Deployed:
        """Remove a rule, and give it back; KeyError when no rule has that name."""
        removed = self._rules[name]
        self._standings.drop(removed.rule)
        changed = None
        if not (removed.rule.is_strict or TURN + name in self._turns):
            changed = self._standings.follow([removed.rule.defines.name])
        if changed is None:
            self._arrange([one for one in self._rules.values() if one is not removed])
        else:
            self._discount(removed)
            self._stand_anew(changed)
            self._follow_groups()
        self._changed.pop(name, None)
        return removed

    def end(self, name: str) -> Deployed:
        """Evaluate a rule no more; gives it so."""
        ended = self._rules[name] = replace(self._rules[name], has_ended=True)
        return ended

    def has_ended(self, name: str) -> bool:
        """Whether a rule is evaluated no more."""
        return self._rules[name].has_ended

    def is_above_timers(self, rule: Rule) -> bool:
        """Whether events that a rule uses may be composite ones that come of a Timer's ticks."""
        return any(self._standings.is_made_of(use.type.name, TIMER.name) for use in uses_of(rule))

    def turn(self) -> bool:
        """Arrange rules with those that begin where all of their cycle are; whether there are some.
        Then all has to ``advance`` once more, without other marks.
        """
        turns = self._turns.values()
        if not any(all(self.mark(one) >= turn.instant for one in turn.cycle) for turn in turns):
            return False
        self._arrange(list(self._rules.values()))
        return True

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
            if end > start and not one.has_ended:
                due[name] = (start, end)
        return due

    def advance_groups(self, marks: int | Mapping[str, int]) -> bool:
        """Raise the marks, those of ``groups``; whether that of any group rises."""
        if isinstance(marks, int):
            if marks > self.floor:
                self.floor = marks
                if self._turns:
                    self._is_told = False  # not all types have that mark
                if self._is_told:
                    self.groups.raise_types(marks)
        else:
            self._name_marks(marks)
        groups = self.groups
        if self.is_level:
            return groups.raise_to(self.floor)
        if not self._is_told:
            groups.take_types([self.mark_of_type(name) for name in groups.types])
            self._is_told = True
        return groups.rise()

    def _name_marks(self, marks: Mapping[str, int]) -> None:
        """Take marks that are named for types."""
        named, groups = self._named, self.groups
        for name, mark in marks.items():
            old = named.get(name)
            if old is None:
                self.is_level = self._is_told = False  # from now on it has one of its own
            elif mark <= old:
                continue
            named[name] = mark
            groups.raise_type(name, mark)

    def forget_named(self) -> None:
        """Types have no marks of their own until they are named again; rules keep theirs."""
        self._named.clear()
        self._follow_groups()

    def mark_of_type(self, name: str) -> int:
        """Before it, no event of the type will come from outside."""
        if name in self._turns:
            return self._turns[name].instant
        if name in self._standings.defined and name not in self._named:
            return TIME_MAX  # its rules' types, which are within reach as well, decide (Law 3)
        return max(self.floor, self._named.get(name, TIME_MIN))

    def _refuse_conflicts(self, rules: Sequence[Rule]) -> None:
        """Raise RuleErrors for names in use and for second schemas (Law 1)."""
        names: set[str] = set()
        schemas: dict[str, EventType] = {}
        problems = []
        for rule in rules:
            if rule.name in names or rule.name in self._rules:
                problems.append(Problem(f"a rule named {rule.name} is already deployed"))
            names.add(rule.name)
            for schema in (rule.defines, *rule.used_types):
                known = self._schemas.get(schema.name) or schemas.setdefault(schema.name, schema)
                if known != schema:
                    problems.append(
                        Problem(f"rule {rule.name}: event {schema} is already known as {known}")
                    )
        if problems:
            raise RuleErrors(problems)

    def _admit(self, added: Sequence[Deployed]) -> bool:
        """Add rules by Law 4; False, and no change, when all must be arranged together."""
        if any(one.rule.is_strict for one in added):
            return False
        standings = self._standings
        for one in added:
            standings.add(one.rule)
        changed = standings.follow({one.rule.defines.name for one in added})
        if changed is None:
            for one in added:
                standings.drop(one.rule)
            return False
        self._stand_anew(changed)
        for one in added:
            self._changed[one.rule.name] = self._count(self._placed(one))
        self._follow_groups()
        return True

    def _stand_anew(self, types: Collection[str]) -> None:
        """Give the rules that define or use types which stand elsewhere now their new places."""
        if not types:
            return
        for name in self._standings.rules_over(types):
            one = self._rules.get(name)
            if one is None:
                continue  # it is being added
            placed = self._placed(one)
            if placed is not one:
                subtract(self._members, one.group)
                self._changed[name] = self._count(placed)

    def _arrange(self, deployed: Sequence[Deployed]) -> None:
        """Take a new collection of rules: ranks, strict uses, groups; RuleErrors for a cycle."""
        decided, ranks = _arranged(deployed)
        standings = _standings(decided.values(), ranks)
        holding, turns = self._turns_of(deployed, standings)
        if len(holding) < len(deployed):
            decided_now, ranks_now = _arranged(holding)
            decided, ranks = decided | decided_now, ranks | ranks_now
            standings = _standings(decided.values(), ranks)
        self._standings, self._turns, self.has_turns = standings, turns, bool(turns)
        before, self._rules, self._schemas, self._members = self._rules, {}, {}, Counter()
        self._equal.clear()
        for one in deployed:
            rule = decided[one.rule.name]
            placed = self._placed(one if one.rule is rule else replace(one, rule=rule))
            self._count(placed)
            if before.get(rule.name) is not placed:
                self._changed[rule.name] = placed
        self._follow_groups()

    def _turns_of(
        self, deployed: Sequence[Deployed], standings: Standings
    ) -> tuple[list[Deployed], dict[str, _Turn]]:
        """The rules that are arranged together now, which are all but those of cycles that begin
        later; and the turns that lie ahead.
        """
        groups = {one.rule.name: standings.group(Shape.of(one.rule)) for one in deployed}
        cyclic = [one for one in deployed if one.rule.defines.name in groups[one.rule.name]]
        holding, turns = list(deployed), dict[str, _Turn]()
        for one in cyclic:
            if one.since == TIME_MIN:
                continue
            within, type_ = groups[one.rule.name], one.rule.defines.name
            cycle = [
                other
                for other in cyclic
                if other.rule.defines.name in within and type_ in groups[other.rule.name]
            ]
            if min(map(self._reached, cycle)) < one.since:
                holding.remove(one)
                names = tuple(other.rule.name for other in cycle)
                turns[TURN + one.rule.name] = _Turn(one.since, type_, names)
        return holding, turns

    def _reached(self, one: Deployed) -> int:
        """Up to where a rule has been evaluated, be it deployed yet or not."""
        if one.group in self.groups.numbers:
            return max(one.floor, self.groups.mark(one.group))
        return one.floor

    def _placed(self, one: Deployed) -> Deployed:
        """A rule in the place that it has now; the same object if that is the old one.

        If its group changes it keeps its mark as its floor. A group starts without a mark: the
        next ``advance`` raises it.
        """
        rank = self._standings.rank(one.rule.defines.name)
        group = self._standings.group(Shape.of(one.rule))
        if self._turns:
            group |= {name for name, turn in self._turns.items() if turn.type in group}
        if (one.rank, one.group) == (rank, group):
            return one
        return replace(one, rank=rank, group=group, floor=self._reached(one))

    def _count(self, one: Deployed) -> Deployed:
        """Enter a rule, and the schemas that it knows."""
        self._rules[one.rule.name] = one
        self._members[one.group] += 1
        self._schemas.update((schema.name, schema) for schema in one.types)
        return one

    def _discount(self, one: Deployed) -> None:
        """Undo ``_count``, and forget the rule."""
        del self._rules[one.rule.name]
        subtract(self._members, one.group)
        for schema in one.types:
            if schema.name not in self.used and schema.name not in self._standings.defined:
                self._schemas.pop(schema.name, None)
                self._equal.pop(schema.name, None)

    def _follow_groups(self) -> None:
        """Have a mark for each group that has a rule, and for no other."""
        self._is_told = False
        if self._members.keys() != self.groups.numbers.keys():
            self.groups = self.groups.followed_by(self._members)
        is_any_defined = not self._standings.defined.isdisjoint(self.groups.types)
        self.is_level = not (self._named or is_any_defined)


def _arranged(deployed: Sequence[Deployed]) -> tuple[dict[str, Rule], dict[str, int]]:
    """Rules by name with what is strict among them decided, and the ranks of their types."""
    arrangement = arrange([one.rule for one in deployed])
    rules = {rule.name: rule for rule in arrangement.rules}
    names = (rule.defines.name for rule in arrangement.rules)
    return rules, dict(zip(names, arrangement.ranks, strict=True))


def _standings(rules: Iterable[Rule], ranks: Mapping[str, int]) -> Standings:
    standings = Standings()
    for rule in rules:
        standings.add(rule)
    standings.take(ranks)
    return standings
