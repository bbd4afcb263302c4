"""A checked rule back in words: the syntax tree of its clauses, for messages.

The words are those of the rule as it was understood: a parameter that is bound to an attribute is
written as that attribute (``area = Smoke.area`` for ``area = $a``), which says what is compared;
one that stands for a computed value keeps its name. What is printed is TESLA, one clause each;
chains are written link by link, as the engines look at them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from matcher.model import OPTIONAL, EventType, Kind
from matcher.spelling import PLAIN, spelled
from matcher.times import seconds_text
from rules import terms
from rules.pattern import UTC, Clause, Constraint, Let, Negated, Rule, Selected, Timed
from rules.syntax import ast
from rules.syntax.printer import print_clause, print_event, print_expression, print_together
from rules.terms import (
    CANDIDATE,
    NEIGHBOUR,
    PREVIOUS,
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Between,
    Called,
    Choice,
    Compare,
    Comparison,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    OfText,
    Or,
    Run,
    Slot,
    TextFunction,
    Window,
    Within,
    name_of,
    nodes_of,
    rewritten,
)

_UNITS = ((86_400_000_000, "day"), (3_600_000_000, "h"), (60_000_000, "min"))

_NUMBERED = re.compile(rf"{PLAIN}#\d+")
"""The name of an event that shares its type with others and has no name of its own."""
NOBODY = -2
"""No event: the number of the event whose parentheses enclose a constraint."""


class Rewording:
    """Writes what belongs to one rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._types = (rule.terminator, *(clause.type for clause in rule.selected))
        lets = (clause for clause in rule.clauses if isinstance(clause, Let))
        self._parameters = {clause.slot: clause.parameter for clause in lets}

    def terminator(self) -> str:
        """The terminator with its own conditions."""
        return print_event(self._event(self.rule.terminator, self.rule.conditions, 0))

    def opening(self) -> str:
        """The terminator with all that it may be (X2), or the events that come together (X1)."""
        if self.rule.together is not None:
            return self.together()
        ways = self.rule.alternatives or (self.rule,)
        events = [Rewording(way)._event(way.terminator, way.conditions, 0) for way in ways]
        return print_event(_either(list(dict.fromkeys(events))))

    def together(self) -> str:
        """The events that come together (X1)."""
        rule = self.rule
        uses = [
            (rule.terminator, rule.conditions),
            *((s.type, s.conditions) for s in rule.selected),
        ]
        events = tuple(self._event(*use, number) for number, use in enumerate(uses))
        return print_together(ast.Together(events, rule.together or 0))

    def clause(self, clause: Clause) -> str:
        """A clause, without the ``and`` before it."""
        return print_clause(self._clause(clause))

    def value(self, place: int) -> str:
        """The item of ``where`` that gives the attribute at ``place`` its value."""
        value = print_expression(self._expression(self.rule.values[place], NOBODY, None))
        return f"{spelled(self.rule.defines.names[place])} = {value}"

    def expression(
        self, expression: Expression, inner: int = NOBODY, type_: EventType | None = None
    ) -> str:
        """An expression as it stands in the parentheses of event ``inner``, of type ``type_``."""
        return print_expression(self._expression(expression, inner, type_))

    # --- clauses -----------------------------------------------------------------------------

    def _clause(self, clause: Clause) -> ast.Clause:
        match clause:
            case Selected():
                uses = (clause, *clause.rivals)
                event = _either([self._instead(one) for one in uses])
                window = self._within(clause.window)
                return ast.Selected(clause.policy, clause.rank, event, window, _times(clause))
            case Negated():
                event = self._event(clause.type, clause.conditions, CANDIDATE)
                return ast.Negated(event, self._window(clause.window))
            case Timed():
                return ast.Timed(self._name(clause.event), self._within(clause.window))
            case Constraint():
                return ast.Constraint(self._expression(clause.condition, NOBODY, None))
            case Let():
                parameter = ast.Parameter(clause.parameter)
                return ast.Constraint(
                    _equal(parameter, self._expression(clause.value, NOBODY, None))
                )

    def _event(self, type_: EventType, conditions: Sequence[Expression], number: int) -> ast.Event:
        words = tuple(self._expression(condition, number, type_) for condition in conditions)
        named = number != CANDIDATE and self.rule.event_names[number] != type_.name
        return ast.Event(ast.Name(type_.name), words, self._name(number) if named else None)

    def _instead(self, clause: Selected) -> ast.Event:
        """The event of a selection or of one of its rivals, whose type it then has (X2)."""
        words, place = copy(self), clause.event
        words._types = (*self._types[:place], clause.type, *self._types[place + 1 :])
        if clause.iteration is None:
            return words._event(clause.type, clause.conditions, place)
        return words._repeated(clause.iteration[1], place)

    def _repeated(self, count: Aggregate, place: int) -> ast.Event:
        """The event of an iteration, whose runs' events are counted by ``count`` (X4)."""
        run, type_ = count.run, count.type
        assert run is not None  # or it would be none of an iteration

        def said(conditions: Sequence[Expression]) -> tuple[ast.Expression, ...]:
            return tuple(self._expression(one, place, type_) for one in conditions)

        between = said(run.between)
        if not all(map(asks_previous, run.between)):  # parentheses hold them together
            between = (ast.And(between),)
        conditions = (*said(count.conditions), *map(ast.While, said(run.kept)), *between)
        return replace(self._event(type_, (), place), conditions=conditions)

    def _name(self, number: int) -> ast.Name:
        if number == PREVIOUS:
            return ast.Name(NEIGHBOUR)
        name = self.rule.event_names[number]
        return ast.Name(name, is_made_up=_NUMBERED.fullmatch(name) is not None)

    def _window(self, window: Window) -> ast.Window:
        if isinstance(window, Between):
            return ast.Between(self._name(window.earlier), self._name(window.later))
        return self._within(window)

    def _within(self, window: Within) -> ast.Within:
        return ast.Within(window.duration, self._name(window.anchor))

    # --- expressions -------------------------------------------------------------------------

    def _expression(
        self, expression: Expression, inner: int, type_: EventType | None
    ) -> ast.Expression:
        """``inner`` is the number of the event whose parentheses enclose the expression."""

        def again(operand: Expression) -> ast.Expression:
            return self._expression(operand, inner, type_)

        match expression:
            case Literal(value, kind, is_duration, written):
                if written:
                    return ast.Instant(int(value), written)
                return ast.Duration(int(value)) if is_duration else ast.Literal(value, kind)
            case AttributeOf(presence=terms.IS_PRESENCE):
                return ast.Not(ast.IsNull(self._attribute(expression, inner, type_)))
            case AttributeOf():
                return self._attribute(expression, inner, type_)
            case Slot(index):
                return ast.Parameter(self._parameters[index])
            case Arithmetic(operator, left, right):
                return ast.Arithmetic(operator, again(left), again(right))
            case Compare(comparison, left, right):
                return ast.Compared((again(left), again(right)), (comparison,))
            case Negative(operand):
                return ast.Negative(again(operand))
            case Convert(operand):
                return again(operand)
            case Not(AttributeOf(presence=terms.IS_PRESENCE) as operand):
                return ast.IsNull(self._attribute(operand, inner, type_))
            case Not(operand):
                return ast.Not(again(operand))
            case Choice(_, value):
                return again(value)
            case OfText(TextFunction(None, name, network), operand):
                named = (ast.Literal(network, Kind.STRING),) if network else ()
                return ast.Called(name, (again(operand), *named))
            case Called(function, operands, _, zone):
                said = () if zone in ("", UTC) else (ast.Literal(zone, Kind.STRING),)
                return ast.Called(function.value, (*map(again, operands), *said))
            case OfText(TextFunction(pattern), operand):
                return ast.Matching(again(operand), ast.Literal(str(pattern), Kind.STRING))
            case And(operands):
                return ast.And(tuple(map(again, operands)))
            case Or(operands, is_list):
                if is_list:
                    return ast.Membership(*_listed(list(map(again, operands))))
                return ast.Or(tuple(map(again, operands)))
            case Aggregate():
                return self._aggregate(expression)

    def _attribute(
        self, attribute: AttributeOf, inner: int, type_: EventType | None
    ) -> ast.Attribute:
        number = attribute.event
        known = type_ if number in (CANDIDATE, PREVIOUS) else self._types[number]
        assert known is not None  # a candidate has parentheses around it
        event = None if number in (inner, CANDIDATE) else self._name(number)
        name = name_of(known, attribute.attribute)
        if attribute.presence == terms.IS_PRESENCE:
            name = name.removesuffix(OPTIONAL)
        return ast.Attribute(event, ast.Name(name))

    def _aggregate(self, aggregate: Aggregate) -> ast.Aggregate:
        if aggregate.run is not None:
            return ast.Aggregate(aggregate.function, self._of_run(aggregate, aggregate.run), None)
        event = self._event(aggregate.type, aggregate.conditions, CANDIDATE)
        argument: ast.Event | ast.Expression = event
        if aggregate.value is not None:
            value = self._expression(aggregate.value, CANDIDATE, aggregate.type)
            argument = ast.with_event(value, event)
        return ast.Aggregate(aggregate.function, argument, self._window(aggregate.window))

    def _of_run(self, aggregate: Aggregate, run: Run) -> ast.Expression:
        """The operand of an aggregate over a run, which is known by the name of its last event."""
        if aggregate.value is None:
            return ast.Attribute(None, self._name(run.event))

        def named(node: Expression) -> Expression | None:
            if not isinstance(node, AttributeOf) or node.event != CANDIDATE:
                return None
            return replace(node, event=run.event)

        return self._expression(rewritten(aggregate.value, named), NOBODY, None)


