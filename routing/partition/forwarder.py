"""What a node sends to its father in a processing tree: the union of its fragments (thesis 7.3.6).

Law 1: every event travels once, however many fragments let it pass, and whenever they do.

Law 2: marks. A mark of a type promises that all events of the type before it are there, and that
all that is needed of older events for those instants is there too (4.2). What goes up promises the
same: a type's mark goes up as it is while its events pass by themselves, and once the fragments in
which they wait for others have come as far.

Law 3: what no fragment can use any more is forgotten: events further behind the marks than the
fragments reach.

Law 4: a fragment that takes the place of another starts with the events that are still there, and
the other stays for as long as the fragment reaches. To send more than is needed is never wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.model import TIME_MIN, Bools, EventBatch, Int64s, StringColumn
from routing.order import greatest_time
from routing.partition.evaluation import Evaluation
from routing.partition.fragment import Fragment
from routing.partition.history import History, Stored
from routing.partition.predicates import Predicate
from rules.columnar import satisfied
from rules.pattern import TIME


@dataclass(frozen=True, slots=True, eq=False)
class Forwarded:
    """What is to be sent at once: events, and then the marks of their types (Law 2)."""

    batches: tuple[EventBatch, ...]
    marks: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Leaving:
    """A fragment whose place another has taken: it stays until the rule's mark is ``until``."""

    name: str
    evaluation: Evaluation
    until: int


class Forwarder:
    """The fragments of one node in one tree. Owner of the history that they need.

    ``push`` events, then ``advance`` the marks: both in any order of types and times, but an event
    earlier than its type's mark only where Law 2 lets it come.
    """

    def __init__(self) -> None:
        self._evaluations: dict[str, Evaluation] = {}  # by rule
        self._leaving: list[_Leaving] = []
        self._marks: dict[str, int] = {}
        self._given: dict[str, int] = {}  # the marks that went up
        self._front = TIME_MIN  # the greatest time of an event
        self._history = History()
        self._ready: list[EventBatch] = []

    def __len__(self) -> int:
        """How many events are kept."""
        return len(self._history)

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """The fragments in force, by the names of their rules."""
        return {name: one.fragment for name, one in self._evaluations.items()}

    # --- deployment --------------------------------------------------------------------------

    def deploy(self, name: str, fragment: Fragment) -> None:
        """Evaluate a fragment from now on, for the rule of that name; see Law 4."""
        new = Evaluation(fragment)
        old = self._evaluations.get(name)
        if old is not None:
            known = [self._marks[one] for one in old.fragment.types]
            until = max(self._front, *known) + fragment.reach + 1
            self._leaving.append(_Leaving(name, old, until))
        self._evaluations[name] = new
        for stored in self._history:
            _let_pass(stored, fragment.plain)
            _take(stored, new)

    def remove(self, name: str) -> None:
        """Evaluate a rule's fragment no more; KeyError when there is none."""
        del self._evaluations[name]
        self._leaving = [one for one in self._leaving if one.name != name]

    # --- events ------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Take events in, of a type that fragments look at; others are dropped at once."""
        running = [one for one in self._running() if batch.type.name in one.fragment.types]
        if not running or len(batch) == 0:
            return
        self._front = max(self._front, greatest_time(batch))
        plain = dict.fromkeys(one for user in running for one in user.fragment.plain)
        bound = [one for one in running if batch.type.name in one.fragment.binds]
        if not bound:
            self._ready += _selected(batch, _satisfying(plain, batch))
            return
        stored = self._history.add(batch)
        _let_pass(stored, plain)
        for evaluation in bound:
            _take(stored, evaluation)

    def advance(self, marks: int | Mapping[str, int]) -> Forwarded:
        """Raise the marks, and give what is to be sent; marks never go back.

        A type that a mapping lacks keeps its mark. The marks given back are those of all types
        that the fragments forward.
        """
        fragments = [one.fragment for one in self._evaluations.values()]
        self._marks = marks_of(marks, (one.fragment for one in self._running()), self._marks)
        for evaluation in self._running():
            if evaluation.fragment.binds:
                self._history.let_pass(evaluation.advance(self._mark_of(evaluation.fragment.binds)))
        batches = (*self._ready, *self._history.take_passing())
        self._ready = []
        self._forget()
        for name, mark in marks_after(self._marks, fragments).items():
            self._given[name] = max(mark, self._given.get(name, TIME_MIN))
        return Forwarded(batches, dict(self._given))

    def _running(self) -> Sequence[Evaluation]:
        return (*self._evaluations.values(), *(one.evaluation for one in self._leaving))

    def _mark_of(self, names: Iterable[str]) -> int:
        return min((self._marks[name] for name in names), default=TIME_MIN)

    def _forget(self) -> None:
        self._leaving = [
            one
            for one in self._leaving
            if self._mark_of(self._evaluations[one.name].fragment.types) < one.until
        ]
        if not self._history.is_due:
            return
        horizons: dict[str, int] = {}
        for evaluation in self._running():
            fragment = evaluation.fragment
            horizon = self._mark_of(fragment.binds) - fragment.reach
            for name in fragment.binds:
                horizons[name] = min(horizons.get(name, horizon), horizon)
        self._history.forget(horizons)


