"""The terms of conditions and values: expressions over the attributes of a rule's events.

The checker makes these values, typed and without names; ``pattern`` makes rules of them, and both
engines read them. What the shape of an expression promises is told there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from matcher.model import EventType, Kind, Value

TERMINATOR = 0
"""The number of a rule's terminator."""
CANDIDATE = -1
"""The number of a negated or aggregated event inside its own conditions."""
PREVIOUS = -2
"""The number of the neighbour before it, in the conditions of an iteration (X4)."""
TIME = -1
"""The place of an event's time among its attributes: an int, in microseconds (X3)."""
IS_PRESENCE = -2
"""In place of the number of an attribute's presence: it is one."""
TIME_NAME = "time"
"""The name of an event's time; an attribute of that name comes first."""
NEIGHBOUR = "previous"
"""The name of PREVIOUS in the text."""


class Comparison(enum.Enum):
    """Operators that give a truth value from two operands."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"


class Operator(enum.Enum):
    """Arithmetic operators. DIVIDE always gives a float; MODULO has the divisor's sign (S10)."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


class Function(enum.Enum):
    """Aggregate functions (S8). STDDEV is the population one; FIRST is of runs alone (X4)."""

    AVG = "Avg"
    SUM = "Sum"
    COUNT = "Count"
    MIN = "Min"
    MAX = "Max"
    STDDEV = "StdDev"
    FIRST = "First"


# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``is_duration`` and ``written``, the text of an instant, tell how it was written
    (X3), which changes nothing.
    """

    value: Value
    kind: Kind
    is_duration: bool = field(default=False, compare=False, repr=False)
    written: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """Attribute number ``attribute``, or TIME, of event number ``event`` (CANDIDATE included).

    ``presence`` is the number of the attribute that tells whether this one is there, -1 where it
    is never null, and IS_PRESENCE where it tells this of another itself (matcher.model, Rule 5).
    The checker looks at it, and who puts a rule into words.
    """

    event: int
    attribute: int
    kind: Kind
    presence: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slot:
    """A value computed by an earlier ``Let``."""

    index: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left operator right``; kind INT only when both are ints and the operator is not ``/``."""

    operator: Operator
    left: Expression
    right: Expression
    kind: Kind


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    operand: Expression
    kind: Kind


@dataclass(frozen=True, slots=True)
class Convert:
    """An int as the float nearest to it (S10)."""

    operand: Expression

    @property
    def kind(self) -> Kind:
        """Always FLOAT."""
        return Kind.FLOAT


@dataclass(frozen=True, slots=True)
class Compare:
    """A truth value; undefined when an operand is (S9)."""

    comparison: Comparison
    left: Expression
    right: Expression

    @property
    def kind(self) -> Kind:
        """Always BOOL."""
        return Kind.BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """Undefined when its operand is (S9)."""

    operand: Expression

    @property
    def kind(self) -> Kind:
        """Always BOOL."""
        return Kind.BOOL


class NumberFunction(enum.Enum):
    """Functions of numbers, and of times (S10); :mod:`rules.functions` says what they give."""

    ABS = "abs"
    SQRT = "sqrt"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    DIV = "div"
    LEAST = "least"
    GREATEST = "greatest"
    HOUR = "hour"
    WEEKDAY = "weekday"
    DATE = "date"

    @property
    def is_of_time(self) -> bool:
        """Whether it is of a time, told in a zone."""
        return self in (NumberFunction.HOUR, NumberFunction.WEEKDAY, NumberFunction.DATE)


@dataclass(frozen=True, slots=True)
class Called:
    """``function`` of numbers; undefined when an operand is (S9). Operands are of the kind that is
    computed with, ints being converted to floats. A time is told in a ``zone``.
    """

    function: NumberFunction
    operands: tuple[Expression, ...]
    kind: Kind
    zone: str = ""


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function of one text: whether ``pattern`` is found in it; without a pattern, what ``name``
    says: the text in small letters or in capitals, its length in characters, the number that it is,
    or whether it is an address of ``network``.
    :mod:`rules.texts` works it out, once for each distinct text.
    """

    pattern: str | None = None
    name: str = "lower"
    network: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of what it gives."""
        return Kind.BOOL if self.pattern is not None else TEXT_FUNCTIONS[self.name]


TEXT_FUNCTIONS: Mapping[str, Kind] = {
    "lower": Kind.STRING,
    "upper": Kind.STRING,
    "length": Kind.INT,
    "number": Kind.FLOAT,
    "cidr": Kind.BOOL,
}
"""The kinds of what functions of texts give, by the names of these."""


@dataclass(frozen=True, slots=True)
class OfText:
    """``function`` of a string; undefined when its operand is (S9)."""

    function: TextFunction
    operand: Expression

    @property
    def kind(self) -> Kind:
        """The kind of the result."""
        return self.function.kind


@dataclass(frozen=True, slots=True)
class And:
    """False when one operand is false, else undefined when one is, else true."""

    operands: tuple[Expression, ...]

    @property
    def kind(self) -> Kind:
        """Always BOOL."""
        return Kind.BOOL


@dataclass(frozen=True, slots=True)
class Or:
    """True when one operand is true (S9), else undefined when one is, else false.

    ``is_list`` tells how it was written, ``x in (a, b)`` for ``x = a or x = b``, which changes
    nothing.
    """

    operands: tuple[Expression, ...]
    is_list: bool = field(default=False, compare=False, repr=False)

    @property
    def kind(self) -> Kind:
        """Always BOOL."""
        return Kind.BOOL


@dataclass(frozen=True, slots=True)
class Choice:
    """``value`` where ``condition`` is true, else ``otherwise``; what is not chosen does not
    matter, defined or not. Undefined where the condition is.
    """

    condition: Expression
    value: Expression
    otherwise: Literal

    @property
    def kind(self) -> Kind:
        """The kind of the value."""
        return self.value.kind


