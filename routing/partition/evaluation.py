"""A fragment at work: what passes by its bound roles, instant by instant.

Law 1: an event is looked at once the fragment's mark has passed it. Of what is then new, what
rules partners out enters first, then what can be chosen, then members, then what must be near them.

Law 2: what came before its rule holds is not looked at: the rule sees nothing of it (S15), so it
can be neither first nor last, and rules nothing out.

Law 3: what is further behind the mark than the fragment reaches is forgotten. Of all that could
make an event pass, the last to come is no more than that later than it; and what comes late from
below was sent because of such an event, and comes before the mark that passes it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

from matcher.model import TIME_MAX, TIME_MIN, Int64s
from routing.partition.assignments import Assignments, Attributes, KeyOf
from routing.partition.fragment import Chosen, Fragment, Joined, Near
from routing.partition.history import Stored
from routing.partition.joins import IntervalJoin, Occurrences, Seen, Timeline
from routing.partition.predicates import Predicate
from routing.partition.pull_buffer import PullBuffer
from routing.partition.values import values_of
from rules.pattern import Policy

FIRST, SECOND = 0, 1
"""The sides of the join of a Near: its own events, and the member's."""


class Evaluation:
    """The events of one fragment that wait for their mark, and its roles.

    ``since``: the instant from which its rule holds, in us (Law 2).
    """

    def __init__(self, fragment: Fragment, since: int = TIME_MIN) -> None:
        self.fragment = fragment
        self.since = since
        self.binds = fragment.binds
        self.mark = TIME_MIN
        pull, kept = fragment.pull, fragment.kept
        self.buffer = PullBuffer(pull, kept) if pull is not None and kept else None
        self.predicates: Sequence[Predicate] = fragment.bound
        """The predicates whose events have to be taken in."""
        self._pending: list[tuple[int, int, int, tuple[Any, ...]]] = []  # a heap
        self._swept = TIME_MIN

    @cached_property
    def _roles(self) -> _Roles:
        """Made when the first event comes: a thousand fragments come in one step."""
        return _Roles(self.fragment)

    @property
    def earliest(self) -> int:
        """The time of the first event that has not been looked at; TIME_MAX when there is none."""
        return self._pending[0][0] if self._pending else TIME_MAX

    def take(self, place: int, stored: Stored, chosen: Int64s) -> None:
        """Take in events of a batch, which satisfy the predicate at a place."""
        if self.since > TIME_MIN:
            chosen = chosen[stored.batch.time[chosen] >= self.since]
        times = stored.batch.time[chosen].tolist()
        rows = (stored.first + chosen).tolist()
        columns = [values_of(stored.batch, one, chosen) for one in self._roles.kept[place]]
        values = zip(*columns, strict=True) if columns else itertools.repeat(())
        for time, row, own in zip(times, rows, values, strict=False):
            heappush(self._pending, (time, row, place, own))

    def advance(self, mark: int) -> list[int]:
        """Look at everything before a mark; gives the rows that pass, some perhaps again."""
        self.mark = max(self.mark, mark)
        due: dict[int, list[Seen]] = defaultdict(list)
        while self._pending and self._pending[0][0] < self.mark:
            time, row, place, values = heappop(self._pending)
            due[place].append(Seen(time, row, values))
        passing: list[int] = []
        if due:
            self._roles.look(due, passing)
            before = self.mark - self.fragment.reach
            if before > self._swept:
                # Twice the reach is kept at most, and each event is passed over twice at most.
                self._swept = self.mark
                self._roles.forget(before)
        return passing


