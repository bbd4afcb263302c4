"""The syntax tree of a rules file: what was written, before anything is looked up.

Every node knows its place (``span``), and two nodes are equal when they say the same, wherever
they stand: places do not count. Parentheses, comments and the several spellings of one operator
leave no trace; chained comparisons stay chains, and the order of everything is the text's.

Names keep their own places (:class:`Name`), since they are what the checker points at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from matcher.model import Kind, Value
from rules.errors import Span
from rules.pattern import Policy
from rules.terms import Comparison, Function, Operator

NOWHERE = Span(0, 0, 1, 1)
"""The place of nodes that were not read from a text."""


@dataclass(frozen=True, slots=True)
class Name:
    """A word chosen by the author, at its place; or one that is made up to be shown, ``Temp#2``."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)
    is_made_up: bool = field(default=False, compare=False)


# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``kind`` tells 1 from 1.0 and from true, which Python takes for equal."""

    value: Value
    kind: Kind
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time as a value, ``3 min``, in microseconds (tesla.md X3)."""

    microseconds: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """``$name``; as a whole condition of an event, a positional one."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """``name``, an attribute of the enclosing event, or ``event.name``."""

    event: Name | None
    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left operator right``."""

    operator: Operator
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """``- operand``. The negative of a literal number is a literal."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Compared:
    """``a < b = c``: n operands with n - 1 operators between them, n >= 2."""

    operands: tuple[Expression, ...]
    operators: tuple[Comparison, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand is null``; ``is not null`` is its Not."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """``not operand``."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """``a and b and c``, in parentheses: two operands or more, none of them an And."""

    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """``a or b or c``, in parentheses: two operands or more, none of them an Or."""

    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """``operand in (option, option)``: one option or more."""

    operand: Expression
    options: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Matching:
    """``operand matches "pattern"``."""

    operand: Expression
    pattern: Literal
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Instant:
    """A date or an instant, ``2024-06-01``, in microseconds since the epoch (tesla.md X3)."""

    microseconds: int
    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Called:
    """``function(operand, operand)``: a function of texts or of numbers, one operand or more."""

    function: str
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """``while condition`` in the parentheses of an iteration's event (X4)."""

    condition: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OfEvent:
    """``event.name`` inside an aggregate, where the event that it ranges over is written out."""

    event: Event
    name: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function(argument window)``, in either of its two forms. The argument is an event, or an
    expression of its attributes in which it stands once (:class:`OfEvent`). Without a window it is
    one of an iteration: its name, or an expression of its attributes (X4).
    """

    function: Function
    argument: Event | Expression
    window: Window | None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def event(self) -> Event:
        """The event that it ranges over."""
        return self.events[0]

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that are written out in the argument: one, where the rule is right, or, of an
        iteration, none.
        """
        if isinstance(self.argument, Event):
            return (self.argument,)
        found: list[Event] = []
        nodes: list[Node] = [self.argument]
        while nodes:
            node = nodes.pop()
            if isinstance(node, OfEvent):
                found.append(node.event)
            else:
                nodes.extend(reversed(tuple(children(node))))
        return tuple(found)


Expression: TypeAlias = (
    Literal
    | Duration
    | Parameter
    | Attribute
    | Arithmetic
    | Negative
    | Compared
    | IsNull
    | Not
    | And
    | Or
    | Membership
    | Matching
    | Instant
    | Called
    | While
    | OfEvent
    | Aggregate
)

# --- events, windows, clauses ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Within:
    """``within duration from anchor``; ``duration`` in microseconds."""

    duration: int
    anchor: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Between:
    """``between first and second``, in either order."""

    first: Name
    second: Name
    span: Span = field(default=NOWHERE, compare=False)


Window: TypeAlias = Within | Between


@dataclass(frozen=True, slots=True)
class Event:
    """``type(conditions) as alias``."""

    type: Name
    conditions: tuple[Expression, ...] = ()
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Either:
    """``event or event as alias`` (tesla.md X2): two events or more, without names of their own."""

    events: tuple[Event, ...]
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Together:
    """``all event, event within duration``, in microseconds (tesla.md X1): two events or more."""

    events: tuple[Event, ...]
    duration: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Times:
    """``least..most``, of an iteration (X4); None where ``most`` is left out."""

    least: int
    most: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Selected:
    """``each event window``, ``last event window``, ``3-first event window``.

    ``rank`` is as written, 1 for the plain ``first`` and ``last``, and 0 for ``each``. An iteration
    has ``times``: ``each 2..5 event window``.
    """

    policy: Policy
    rank: int
    event: Event | Either
    window: Within
    times: Times | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negated:
    """``not event window``."""

    event: Event
    window: Window
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Timed:
    """``event within duration from anchor`` for an event already selected."""

    event: Name
    window: Within
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """An item that stands as a clause."""

    item: Expression
    span: Span = field(default=NOWHERE, compare=False)


