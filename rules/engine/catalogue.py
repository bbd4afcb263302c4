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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.identity import Key, rule_key
from matcher.model import TIME_MAX, TIME_MIN, EventType
from rules.dependencies import arrange
from rules.errors import Problem, RuleErrors
from rules.pattern import Rule, RuleSet


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
        self._groups: dict[frozenset[str], int] = {}  # their marks
        self._floor = TIME_MIN  # the greatest mark named for all types
        self._named: dict[str, int] = {}  # the greatest mark named for a type
        self._defined: frozenset[str] = frozenset()
        self._schemas: dict[str, EventType] = {}
        self._next_position = 0

    @property
    def rules(self) -> tuple[Deployed, ...]:
        """The deployed rules in the order in which they run at one instant (Law 2)."""
        return tuple(sorted(self._rules.values(), key=lambda one: (one.rank, one.place)))

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark: all instants before it have been evaluated."""
        return {name: self._mark_of(one) for name, one in self._rules.items()}

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """The types that deployed rules use or define, ``Timer`` included if they use it."""
        return self._schemas

    def deploy(self, rules: RuleSet, since: int | None, version: int) -> tuple[Deployed, ...]:
        """Add rules after those already there, and give them as deployed.

        Their marks start at ``since``. Raises RuleErrors, and changes nothing, for what Law 1
        refuses.
        """
        self._refuse_conflicts(rules.rules)
        start = TIME_MIN if since is None else since
        added = [
            Deployed(rule, 0, self._next_position + place, start, version, start)
            for place, rule in enumerate(rules.rules)
        ]
        self._arrange([*self._rules.values(), *added])
        self._next_position += len(added)
        return tuple(self._rules[one.rule.name] for one in added)

    def remove(self, name: str) -> Deployed:
        """Remove a rule, and give it back; KeyError when no rule has that name."""
        removed = self._rules[name]
        self._arrange([one for one in self._rules.values() if one is not removed])
        return removed

    def advance(self, marks: int | Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
        """Raise the marks; the instants [from, to) that each rule has now to be evaluated at.

        Rules whose marks do not rise are left out.
        """
        risen = self.advance_groups(marks)
        due = {}
        for name, one in self._rules.items():
            if one.group in risen:
                old, new = risen[one.group]
                if new > one.floor:
                    due[name] = (max(old, one.floor), new)
        return due

    def advance_groups(
        self, marks: int | Mapping[str, int]
    ) -> Mapping[frozenset[str], tuple[int, int]]:
        """Raise the marks; the old and the new mark of each group whose mark rises."""
        if isinstance(marks, int):
            self._floor = max(self._floor, marks)
        else:
            for name, mark in marks.items():
                self._named[name] = max(self._named.get(name, TIME_MIN), mark)
        risen = {}
        for group, old in self._groups.items():
            new = min(map(self.mark_of_type, group), default=TIME_MAX)
            if new > old:
                risen[group] = (old, new)
        self._groups.update((group, new) for group, (_, new) in risen.items())
        return risen

    def mark_of_type(self, name: str) -> int:
        """Before it, no event of the type will come from outside."""
        if name in self._defined and name not in self._named:
            return TIME_MAX  # its rules' types, which are within reach as well, decide (Law 3)
        return max(self._floor, self._named.get(name, TIME_MIN))

    def _mark_of(self, one: Deployed) -> int:
        return max(one.floor, self._groups[one.group])

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

    def _arrange(self, deployed: Sequence[Deployed]) -> None:
        """Take a new collection of rules: ranks, strict uses, groups; RuleErrors for a cycle.

        A rule whose group changes keeps its mark as its floor. A group starts without a mark:
        the next ``advance`` raises it.
        """
        arrangement = arrange([one.rule for one in deployed])
        reaches = _reaches(arrangement.rules)
        self._rules = {
            one.rule.name: replace(
                one,
                rule=rule,
                rank=rank,
                group=reaches[rule.name],
                floor=self._mark_of(one) if one.rule.name in self._rules else one.floor,
            )
            for one, rule, rank in zip(deployed, arrangement.rules, arrangement.ranks, strict=True)
        }
        self._groups = {group: self._groups.get(group, TIME_MIN) for group in set(reaches.values())}
        self._schemas = {
            schema.name: schema for rule in arrangement.rules for schema in _types_of(rule)
        }
        self._defined = frozenset(rule.defines.name for rule in arrangement.rules)


def _types_of(rule: Rule) -> tuple[EventType, ...]:
    return (rule.defines, *rule.used_types)


def _reaches(rules: Sequence[Rule]) -> dict[str, frozenset[str]]:
    """For each rule by name, the types that it uses, through the rules that define them too."""
    uses: dict[str, set[str]] = {}
    for rule in rules:
        used = uses.setdefault(rule.defines.name, set())
        used.update(schema.name for schema in rule.used_types)
    closures: dict[str, frozenset[str]] = {}
    reaches = {}
    for rule in rules:
        names = [schema.name for schema in rule.used_types]
        reached: set[str] = set()
        for name in names:
            if name not in closures:
                closures[name] = _closure(name, uses)
            reached |= closures[name]
        reaches[rule.name] = frozenset(reached)
    return reaches


def _closure(name: str, uses: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached, waiting = {name}, [name]
    while waiting:
        for used in uses.get(waiting.pop(), ()):
            if used not in reached:
                reached.add(used)
                waiting.append(used)
    return frozenset(reached)
