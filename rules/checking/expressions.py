"""Expressions: what their names mean and what kind of value they give (S5, S8 to S10).

Each kind of node has one method, which gives the checked expression, or None when something is
wrong in it; that has been reported then, and None makes no further message (scope Rule 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from matcher.model import EventType, Kind
from matcher.spelling import spelled
from rules.checking.calls import NAMES, called
from rules.checking.nulls import conjuncts_of, given, is_compound, presences
from rules.checking.scope import Report, Scope, Types, asked_for
from rules.errors import Span
from rules.pattern import TIMER, WEEKDAYS
from rules.syntax import ast
from rules.terms import (
    CANDIDATE,
    NEIGHBOUR,
    PREVIOUS,
    TERMINATOR,
    TIME,
    TIME_NAME,
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Compare,
    Comparison,
    Convert,
    Expression,
    Function,
    Literal,
    Negative,
    Not,
    OfText,
    Operator,
    Or,
    TextFunction,
    has_aggregates,
    nodes_of,
)
from rules.texts import problem_of

OPTIONS_MAX = 1_000
"""Values behind ``in``."""
REPEATED_MAX = 20_000
"""Terms that a rule, or a filter, has more of than are written in it."""
PATTERNS_MAX = 200
"""Patterns that differ behind ``matches``, of a rule or a filter; each takes some milliseconds."""
_ASKED_FOR_NULLS = 6
"""About how often the operand of ``is null`` stands in what that means, if it is a condition."""
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_TEXTUAL = frozenset({Comparison.PREFIX, Comparison.SUFFIX, Comparison.CONTAINS})
_ORDERING = frozenset(
    {Comparison.LESS, Comparison.LESS_EQUAL, Comparison.GREATER, Comparison.GREATER_EQUAL}
)


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The innermost event whose parentheses enclose an expression: its number and its type.

    It ``repeats`` in an iteration, where ``previous`` is its neighbour (X4). Where one of the
    events of a run is meant, ``run`` is the number by which the run is known.
    """

    number: int
    type: EventType | None
    repeats: bool = False
    run: int | None = None