Clause: TypeAlias = Selected | Negated | Timed | Constraint

# --- statements ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    """``name: kind``; None where ``define`` leaves the kind out. ``optional``: ``name: kind?``."""

    name: Name
    kind: Kind | None
    optional: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Schema:
    """``event type(attributes)``."""

    type: Name
    attributes: tuple[Declared, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name = value`` in ``where``."""

    name: Name
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """``rule name: define type(attributes) from terminator and clauses where ... consuming``.

    In the place of a terminator may stand events that may come in any order.
    """

    name: Name | None
    type: Name
    attributes: tuple[Declared, ...]
    terminator: Event | Either | Together
    clauses: tuple[Clause, ...] = ()
    where: tuple[Assignment, ...] = ()
    consuming: tuple[Name, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def opening(self) -> tuple[Event, ...]:
        """The terminator or its alternatives, or the events that come together."""
        first = self.terminator
        return (first,) if isinstance(first, Event) else first.events

    @property
    def named(self) -> tuple[Event | Either, ...]:
        """The events that have numbers, in the order of the text."""
        first = self.terminator
        opening = first.events if isinstance(first, Together) else (first,)
        return (*opening, *(one.event for one in self.clauses if isinstance(one, Selected)))


Statement: TypeAlias = Schema | Rule


def with_event(value: Expression, event: Event) -> Expression:
    """An aggregate's operand, with the event written out where its first attribute is named."""
    return _with_event(value, event)[0]


def _with_event(node: Expression, event: Event) -> tuple[Expression, bool]:
    """The same, and whether one was."""
    if isinstance(node, Attribute) and node.event is None:
        return OfEvent(event, node.name), True
    if isinstance(node, Arithmetic):
        left, found = _with_event(node.left, event)
        if found:
            return replace(node, left=left), True
        right, found = _with_event(node.right, event)
        return replace(node, right=right), found
    if isinstance(node, Negative):
        operand, found = _with_event(node.operand, event)
        return replace(node, operand=operand), found
    if isinstance(node, Called):
        for place, operand in enumerate(node.operands):
            changed, found = _with_event(operand, event)
            if found:
                operands = (*node.operands[:place], changed, *node.operands[place + 1 :])
                return replace(node, operands=operands), True
    return node, False


def alternatives_of(event: Event | Either) -> tuple[Event, ...]:
    """The events of which one occurs: the event itself, where nothing else is said."""
    return event.events if isinstance(event, Either) else (event,)


@dataclass(frozen=True, slots=True)
class Part:
    """One of several files in a text: where it starts, and how many lines stand before it."""

    name: str
    text: str
    start: int
    lines_before: int

    def holds(self, span: Span) -> bool:
        """Whether a place of the text lies in this file."""
        return self.start <= span.start < self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class File:
    """A rules file: its statements in order, and the text they were read from, for messages.

    ``parts`` are the files that it was put together from, where there are several.
    """

    statements: tuple[Statement, ...]
    text: str = field(default="", compare=False)
    name: str = field(default="<rules>", compare=False)
    parts: tuple[Part, ...] = field(default=(), compare=False)

    def line_of(self, span: Span) -> str:
        """A line as messages name it: ``line 3``, of several files ``b.tesla: line 3``."""
        for part in self.parts:
            if part.holds(span):
                return f"{part.name}: line {span.line - part.lines_before}"
        return f"line {span.line}"


Node: TypeAlias = (
    Expression
    | Window
    | Event
    | Either
    | Together
    | Clause
    | Times
    | Declared
    | Statement
    | Assignment
    | Name
    | File
)


_INNER: dict[type, tuple[str, ...]] = {}
"""By type of node, the fields that hold nodes or may: all but places and plain values."""


def children(node: Node) -> Iterator[Node]:
    """The nodes right below a node, in the order of its fields."""
    names = _INNER.get(type(node))
    if names is None:
        fields = node.__dataclass_fields__.values()
        names = tuple(one.name for one in fields if one.type not in _PLAIN)
        _INNER[type(node)] = names
    for name in names:
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from (item for item in value if hasattr(item, "__dataclass_fields__"))
        elif value is not None:
            yield value


_PLAIN = frozenset(
    {
        "Span",
        "str",
        "bool",
        "int",
        "int | None",
        "Value",
        "Kind",
        "Kind | None",
        "Operator",
        "Function",
        "Policy",
        "tuple[Part, ...]",
    }
)
"""The types of fields that hold no nodes, as they are written above."""


def depth(node: Node) -> int:
    """Levels of nodes from ``node`` down; walked without recursion, so of any depth."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [child for parent in level for child in children(parent)]
    return deepest
