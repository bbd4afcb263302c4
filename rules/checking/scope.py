"""The meaning of one rule's names, from the top of its text to the bottom (S3).

Rule 1: an event's name is introduced after its closing parenthesis, so inside its own conditions
it means nothing yet. It is known by its ``as`` name and, where its type occurs once among the
terminator and the selected events, by its type. An event that may have one of several types is
known by its ``as`` name alone, and by the attributes that all of them have (X2).

Rule 2: a parameter is bound once and stands for an expression from then on: an attribute, a
constant, or the slot of a computed value.

Rule 3: what is wrong is reported where it is found, once. A lookup that fails gives None, and
None is passed on in silence, so that one mistake makes one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from matcher.model import EventType
from matcher.spelling import spelled
from rules.errors import Problem, Span, did_you_mean
from rules.pattern import TIMER
from rules.syntax import ast
from rules.terms import Aggregate, AttributeOf, Between, Expression, Window, Within

NEAR_MAX = 20_000
"""Known words that are looked at for hints, for all problems of a text: that takes a second."""
LOST = -1
"""The anchor of a selected event whose own anchor could not be found."""


@dataclass(slots=True)
class Report:
    """The problems found so far, in no order."""

    problems: list[Problem] = field(default_factory=list)
    _to_look_at: int = NEAR_MAX

    def __call__(self, message: str, span: Span, hint: str | None = None) -> None:
        """Add a problem."""
        self.problems.append(Problem(message, span, hint))

    def near(self, word: str, known: Iterable[str]) -> str | None:
        """A hint that names a known word near this one, if it is among those looked at."""
        looked = tuple(islice(known, self._to_look_at))
        self._to_look_at -= len(looked)
        return did_you_mean(word, looked)


@dataclass(frozen=True, slots=True)
class Types:
    """The event types that rules may use.

    ``known`` by name; ``lost`` holds names of types whose declaration was refused already (None:
    any name may be one), so that their uses need no further message.
    """

    known: Mapping[str, EventType]
    lost: Collection[str | None]
    _hints: dict[str, str] = field(default_factory=dict)  # of types that are not known

    def find(self, name: ast.Name, report: Report) -> EventType | None:
        """The type of that name."""
        found = TIMER if name.text == TIMER.name else self.known.get(name.text)
        if found is None and name.text not in self.lost and None not in self.lost:
            report(f"unknown event type {name.text}", name.span, self._hint(name.text, report))
        return found

    def _hint(self, name: str, report: Report) -> str:
        # A type that is not declared may be used by ten thousand rules.
        if name not in self._hints:
            near = report.near(name, (*self.known, TIMER.name))
            self._hints[name] = near or f"declare it: event {spelled(name)}(...)"
        return self._hints[name]


def asked_for(conditions: Iterable[Expression]) -> frozenset[Expression]:
    """The presences that conditions ask for, which are attributes that are true or false."""
    return frozenset(one for one in conditions if isinstance(one, AttributeOf))


class Scope:
    """The events and parameters of one rule, as far as its text has been read."""

    def __init__(self, rule: ast.Rule, report: Report) -> None:
        self.report = report
        self.types: list[EventType | None] = []
        self.others: list[Sequence[EventType]] = []
        """By event, the other types that it may have (X2)."""
        self.names: list[str] = []
        self.parameters: dict[str, Expression | None] = {}
        self.there: frozenset[Expression] = frozenset()
        """The presences of events that every match has been asked for (nulls)."""
        self.runs: dict[int, Aggregate | None] = {}
        """By number of an event that repeats (X4), the count of its run's events; None where that
        is wrong.
        """
        self._numbers: dict[str, int] = {}
        self._anchors: list[int | None] = []
        self._events = rule.named
        types = [one.type.text for event in self._events for one in ast.alternatives_of(event)]
        self._occurrences = Counter(types)

    def asked(self, conditions: Iterable[Expression]) -> None:
        """Conditions that every match satisfies: what they say is there, is there from here on."""
        self.there |= asked_for(conditions)

    # --- events ------------------------------------------------------------------------------

    @property
    def next(self) -> int:
        """The number of the event that will be introduced next."""
        return len(self.types)

    def introduce(
        self,
        event: ast.Event | ast.Either,
        which: ast.Event,
        types: Sequence[EventType | None],
        anchor: int | None,
    ) -> None:
        """Name the next event (Rule 1), which is taken to be ``which`` of its alternatives.

        ``types`` are those that it may have, that of ``which`` first; ``anchor`` is None for the
        terminator, and for events that come together.
        """
        number, name = self.next, which.type
        self.types.append(types[0])
        self.others.append([type_ for type_ in types[1:] if type_ is not None])
        self._anchors.append(anchor)
        if isinstance(event, ast.Event) and self._occurrences[name.text] == 1:
            self._name(name, number)
        if event.alias is not None:
            self._name(event.alias, number)
        self.names.append((event.alias or name).text)

    def _name(self, name: ast.Name, number: int) -> None:
        if self._numbers.setdefault(name.text, number) != number:
            self.report(
                f"{name.text} names two events", name.span, "give each event a name of its own"
            )

    def find(self, name: ast.Name) -> int | None:
        """The number of the event that ``name`` means here."""
        number = self._numbers.get(name.text)
        if number is None:
            self._not_found(name)
        return number

    def number(self, name: ast.Name) -> int | None:
        """The same, where nothing is said if there is none."""
        return self._numbers.get(name.text)

    def _not_found(self, name: ast.Name) -> None:
        if self._occurrences[name.text] > 1:
            self.report(
                f"{name.text} is ambiguous: {self._occurrences[name.text]} events of the rule "
                "have this type",
                name.span,
                f"name them: {spelled(name.text)}(...) as first_name",
            )
        elif any(
            isinstance(event, ast.Either) and name.text in _types_of(event)
            for event in self._events
        ):
            self.report(
                f"{name.text} is not the only type that this event may have",
                name.span,
                "events with or between them are known by the name behind the last: as some_name",
            )
        elif any(
            name.text in _types_of(event)
            or (event.alias is not None and name.text == event.alias.text)
            for event in self._events[self.next :]
        ):
            self.report(
                f"event {name.text} is used before it is introduced",
                name.span,
                "an event is known by its name after its closing parenthesis",
            )
        else:
            self.report(
                f"unknown event {name.text}",
                name.span,
                self.report.near(name.text, self._numbers)
                or "only the terminator and selected events have names",
            )

    # --- windows -----------------------------------------------------------------------------

    def within(self, window: ast.Within) -> Within | None:
        """``within duration from NAME``."""
        anchor = self.find(window.anchor)
        return None if anchor is None else Within(window.duration, anchor)

    def window(self, window: ast.Window) -> Window | None:
        """Either form of window; the two names of ``between`` may stand in either order (S6)."""
        if isinstance(window, ast.Within):
            return self.within(window)
        first, second = self.find(window.first), self.find(window.second)
        if first is None or second is None:
            return None
        if second in self._chain(first):
            return Between(first, second)
        if first in self._chain(second):
            return Between(second, first)
        if first == second:
            self.report("between needs two different events", window.span)
        elif LOST not in (*self._chain(first), *self._chain(second)):
            self.report(
                f"{window.first.text} and {window.second.text} are not on one chain: neither is "
                "anchored on the other",
                window.span,
                "between takes an event and one that its 'within ... from' leads to",
            )
        return None

    def _chain(self, number: int) -> tuple[int, ...]:
        """The events that ``number`` is anchored to, directly and through others."""
        chain = []
        anchor = self._anchors[number]
        while anchor is not None:
            chain.append(anchor)
            anchor = None if anchor == LOST else self._anchors[anchor]
        return tuple(chain)


def _types_of(event: ast.Event | ast.Either) -> tuple[str, ...]:
    return tuple(one.type.text for one in ast.alternatives_of(event))
