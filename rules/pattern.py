"""The checked rule: what a rule means once every name is resolved and every type is known.

The checker makes these values from the syntax tree; both engines start from them. The naive
engine reads them as they stand, so a :class:`Rule` is as close to tesla.md section 3 as data can
be; ``planner`` flattens them into tables for the kernels.

Events of a rule are numbered as they are introduced in the text: 0 is the terminator, then the
selected events. A negated or aggregated event has no number; inside its own conditions it is
``CANDIDATE``. Parameters are gone: one bound to an attribute (``area = $a``) is read as that
attribute of that event, one bound to a value (``$t = Avg(...)``) as a :class:`Slot`, filled by a
:class:`Let` clause.

What the shape of an expression promises:

- chained comparisons are split (``45 < $t = Avg(...)`` is a ``Let`` and then a ``Compare``);
- conditions and constraints are conjunctions, already split at their top-level ``and``;
- operands have the kinds that their operator needs. ``Arithmetic`` of kind FLOAT takes int
  operands too and converts them; ``Compare`` takes two numbers (int and float compare exactly by
  value, S10), two strings, or two bools (``=`` and ``!=`` alone);
- a :class:`Rule`'s values have the kinds that its type declares (``Convert`` marks an int that
  becomes a float).
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
TIME = -1
"""The place of an event's time among its attributes: an int, in microseconds (X3)."""
TIME_NAME = "time"
"""What an event's time is called; an attribute of that name comes first."""


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
    """Aggregate functions (S8). STDDEV is the population one."""

    AVG = "Avg"
    SUM = "Sum"
    COUNT = "Count"
    MIN = "Min"
    MAX = "Max"
    STDDEV = "StdDev"


# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``is_duration`` tells how it was written (X3), which changes nothing."""

    value: Value
    kind: Kind
    is_duration: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """Attribute number ``attribute``, or TIME, of event number ``event`` (CANDIDATE included)."""

    event: int
    attribute: int
    kind: Kind


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
    """True when one operand is true (S9), else undefined when one is, else false."""

    operands: tuple[Expression, ...]

    @property
    def kind(self) -> Kind:
        """Always BOOL."""
        return Kind.BOOL


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function`` of an attribute of all events of ``type`` in ``window`` that fit (S8).

    ``attribute``, which may be TIME, is None only for COUNT. ``strict``: see Selected. ``kind`` is
    that of the result.
    """

    function: Function
    type: EventType
    conditions: tuple[Expression, ...]
    attribute: int | None
    window: Window
    strict: bool
    kind: Kind


Expression: TypeAlias = (
    Literal
    | AttributeOf
    | Slot
    | Arithmetic
    | Negative
    | Convert
    | Compare
    | Not
    | And
    | Or
    | Aggregate
)

# --- windows and clauses ---------------------------------------------------------------------


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


class Policy(enum.Enum):
    """Selection policies: EACH is multiple, FIRST and LAST (with a rank) are single selection."""

    EACH = "each"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Selected:
    """``each|first|last|k-first|k-last B within w from A`` (S1, S2): introduces event ``event``.

    ``rank`` is the k of FIRST and LAST, 1 for the plain ones, and 0 for EACH. ``strict`` when
    the type is of the same dependency cycle as the rule: then only events strictly earlier than
    the terminator are seen (S12); ``dependencies.arrange`` decides it for a whole set of rules.

    ``rivals``, of FIRST and LAST in an alternative of a rule (X2), are the same clause for the
    other types of its ``or``: the k-th of all candidates is meant, and it must be of this type.
    """

    event: int
    type: EventType
    policy: Policy
    rank: int
    conditions: tuple[Expression, ...]
    window: Within
    strict: bool
    rivals: tuple[Selected, ...] = ()


@dataclass(frozen=True, slots=True)
class Negated:
    """``not C within w from A`` and ``not C between X and Y`` (S6)."""

    type: EventType
    conditions: tuple[Expression, ...]
    window: Window
    strict: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """``E within w from A`` for an ``E`` already selected (S7)."""

    event: int
    window: Within


@dataclass(frozen=True, slots=True)
class Constraint:
    """An item that must be true."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Let:
    """``$p = item``: fills slot ``slot``; the match fails when the value is undefined.

    ``parameter`` is p, to be shown.
    """

    slot: int
    value: Expression
    parameter: str = field(default="", compare=False)


Clause: TypeAlias = Selected | Negated | Timed | Constraint | Let