class _Roles:
    """The bound roles of one fragment, and what they remember; ``kept``: the attributes of the
    events that satisfy each of its predicates.
    """

    def __init__(self, fragment: Fragment) -> None:
        self._members = fragment.members
        self._places = {predicate: place for place, predicate in enumerate(fragment.bound)}
        attributes = Attributes()
        absent = {one for member in fragment.members for one, _ in member.absent}
        absent.update(one for link in fragment.links for one in link.absent)
        self._occurrences = {predicate: Occurrences() for predicate in absent}
        self._guarded = Assignments(fragment, attributes, self._occurrences)
        # What is negated passes as if negations ruled nothing out.
        self._free = Assignments(fragment, attributes, None) if absent else self._guarded
        self._joined = {role.member for role in fragment.roles if isinstance(role, Joined)}
        self._near = [
            _NearRole(fragment, role, attributes)
            for role in fragment.roles
            if isinstance(role, Near)
        ]
        self._chosen = [
            _ChosenRole(fragment, role, attributes)
            for role in fragment.roles
            if isinstance(role, Chosen)
        ]
        self.kept = [attributes.kept(predicate) for predicate in fragment.bound]

    def look(self, due: Mapping[int, Sequence[Seen]], passing: list[int]) -> None:
        """Look at events, by the places of the predicates that they satisfy; adds the rows that
        pass.
        """

        def of(predicate: Predicate) -> Sequence[Seen]:
            return due.get(self._places[predicate], ())

        for predicate, occurrences in self._occurrences.items():
            for seen in of(predicate):
                occurrences.add(seen.time)
        for chosen in self._chosen:
            chosen.enter(of(chosen.role.predicate))
        for near in self._near:
            passing += near.ask(of(near.role.predicate))
        for place, member in enumerate(self._members):
            for seen in of(member.predicate):
                self._join(self._guarded.enter(place, seen), passing, guarded=True)
                if self._free is not self._guarded:
                    self._join(self._free.enter(place, seen), passing, guarded=False)

    def _join(self, joined: Sequence[Seen], passing: list[int], *, guarded: bool) -> None:
        """Some events have got an assignment around them: what passes by that."""
        for seen in joined:
            if guarded and seen.member in self._joined:
                passing.append(seen.row)
            for near in self._near:
                if near.role.member == seen.member and self._serves(near.role, guarded=guarded):
                    passing += near.offer(seen)
            for chosen in self._chosen if guarded else ():
                if chosen.role.member == seen.member:
                    passing += chosen.choose(seen)

    def _serves(self, role: Near, *, guarded: bool) -> bool:
        return role.guarded == guarded or self._free is self._guarded

    def forget(self, before: int) -> None:
        """Forget what is earlier than a time."""
        self._guarded.forget(before)
        self._free.forget(before)
        for near in self._near:
            near.forget(before)
        for chosen in self._chosen:
            chosen.forget(before)
        for occurrences in self._occurrences.values():
            occurrences.forget(before)


class _Keyed:
    """How an event of a role and one of the member that it goes with are told to agree."""

    def __init__(self, fragment: Fragment, role: Near | Chosen, attributes: Attributes) -> None:
        member = fragment.members[role.member].predicate
        self.own: KeyOf = attributes.key(role.predicate, tuple(own for own, _ in role.keys))
        self.its: KeyOf = attributes.key(member, tuple(its for _, its in role.keys))


class _NearRole(_Keyed):
    """Events that must be near one of a member."""

    def __init__(self, fragment: Fragment, role: Near, attributes: Attributes) -> None:
        super().__init__(fragment, role, attributes)
        self.role = role
        self._join = IntervalJoin(role.span, distinct=False)  # an event may be near itself

    def ask(self, arrived: Sequence[Seen]) -> list[int]:
        return [seen.row for seen in arrived if self._join.ask(FIRST, self.own(seen.values), seen)]

    def offer(self, joined: Seen) -> list[int]:
        key = self.its(joined.values)
        return [seen.row for seen in self._join.offer(SECOND, key, joined)]

    def forget(self, before: int) -> None:
        self._join.forget(before)


class _ChosenRole(_Keyed):
    """Events that a single selection may choose."""

    def __init__(self, fragment: Fragment, role: Chosen, attributes: Attributes) -> None:
        super().__init__(fragment, role, attributes)
        self.role = role
        self._candidates = Timeline()

    def enter(self, arrived: Sequence[Seen]) -> None:
        for seen in arrived:
            self._candidates.add(self.own(seen.values), seen)

    def choose(self, selector: Seen) -> list[int]:
        role = self.role
        take = self._candidates.last if role.policy is Policy.LAST else self._candidates.first
        window = selector.time - role.duration, selector.time
        return [seen.row for seen in take(self.its(selector.values), window, role.count)]

    def forget(self, before: int) -> None:
        self._candidates.forget(before)