def marks_of(
    marks: int | Mapping[str, int], fragments: Iterable[Fragment], old: Mapping[str, int]
) -> dict[str, int]:
    """The marks of the types that fragments look at, raised by those given."""
    names = {name for fragment in fragments for name in fragment.types}
    given = dict.fromkeys(names, marks) if isinstance(marks, int) else marks
    return {name: max(old.get(name, TIME_MIN), given.get(name, TIME_MIN)) for name in sorted(names)}


def marks_after(marks: Mapping[str, int], fragments: Collection[Fragment]) -> dict[str, int]:
    """The marks that go up (Law 2)."""
    after = {name: marks[name] for fragment in fragments for name in sorted(fragment.forwards)}
    for fragment in fragments:
        if fragment.binds:
            mark = min(marks[name] for name in fragment.binds)
            after.update((name, min(after[name], mark)) for name in fragment.binds)
    return after


# --- the way of an event ------------------------------------------------------------------------


def _satisfying(predicates: Iterable[Predicate], batch: EventBatch) -> Bools:
    """bool[n]: which events satisfy one of the predicates."""
    passing = np.zeros(len(batch), np.bool_)
    for predicate in predicates:
        if predicate.type == batch.type:
            passing |= satisfied(predicate.conditions, batch)
    return passing


def _selected(batch: EventBatch, passing: Bools) -> list[EventBatch]:
    if passing.all():
        return [batch]
    return [batch.take(passing)] if passing.any() else []


def _let_pass(stored: Stored, plain: Iterable[Predicate]) -> None:
    """Let those events of a batch pass that do by themselves."""
    stored.passing |= _satisfying(plain, stored.batch) & ~stored.sent


def _take(stored: Stored, evaluation: Evaluation) -> None:
    """Let a fragment take in those events of a batch that it has to look at together."""
    for place, predicate in enumerate(evaluation.predicates):
        if predicate.type != stored.batch.type:
            continue
        chosen = np.flatnonzero(satisfied(predicate.conditions, stored.batch))
        times = stored.batch.time[chosen].tolist()
        rows = (stored.first + chosen).tolist()
        columns = [_values(stored.batch, one, chosen) for one in evaluation.kept(place)]
        values = zip(*columns, strict=True) if columns else itertools.repeat(())
        for time, row, own in zip(times, rows, values, strict=False):
            evaluation.take(place, time, row, own)


def _values(batch: EventBatch, attribute: int, chosen: Int64s) -> list[Any]:
    column = batch.time if attribute == TIME else batch.columns[attribute]
    part = column.take(chosen) if isinstance(column, StringColumn) else column[chosen]
    return part.tolist()