def asks_previous(condition: Expression) -> bool:
    """Whether a condition speaks of the event before another."""
    return any(
        isinstance(one, AttributeOf) and one.event == PREVIOUS for one in nodes_of(condition)
    )


def _times(clause: Selected) -> ast.Times | None:
    """How often an iteration repeats."""
    if clause.iteration is None:
        return None
    least, count = clause.iteration
    return ast.Times(least, count.run.most or None if count.run else None)


def _either(events: Sequence[ast.Event]) -> ast.Event | ast.Either:
    if len(events) == 1:
        return events[0]
    nameless = tuple(replace(event, alias=None) for event in events)
    return ast.Either(nameless, events[0].alias)


def _listed(pairs: Sequence[ast.Expression]) -> tuple[ast.Expression, tuple[ast.Expression, ...]]:
    """The expression looked for and its list, of the comparisons that this stands for."""
    compared = [one for one in pairs if isinstance(one, ast.Compared)]
    return compared[0].operands[0], tuple(one.operands[1] for one in compared)


def _equal(left: ast.Expression, right: ast.Expression) -> ast.Compared:
    return ast.Compared((left, right), (Comparison.EQUAL,))


def elapsed_text(microseconds: int) -> str:
    """A length of time for the eye: ``2 min 5 s``, ``3 days 4 h``, ``0.25 s``."""
    rest, parts = microseconds, []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}")
    if rest or not parts:
        parts.append(f"{seconds_text(rest)} s")
    return " ".join(parts)