@dataclass(frozen=True, slots=True)
class Rule:
    """One checked rule.

    ``defines`` is the composite event's type and ``values`` its attributes' values, in its order;
    ``terminator`` its type and ``conditions`` the terminator's own conditions; ``clauses`` in the
    order of the text; ``event_names`` the display names of the numbered events; ``consuming`` the
    numbers of consumed events, ascending; ``text`` the rule's canonical text.

    With ``together``, a length of time in microseconds, there is no terminator (X1): event 0 and
    the selected ones, all ``each`` with windows that mean nothing, come in any order, pairwise
    within that time. ``variants`` makes ordinary rules of it; in these, ``latest`` is the place in
    the text of the event that is their terminator, and the others follow in the text's order.

    With ``alternatives`` the rule is ordinary rules together, one for each way to choose a type
    where ``A(...) or B(...)`` stands (X2), in the order of the text; its own pattern is the first
    of them. Where they differ is in the types of events and what follows from these: numbers and
    kinds of everything else are the same, and so are names, but for nameless events.
    """

    name: str
    defines: EventType
    terminator: EventType
    conditions: tuple[Expression, ...]
    clauses: tuple[Clause, ...]
    values: tuple[Expression, ...]
    consuming: tuple[int, ...]
    event_names: tuple[str, ...]
    slots: tuple[Kind, ...]
    text: str
    together: int | None = None
    latest: int = 0
    alternatives: tuple[Rule, ...] = ()
    used_types: tuple[EventType, ...] = field(init=False, repr=False, compare=False)
    """Every event type the rule reads, terminator first, each once, aggregates included."""
    is_strict: bool = field(init=False, repr=False, compare=False)
    """Whether the rule was drawn into a cycle, so that some use sees earlier events alone (S12)."""

    def __post_init__(self) -> None:
        types = {type_.name: type_ for type_ in self.opening}
        uses = uses_of(self)
        for use in uses:
            types.setdefault(use.type.name, use.type)
        # Kept, since brokers ask for the first with every event, engines for both with each rule.
        object.__setattr__(self, "used_types", tuple(types.values()))
        object.__setattr__(self, "is_strict", any(use.strict for use in uses))

    @property
    def opening(self) -> tuple[EventType, ...]:
        """The types of the terminator, or those of the events that come together."""
        if self.alternatives:
            return tuple(dict.fromkeys(one.terminator for one in self.alternatives))
        if self.together is None:
            return (self.terminator,)
        return (self.terminator, *(clause.type for clause in self.selected))

    @property
    def selected(self) -> tuple[Selected, ...]:
        """The clauses that introduce events 1, 2, ..., in order."""
        return tuple(clause for clause in self.clauses if isinstance(clause, Selected))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Checked rules in the order of their file, and every schema that they know.

    ``schemas`` holds declared, defined and given types by name, ``Timer`` excluded.
    """

    rules: tuple[Rule, ...]
    schemas: Mapping[str, EventType]


def kind_of(type_: EventType, attribute: int) -> Kind:
    """The kind of an attribute by its number, TIME included."""
    return Kind.INT if attribute == TIME else type_.attributes[attribute].kind


def name_of(type_: EventType, attribute: int) -> str:
    """The name of an attribute by its number, TIME included."""
    return TIME_NAME if attribute == TIME else type_.attributes[attribute].name


Use: TypeAlias = Selected | Negated | Aggregate
"""An event that a rule reads, its terminators apart."""


def uses_of(rule: Rule) -> tuple[Use, ...]:
    """The selected, negated and aggregated events of a rule, in the order of the text; those of
    one alternative after those of another (X2).
    """
    if rule.alternatives:
        return tuple(use for one in rule.alternatives for use in uses_of(one))
    found: list[Use] = []
    expressions: list[Expression] = list(rule.conditions)
    for clause in rule.clauses:
        match clause:
            case Selected():
                for one in (clause, *clause.rivals):
                    found.append(one)
                    expressions.extend(one.conditions)
            case Negated():
                found.append(clause)
                expressions.extend(clause.conditions)
            case Constraint():
                expressions.append(clause.condition)
            case Let():
                expressions.append(clause.value)
            case Timed():
                pass
    expressions.extend(rule.values)
    for expression in expressions:
        found.extend(aggregates_in(expression))
    return tuple(found)


def with_operands(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with ``change`` applied to its operands; an aggregate has none, and stays."""
    match node:  # written out: it is called for every node of every rule
        case Compare():
            return Compare(node.comparison, change(node.left), change(node.right))
        case Arithmetic():
            return Arithmetic(node.operator, change(node.left), change(node.right), node.kind)
        case Negative() | Convert() | Not():
            return replace(node, operand=change(node.operand))
        case And() | Or():
            return replace(node, operands=tuple(change(item) for item in node.operands))
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


_OPERANDS: Mapping[type, Callable[[Any], tuple[Expression, ...]]] = {
    Arithmetic: attrgetter("left", "right"),
    Compare: attrgetter("left", "right"),
    Negative: lambda node: (node.operand,),
    Convert: lambda node: (node.operand,),
    Not: lambda node: (node.operand,),
    And: attrgetter("operands"),
    Or: attrgetter("operands"),
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


TIMER = EventType.of("Timer", S="int", M="int", H="int", day="int", month="int", D="string")
"""The built-in event (S13). ``D`` holds the names Monday to Sunday; bare names stand for them."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
