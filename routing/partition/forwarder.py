"""The events that a node sends to its father in a tree: the union of its fragments (thesis 7.3.6).

Law 1: every event travels once, however many fragments let it pass, and whenever they do.

Law 2: marks. A mark of a type promises that all events of the type before it are there, and that
all that is needed of older events for those instants is there too. What goes up promises the same:
a type's mark goes up as it is while its events pass by themselves, and once the fragments in which
they wait for others have come as far. Example: Temp has come to 40 s and its events pass as they
come: 40 s goes up. If they wait for Smoke, which has come to 30 s, it is 30 s.

Law 3: what no fragment can use any more is forgotten: events further behind the marks than the
fragments reach.

Law 4: a fragment that takes the place of another starts with the events that are still there, and
the other stays for as long as the fragment reaches. What is of types that the other did not look at
passes meanwhile: it may belong with events that the other has sent and not kept. To send more than
is needed is never wrong.

Law 5: of rules that are pulled (7.3.7) slaves wait until they are asked for, in windows around
masters. They are given no marks, since nobody knows before what will be asked for; the network has
other ways to say up to where it has been answered (pulls).

Law 6: what subscribers above want of published events passes like the rest (``want``), so that it
travels once though a rule above needs it too. It passes as it comes or not at all: an event that
passes later does for the sake of a rule, and the two are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import numpy as np
from msgspec import Struct

from matcher.model import TIME_MAX, TIME_MIN, Bools, EventBatch, Int64s
from matcher.single import Single
from routing.order import greatest_time
from routing.partition.arrangement import Arrangement, Leaving
from routing.partition.evaluation import Evaluation
from routing.partition.fragment import Fragment
from routing.partition.history import History, Stored
from routing.partition.marks import Marks
from routing.partition.questions import Answers, Spans


class Forwarded(Struct, frozen=True, eq=False, gc=False):
    """Events to be sent at once, and then the marks of their types (Law 2).

    ``fresh`` are published events that pass as they come, ``late`` all others (Law 6); but where
    the times at which events come are what counts, those that have waited are apart, with these.
    ``marks`` are those that have risen, or all where other fragments are in force than before.
    """

    fresh: tuple[EventBatch, ...]
    late: tuple[EventBatch, ...]
    marks: Mapping[str, int]
    waited: tuple[tuple[EventBatch, Int64s], ...] = ()

    @property
    def batches(self) -> tuple[EventBatch, ...]:
        """All events but those that have waited."""
        return (*self.fresh, *self.late)


class Demanded(Protocol):
    """The demand of subscribers above for one type, which may change meanwhile."""

    def takes(self, event: Single) -> bool:
        """Tell whether an event of the type is wanted."""
        ...

    def wanted(self, batch: EventBatch) -> Bools:
        """Tell which events of a batch of the type are wanted: bool[n]."""
        ...


class Forwarder:
    """The fragments of one node in one tree. Owner of the history that they need.

    ``push`` events, then ``advance`` the marks: both in any order of types and times, but an event
    earlier than its type's mark only where Law 2 lets it come.
    """

    def __init__(self) -> None:
        self._evaluations: dict[str, Evaluation] = {}  # by rule
        self._leaving: list[Leaving] = []
        self._arrangement = Arrangement({})
        self._waiting: dict[Evaluation, None] = {}  # they have events to look at
        self._marks = Marks()
        self._front = TIME_MIN  # the greatest time of an event
        self._history = History()
        self._demands: Mapping[str, Demanded] = {}
        self._fresh: list[EventBatch] = []  # what passes at once, and has just been published
        self._late: list[EventBatch] = []  # the rest of that
        self.is_idle = True
        """Whether there is no fragment in force, and nothing is wanted."""
        self.is_asked = False
        """Whether something here waits until it is asked for."""

    def __len__(self) -> int:
        """How many events are kept."""
        return len(self._history)

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """The fragments in force, by the names of their rules."""
        return {name: one.fragment for name, one in self._evaluations.items()}

    @property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """The evaluations of the fragments in force, by the names of their rules."""
        return self._evaluations

    @property
    def marks(self) -> Mapping[str, int]:
        """The marks that have gone up, of all types that the fragments in force forward."""
        return self._marks.up

    @property
    def demands(self) -> Mapping[str, Demanded]:
        """The demands for events that pass because they are wanted (Law 6), by type."""
        return self._demands

    def binding(self, name: str) -> frozenset[str]:
        """The types with which events of a type are looked at together before they go up."""
        return self._arrangement.binding.get(name, frozenset())

    def looks_at(self, name: str) -> bool:
        """Whether events of a type are of any use."""
        return name in self._arrangement.users or name in self._demands

    # --- deployment --------------------------------------------------------------------------

    def follow(self, fragments: Mapping[str, Fragment], since: Mapping[str, int]) -> None:
        """Evaluate these from now on, and no others; by the names of rules, which hold ``since``
        these instants, in us, where there are any.
        """
        gone = self._evaluations.keys() - fragments.keys()
        if gone:
            self._remove(gone)
        changed, released = False, set[str]()
        for name, fragment in sorted(fragments.items()):
            begins, found = since.get(name, TIME_MIN), self._evaluations.get(name)
            if found is None or (found.fragment, found.since) != (fragment, begins):
                changed = True
                released |= self._put(name, fragment, begins)
        if changed:
            self._rearrange(released)

    def deploy(self, name: str, fragment: Fragment, since: int = TIME_MIN) -> None:
        """Evaluate a fragment from now on, for the rule of that name; see Law 4.

        ``since``: the instant from which the rule holds, in us.
        """
        self._rearrange(self._put(name, fragment, since))

    def _put(self, name: str, fragment: Fragment, since: int) -> frozenset[str]:
        """Have a fragment in the place of that of its name, if any; gives the types that this one
        kept, and the new one does not.
        """
        new = Evaluation(fragment, since)
        old = self._evaluations.get(name)
        released = frozenset[str]()
        if old is not None:
            released = old.fragment.kept & fragment.pushed
            known = (self._marks.least([one]) for one in old.fragment.types)
            until = max(self._front, *known) + fragment.reach + 1
            self._leaving.append(Leaving(name, old, until))
            unseen = fragment.types - old.fragment.types
            if unseen:
                passing = Evaluation(fragment.whole(None, unseen), since)
                self._leaving.append(Leaving(name, passing, until))
            if old.buffer is not None:
                self._history.touch(old.buffer.release(old.fragment.kept - fragment.kept))
        self._evaluations[name] = new
        if self._history:
            alone = Arrangement({name: new})
            for stored in self._history:
                self._sift(stored, alone)
        return released

    def remove(self, name: str) -> None:
        """Evaluate a rule's fragment no more; KeyError when there is none."""
        self._remove({name})

    def _remove(self, names: Collection[str]) -> None:
        for name in names:
            del self._evaluations[name]
        self._leaving = [one for one in self._leaving if one.name not in names]
        self._rearrange()

    def want(self, demands: Mapping[str, Demanded]) -> None:
        """Let published events pass that come from now on (Law 6), of these by the names of types,
        and no others.
        """
        self._demands = dict(demands)
        self.is_idle = not (self._evaluations or self._demands)

    def _rearrange(self, released: Collection[str] = ()) -> None:
        self._arrangement = Arrangement(self._evaluations, self._leaving)
        self.is_idle = not (self._evaluations or self._demands)
        self.is_asked = bool(self._arrangement.buffers)
        running = frozenset(self._arrangement.running)
        self._waiting = {one: None for one in self._waiting if one in running}
        names = {name for one in running for name in one.fragment.types}
        reach, company = self._arrangement.reach, self._arrangement.company
        self._marks.arrange(names, reach, company, released)

    # --- what is pulled ----------------------------------------------------------------------

    def ask(self, name: str, spans: Spans, horizon: int) -> None:
        """Release what a rule's fragment keeps around these spans of masters (Law 5).

        Windows of masters that are earlier than ``horizon`` will not be asked for any more. A rule
        that keeps nothing here is none of this node's business.
        """
        evaluation = self._evaluations.get(name)
        if evaluation is not None and evaluation.buffer is not None:
            self._history.touch(evaluation.buffer.ask(spans, horizon))

    def answers(self, here: Callable[[str], int], below: Callable[[str], int]) -> Answers:
        """Answers to give behind all that ``advance`` has given.

        ``here``: up to where a type is here, where it does not come only if it is asked for;
        TIME_MAX where nothing more is to come;
        ``below``: up to where those below have answered what a rule has asked for.
        """
        if not self._arrangement.buffers:
            return ()
        found = []
        for name, one in self._evaluations.items():
            if one.buffer is not None and one.buffer.is_open:
                answer = one.buffer.answer(min(below(name), *map(here, one.fragment.kept)))
                if answer is not None:
                    found.append((name, *answer))
        return tuple(found)

    def ends(self, now: int, since: int, below: Callable[[str], int]) -> Answers:
        """The same where events have the times at which they come (PullBuffer.end): a question is
        answered for good, once those below have answered it.
        """
        if not self._arrangement.buffers:
            return ()
        return tuple(
            (name, number, TIME_MAX)
            for name, one in self._evaluations.items()
            if one.buffer is not None
            and below(name) == TIME_MAX
            and (number := one.buffer.end(now, since)) is not None
        )

    def close(self) -> None:
        """Forget what was asked for: it will be asked for again, as far as it is needed."""
        for buffer in self._arrangement.buffers:
            buffer.close()

    # --- events ------------------------------------------------------------------------------

    def push(self, batch: EventBatch, *, fresh: bool = True, came: Int64s | None = None) -> None:
        """Take events in, of a type that fragments look at; others are dropped at once.

        ``fresh``: unless they are composite, they have just been published, and come the first
        time. ``came``, int64[n]: when they came, if that counts instead of their times.
        """
        name = batch.type.name
        if isinstance(batch, Single) and name not in self._arrangement.stored:
            self._push_alone(batch, self._fresh if fresh else self._late)
            return
        if not self.looks_at(name) or len(batch) == 0:
            return
        fresh = fresh and not batch.is_composite
        self._front = max(self._front, greatest_time(batch))
        ready = self._fresh if fresh else self._late
        passing = self._demanded(batch) if fresh else np.zeros(len(batch), np.bool_)
        if name in self._arrangement.stored:
            stored = self._history.add(batch, fresh=fresh, came=came)
            stored.passing |= passing
            self._sift(stored, self._arrangement)
            return
        if name in self._arrangement.users:
            users = self._arrangement.users[name]
            for predicate, places in self._arrangement.indices[name].sift(batch):
                if users[predicate].passes:
                    passing[places] = True
        if passing.any():
            ready.append(batch if passing.all() else batch.take(passing))

    def _push_alone(self, event: Single, ready: list[EventBatch]) -> None:
        """Have an event among those that are ready if it passes by itself, of a type that nothing
        is kept of: as ``push`` does with many, but without arrays.
        """
        name = event.type.name
        demand = self._demands.get(name)
        users = self._arrangement.users.get(name)
        if demand is None and users is None:
            return
        self._front = max(self._front, event.row.time)
        if demand is not None and ready is self._fresh and demand.takes(event):
            ready.append(event)
        elif users:
            for one in self._arrangement.indices[name].sift_single(event):
                if users[one].passes:
                    ready.append(event)
                    return

    def _demanded(self, batch: EventBatch) -> Bools:
        """The events of a fresh batch that are wanted."""
        demand = self._demands.get(batch.type.name)
        return np.zeros(len(batch), np.bool_) if demand is None else demand.wanted(batch)

    def _sift(self, stored: Stored, arrangement: Arrangement) -> None:
        """Let events of a batch pass that do by themselves, and fragments take in the others."""
        name = stored.batch.type.name
        if name not in arrangement.users:
            return
        users = arrangement.users[name]
        for predicate, places in arrangement.indices[name].sift(stored.batch):
            if users[predicate].passes:
                stored.passing[places] = True
            for buffer in users[predicate].buffers:
                buffer.take(stored, places)
            for evaluation, place in users[predicate].looking:
                evaluation.take(place, stored, places)
                self._waiting[evaluation] = None

    def advance(self, marks: int | Mapping[str, int]) -> Forwarded:
        """Raise the marks, and give what is to be sent; marks never go back.

        A type that a mapping lacks keeps its mark.
        """
        risen = self._marks.rise(marks)
        if self._waiting:
            self._look()
        waited = []
        for batch, is_fresh, came in self._history.take_passing() if self._history.touched else ():
            if came is None:
                (self._fresh if is_fresh else self._late).append(batch)
            else:
                waited.append((batch, came))
        fresh, late = tuple(self._fresh), tuple(self._late)
        if fresh or late:
            self._fresh, self._late = [], []
        if self._leaving:
            self._let_leave()
        if self._history.is_due:
            self._forget()
        return Forwarded(fresh, late, risen, tuple(waited))

    def _look(self) -> None:
        """Have the fragments look at what their marks have passed."""
        for evaluation in list(self._waiting):
            mark = self._marks.least_of(evaluation.binds)
            if evaluation.earliest < mark:
                self._history.let_pass(evaluation.advance(mark))
                if evaluation.earliest == TIME_MAX:
                    del self._waiting[evaluation]

    def _let_leave(self) -> None:
        """Let fragments go whose time is over (Law 4)."""
        left = [
            one
            for one in self._leaving
            if self._marks.least(self._evaluations[one.name].fragment.types) < one.until
        ]
        if len(left) < len(self._leaving):
            self._leaving = left
            self._rearrange()

    def _forget(self) -> None:
        """Drop what no fragment can use any more (Law 3)."""
        horizons: dict[str, int] = {}
        for binds, reach in self._arrangement.reach.items():
            horizon = self._marks.least_of(binds) - reach
            for name in binds:
                horizons[name] = min(horizons.get(name, horizon), horizon)
        for buffer in self._arrangement.buffers:
            buffer.forget()
            for name, horizon in buffer.horizons.items():
                horizons[name] = min(horizons.get(name, horizon), horizon)
        self._history.forget(horizons)
