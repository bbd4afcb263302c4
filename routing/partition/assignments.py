"""Events of a fragment's members that have an assignment around them, as events come.

Law: along each of its links an event *has* a partner, or *lacks* one. It is offered as a partner
along a link as soon as it lacks none along the others. It has an assignment around it once it
lacks none at all. Both only ever come to be: so each event is entered once, leaves the waiting of
each link once, and is offered along each link once, whatever the windows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from routing.partition.fragment import Fragment
from routing.partition.joins import IntervalJoin, Occurrences, Seen
from routing.partition.predicates import Predicate

KeyOf: TypeAlias = Callable[[tuple[Any, ...]], Any]
"""The key of an event, from the values that are kept of it."""


class Attributes:
    """The attributes of a predicate's events that are kept, and keys from them."""

    def __init__(self) -> None:
        self._kept: dict[Predicate, list[int]] = {}

    def key(self, predicate: Predicate, attributes: tuple[int, ...]) -> KeyOf:
        """How to get the key of an event; its attributes will be kept."""
        kept = self._kept.setdefault(predicate, [])
        kept += [attribute for attribute in attributes if attribute not in kept]
        places = [kept.index(attribute) for attribute in attributes]
        return itemgetter(*places) if places else lambda values: ()

    def kept(self, predicate: Predicate) -> tuple[int, ...]:
        """The attributes that are needed of a predicate's events."""
        return tuple(self._kept.get(predicate, ()))


class Assignments:
    """The members and links of a fragment. Without ``occurrences`` its negations are ignored."""

    def __init__(
        self,
        fragment: Fragment,
        attributes: Attributes,
        occurrences: Mapping[Predicate, Occurrences] | None,
    ) -> None:
        members = fragment.members
        self._absent = [
            [] if occurrences is None else [(occurrences[one], ago) for one, ago in member.absent]
            for member in members
        ]
        self._joins = [
            IntervalJoin(
                link.span,
                () if occurrences is None else [occurrences[one] for one in link.absent],
            )
            for link in fragment.links
        ]
        # Of each member: its links, with its side and how its keys are made.
        self._ends: list[list[tuple[int, int, KeyOf]]] = [[] for _ in members]
        for number, link in enumerate(fragment.links):
            for side, place in enumerate((link.first, link.second)):
                own = tuple(pair[side] for pair in link.keys)
                key = attributes.key(members[place].predicate, own)
                self._ends[place].append((number, side, key))

    def enter(self, member: int, seen: Seen) -> list[Seen]:
        """Enter an event of a member; gives all that have an assignment around them since."""
        if any(
            occurrences.last_until(seen.time) >= seen.time - ago
            for occurrences, ago in self._absent[member]
        ):
            return []
        event = Seen(seen.time, seen.row, seen.values, member)
        for link, side, key in self._ends[member]:
            if not self._joins[link].ask(side, key(event.values), event):
                event.missing.add(link)
        joined: list[Seen] = []
        changed = [event]
        while changed:
            changed += self._settle(changed.pop(), joined)
        return joined

    def forget(self, before: int) -> None:
        """Drop what is earlier than a time."""
        for join in self._joins:
            join.forget(before)

    def _settle(self, event: Seen, joined: list[Seen]) -> list[Seen]:
        """Offer an event where it now can be; gives those that have found a partner in it."""
        if not event.missing and not event.is_joined:
            event.is_joined = True
            joined.append(event)
        found = []
        for link, side, key in self._ends[event.member]:
            if link not in event.offered and not event.missing - {link}:
                event.offered.add(link)
                for other in self._joins[link].offer(side, key(event.values), event):
                    other.missing.discard(link)
                    found.append(other)
        return found
