"""The runs of an iteration, found from the late end and no further than somebody asks (X4).

They are the runs that the oracle finds. What it finds anew for every candidate is found once for
what is selected before, and events are looked up as by any :class:`Finder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope, holds
from rules.explaining.finder import Finder
from rules.explaining.sight import Sight
from rules.pattern import Policy, Rule, Selected
from rules.terms import Run


class Iterations:
    """The iterations of one rule, by the numbers of their events."""

    def __init__(self, rule: Rule, sight: Sight) -> None:
        self._rule = rule
        self._sight = sight
        self._known: dict[int, Iteration] = {}

    def of(self, event: int) -> Iteration:
        """The iteration whose runs' last event has this number."""
        if event not in self._known:
            clause = self._rule.selected[event - 1]
            self._known[event] = Iteration(clause, self._sight)
        return self._known[event]

    def run(self, run: Run, scope: Scope) -> Sequence[Occurrence]:
        """The events of the run that an event of a match ends; none if it ends none."""
        return self.of(run.event).before(scope).ending_in(scope.events[run.event])


class Iteration:
    """The runs of one clause, for each beginning of a match at one terminator."""

    def __init__(self, clause: Selected, sight: Sight) -> None:
        assert clause.iteration is not None
        self._clause = clause
        self._least, count = clause.iteration
        assert count.run is not None
        self._run = count.run
        self._elements = Finder(count, sight)
        self._terminator: Occurrence | None = None
        self._walks: dict[tuple[Occurrence, ...], Walk] = {}

    def before(self, scope: Scope) -> Walk:
        """The runs, given the events that are selected before this clause."""
        events = scope.events[: self._run.event]
        if events[0] is not self._terminator:
            self._terminator = events[0]
            self._walks.clear()
        if events not in self._walks:
            beginning = replace(scope, events=events)
            self._walks[events] = Walk(
                self._run, self._elements.fitting(beginning, True), beginning
            )
        return self._walks[events]

    def selected(self, scope: Scope) -> Iterator[Occurrence]:
        """The last events of the runs that the clause chooses among, in its order."""
        walk = self.before(scope)
        backwards = self._clause.policy is Policy.LAST
        for run in walk if backwards else reversed(tuple(walk)):
            if len(run) >= self._least and walk.is_kept(run[-1]):
                yield run[-1]


class Walk:
    """The runs of ``elements``, which come latest first: the latest run first, each in order."""

    def __init__(self, run: Run, elements: Iterator[Occurrence], scope: Scope) -> None:
        self._run = run
        self._elements = elements
        self._scope = scope
        self._found: list[Sequence[Occurrence]] = []
        self._ends: dict[Occurrence, Sequence[Occurrence]] = {}
        self._next: Occurrence | None = next(elements, None)

    def __iter__(self) -> Iterator[Sequence[Occurrence]]:
        """All runs; those that nobody asked for yet are found on the way."""
        place = 0
        while place < len(self._found) or self._advance():
            yield self._found[place]
            place += 1

    def ending_in(self, event: Occurrence) -> Sequence[Occurrence]:
        """The run that an event ends; none if it ends none."""
        while event not in self._ends and self._next is not None:
            if self._next.moment < event.moment:
                break
            self._advance()
        return self._ends.get(event, ())

    def is_kept(self, event: Occurrence) -> bool:
        """Whether an event is of any run: one alone is asked what neighbours are."""
        return holds(self._run.kept, replace(self._scope, candidate=event))

    def _advance(self) -> bool:
        """Find the next run, if there is one."""
        if self._next is None:
            return False
        run = [self._next]
        self._next = next(self._elements, None)
        while self._next is not None and self._are_linked(self._next, run[-1]):
            run.append(self._next)
            self._next = next(self._elements, None)
        run.reverse()
        most = self._run.most
        self._found.append(run[-most:] if most else run)
        self._ends[run[-1]] = self._found[-1]
        return True

    def _are_linked(self, first: Occurrence, second: Occurrence) -> bool:
        return holds(self._run.links, replace(self._scope, candidate=second, previous=first))
