"""The forwarder's oracle: what a fragment means, in plain Python, over all events so far.

No cleverness: every event is kept, and looked at again at every mark. It is read beside the
docstrings of ``fragment``; the other forwarder is held to it by tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.model import TIME_MIN, EventBatch
from routing.partition.forwarder import Forwarded
from routing.partition.fragment import Chosen, Fragment, Joined, Near, Plain, Role
from routing.partition.predicates import Keys, Predicate
from routing.partition.questions import Answers, Spans
from rules.pattern import Policy
from rules.planning.rowwise import evaluator


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """One event, and where it came from; equal only to itself.

    ``values`` has the time last, where its number, TIME, finds it.
    """

    batch: int
    place: int
    type: str
    time: int
    values: tuple[Any, ...]

    def fits(self, predicate: Predicate) -> bool:
        return predicate.type.name == self.type and all(
            evaluator(condition)(self.values) is True for condition in predicate.conditions
        )

    def agrees(self, other: _Row, keys: Keys) -> bool:
        return all(self.values[own] == other.values[its] for own, its in keys)


class NaiveForwarder:
    """As :class:`routing.partition.forwarder.Forwarder`, right rather than fast."""

    def __init__(self) -> None:
        self._fragments: dict[str, Fragment] = {}
        self._batches: list[EventBatch] = []
        self._rows: list[_Row] = []
        self._sent: set[_Row] = set()
        self._marks: dict[str, int] = {}
        self._asked: dict[str, list[Spans]] = {}
        """All that was ever asked for, by rule."""

    def deploy(self, name: str, fragment: Fragment) -> None:
        """Evaluate a fragment from now on."""
        self._fragments[name] = fragment

    def ask(self, name: str, spans: Spans, horizon: int) -> None:
        """What a rule's fragment keeps around these spans of masters is to be sent."""
        self._asked.setdefault(name, []).append(spans)

    def answers(self, here: Callable[[str], int], below: Callable[[str], int]) -> Answers:
        """What is to be answered: always up to where things are."""
        return tuple(
            (name, len(asked), min([below(name), *map(here, kept)]))
            for name, asked in self._asked.items()
            if name in self._fragments and (kept := self._fragments[name].kept)
        )

    def push(self, batch: EventBatch) -> None:
        """Take events in."""
        columns = [column.tolist() for column in batch.columns]
        self._rows += [
            _Row(
                len(self._batches),
                place,
                batch.type.name,
                time,
                (*(column[place] for column in columns), time),
            )
            for place, time in enumerate(batch.time.tolist())
        ]
        self._batches.append(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Forwarded:
        """Give what has now to be sent, and up to where it is complete."""
        self._marks = _marks_of(marks, self._fragments.values(), self._marks)
        passing = set()
        for name, fragment in self._fragments.items():
            asked = self._asked.get(name, [])
            mark = min((self._marks[name] for name in fragment.binds), default=TIME_MIN)
            passing |= {row for row in self._rows if _passes_plainly(row, fragment, asked)}
            passing |= _Evaluation(fragment, [row for row in self._rows if row.time < mark]).passing
        new = [row for row in self._rows if row in passing and row not in self._sent]
        self._sent |= passing
        batches = []
        for number, batch in enumerate(self._batches):
            places = [row.place for row in new if row.batch == number]
            if places:
                batches.append(batch.take(np.array(places, np.int64)))
        return Forwarded((), tuple(batches), _marks_after(self._marks, self._fragments.values()))


def _passes_plainly(row: _Row, fragment: Fragment, asked: Sequence[Spans]) -> bool:
    if not any(map(row.fits, fragment.plain)):
        return False
    if row.type not in fragment.kept or fragment.pull is None:
        return True
    (around,) = (one for one in fragment.pull.around if one.type == row.type)
    return any(
        first - around.before <= row.time <= last + around.after
        and (not values or all(row.values[own] == values[its] for own, its in around.keys))
        for spans in asked
        for first, last, values in spans
    )


class _Evaluation:
    """A fragment over the events that are complete."""

    def __init__(self, fragment: Fragment, rows: list[_Row]) -> None:
        self.fragment = fragment
        self.rows = rows
        self._known: dict[tuple[_Row, int, int, bool], bool] = {}
        self.passing = {row for role in fragment.roles for row in self._passing(role)}

    def _passing(self, role: Role) -> Iterator[_Row]:
        match role:
            case Plain():
                return
            case Joined():
                yield from self._joined(role.member)
            case Near():
                joined = self._joined(role.member, guarded=role.guarded)
                for row in self.rows:
                    if row.fits(role.predicate) and any(
                        role.span.least <= other.time - row.time <= role.span.most
                        and row.agrees(other, role.keys)
                        for other in joined
                    ):
                        yield row
            case Chosen():
                for selector in self._joined(role.member):
                    yield from self._chosen(role, selector)

    def _chosen(self, role: Chosen, selector: _Row) -> list[_Row]:
        candidates = [
            row
            for row in self.rows
            if row.fits(role.predicate)
            and 0 <= selector.time - row.time <= role.duration
            and row.agrees(selector, role.keys)
        ]
        candidates.sort(key=lambda row: row.time, reverse=role.policy is Policy.LAST)
        if len(candidates) < role.count:
            return candidates
        outermost = candidates[role.count - 1].time
        return candidates[: role.count] + [
            row for row in candidates[role.count :] if row.time == outermost
        ]

    def _joined(self, member: int, *, guarded: bool = True) -> list[_Row]:
        return [row for row in self._events(member, guarded) if self._has(row, member, -1, guarded)]

    def _events(self, place: int, guarded: bool) -> Iterator[_Row]:
        member = self.fragment.members[place]
        for row in self.rows:
            if row.fits(member.predicate) and not (
                guarded
                and any(
                    self._occurs(predicate, row.time - duration - 1, row.time)
                    for predicate, duration in member.absent
                )
            ):
                yield row

    def _has(self, row: _Row, member: int, came_by: int, guarded: bool) -> bool:
        """Whether an event has partners along the links of its member but the one given."""
        key = row, member, came_by, guarded
        if key not in self._known:
            self._known[key] = all(
                self._has_along(row, member, place, guarded)
                for place, link in enumerate(self.fragment.links)
                if place != came_by and member in (link.first, link.second)
            )
        return self._known[key]

    def _has_along(self, row: _Row, member: int, place: int, guarded: bool) -> bool:
        link = self.fragment.links[place]
        other = link.second if member == link.first else link.first
        for partner in self._events(other, guarded):
            first, second = (row, partner) if member == link.first else (partner, row)
            if (
                partner is not row
                and link.span.least <= second.time - first.time <= link.span.most
                and first.agrees(second, link.keys)
                and not (
                    guarded
                    and any(
                        self._occurs(predicate, second.time, first.time)
                        for predicate in link.absent
                    )
                )
                and self._has(partner, other, place, guarded)
            ):
                return True
        return False

    def _occurs(self, predicate: Predicate, after: int, until: int) -> bool:
        """Whether something that satisfies the predicate lies in (after, until]."""
        return any(after < row.time <= until and row.fits(predicate) for row in self.rows)


def _marks_of(
    marks: int | Mapping[str, int], fragments: Iterable[Fragment], old: Mapping[str, int]
) -> dict[str, int]:
    """The marks of the types that fragments look at, raised by those given."""
    names = {name for fragment in fragments for name in fragment.types}
    given = dict.fromkeys(names, marks) if isinstance(marks, int) else marks
    return {name: max(old.get(name, TIME_MIN), given.get(name, TIME_MIN)) for name in sorted(names)}


def _marks_after(marks: Mapping[str, int], fragments: Collection[Fragment]) -> dict[str, int]:
    """The marks that go up (Law 2)."""
    after = {name: marks[name] for fragment in fragments for name in sorted(fragment.pushed)}
    for fragment in fragments:
        if fragment.binds:
            mark = min(marks[name] for name in fragment.binds)
            own = fragment.binds & fragment.pushed
            after.update((name, min(after[name], mark)) for name in own)
    return after