class Expressions:
    """Checks the expressions of one rule."""

    def __init__(self, scope: Scope, types: Types, report: Report) -> None:
        self.scope = scope
        self.types = types
        self.report = report
        self._repeated = 0
        self._patterns: dict[str, str | None] = {}
        """By pattern, what is wrong with it."""

    def check(self, node: ast.Expression, enclosing: Enclosing | None) -> Expression | None:
        """The checked expression; None when it is wrong, which has been reported."""
        return _METHODS[type(node)](self, node, enclosing)

    def condition(self, node: ast.Expression, enclosing: Enclosing | None) -> Expression | None:
        """An expression that must be a truth value; nulls are still in it (:mod:`nulls`)."""
        return self._of_kind(node, enclosing, Kind.BOOL, "a condition")

    def _of_kind(
        self, node: ast.Expression, enclosing: Enclosing | None, kind: Kind, role: str
    ) -> Expression | None:
        checked = self.check(node, enclosing)
        if checked is None or checked.kind is kind:
            return checked
        self.report(f"{role} must be {NAMES[kind]}, not {NAMES[checked.kind]}", node.span)
        return None

    # --- leaves ------------------------------------------------------------------------------

    def _literal(self, node: ast.Literal, enclosing: Enclosing | None) -> Expression | None:
        value = node.value
        if node.kind is Kind.INT and not INT_MIN <= int(value) <= INT_MAX:
            self.report("an integer beyond 64 bits", node.span)
            return None
        return Literal(value, node.kind)

    def _duration(self, node: ast.Duration, enclosing: Enclosing | None) -> Expression:
        return Literal(node.microseconds, Kind.INT, is_duration=True)  # X3

    def _parameter(self, node: ast.Parameter, enclosing: Enclosing | None) -> Expression | None:
        bound = self.scope.parameters
        if node.name not in bound:
            self.report(
                f"parameter ${node.name} is used before it is bound",
                node.span,
                self.report.near(node.name, bound)
                or f"bind it in the terminator or a selected event: attribute = ${node.name}",
            )
            bound[node.name] = None  # one message for each parameter
        return bound[node.name]

    def _attribute(self, node: ast.Attribute, enclosing: Enclosing | None) -> Expression | None:
        if node.event is not None:
            if enclosing is not None and enclosing.repeats and node.event.text == NEIGHBOUR:
                return self._attribute_of(PREVIOUS, enclosing.type, node.name)
            number = self.scope.find(node.event)
            if number is None:
                return None
            if enclosing is not None and enclosing.run == number:
                return self._attribute_of(CANDIDATE, enclosing.type, node.name)
            found = self._attribute_of(number, self.scope.types[number], node.name)
            return found if found and self._is_common(found, node.name) else None
        name = node.name
        type_ = None if enclosing is None else enclosing.type
        known = type_ is not None and type_.index(name.text) is not None
        if name.text in WEEKDAYS and not known and self._about_timer(enclosing):
            return Literal(name.text, Kind.STRING)
        if enclosing is not None:
            return self._attribute_of(enclosing.number, type_, name)
        self.report(
            f"{name.text} stands alone outside an event's parentheses",
            node.span,
            f"write EVENT.{spelled(name.text)}, or ${name.text} for a parameter",
        )
        return None

    def _about_timer(self, enclosing: Enclosing | None) -> bool:
        """Whether bare names of weekdays are values of ``D`` here (S13)."""
        types = [*self.scope.types[: TERMINATOR + 1], None if enclosing is None else enclosing.type]
        return TIMER in types

    def _attribute_of(
        self, number: int, type_: EventType | None, name: ast.Name
    ) -> AttributeOf | None:
        if type_ is None:
            return None
        place = type_.index(name.text)
        if place is None and name.text == TIME_NAME:
            return AttributeOf(number, TIME, Kind.INT)  # X3
        if place is None:
            words = (*type_.names, *WEEKDAYS) if type_ is TIMER else type_.names
            asked = "null is asked for by: is null, is not null"
            self.report(
                f"{type_.name} has no attribute {name.text}",
                name.span,
                asked
                if name.text.lower() == "null"
                else self.report.near(name.text, words) or f"it is {type_}",
            )
            return None
        return attribute_of(number, type_, place)

    def _is_common(self, found: AttributeOf, name: ast.Name) -> bool:
        """Whether all types that an event may have have the attribute, of one kind (X2)."""
        for other in self.scope.others[found.event]:
            again = self._attribute_of(found.event, other, name)
            if again is None:
                return False
            is_null = (found.presence >= 0, again.presence >= 0)
            if again.kind is not found.kind or len(set(is_null)) > 1:
                type_ = self.scope.types[found.event]
                assert type_ is not None  # it has the attribute
                kinds = [
                    f"{NAMES[one.kind]}{' that may be null' if may else ''}"
                    for one, may in zip((found, again), is_null, strict=True)
                ]
                self.report(
                    f"{name.text} is {kinds[0]} in {type_.name} and {kinds[1]} in {other.name}",
                    name.span,
                    "an event of either type is known by attributes of one type",
                )
                return False
        return True

    # --- operators ---------------------------------------------------------------------------

    def _may_repeat(self, operand: Expression | None, times: int, span: Span) -> bool:
        """Whether an operand may stand so many more times than it is written: REPEATED_MAX more
        terms at most, so that an expression takes as long to check as it has terms. ``a < $x < b``
        is ``a < $x and $x < b``: the middle operand stands there two times, the middle of another
        chain in it four times, and 30 levels would make a billion terms.
        """
        if operand is not None:
            self._repeated += times * len(nodes_of(operand))
        if self._repeated <= REPEATED_MAX:
            return True
        self.report(
            f"more than {REPEATED_MAX:,} terms, written out",
            span,
            "an operand stands there once for each value of in, twice inside a chain of "
            "comparisons, and several times before is null",
        )
        return False

    def _arithmetic(self, node: ast.Arithmetic, enclosing: Enclosing | None) -> Expression | None:
        left, right = self.check(node.left, enclosing), self.check(node.right, enclosing)
        role = f"an operand of {node.operator.value}"
        sound = [
            self._number(side, at.span, role)
            for side, at in ((left, node.left), (right, node.right))
        ]
        if left is None or right is None or not all(sound):
            return None
        ints = left.kind is Kind.INT and right.kind is Kind.INT
        integer = ints and node.operator is not Operator.DIVIDE
        return Arithmetic(node.operator, left, right, Kind.INT if integer else Kind.FLOAT)

    def _negative(self, node: ast.Negative, enclosing: Enclosing | None) -> Expression | None:
        operand = self.check(node.operand, enclosing)
        if operand is None or not self._number(operand, node.operand.span, "the operand of -"):
            return None
        return Negative(operand, operand.kind)

    def _number(self, operand: Expression | None, span: Span, role: str) -> bool:
        """Whether an operand is a number, or wrong already."""
        if operand is None or operand.kind.is_number:
            return True
        self.report(f"{role} must be a number, not {NAMES[operand.kind]}", span)
        return False

    def _compared(self, node: ast.Compared, enclosing: Enclosing | None) -> Expression | None:
        operands = [self.check(operand, enclosing) for operand in node.operands]
        inner = zip(operands[1:-1], node.operands[1:-1], strict=True)
        if not all(self._may_repeat(operand, 1, at.span) for operand, at in inner):
            return None
        pairs = [
            self.compare(node.operators[place], operands[place], operands[place + 1], node, place)
            for place in range(len(node.operators))
        ]
        sound = tuple(pair for pair in pairs if pair is not None)
        if len(sound) < len(pairs):
            return None
        return sound[0] if len(sound) == 1 else And(sound)

    def compare(
        self,
        comparison: Comparison,
        left: Expression | None,
        right: Expression | None,
        node: ast.Compared,
        place: int,
    ) -> Compare | None:
        """One link of a chain, ``place`` from its beginning, between checked operands.

        Of one operand alone, where the other is wrong or its kind is not known, what it is not for.
        """
        sound = [one for one in (left, right) if one is not None]
        span = node.operands[place].span.to(node.operands[place + 1].span)
        wrong = next((one for one in sound if one.kind is not Kind.STRING), None)
        if comparison in _TEXTUAL and wrong is not None:
            self.report(f"{comparison.value} compares strings, not {NAMES[wrong.kind]}", span)
            return None
        if left is not None and right is not None and not _compare(left.kind, right.kind):
            is_time = any(isinstance(one, AttributeOf) and one.attribute == TIME for one in sound)
            hint = "write an instant: 2024-06-01, or 2024-06-01T09:30:00Z" if is_time else None
            self.report(f"{NAMES[left.kind]} against {NAMES[right.kind]}", span, hint)
            return None
        if comparison in _ORDERING and any(one.kind is Kind.BOOL for one in sound):
            self.report(f"bools have no order for {comparison.value}", span, "use = or !=")
            return None
        if left is None or right is None:
            return None
        if any(is_compound(one) and presences(one) for one in sound):
            self.report(
                "a comparison of a truth value that may be null",
                span,
                "say it by and, or and not: (a > 1 and b > 2 or not a > 1 and not b > 2)",
            )
            return None
        return Compare(comparison, left, right)

    def _is_null(self, node: ast.IsNull, enclosing: Enclosing | None) -> Expression | None:
        found = self._not_null(node, enclosing)
        return None if found is None else Not(found)

    def _not_null(self, node: ast.IsNull, enclosing: Enclosing | None) -> Expression | None:
        """Whether the operand of ``is null`` has a value (S9)."""
        operand = self.check(node.operand, enclosing)
        if operand is None:
            return None
        is_parameter = isinstance(node.operand, ast.Parameter)
        if is_compound(operand) and not self._may_repeat(
            operand, _ASKED_FOR_NULLS, node.operand.span
        ):
            return None
        conditions = () if is_parameter else given(operand)
        if conditions:
            return conditions[0] if len(conditions) == 1 else And(conditions)
        declare = "an optional attribute is declared with ? behind its type"
        hint = f"{declare}: value: {operand.kind.value}?"
        if is_parameter:
            hint = "ask it of the attribute: a parameter is equal to none that is null"
        self.report("this is never null", node.operand.span, hint)
        return None

    def _not(self, node: ast.Not, enclosing: Enclosing | None) -> Expression | None:
        if isinstance(node.operand, ast.IsNull):
            return self._not_null(node.operand, enclosing)
        operand = self._of_kind(node.operand, enclosing, Kind.BOOL, "the operand of not")
        return None if operand is None else Not(operand)

    def _membership(self, node: ast.Membership, enclosing: Enclosing | None) -> Expression | None:
        """``x in (a, b)`` is ``(x = a or x = b)``."""
        if len(node.options) > OPTIONS_MAX:
            self.report(f"more than {OPTIONS_MAX} values behind in", node.span)
            return None
        operand = self.check(node.operand, enclosing)
        if not self._may_repeat(operand, len(node.options) - 1, node.operand.span):
            return None
        options = [self.check(option, enclosing) for option in node.options]
        equal = Comparison.EQUAL
        pairs = [
            self.compare(equal, operand, option, ast.Compared((node.operand, at), (equal,)), 0)
            for option, at in zip(options, node.options, strict=True)
        ]
        sound = tuple(pair for pair in pairs if pair is not None)
        if len(sound) < len(pairs):
            return None
        return sound[0] if len(sound) == 1 else Or(sound, is_list=True)

    def _matching(self, node: ast.Matching, enclosing: Enclosing | None) -> Expression | None:
        pattern = str(node.pattern.value)
        problem = self._problem_of(pattern)
        if problem is not None:
            self.report(problem, node.pattern.span, "patterns have the syntax of RE2")
        operand = self._of_kind(node.operand, enclosing, Kind.STRING, "the operand of matches")
        if operand is None or problem is not None:
            return None
        return OfText(TextFunction(pattern), operand)

    def _problem_of(self, pattern: str) -> str | None:
        """Why a pattern is not allowed."""
        if pattern not in self._patterns:
            if len(self._patterns) >= PATTERNS_MAX:
                return f"more than {PATTERNS_MAX} patterns"
            self._patterns[pattern] = problem_of(pattern)
        return self._patterns[pattern]

    def _called(self, node: ast.Called, enclosing: Enclosing | None) -> Expression | None:
        return called(node, [self.check(one, enclosing) for one in node.operands], self.report)

    def _instant(self, node: ast.Instant, enclosing: Enclosing | None) -> Expression:
        return Literal(node.microseconds, Kind.INT, written=node.text)  # X3

    def _while(self, node: ast.While, enclosing: Enclosing | None) -> None:
        self.report(
            "while is of an iteration", node.span, "each 1.. TYPE(while value > 5) as NAME ..."
        )

    def _of_event(self, node: ast.OfEvent, enclosing: Enclosing | None) -> Expression | None:
        """An attribute of the event that an aggregate ranges over, whose parentheses stand here."""
        assert enclosing is not None  # the grammar has it in aggregates alone
        return self._attribute_of(enclosing.number, enclosing.type, node.name)

    def _and(self, node: ast.And, enclosing: Enclosing | None) -> Expression | None:
        operands = self._truths(node.operands, enclosing, "and")
        return None if operands is None else And(operands)

    def _or(self, node: ast.Or, enclosing: Enclosing | None) -> Expression | None:
        operands = self._truths(node.operands, enclosing, "or")
        return None if operands is None else Or(operands)

    def _truths(
        self, nodes: tuple[ast.Expression, ...], enclosing: Enclosing | None, word: str
    ) -> tuple[Expression, ...] | None:
        role = f"an operand of {word}"
        checked = [self._of_kind(node, enclosing, Kind.BOOL, role) for node in nodes]
        sound = tuple(operand for operand in checked if operand is not None)
        return sound if len(sound) == len(checked) else None

    # --- aggregates --------------------------------------------------------------------------

    def _aggregate(self, node: ast.Aggregate, enclosing: Enclosing | None) -> Expression | None:
        if node.window is None:
            return self._of_run(node)
        if node.function is Function.FIRST:
            self.report("First is of an iteration", node.span, "write First(NAME.attribute)")
            return None
        if not node.events and self._run_named(node.argument) is not None:
            self.report("an aggregate over a run has no window", node.window.span)
            return None
        if not node.events:
            self.report(
                f"{node.function.value} ranges over no event",
                node.span,
                f"write {node.function.value}(TYPE(...).attribute within ...)",
            )
            return None
        type_ = self.nameless(node.event, "aggregated")
        conditions = self.uses(node.event, type_)
        window = self.scope.window(node.window)
        value, sound = self._aggregated(node, type_)
        if type_ is None or conditions is None or window is None or not sound:
            return None
        if value is not None:  # events where it is null are left out (S8)
            conditions = (*conditions, *presences(value, conditions))
        kind = _kind_of(node.function, value)
        if node.function is Function.COUNT and isinstance(value, AttributeOf):
            value = None  # it is there; what is computed may yet have no value
        return Aggregate(node.function, type_, conditions, value, window, False, kind)

    def _aggregated(
        self, node: ast.Aggregate, type_: EventType | None
    ) -> tuple[Expression | None, bool]:
        """The value that is aggregated, and whether all is well. Count needs none (S8)."""
        function = node.function
        if isinstance(node.argument, ast.Event):
            if function is not Function.COUNT:
                name = node.event.type.text
                self.report(
                    f"{function.value} needs an attribute",
                    node.span,
                    f"write {function.value}({spelled(name)}(...).attribute within ...)",
                )
            return None, function is Function.COUNT
        if not self._ranges_over_one(node):
            return None, False
        value = self.check(node.argument, Enclosing(CANDIDATE, type_))
        return value, self._is_aggregated(function, value, node.argument)

    def _is_aggregated(
        self, function: Function, value: Expression | None, argument: ast.Expression
    ) -> bool:
        """Whether a function takes a value."""
        if value is None or function in (Function.COUNT, Function.FIRST):
            return value is not None
        ordered = function in (Function.MIN, Function.MAX) and value.kind is Kind.STRING
        if not value.kind.is_number and not ordered:
            at = argument.name if isinstance(argument, ast.OfEvent) else argument
            self.report(f"{function.value} takes numbers, not {NAMES[value.kind]}", at.span)
            return False
        return True

    def _of_run(self, node: ast.Aggregate) -> Aggregate | None:
        """An aggregate over the events of a run, which it names (X4)."""
        said, argument = node.function.value, node.argument
        if isinstance(argument, ast.Event) or node.events:
            self.report(
                f"{said} has no window", node.span, "behind the event: within ... from, or between"
            )
            return None
        number = self._run_named(argument)
        if number is None:
            self.report(
                f"{said} ranges over no iteration",
                node.span,
                f"write {said}(NAME.attribute) of an iteration"
                if node.function is Function.FIRST
                else f"write {said}(NAME.attribute) of an iteration, or {said}(TYPE(...).attribute "
                "within ...)",
            )
            return None
        run = self.scope.runs[number]
        if run is None:
            return None
        if isinstance(argument, ast.Attribute) and argument.event is None:
            if node.function is Function.COUNT:
                return run
            self.report(
                f"{said} needs an attribute",
                node.span,
                f"write {said}({spelled(argument.name.text)}.attribute)",
            )
            return None
        value = self.check(argument, Enclosing(CANDIDATE, run.type, run=number))
        if value is None or not self._is_aggregated(node.function, value, argument):
            return None
        kept = () if run.run is None else run.run.kept
        if presences(value, (*run.conditions, *kept)):
            self.report(
                "what is aggregated over a run may be null",
                argument.span,
                "let the conditions of the iteration ask: ... is not null",
            )
            return None
        return replace(
            run, function=node.function, value=value, kind=_kind_of(node.function, value)
        )

    def _run_named(self, argument: ast.Event | ast.Expression) -> int | None:
        """The first iteration that is named in what is aggregated, by its number."""
        nodes: list[ast.Node] = [argument]
        whole = isinstance(argument, ast.Attribute) and argument.event is None
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.Attribute):
                name = node.name if whole else node.event
                number = None if name is None else self.scope.number(name)
                if number in self.scope.runs:
                    return number
            else:
                nodes.extend(reversed(tuple(ast.children(node))))
        return None

    def _ranges_over_one(self, node: ast.Aggregate) -> bool:
        """Whether the event stands once in what is aggregated; what else is wrong is reported."""
        for event in node.events[1:]:
            self.report(
                "the event that is aggregated stands once",
                event.span,
                "a further attribute of it is its name alone: Sum(Trade().price * volume ...)",
            )
        return len(node.events) == 1

    def nameless(self, event: ast.Event, role: str) -> EventType | None:
        """The type of a negated or aggregated event, which has no name and is no Timer."""
        if event.alias is not None:
            article = "an" if role == "aggregated" else "a"
            self.report(f"{article} {role} event has no name", event.alias.span)
        return self.not_timer(event, role)

    def not_timer(self, event: ast.Event, role: str) -> EventType | None:
        """The type of an event that is not the terminator (S13)."""
        type_ = self.types.find(event.type, self.report)
        if type_ is TIMER:
            self.report(f"a Timer may only be a terminator, not {role}", event.type.span)
            return None
        return type_

    def uses(self, event: ast.Event, type_: EventType | None) -> tuple[Expression, ...] | None:
        """The conditions of an event that only uses parameters (S3); None when one is wrong."""
        enclosing = Enclosing(CANDIDATE, type_)
        checked = [
            self.condition(item, enclosing)
            for condition in self.written_out(event, type_)
            for item in conjuncts(condition)
        ]
        sound = [item for item in checked if item is not None]
        if len(sound) < len(checked):
            return None
        return self._required(sound)

    def _required(self, conditions: Iterable[Expression]) -> tuple[Expression, ...]:
        """The parts of conditions, each of which finds there what those before have asked for."""
        there = self.scope.there
        parts: list[Expression] = []
        for condition in conditions:
            found = conjuncts_of(condition, there)
            parts += found
            there |= asked_for(found)
        return tuple(parts)

    def repeated(
        self, event: ast.Event, type_: EventType | None
    ) -> tuple[tuple[Expression, ...], tuple[Expression, ...], tuple[Expression, ...]] | None:
        """The conditions of an event that repeats (X4): those that leave events out, those that
        each event of a run satisfies, and those between neighbours, which parentheses hold
        together. It only uses parameters; None when one is wrong.
        """
        enclosing = Enclosing(CANDIDATE, type_, repeats=True)
        own: list[Expression] = []
        kept: list[Expression] = []
        links: list[Expression] = []
        there, between = self.scope.there, frozenset[Expression]()
        before = len(self.report.problems)
        for item in self.written_out(event, type_):
            lasts = isinstance(item, ast.While)
            checked = self.condition(
                item.condition if isinstance(item, ast.While) else item, enclosing
            )
            if checked is None:
                continue
            nodes = nodes_of(checked)
            is_link = any(isinstance(one, AttributeOf) and one.event == PREVIOUS for one in nodes)
            if (is_link or lasts) and has_aggregates(checked):
                self.report("neighbours are compared without aggregates", item.span)
            if is_link:
                found = conjuncts_of(checked, there | between)
                links += found
                between |= asked_for(found)
            else:
                found = conjuncts_of(checked, there)
                (kept if lasts else own).extend(found)
                there |= asked_for(found)
        if len(self.report.problems) > before:
            return None
        return tuple(own), tuple(kept), tuple(links)

    def written_out(self, event: ast.Event, type_: EventType | None) -> tuple[ast.Expression, ...]:
        """The conditions with positional parameters written as ``attribute = $p``."""
        conditions: list[ast.Expression] = []
        leading = True
        for place, item in enumerate(event.conditions):
            if not isinstance(item, ast.Parameter):
                leading = False
                conditions.append(item)
            elif not leading:
                self.report("positional parameters come before all other conditions", item.span)
            elif type_ is not None and place >= len(type_.declared):
                self.report(
                    f"{type_.name} has no attribute number {place + 1}", item.span, f"it is {type_}"
                )
            elif type_ is not None:
                name = ast.Name(type_.attributes[place].name, item.span)
                attribute = ast.Attribute(None, name, item.span)
                equal = (Comparison.EQUAL,)
                conditions.append(ast.Compared((attribute, item), equal, item.span))
        return tuple(conditions)


