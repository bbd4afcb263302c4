"""A sink's wish: the events of one type that satisfy some conditions.

A filter is written as an event of a rule is, ``Temp(value > 20 and room = "Room1")``, or as a
type alone, which means all of its events. It has no parameters and looks at one event only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from matcher.model import Bools, EventBatch, EventType
from matcher.single import Single
from rules.checking.expressions import Expressions
from rules.checking.scope import Report, Scope, Types
from rules.errors import Problem, RuleErrors
from rules.patience import PATIENCE, TooSlow
from rules.pattern import TIMER
from rules.planning.columnar import satisfied
from rules.planning.rowwise import Evaluate, evaluator, is_satisfied
from rules.syntax import ast
from rules.syntax.parser import parse_filter
from rules.syntax.printer import print_event
from rules.syntax.words import is_longer
from rules.terms import TIME, AttributeOf, Expression, OfText, nodes_of
from rules.texts import size_of

WORDS_MAX = 2_500
"""Words of a filter that a client asks for: to read and check it holds others up."""
NODE_WORK, PATTERN_WORK, STEP_WORK, UNICODE_WORK = 2, 150, 2, 20
"""Work, in tenths of a microsecond, that an event is to a part of a filter, and to a pattern and
each of its steps; to these ten times as much where it has classes of Unicode.
"""
FEW = 16
"""Up to so many events are looked at one by one: whole columns pay for more."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A checked filter: a type, conditions on its attributes (as event CANDIDATE), its text."""

    type: EventType
    conditions: tuple[Expression, ...]
    text: str
    payer: str | None = field(default=None, compare=False)
    """The user who pays for the time of its patterns (rules.patience); None: nobody."""
    otherwise: bool = field(default=False, compare=False)
    """Whether it matches all events, or none and is noted as paused, while its payer has no time
    left."""
    _evaluators: tuple[Evaluate, ...] = field(init=False, compare=False, repr=False)
    _is_paid: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_evaluators", tuple(map(evaluator, self.conditions)))
        nodes = (node for condition in self.conditions for node in nodes_of(condition))
        has_pattern = any(isinstance(one, OfText) and one.function.pattern for one in nodes)
        object.__setattr__(self, "_is_paid", has_pattern and self.payer is not None)

    def mask(self, batch: EventBatch) -> Bools:
        """bool[n]: which events of a batch of this type are asked for.

        Raises ValueError for a batch of another type.
        """
        if batch.type is not self.type and batch.type != self.type:
            raise ValueError(f"a batch of {batch.type} for a subscription to {self.type}")
        return self._paid(batch) if self._is_paid else self._mask(batch)

    def _paid(self, batch: EventBatch) -> Bools:
        try:
            with PATIENCE.paying(self.payer):
                return self._mask(batch)
        except TooSlow:
            if not self.otherwise:
                PATIENCE.paused.append(self)
            return np.full(len(batch), self.otherwise)

    def _mask(self, batch: EventBatch) -> Bools:
        if isinstance(batch, Single):
            return np.array([is_satisfied(self._evaluators, batch.row.values)], np.bool_)
        if len(batch) > FEW:
            return satisfied(self.conditions, batch)
        columns = [column.tolist() for column in batch.columns]
        rows = zip(*columns, strict=True) if columns else [()] * len(batch)
        return np.array([is_satisfied(self._evaluators, row) for row in rows], np.bool_)

    def takes(self, event: Single) -> bool:
        """Whether an event of this type is asked for."""
        if self._is_paid:
            return bool(self._paid(event)[0])
        return is_satisfied(self._evaluators, event.row.values)


def parse_subscription(
    text: str, schemas: Mapping[str, EventType], *, file: str = "<subscription>"
) -> Subscription:
    """The filter that ``text`` describes, checked against the schema of its type.

    Raises RuleErrors with every problem of the text, a type that ``schemas`` lacks among them.
    """
    event = parse_filter(text, file=file)
    found = _checked(event, Types(schemas, ()), text, file)
    assert found is not None, "an unknown type is a problem"
    return found


def check_extent(text: str, *, file: str = "<subscription>") -> None:
    """Raise RuleErrors for a filter of more than ``WORDS_MAX`` words, unread."""
    if is_longer(text, WORDS_MAX):
        said = f"a filter of more than {WORDS_MAX:,} words"
        problem = Problem(said, None, "let several subscriptions say it")
        raise RuleErrors([problem], file="<subscription>")


def work_of(event: ast.Event) -> int:
    """The work that an event of its type is to a filter which is evaluated by itself."""
    work, nodes = 0, list[ast.Node](event.conditions)
    while nodes:
        node = nodes.pop()
        work += NODE_WORK
        if isinstance(node, ast.Matching):
            pattern = str(node.pattern.value)
            is_wide = "\\p" in pattern.lower()
            work += PATTERN_WORK + (UNICODE_WORK if is_wide else STEP_WORK) * size_of(pattern)
        nodes.extend(ast.children(node))
    return work


def check_filter(text: str, *, file: str = "<subscription>") -> str:
    """The name of the type that a filter asks for, of which nothing is known yet.

    Raises RuleErrors with every problem of the text that no schema of the type could mend.
    """
    event = parse_filter(text, file=file)
    _checked(event, Types({}, (event.type.text,)), text, file)
    return event.type.text


def _checked(event: ast.Event, types: Types, text: str, file: str) -> Subscription | None:
    """The filter as far as its type is known: None where ``types`` has it for lost."""
    report = Report()
    if event.type.text == TIMER.name:
        report("Timer ticks inside rules only (tesla.md S13)", event.type.span)
    sound = [item for item in event.conditions if not _needs_a_rule(item, report)]
    type_ = types.find(event.type, report)
    scope = Scope(ast.Rule(None, event.type, (), event), report)
    conditions = Expressions(scope, types, report).uses(
        replace(event, conditions=tuple(sound)), type_
    )
    for condition in conditions or ():
        if any(
            isinstance(node, AttributeOf) and node.attribute == TIME for node in nodes_of(condition)
        ):
            report("a subscription does not look at times", event.span, "define a rule for them")
    if report.problems:
        problems = sorted(report.problems, key=lambda problem: problem.span or ast.NOWHERE)
        raise RuleErrors(problems, text, file)
    if type_ is None or conditions is None:
        return None
    return Subscription(type_, conditions, print_event(event))


def _needs_a_rule(condition: ast.Expression, report: Report) -> bool:
    """Whether a condition has parameters, other events or aggregates, which is reported."""
    before = len(report.problems)
    nodes: list[ast.Node] = [condition]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Parameter):
            report("a subscription has no parameters", node.span)
        elif isinstance(node, ast.Aggregate):
            report("a subscription has no aggregates", node.span, "define a rule for them")
        elif isinstance(node, ast.Attribute) and node.event is not None:
            report("a subscription knows one event", node.span, f"write {node.name.text} alone")
        else:
            nodes.extend(ast.children(node))
    return len(report.problems) > before
