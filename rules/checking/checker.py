"""From syntax tree to checked rules (tesla.md sections 2, 3 and 5).

Types come first (:mod:`rules.checking.schemas`), then each rule by itself against them
(:mod:`rules.checking.clauses`), then the rules together (:mod:`rules.checking.dependencies`). A
rule whose types are still open, because some ``define`` leaves kinds out, waits until the rules
that settle them have been checked; so a recursive type gets its kinds from its rule that is not
recursive. Where all rules that are left wait, one whose values follow from settled types alone
settles its own: ``define Alarm(id) from T(id = $i) and not Alarm(id = $i) ... where id = $i``.
Everything wrong is reported at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from matcher.model import EventType
from matcher.spelling import spelled
from rules.checking.clauses import check_rule
from rules.checking.dependencies import TerminatorCycles, arrange, describe_cycle
from rules.checking.schemas import Schemas
from rules.checking.scope import Report, Types
from rules.errors import Problem, Span
from rules.pattern import Rule, RuleSet
from rules.stepwise import Stepwise, finished
from rules.syntax import ast
from rules.syntax.together import refusal
from runtime.collector import collector_paused


def check(file: ast.File, known: Mapping[str, EventType] | None = None) -> RuleSet:
    """Check a rules file; ``known`` holds the types that others have declared.

    Raises RuleErrors with everything that is wrong.
    """
    return check_reading(file, known or {}, (), frozenset())


@collector_paused()
def check_reading(
    file: ast.File,
    known: Mapping[str, EventType],
    problems: Sequence[Problem],
    lost: frozenset[str | None],
) -> RuleSet:
    """Check what could be read of a text, and report its ``problems`` along with those found.

    ``lost`` names the types whose statements could not be read (None: one that has no name).
    """
    return finished(checking_reading(file, known, problems, lost))


def checking_reading(
    file: ast.File,
    known: Mapping[str, EventType],
    problems: Sequence[Problem],
    lost: frozenset[str | None],
) -> Stepwise[RuleSet]:
    """The same, rule by rule."""
    report = Report(list(problems))
    schemas = Schemas(file, known, set(lost), report)
    rules_of_file = _Rules(file, schemas, report)
    yield from rules_of_file.check()
    checked = rules_of_file.checked
    if not report.problems:
        rules = [rule for rule in checked if rule is not None]
        try:
            return RuleSet(arrange(rules).rules, schemas.known)
        except TerminatorCycles as refused:
            defining: dict[str, list[ast.Rule]] = {}
            for rule in rules_of_file.rules:
                defining.setdefault(rule.type.text, []).append(rule)
            for cycle in refused.cycles:
                report(describe_cycle(cycle), _place_of(cycle, defining))
    raise refusal(file, report.problems)


class _Rules:
    """The rules of one file, checked as soon as the types that they use are settled."""

    def __init__(self, file: ast.File, schemas: Schemas, report: Report) -> None:
        self.rules = [rule for rule in file.statements if isinstance(rule, ast.Rule)]
        self.schemas = schemas
        self.report = report
        self.types = Types(schemas.known, schemas.lost)
        self.names = _names(self.rules, report)
        self.checked: list[Rule | None] = [None] * len(self.rules)
        self.ready: list[int] = []
        self.waiting: dict[int, set[str]] = {}
        self.waiters: dict[str, list[int]] = {}
        self.untried: list[int] = []
        """The waiting rules from which nothing has been inferred since they waited for less."""

    def check(self) -> Iterator[None]:
        """Check each rule; those with a problem stay None."""
        open_ = self.schemas.open
        for place, rule in enumerate(self.rules):
            uses = _types_in(rule) & open_ if open_ else set()
            if uses:
                self.waiting[place] = uses
                self.untried.append(place)  # ascending, too
                for name in uses:
                    self.waiters.setdefault(name, []).append(place)
            else:
                self.ready.append(place)  # ascending, hence a heap already
        while self.ready or self.waiting:
            if not self.ready and not self._infer():
                self._give_up()
            while self.ready:
                self._check(heapq.heappop(self.ready))
                yield

    def _check(self, place: int) -> None:
        rule, name = self.rules[place], self.rules[place].type.text
        self.checked[place], defined = check_rule(
            rule, self.names[place], self.schemas.drafted(name), self.types, self.report
        )
        if self.schemas.is_open(name):
            if defined is None:
                self.schemas.lost.add(name)  # what is wrong with it has been reported
            else:
                self.schemas.settle(defined)
            self._wake(name)

    def _wake(self, name: str) -> None:
        """The rules that waited for this type alone can be checked."""
        for place in self.waiters.pop(name, ()):
            uses = self.waiting.get(place, set())
            uses.discard(name)
            if uses:
                heapq.heappush(self.untried, place)
            elif self.waiting.pop(place, None) is not None:
                heapq.heappush(self.ready, place)

    def _infer(self) -> bool:
        """Settle a type by a rule that waits, for another type or for its own, but whose values do
        not depend on any that is open. Whether there was one.
        """
        unheard = Report()  # it is checked once more, with the types that it waits for
        types = Types(self.schemas.known, (None,))
        while self.untried:
            place = heapq.heappop(self.untried)
            rule, name = self.rules[place], self.rules[place].type.text
            if place in self.waiting and self.schemas.is_open(name):
                kinds = self.schemas.drafted(name)
                _, defined = check_rule(rule, self.names[place], kinds, types, unheard)
                if defined is not None:
                    self.schemas.settle(defined)
                    self._wake(name)
                    return True
        return False

    def _give_up(self) -> None:
        """No waiting rule can settle the types that they all wait for."""
        for place in self.waiting:
            rule = self.rules[place]
            if self.schemas.is_open(rule.type.text):
                kinds = self.schemas.drafted(rule.type.text)
                for declared in rule.attributes:
                    if kinds[declared.name.text].kind is None:
                        self._ask_for(declared.name)
                self.schemas.lost.add(rule.type.text)
        self.ready.extend(self.waiting)
        self.waiting.clear()

    def _ask_for(self, attribute: ast.Name) -> None:
        """Report that nothing says of which kind an attribute is."""
        self.report(
            f"the type of {attribute.text} cannot be inferred",
            attribute.span,
            "write its type (int, float, bool or string) behind it: "
            f"{spelled(attribute.text)}: int",
        )


def _names(rules: Sequence[ast.Rule], report: Report) -> list[str]:
    """The rules' names; those without one are called after their types (tesla.md section 2)."""
    taken: set[str] = set()
    for rule in rules:
        if rule.name is not None:
            if rule.name.text in taken:
                report(f"{rule.name.text} names two rules", rule.name.span)
            taken.add(rule.name.text)
        name = rule.name or rule.type
        if "@" in name.text:  # which sets apart what rules that have ended found
            report(f"{name.text} names no rule: it has an @", name.span, "write rule NAME: define")
    numbers: dict[str, int] = {}
    return [
        rule.name.text if rule.name else _unused(rule.type.text, taken, numbers) for rule in rules
    ]


def _unused(type_: str, taken: set[str], numbers: dict[str, int]) -> str:
    """``TYPE`` for the first rule of a type, then ``TYPE#2`` and so on, as far as they are free."""
    while True:
        numbers[type_] = number = numbers.get(type_, 0) + 1
        name = type_ if number == 1 else f"{type_}#{number}"
        if name not in taken:
            taken.add(name)
            return name


def _types_in(rule: ast.Rule) -> set[str]:
    """The names of every type that a rule uses."""
    names: set[str] = set()
    nodes: list[ast.Node] = [rule]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Event):
            names.add(node.type.text)
        nodes.extend(ast.children(node))
    return names


def _place_of(cycle: Sequence[str], defining: Mapping[str, Sequence[ast.Rule]]) -> Span:
    """The first terminator on a cycle of types; ``defining`` has the rules of each."""
    types = set(cycle)
    return min(
        event.span
        for type_ in cycle
        for rule in defining.get(type_, ())
        for event in rule.opening
        if event.type.text in types
    )