def conjuncts(node: ast.Expression) -> tuple[ast.Expression, ...]:
    """An item as the items it joins by ``and``: parentheses around them change nothing."""
    if not isinstance(node, ast.And):
        return (node,)
    return tuple(part for operand in node.operands for part in conjuncts(operand))


def _kind_of(function: Function, value: Expression | None) -> Kind:
    """The kind of what an aggregate function gives."""
    if value is None or function is Function.COUNT:
        return Kind.INT
    return Kind.FLOAT if function in (Function.AVG, Function.STDDEV) else value.kind


def attribute_of(number: int, type_: EventType, place: int) -> AttributeOf:
    """An attribute of event ``number``, of that type."""
    presence = type_.presences[place] if place < len(type_.presences) else -1
    return AttributeOf(number, place, type_.attributes[place].kind, presence)


def as_declared(value: Expression, kind: Kind) -> Expression | None:
    """A value as one of the declared kind (S10); None when it cannot be one."""
    if value.kind is kind:
        return value
    return Convert(value) if value.kind is Kind.INT and kind is Kind.FLOAT else None


def _compare(left: Kind, right: Kind) -> bool:
    """Whether values of these kinds can be compared: equal ones, and numbers."""
    return left is right or (left.is_number and right.is_number)


_METHODS: Mapping[type, Callable[[Expressions, Any, Enclosing | None], Expression | None]] = {
    ast.Literal: Expressions._literal,
    ast.Duration: Expressions._duration,
    ast.Parameter: Expressions._parameter,
    ast.Attribute: Expressions._attribute,
    ast.Arithmetic: Expressions._arithmetic,
    ast.Negative: Expressions._negative,
    ast.Compared: Expressions._compared,
    ast.IsNull: Expressions._is_null,
    ast.Not: Expressions._not,
    ast.And: Expressions._and,
    ast.Or: Expressions._or,
    ast.Membership: Expressions._membership,
    ast.Matching: Expressions._matching,
    ast.Called: Expressions._called,
    ast.Instant: Expressions._instant,
    ast.While: Expressions._while,
    ast.OfEvent: Expressions._of_event,
    ast.Aggregate: Expressions._aggregate,
}
