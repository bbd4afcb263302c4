"""Conditions and values within a match, told with all that they speak of (S5, S8 to S10).

The values are the oracle's own; what is added here is how they came about: what the parts of a
condition are worth, and why a value does not exist (S9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from matcher.model import EventType
from rules import terms
from rules.engine.oracle.values import Scope, fitting, value_of
from rules.explaining.explanation import NULL, Check, Considered, Term
from rules.explaining.moments import is_instant
from rules.explaining.rewording import NOBODY, Rewording
from rules.terms import (
    Aggregate,
    Arithmetic,
    AttributeOf,
    Called,
    Expression,
    Literal,
    Negative,
    NumberFunction,
    OfText,
    Operator,
    Slot,
    TextFunction,
    operands_of,
)
from rules.texts import TEXT_MAX


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The event whose parentheses enclose a condition: its number and type."""

    number: int = NOBODY
    type: EventType | None = None


NOWHERE = Enclosing()
"""A constraint, or an item of ``where``."""


class Appraisal:
    """Tells of one rule's conditions; ``consider`` tells of the events of an aggregate."""

    def __init__(
        self, words: Rewording, consider: Callable[[Aggregate, Scope], Considered] | None = None
    ) -> None:
        self._words = words
        self._consider = consider
        self._texts: dict[tuple[int, int], str] = {}  # the rule keeps its expressions alive

    def check(self, condition: Expression, scope: Scope, enclosing: Enclosing = NOWHERE) -> Check:
        """A condition, its truth value, and the values that it compares."""
        result = value_of(condition, scope)
        assert result is None or isinstance(result, bool)
        text = self.text(condition, enclosing)
        terms: dict[str, Term] = {}
        for part in _parts(condition):
            term = self.term(part, scope, enclosing)
            terms.setdefault(term.text, term)
        return Check(text, result, tuple(terms.values()))

    def term(self, part: Expression, scope: Scope, enclosing: Enclosing = NOWHERE) -> Term:
        """A value, or why there is none."""
        value = value_of(part, scope)
        because = self.undefined(part, scope, enclosing) if value is None else ""
        if value is None and isinstance(part, AttributeOf):
            because = NULL
        is_told = isinstance(part, Aggregate) and self._consider is not None
        considered = self._consider(part, scope) if is_told else None  # type: ignore[arg-type, misc]
        text = self.text(part, enclosing)
        return Term(text, value, because, considered, is_instant(part))

    def text(self, expression: Expression, enclosing: Enclosing = NOWHERE) -> str:
        """An expression in words."""
        key = id(expression), enclosing.number
        if key not in self._texts:
            text = self._words.expression(expression, enclosing.number, enclosing.type)
            self._texts[key] = text
        return self._texts[key]

    def undefined(
        self, expression: Expression, scope: Scope, enclosing: Enclosing = NOWHERE
    ) -> str:
        """Why an undefined expression is undefined: the innermost part to blame (S9)."""
        for operand in operands_of(expression):
            if value_of(operand, scope) is None:
                return self.undefined(operand, scope, enclosing)
        text = self.text(expression, enclosing)
        match expression:
            case AttributeOf():
                return f"{text} is null"
            case OfText(TextFunction(None, "cidr")):
                return f"{text} is of no address"
            case OfText(TextFunction(None)):
                return f"{text} is no number"
            case OfText():
                return f"{text} looks in a text of more than {TEXT_MAX} characters"
            case Called(NumberFunction.SQRT):
                return f"{text} is of a negative number"
            case Called(NumberFunction.DIV, (_, right)) if value_of(right, scope) == 0:
                return f"division by zero in {text}"
            case Called(function) if function.is_of_time:
                return f"{text} is of a time out of the years 1970 to 2099"
            case Aggregate() if not fitting(expression, scope):
                return f"{expression.function.value} of no events"
            case Arithmetic(Operator.DIVIDE | Operator.MODULO, _, right):
                if value_of(right, scope) == 0:
                    return f"division by zero in {text}"
        return f"{text} is out of the range of {expression.kind.value}"


def speaks_of_others(expression: Expression, number: int) -> bool:
    """Whether a condition of event ``number`` needs more than that event to be decided (S5)."""
    match expression:
        case AttributeOf(event):
            return event != number
        case Slot() | Aggregate():
            return True
        case _:
            return any(speaks_of_others(one, number) for one in operands_of(expression))


def _parts(condition: Expression) -> Iterator[Expression]:
    """Expressions whose value a reader wants to know: compared operands, and their parts."""
    match condition:
        case Literal() | AttributeOf(presence=terms.IS_PRESENCE):
            return  # the condition says it
        case AttributeOf() | Slot() | Aggregate():
            yield condition
        case Arithmetic() | Negative() | OfText() | Called():
            yield condition
            for operand in operands_of(condition):
                yield from _parts(operand)
        case _:
            for operand in operands_of(condition):
                yield from _parts(operand)
