"""Answers of ``explain``: frozen values, with everything in them that a reader may ask for.

An :class:`Explanation` is about one rule and one event. It is a tree of :class:`Branch` es: a
branch walks the rule's clauses in the order of the text until one fails, or until all have
passed, or until an ``each`` has several events to go on with, each in a branch of its own. Every
clause walked is a :class:`Step`, with the events that were considered and what became of each.

Times are in microseconds since the epoch, durations in microseconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matcher.model import Datum, Event, Value

NULL = "null"
"""Why an attribute that is null has no value."""


class Fate(enum.Enum):
    """The fate of an event that a clause considered, and why (tesla.md)."""

    CHOSEN = "chosen"
    """Selected (S1, S2)."""
    COUNTED = "counted"
    """One of the events that an aggregate is made of (S8)."""
    VIOLATES = "violates"
    """The event that must not be (S6)."""
    PASSED_OVER = "passed over"
    """Fitting, but a single selection chose another (S2)."""
    APART = "of another run"
    """Fitting, but not of the run that is aggregated (X4)."""
    OUTSIDE = "outside the window"
    """Earlier or later than the window (S1, S6, S8)."""
    CONDITION = "condition"
    """A condition on it alone is not true."""
    PARAMETER = "parameter"
    """A condition that compares it with the rest of the match is not true (S5)."""
    TAKEN = "already in the match"
    """The events of a match are distinct (S1), and not negated by themselves (S6)."""
    SIMULTANEOUS = "not strictly earlier"
    """Within a cycle of rules, only events earlier than the terminator are seen (S12)."""
    CONSUMED = "consumed"
    """An earlier firing of the rule has consumed it (S11)."""
    NOT_IN_FORCE = "before the rule"
    """Earlier than the instant from which the rule holds (S15)."""


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a condition with its value; ``because`` says why it is undefined (S9), or "", and
    is NULL for a null.

    ``considered`` holds the events that an aggregate ranges over. A value that is known to be an
    instant ``is_instant``.
    """

    text: str
    value: Value | None
    because: str = ""
    considered: Considered | None = None
    is_instant: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """A condition and its truth value, None when it is undefined (S9), with what it speaks of."""

    text: str
    result: bool | None
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that a clause considered.

    ``distance`` is how far it is outside the window: negative before it, positive after it, 0
    within. ``check`` is the condition that failed; ``by`` the firing that consumed it.
    """

    event: Event
    fate: Fate
    distance: int = 0
    check: Check | None = None
    by: Event | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """The events of one type, as a clause or an aggregate looks at them.

    The window is from ``start`` to ``end``, both included unless ``after_start`` (S6).
    ``candidates`` are the most telling ones, in order; ``counts`` says what became of all events
    of the type in the recording, and ``failed`` how many failed each condition.
    """

    type: str
    start: int
    end: int
    after_start: bool
    candidates: tuple[Candidate, ...]
    counts: Mapping[Fate, int]
    failed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Step:
    """One clause of a branch.

    ``clause`` counts from 1 in the order of the text; 0 is the terminator, and one more than the
    last clause is ``where``. ``because`` says in a few words why it passed, or did not.
    ``considered`` is there for selections and negations, ``checks`` for conditions, ``values``
    for parameters and for the attributes of the composite event.
    """

    clause: int
    text: str
    passed: bool
    because: str
    considered: Considered | None = None
    checks: tuple[Check, ...] = ()
    values: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A complete match: its events by the names that the rule gives them, in the text's order.

    ``instants`` are the names of attributes that are known to be instants.
    """

    names: tuple[str, ...]
    events: tuple[Event, ...]
    data: Mapping[str, Datum]
    instants: frozenset[str] = frozenset()

    @property
    def cause(self) -> tuple[str, ...]:
        """The events as ``source#id``."""
        return tuple(f"{event.source}#{event.id}" for event in self.events)


@dataclass(frozen=True, slots=True)
class Branch:
    """A match in the making: ``chosen`` began it (None: the terminator did).

    When its last step is an ``each`` with several events, ``branches`` goes on with them, as far
    as the bound allows; ``more`` counts the others, of which ``more_matches`` matches come.
    """

    chosen: Event | None
    steps: tuple[Step, ...]
    branches: tuple[Branch, ...] = ()
    more: int = 0
    more_matches: int = 0
    match: Match | None = None

    def matches(self) -> Iterator[Match]:
        """The complete matches of this branch and those below it."""
        if self.match is not None:
            yield self.match
        for branch in self.branches:
            yield from branch.matches()

    def unlisted(self) -> int:
        """How many matches lie beyond the bound."""
        return self.more_matches + sum(branch.unlisted() for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a rule fired at an event, or did not.

    ``text`` is the rule in canonical form, ``clauses`` its clauses as they were understood.
    """

    rule: str
    text: str
    clauses: tuple[str, ...]
    event: Event
    branch: Branch

    @property
    def matches(self) -> tuple[Match, ...]:
        """The complete matches, in the order of the branches."""
        return tuple(self.branch.matches())

    @property
    def count(self) -> int:
        """How many matches there are, those beyond the bound on branches included."""
        return len(self.matches) + self.branch.unlisted()

    @property
    def fired(self) -> bool:
        """Whether the event made the rule fire."""
        return self.count > 0


@dataclass(frozen=True, slots=True)
class Stage:
    """How many terminators got as far as one clause, and past it.

    ``reasons`` counts why the others did not, the commonest first; ``example`` is the first of
    those that failed for the commonest.
    """

    clause: int
    text: str
    reached: int
    passed: int
    reasons: Mapping[str, int]
    example: Event | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """How far the terminators of a rule got, clause by clause.

    ``terminators`` are the events of the terminator's type; ``fired`` those that made the rule
    fire, ``composites`` the composite events of that. A rule whose events come in any order, or
    are of either type, has no stages, but a summary for each of its ``ways``, which ``way`` tells.
    """

    rule: str
    text: str
    terminators: int
    stages: tuple[Stage, ...]
    fired: int
    composites: int
    way: str = ""
    ways: tuple[Summary, ...] = ()
