"""One rule, from its terminator to its last consumed name, against known event types (S1 to S11).

Rule 1 (S3): a parameter is bound where it first occurs, as ``attribute = $p`` in a terminator or
a selected event, or as ``$p = item`` in a constraint; of the links of one chain, those that bind
come first. A binding inside ``or`` or ``not`` would bind only sometimes, and is none.

Rule 2: a parameter that is bound to an attribute, a constant or another parameter stands for
that; only what has to be computed gets a slot, filled once by a :class:`Let`.

Rule 3: what can be checked is checked, whatever else is wrong; a rule with a problem gives None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from matcher.model import EventType, Kind
from matcher.spelling import spelled
from rules.checking.alternatives import Read, agree, ways
from rules.checking.expressions import Enclosing, Expressions, as_declared, conjuncts
from rules.checking.nulls import conjuncts_of, given, plain, worth
from rules.checking.schemas import Said, made
from rules.checking.scope import LOST, Report, Scope, Types
from rules.pattern import (
    TIMER,
    UTC,
    Clause,
    Constraint,
    Let,
    Negated,
    Policy,
    Rule,
    Selected,
    Timed,
)
from rules.syntax import ast
from rules.syntax.printer import print_rule
from rules.syntax.tokens import NESTING_MAX
from rules.terms import (
    CANDIDATE,
    TERMINATOR,
    Aggregate,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Function,
    Literal,
    Run,
    Slot,
    Within,
    nodes_of,
    rewritten,
)
from rules.zones import is_zone, is_zone_field, zone_named

_ALONE = "its events are the whole pattern; let another rule use what this one defines"
RANK_MAX = 2**31 - 1
"""The greatest k of ``k-first`` and ``k-last``."""
TOGETHER_MAX = 64
"""So many events may come together: the rule is looked for from each of them as the latest."""


def check_rule(
    rule: ast.Rule, name: str, kinds: Mapping[str, Said], types: Types, report: Report
) -> tuple[Rule | None, EventType | None]:
    """The checked rule, and the type that it defines.

    ``kinds`` holds the attributes of that type, as far as they are declared; the others follow
    from ``where`` (tesla.md section 2). Either result is None when something keeps it from being
    known, which is reported.
    """
    choices = ways(rule, report)
    way = next(choices, None)
    if way is None:
        return None, None
    first, defines = _RuleCheck(rule, types, report, way).run(name, kinds)
    if first is None:
        return None, defines
    others = []
    for way in choices:
        other, _ = _RuleCheck(rule, types, report, way).run(name, kinds)
        if other is None:  # a type whose statement could not be read, which was reported
            return None, defines
        others.append(other)
    return replace(first, alternatives=(first, *others)) if others else first, defines


class _RuleCheck:
    """The check of one rule: walks its text from top to bottom, once.

    ``way`` says, by event, which of its alternatives is taken to occur (X2).
    """

    def __init__(self, rule: ast.Rule, types: Types, report: Report, way: tuple[int, ...]) -> None:
        self.way = way
        self.rule = rule
        self.types = types
        self.report = report
        self.scope = Scope(rule, report)
        self.expressions = Expressions(self.scope, types, report)
        self.slots: list[Kind] = []
        self.clauses: list[Clause] = []

    def run(self, name: str, kinds: Mapping[str, Said]) -> tuple[Rule | None, EventType | None]:
        before, opening = len(self.report.problems), self.rule.terminator
        terminator, conditions = self._opening(self.rule.terminator)
        for clause in self.rule.clauses:
            self._clause(clause)
        values = self._values()
        consuming = self._consuming()
        defines = _defined(self.rule.type.text, kinds, values, self.scope.there)
        checked = self._declared_values(defines, values)
        if len(self.report.problems) > before or not (terminator and defines):
            return None, defines
        assert conditions is not None  # or there would be a problem
        return Rule(
            name,
            defines,
            terminator,
            conditions,
            tuple(self.clauses),
            checked,
            consuming,
            self._event_names(),
            tuple(self.slots),
            print_rule(self.rule),
            opening.duration if isinstance(opening, ast.Together) else None,
        ), defines

    # --- clauses -----------------------------------------------------------------------------

    def _opening(
        self, opening: ast.Event | ast.Either | ast.Together
    ) -> tuple[EventType | None, tuple[Expression, ...] | None]:
        """The terminator's type and conditions, or those of the first event of ``all`` (X1)."""
        if not isinstance(opening, ast.Together):
            read, *_ = self._event(opening, None, "")
            return read.type, read.conditions
        if len(opening.events) > TOGETHER_MAX:
            self.report(
                f"all is of {len(opening.events)} events, more than {TOGETHER_MAX}",
                opening.events[TOGETHER_MAX].span,
                "let rules of their own find some of them, and another rule use what these define",
            )
        first, *others = opening.events
        read, *_ = self._event(first, None, "one of all")
        for event in others:
            self._comes_together(event, opening.duration)
        for clause in self.rule.clauses:
            if not isinstance(clause, ast.Constraint):
                self.report("only constraints may follow all ... within", clause.span, _ALONE)
        return read.type, read.conditions

    def _comes_together(self, event: ast.Event, duration: int) -> None:
        """One of the events of ``all`` behind the first."""
        number = self.scope.next
        read, *_ = self._event(event, None, "one of all")
        if read.type is not None and read.conditions is not None:
            window = Within(duration, TERMINATOR)
            self.clauses.append(
                Selected(number, read.type, Policy.EACH, 0, read.conditions, window, False)
            )

    def _clause(self, clause: ast.Clause) -> None:
        match clause:
            case ast.Selected():
                self._selected(clause)
            case ast.Negated():
                self._negated(clause)
            case ast.Timed():
                self._timed(clause)
            case ast.Constraint():
                self._constraint(clause)

    def _selected(self, clause: ast.Selected) -> None:
        if clause.policy is not Policy.EACH and not 1 <= clause.rank <= RANK_MAX:
            span = clause.span._replace(end=clause.span.start + len(str(clause.rank)))
            self.report(f"k of {clause.policy.value} must be from 1 to {RANK_MAX}", span)
        if clause.times is not None:
            self._iteration(clause, clause.times)
            return
        number = self.scope.next
        # The window is read after the conditions, but its anchor must stand before the event.
        window = self.scope.within(clause.window)
        read = self._event(clause.event, LOST if window is None else window.anchor, "selected")
        sound = [
            Selected(number, one.type, clause.policy, clause.rank, one.conditions, window, False)
            for one in read
            if one.type is not None and window is not None and one.conditions is not None
        ]
        if len(sound) == len(read):
            selected, *rivals = sound
            is_single = clause.policy is not Policy.EACH
            self.clauses.append(replace(selected, rivals=tuple(rivals) if is_single else ()))

    def _iteration(self, clause: ast.Selected, times: ast.Times) -> None:
        """A selection among runs (X4): of the last event of one, where it is long enough."""
        number, most, event = self.scope.next, times.most or 0, clause.event
        if not 1 <= times.least <= (times.most or RANK_MAX) <= RANK_MAX or times.most == 0:
            self.report(
                f"an iteration's bounds are from 1 to {RANK_MAX}, the least first",
                times.span,
                "write 2..5, or 2.. without a bound",
            )
        window = self.scope.within(clause.window)
        anchor = LOST if window is None else window.anchor
        if not isinstance(event, ast.Event):
            self.report("an iteration is of events of one type", event.span)
            self._event(event, anchor, "selected")
            self.scope.runs[number] = None
            return
        type_ = self.expressions.not_timer(event, "selected")
        read = self.expressions.repeated(event, type_)
        self.scope.introduce(event, event, [type_], anchor)
        self.scope.runs[number] = None
        if type_ is None or window is None or read is None:
            return
        own, kept, between = read
        run = Run(number, between, most, kept)
        count = Aggregate(Function.COUNT, type_, own, None, window, False, Kind.INT, run)
        self.scope.runs[number] = count
        asked = tuple(rewritten(one, partial(_of_event, number)) for one in (*own, *kept))
        self.scope.asked(asked)
        enough = Compare(Comparison.GREATER_EQUAL, count, Literal(times.least, Kind.INT))
        self.clauses.append(
            Selected(number, type_, clause.policy, clause.rank, (*asked, enough), window, False)
        )

    def _negated(self, clause: ast.Negated) -> None:
        type_ = self.expressions.nameless(clause.event, "negated")
        conditions = self.expressions.uses(clause.event, type_)
        window = self.scope.window(clause.window)
        if type_ is not None and conditions is not None and window is not None:
            self.clauses.append(Negated(type_, conditions, window, False))

    def _timed(self, clause: ast.Timed) -> None:
        number, window = self.scope.find(clause.event), self.scope.within(clause.window)
        if number is not None and window is not None:
            self.clauses.append(Timed(number, window))

    def _constraint(self, clause: ast.Constraint) -> None:
        for item in conjuncts(clause.item):
            self.clauses.extend(map(Constraint, self._item(item, None)))

    # --- events and items --------------------------------------------------------------------

    def _event(self, event: ast.Event | ast.Either, anchor: int | None, role: str) -> list[Read]:
        """The alternatives of the terminator or a selected event, which is then introduced.

        The one that is taken to occur is the first; ``role`` is what a Timer may not be.
        """
        is_either = isinstance(event, ast.Either)
        bound, there = self.scope.parameters, self.scope.there
        read = []
        for one in ast.alternatives_of(event):
            self.scope.parameters, self.scope.there = dict(bound), there
            read.append(self._alternative(one, "one of several" if is_either else role))
        if is_either:
            agree(read, event.span, bound, self.report)
        read.insert(0, read.pop(self.way[self.scope.next]))
        self.scope.parameters, self.scope.there = read[0].parameters, read[0].there
        self.scope.introduce(event, read[0].event, [one.type for one in read], anchor)
        return read

    def _alternative(self, event: ast.Event, role: str) -> Read:
        """The type and conditions of an event."""
        if role:
            type_ = self.expressions.not_timer(event, role)
        else:
            type_ = self.types.find(event.type, self.report)
        before = len(self.report.problems)
        enclosing = Enclosing(self.scope.next, type_)
        conditions = tuple(
            checked
            for condition in self.expressions.written_out(event, type_)
            for item in conjuncts(condition)
            for checked in self._item(item, enclosing)
        )
        if type_ is TIMER:
            self._check_zone(event, conditions)
        sound = len(self.report.problems) == before
        sure = conditions if sound else None
        return Read(event, type_, sure, self.scope.parameters, self.scope.there)

    def _check_zone(self, event: ast.Event, conditions: Sequence[Expression]) -> None:
        """Check that a Timer's conditions on its zone say which one that is (S13)."""
        said = [one for one in conditions if any(map(is_zone_field, nodes_of(one)))]
        zones = [zone_named(one) for one in said]
        wrong = next((zone for zone in zones if zone is None or not is_zone(zone)), UTC)
        if len(zones) > 1 or wrong is None:
            self.report(
                "the zone of a Timer is one that its conditions name",
                event.span,
                'write zone = "Europe/Rome", once',
            )
        elif wrong != UTC:
            self.report(
                f"unknown time zone {wrong}",
                event.span,
                "zones are those of the IANA database, like Europe/Rome; "
                "where the system has none, the package tzdata brings it",
            )

    def _item(self, item: ast.Expression, enclosing: Enclosing | None) -> Sequence[Expression]:
        """The conditions for an item to hold, once its bindings are made (Rule 1)."""
        if isinstance(item, ast.Compared):
            return self._chain(item, enclosing)
        checked = self.expressions.condition(item, enclosing)
        return () if checked is None else self._required(checked)

    def _required(self, condition: Expression) -> Sequence[Expression]:
        """The parts of a condition that have not been asked for yet."""
        required = conjuncts_of(condition, self.scope.there)
        self.scope.asked(required)
        return required

    def _chain(self, chain: ast.Compared, enclosing: Enclosing | None) -> Sequence[Expression]:
        if len(chain.operators) > NESTING_MAX:
            self.report(f"more than {NESTING_MAX} comparisons in one chain", chain.span)
            return ()
        checked: dict[int, Expression | None] = {}
        required: list[Expression] = []
        bound = self._bind(chain, enclosing, checked, required)
        for place, operand in enumerate(chain.operands):
            if place not in checked:
                checked[place] = self.expressions.check(operand, enclosing)
        for place, operator in enumerate(chain.operators):
            left, right = checked[place], checked[place + 1]
            link = None
            if place not in bound:
                link = self.expressions.compare(operator, left, right, chain, place)
            if link is not None:
                required += self._required(link)
        return required

    # --- parameters --------------------------------------------------------------------------

    def _bind(
        self,
        chain: ast.Compared,
        enclosing: Enclosing | None,
        checked: dict[int, Expression | None],
        required: list[Expression],
    ) -> set[int]:
        """Make every binding of a chain; gives the links that did, what they checked, and what is
        required for them: no parameter is equal to a null.
        """
        bound: set[int] = set()
        found = True
        while found:  # one binding may make another possible: $a = $b = Avg(...)
            found = False
            for link, operator in enumerate(chain.operators):
                if link in bound or operator is not Comparison.EQUAL:
                    continue
                for name, value in ((link, link + 1), (link + 1, link)):
                    parameter, operand = chain.operands[name], chain.operands[value]
                    if not self._is_open(parameter) or not self._may_bind(operand, enclosing):
                        continue
                    if value not in checked:
                        checked[value] = self.expressions.check(operand, enclosing)
                    checked[name] = self._bound(checked[value], parameter.name, required)
                    self.scope.parameters[parameter.name] = checked[name]
                    bound.add(link)
                    found = True
                    break
        return bound

    def _is_open(self, operand: ast.Expression) -> TypeGuard[ast.Parameter]:
        return isinstance(operand, ast.Parameter) and operand.name not in self.scope.parameters

    def _may_bind(self, value: ast.Expression, enclosing: Enclosing | None) -> bool:
        """Whether a parameter may be bound to this: in an event, to an attribute of its own."""
        if enclosing is not None:
            return isinstance(value, ast.Attribute) and value.event is None
        nodes: list[ast.Node] = [value]
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.Parameter) and node.name not in self.scope.parameters:
                return False
            if not isinstance(node, ast.Name):
                nodes.extend(ast.children(node))
        return True

    def _bound(
        self, value: Expression | None, parameter: str, required: list[Expression]
    ) -> Expression | None:
        """The expression that a parameter stands for (Rule 2)."""
        if value is None:
            return value
        conditions, value = given(value, self.scope.there), plain(value, self.scope.there)
        self.scope.asked(conditions)
        if isinstance(value, AttributeOf | Literal | Slot):
            required += conditions
            return value
        self.clauses.extend(map(Constraint, conditions))
        slot = Slot(len(self.slots), value.kind)
        self.slots.append(value.kind)
        self.clauses.append(Let(slot.index, value, parameter))
        return slot

    # --- what is defined ---------------------------------------------------------------------

    def _values(self) -> dict[str, Expression | None]:
        """The value that ``where`` gives each attribute, by name; exactly one value each (S10)."""
        values: dict[str, Expression | None] = {}
        names = [declared.name.text for declared in self.rule.attributes]
        for assignment in self.rule.where:
            name = assignment.name
            value = self.expressions.check(assignment.value, None)
            if name.text not in names:
                self.report(
                    f"{self.rule.type.text} has no attribute {name.text}",
                    name.span,
                    self.report.near(name.text, names) or "define names every attribute",
                )
            elif name.text in values:
                self.report(f"{name.text} is given twice", name.span)
            else:
                values[name.text] = value
        for declared in self.rule.attributes:
            if declared.name.text not in values:
                self.report(
                    f"where gives {declared.name.text} no value",
                    declared.span,
                    f"add {spelled(declared.name.text)} = ... to where",
                )
        return values

    def _declared_values(
        self, defines: EventType | None, values: dict[str, Expression | None]
    ) -> tuple[Expression, ...]:
        """The values in the order of the type, each of its declared kind."""
        spans = {assignment.name.text: assignment.value.span for assignment in self.rule.where}
        result: list[Expression] = []
        present: list[Expression] = []
        for place, attribute in enumerate(() if defines is None else defines.declared):
            value = values.get(attribute.name)
            if value is None:
                continue
            converted = as_declared(value, attribute.kind)
            if converted is None:
                self.report(
                    f"{attribute.name} is declared {attribute.kind.value}, "
                    f"and its value is {value.kind.value}",
                    spans[attribute.name],
                )
                continue
            value, is_there = worth(converted, self.scope.there)
            result.append(value)
            if defines is not None and defines.presences[place] >= 0:
                present.append(is_there)
            elif not isinstance(is_there, Literal):
                self.report(
                    f"{attribute.name} is declared {attribute.kind.value}, "
                    "and its value may be null",
                    spans[attribute.name],
                    f"declare it {attribute.kind.value}?, or let the rule ask: ... is not null",
                )
        return (*result, *present)

    def _consuming(self) -> tuple[int, ...]:
        numbers: set[int] = set()
        for name in self.rule.consuming:
            number = self.scope.find(name)
            if number in numbers:
                self.report(f"{name.text} is consumed twice", name.span)
            if number is not None:
                numbers.add(number)
        return tuple(sorted(numbers))

    def _event_names(self) -> tuple[str, ...]:
        """Names to show: events that share a type and have none of their own are numbered."""
        seen: dict[str, int] = {}
        shown = []
        for name in self.scope.names:
            seen[name] = seen.get(name, 0) + 1
            shown.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        return tuple(shown)


def _of_event(number: int, node: Expression) -> Expression | None:
    """An attribute of the candidate as one of a numbered event."""
    if not isinstance(node, AttributeOf) or node.event != CANDIDATE:
        return None
    return replace(node, event=number)


def _defined(
    name: str,
    kinds: Mapping[str, Said],
    values: Mapping[str, Expression | None],
    there: frozenset[Expression],
) -> EventType | None:
    """The type that a rule defines: kinds that are not declared are those of its values."""
    attributes = []
    for attribute, declared in kinds.items():
        value = values.get(attribute)
        if declared.kind is None and value is None:
            return None
        if declared.kind is None and value is not None:
            declared = Said(value.kind, bool(given(value, there)))
        attributes.append((attribute, declared))
    return made(name, attributes)
