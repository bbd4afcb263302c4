"""The checked rule: what a rule means once every name is resolved and every type is known.

The checker makes these values from the syntax tree, their conditions and values being those of
``terms``; both engines start from them. The naive engine reads them as they stand, so a
:class:`Rule` is as close to tesla.md section 3 as data can be; ``planner`` flattens them into
tables for the kernels.

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
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, TypeAlias

from matcher.model import EventType, Kind
from rules.terms import (
    Aggregate,
    Compare,
    Comparison,
    Expression,
    Literal,
    TextFunction,
    Window,
    Within,
    aggregates_in,
)


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

    An iteration (X4) selects the last event of a run: its last condition says that the run is long
    enough, and ends there.

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

    @property
    def iteration(self) -> tuple[int, Aggregate] | None:
        """The least length of the runs of an iteration, and what counts their events (X4)."""
        match self.conditions[-1:]:
            case (Compare(Comparison.GREATER_EQUAL, Aggregate() as count, Literal() as least),):
                is_own = count.run is not None and count.run.event == self.event
                return (int(least.value), count) if is_own else None
            case _:
                return None


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


class Wiring(NamedTuple):
    """The types that a rule speaks of, by name: many rules have the same wiring, and what follows
    from types alone is worked out once for these.
    """

    defined: str
    used: frozenset[str]
    opening: tuple[str, ...]


_wiring = functools.lru_cache(4_096)(Wiring)
"""One value for all rules of a wiring, which is found again without a look at its names."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
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
    owner: str | None = field(default=None, compare=False)
    """The user who pays for the time of its patterns (rules.patience); None: nobody."""
    used_types: tuple[EventType, ...] = field(init=False, repr=False, compare=False)
    """Every event type the rule reads, terminator first, each once, aggregates included."""
    wiring: Wiring = field(init=False, repr=False, compare=False)
    is_strict: bool = field(init=False, repr=False, compare=False)
    """Whether the rule was drawn into a cycle, so that some use sees earlier events alone (S12)."""

    def __post_init__(self) -> None:
        types = {type_.name: type_ for type_ in self.opening}
        uses = uses_of(self)
        for use in uses:
            types.setdefault(use.type.name, use.type)
        # Kept, since brokers ask for types with every event, and for all with each rule.
        object.__setattr__(self, "used_types", tuple(types.values()))
        opening = tuple(one.name for one in self.opening)
        wiring = _wiring(self.defines.name, frozenset(types), opening)
        object.__setattr__(self, "wiring", wiring)
        object.__setattr__(self, "is_strict", any(use.strict for use in uses))

    def __hash__(self) -> int:
        """Hash of name and text, which say nearly all: what follows from rules is looked up by them
        with each plan and each checkpoint.
        """
        return hash((self.name, self.text))

    def named(self, name: str, owner: str | None = None) -> Rule:
        """The same rule by another name, quickly: what follows from the rest is kept."""
        other = object.__new__(Rule)
        for one in _FIELDS:
            object.__setattr__(other, one, getattr(self, one))
        object.__setattr__(other, "name", name)
        object.__setattr__(other, "owner", owner)
        return other

    def uses(self, function: TextFunction) -> bool:
        """Whether a function of texts stands anywhere in it."""
        pending: list[Any] = [self]
        while pending:
            one = pending.pop()
            if one == function:
                return True
            if isinstance(one, tuple):
                pending += one
            elif is_dataclass(one):
                pending += (getattr(one, each.name) for each in fields(one) if each.compare)
        return False

    @property
    def opening(self) -> tuple[EventType, ...]:
        """The types of the terminator, or those of the events that come together."""
        if self.alternatives:
            return tuple(dict.fromkeys(one.terminator for one in self.alternatives))
        if self.together is None:
            return (self.terminator,)
        return (self.terminator, *(clause.type for clause in self.selected))

    @property
    def mentions(self) -> tuple[EventType, ...]:
        """The event types that the rule names, each once, ``Timer`` apart."""
        named = {type_.name: type_ for type_ in (self.defines, *self.used_types)}
        named.pop(TIMER.name, None)
        return tuple(named.values())

    @property
    def selected(self) -> tuple[Selected, ...]:
        """The clauses that introduce events 1, 2, ..., in order."""
        return tuple(clause for clause in self.clauses if isinstance(clause, Selected))


_FIELDS = tuple(one.name for one in fields(Rule))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Checked rules in the order of their file, and every schema that they know.

    ``schemas`` holds declared, defined and given types by name, ``Timer`` excluded.
    """

    rules: tuple[Rule, ...]
    schemas: Mapping[str, EventType]


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


TIMER = EventType.of(
    "Timer", S="int", M="int", H="int", day="int", month="int", D="string", zone="string"
)
"""The built-in event (S13). ``D`` holds the names Monday to Sunday; bare names stand for them.
``zone`` is the time zone in which the others are told."""
ZONE = 6
"""The number of that attribute."""
UTC = "UTC"
"""The zone of a Timer that names none."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