@dataclass(frozen=True, slots=True)
class Run:
    """The run whose last event is numbered event ``event`` (X4).

    ``kept`` are the conditions on CANDIDATE that each of its events satisfies, ``between`` those on
    each but the first and the one before it, PREVIOUS. Of a run of more than ``most`` events, the
    last ``most`` are meant; 0 bounds nothing.
    """

    event: int
    between: tuple[Expression, ...]
    most: int
    kept: tuple[Expression, ...] = ()
    links: tuple[Expression, ...] = field(init=False, repr=False, compare=False)
    """All that neighbours are asked."""

    def __post_init__(self) -> None:
        before = tuple(rewritten(one, _of_previous) for one in self.kept)
        object.__setattr__(self, "links", (*self.between, *self.kept, *before))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function`` of a value of each event of ``type`` in ``window`` that fits (S8).

    ``value``, of CANDIDATE, has no aggregate in it; events for which it is undefined are left out.
    It is None only for COUNT, of all events. ``strict``: see Selected. ``kind`` is that of the
    result. With ``run``, it ranges over the events of that run alone, of none if the run goes on.
    """

    function: Function
    type: EventType
    conditions: tuple[Expression, ...]
    value: Expression | None
    window: Window
    strict: bool
    kind: Kind
    run: Run | None = None


Expression: TypeAlias = (
    Literal
    | AttributeOf
    | Slot
    | Arithmetic
    | Negative
    | Convert
    | Compare
    | Not
    | OfText
    | Called
    | And
    | Or
    | Choice
    | Aggregate
)


# --- windows ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Within:
    """From ``duration`` microseconds before event ``anchor`` to it, both ends included."""

    duration: int
    anchor: int


@dataclass(frozen=True, slots=True)
class Between:
    """From event ``earlier`` to event ``later``; S6 and S8 say which ends count."""

    earlier: int
    later: int


Window: TypeAlias = Within | Between


# --- attributes ------------------------------------------------------------------------------


def kind_of(type_: EventType, attribute: int) -> Kind:
    """The kind of an attribute by its number, TIME included."""
    return Kind.INT if attribute == TIME else type_.attributes[attribute].kind


def name_of(type_: EventType, attribute: int) -> str:
    """The name of an attribute by its number, TIME included."""
    return TIME_NAME if attribute == TIME else type_.attributes[attribute].name


# --- walks -----------------------------------------------------------------------------------


def with_operands(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with ``change`` applied to its operands; an aggregate has none, and stays."""
    match node:  # written out: it is called for every node of every rule
        case Compare():
            return Compare(node.comparison, change(node.left), change(node.right))
        case Arithmetic():
            return Arithmetic(node.operator, change(node.left), change(node.right), node.kind)
        case Negative() | Convert() | Not() | OfText():
            return replace(node, operand=change(node.operand))
        case And() | Or() | Called():
            return replace(node, operands=tuple(change(item) for item in node.operands))
        case Choice():
            return replace(node, condition=change(node.condition), value=change(node.value))
        case _:
            return node


def rewritten(node: Expression, instead: Callable[[Expression], Expression | None]) -> Expression:
    """The node with ``instead`` of it what that gives, or, where that is None, of what is below it.

    Nothing here refers to itself: it leaves no garbage for the collector, however many rules come.
    """
    found = instead(node)
    if found is not None:
        return found
    return with_operands(node, partial(rewritten, instead=instead))


def _of_previous(node: Expression) -> Expression | None:
    """An attribute of CANDIDATE as one of PREVIOUS."""
    if not isinstance(node, AttributeOf) or node.event != CANDIDATE:
        return None
    return replace(node, event=PREVIOUS)


_OPERANDS: Mapping[type, Callable[[Any], tuple[Expression, ...]]] = {
    Arithmetic: attrgetter("left", "right"),
    Compare: attrgetter("left", "right"),
    Negative: lambda node: (node.operand,),
    Convert: lambda node: (node.operand,),
    Not: lambda node: (node.operand,),
    OfText: lambda node: (node.operand,),
    Called: attrgetter("operands"),
    And: attrgetter("operands"),
    Or: attrgetter("operands"),
    Choice: attrgetter("condition", "value"),
}
"""By type of expression, what takes the expressions right below it; leaves are not among them."""


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions right below one; what an aggregate ranges over is not below it."""
    operands = _OPERANDS.get(type(expression))
    return () if operands is None else operands(expression)


def nodes_of(node: Expression) -> Sequence[Expression]:
    """The node and everything below it, in order, the conditions of aggregates excepted."""
    if type(node) not in _OPERANDS:
        return (node,)
    pending, found = [node], []
    while pending:
        node = pending.pop()
        found.append(node)
        operands = _OPERANDS.get(type(node))
        if operands is not None:
            pending.extend(operands(node)[::-1])
    return found


def has_aggregates(expression: Expression) -> bool:
    """Whether there is an aggregate inside an expression."""
    kind = type(expression)
    if kind is Aggregate:
        return True
    operands = _OPERANDS.get(kind)
    if operands is None:
        return False
    for operand in operands(expression):  # noqa: SIM110 - asked of every expression of every rule
        if has_aggregates(operand):
            return True
    return False


def aggregates_in(expression: Expression) -> tuple[Aggregate, ...]:
    """Every aggregate inside an expression, those in the conditions of aggregates before it."""
    if not has_aggregates(expression):
        return ()
    found: list[Aggregate] = []
    for node in nodes_of(expression):
        if isinstance(node, Aggregate):
            found.extend(inner for item in node.conditions for inner in aggregates_in(item))
            found.append(node)
    return tuple(found)
