"""From a checked rule to plain tables: the plan that the CDP engine links and runs.

Thesis 5.4 turns a rule into columns and a column dependency graph. Here the graph is a straight
list of steps, since the text of a rule already names every event before it is used:

- a *column* is a type and the conditions that concern the event alone (static conditions); equal
  columns of different rules are one column;
- an *access* is a way into a column: the whole of it, or its entries with given values of up to
  two attributes, when the rule compares them for equality with something known before
  (``area = $a``). What neither column nor key decides is the *residue*, tested on candidates;
  its inequalities of one attribute are a *range* too, by which candidates are passed over;
- a *step* selects, negates, aggregates, computes or tests. A negation waits for the last selected
  event of its type, since the match's own events do not count (S6);
- an *aggregate* inside an expression becomes a step of its own that fills a slot before the
  expression is needed: its window and conditions never depend on the candidates of the event
  that it is a condition of, unless a parameter is bound there; then it is computed per candidate;
- an *expression* becomes a program in postfix order for a stack machine.

Rules are data to the kernels: nothing is compiled per rule.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from matcher.model import EventType, Kind
from rules.pattern import Policy, Rule
from rules.planning.program import TRUE, Program
from rules.terms import Expression, Function, kind_of

IDENTITY = (-2, -3)
"""Beside the numbers of attributes: the two words by which an event is known from all others."""


def key_kind(type_: EventType, key: int) -> Kind:
    """The kind of what an access is keyed by: an attribute, or a word of the identity."""
    return Kind.INT if key in IDENTITY else kind_of(type_, key)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Events of ``type`` that satisfy the static ``conditions`` (over CANDIDATE).

    ``owner`` is the name of the rule that alone uses the column, because it consumes from it
    (S11), or empty for a column that rules share.
    """

    type: EventType
    conditions: tuple[Expression, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """A column by the values of the attributes ``keys`` (numbers or TIME, ascending; none: all).

    ``reach`` is how long, in microseconds, the rule may look back for an entry. ``derived`` names
    what an automaton alone enters here, some of the column's events (``sequences``); it is empty
    where all of them enter as they come.
    """

    column: ColumnPlan
    keys: tuple[int, ...]
    reach: int
    derived: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The value that key attribute must have: a program, and its kind."""

    program: Program
    kind: Kind


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that an attribute must not pass, nor have itself where the bound ``is_strict``."""

    program: Program
    kind: Kind
    is_strict: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of one numeric attribute; the residue tests them too."""

    attribute: int
    kind: Kind
    lower: Bound | None
    upper: Bound | None


class StepKind(enum.IntEnum):
    """The act of a step."""

    SELECT = 0
    NEGATE = 1
    TIMED = 2
    TEST = 3
    LET = 4
    AGGREGATE = 5


@dataclass(frozen=True, slots=True)
class Span:
    """An interval before the match: ``earlier`` is an event number, or -1 when the interval is
    ``duration`` microseconds long; ``later`` is the event at which it ends.
    """

    later: int
    earlier: int = -1
    duration: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rule. Which fields mean something depends on ``kind``.

    SELECT: ``event``, ``policy``, ``rank``, ``access``, ``probes``, ``ordered``, ``residue``,
    ``span``, ``strict``, ``inner`` (aggregates to compute per candidate, before the residue);
    access, probes and residue together are what ``conditions`` say. ``rivals`` of FIRST and LAST
    are selections like it in other types, whose candidates count for ``rank`` too (X2).
    One of runs (X4) has its own event in ``run``.
    NEGATE: the same without policy. TIMED: ``event``, ``span``. TEST: ``residue``.
    LET: ``slot``, ``program``. AGGREGATE: ``slot``, ``function``, ``attribute`` or ``program`` of
    what is aggregated (neither: events are counted), ``value_kind``, access and span as above.
    One of a run (X4), which event ``run`` ends, has the ``links`` between neighbours, the first of
    which has the number ``neighbour`` there, and ``most`` events at most, if that is not 0.
    """

    kind: StepKind
    event: int = 0
    policy: Policy = Policy.EACH
    rank: int = 0
    access: AccessPlan | None = None
    probes: tuple[Probe, ...] = ()
    ordered: Range | None = None
    residue: Program = TRUE
    span: Span = Span(0)
    strict: bool = False
    inner: tuple[Step, ...] = ()
    slot: int = 0
    program: Program = TRUE
    function: Function = Function.COUNT
    attribute: int | None = None
    value_kind: Kind = Kind.INT
    run: int = 0
    neighbour: int = 0
    links: Program = TRUE
    most: int = 0
    conditions: tuple[Expression, ...] = ()
    rivals: tuple[Step, ...] = ()


def laid_out(steps: Sequence[Step]) -> list[Step]:
    """Steps with all that belong to them, as their records stand: outer ones, inner ones, rivals,
    inner ones of rivals.
    """
    rivals = [rival for step in steps for rival in step.rivals]
    inner = [one for step in steps for one in step.inner]
    return [*steps, *inner, *rivals, *(one for rival in rivals for one in rival.inner)]


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule as tables. ``terminator`` is the column whose events make the rule run."""

    rule: Rule
    terminator: ColumnPlan
    steps: tuple[Step, ...]
    values: tuple[Program, ...]
    event_types: tuple[EventType, ...]
    slots: int
    reach: int
    runs: int = 0
    """How many of the last steps count the events of a run that is consumed (S11)."""

    @property
    def consumed_alone(self) -> Sequence[int]:
        """The numbers of consumed events that are selected alone, not as runs."""
        runs = {clause.event for clause in self.rule.selected if clause.iteration is not None}
        return [event for event in self.rule.consuming if event not in runs]

    @property
    def has_rivals(self) -> bool:
        """Whether some selection chooses among events of several types (X2)."""
        return any(step.rivals for step in self.steps)
