"""The sinks that want events of one type: a few sinks that are asked in turn, or many that are
matched together (:mod:`routing.delivery.selection`). Both ways give the same.

What is matched together is made when events come and subscriptions have become many; until then,
and when few are left, each sink looks for itself, which costs least while there are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import EventBatch
from routing.delivery.selection import Pattern, Selection
from routing.delivery.subscriptions import PER_TYPE_MAX, Interest, Interests

MANY = 24
"""So many subscriptions to a type are matched together. A batch then costs some 40 us and 0.2 us an
event, alone each of them 3 us and more."""
assert MANY <= PER_TYPE_MAX


class Subscriber(Protocol):
    """A sink, as the index sees it."""

    interests: Interests

    def __hash__(self) -> int:
        """Sinks are keys of what is known of them."""
        ...


_Sink = TypeVar("_Sink", bound=Subscriber)


class SubscriberIndex(Generic[_Sink]):
    """The sinks that have subscribed to one type, in the order in which they have; where they are
    many, matched as ``matching`` says.
    """

    def __init__(self, matching: Matching = ON_PROCESSOR) -> None:
        self._matching = matching
        self._sinks: dict[_Sink, int] = {}  # with how many subscriptions each
        self._size = 0
        self._selection: Selection[_Sink] | None = None

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return self._size

    def add(self, sink: _Sink, interest: Interest) -> None:
        """A sink has subscribed."""
        self._sinks[sink] = self._sinks.get(sink, 0) + 1
        self._size += 1
        if self._selection is not None and interest.filter is not None:
            self._selection.add(sink, interest.number, interest.filter)

    def remove(self, sink: _Sink, interest: Interest) -> None:
        """A subscription has ended."""
        self._size -= 1
        self._sinks[sink] -= 1
        if not self._sinks[sink]:
            del self._sinks[sink]
        if 2 * self._size < MANY:
            self.forget()
        elif self._selection is not None and interest.filter is not None:
            self._selection.remove(sink, interest.number)

    def forget(self) -> None:
        """Subscriptions are others than was said: look at all of them anew."""
        self._selection = None

    @property
    def facts(self) -> dict[str, Any] | None:
        """How subscriptions are matched together; None while each sink looks for itself."""
        return None if self._selection is None else self._selection.facts

    def match(self, batch: EventBatch) -> Iterable[tuple[_Sink, list[Pattern]]]:
        """The sinks that want events of a batch of this type, and which because of what."""
        if self._selection is None and self._size >= MANY:
            self._selection = self._select(batch.type.name)
        if self._selection is not None:
            return self._selection.match(batch)
        wanted = []
        for sink in self._sinks:
            if patterns := sink.interests.patterns(batch):
                wanted.append((sink, patterns))
        return wanted

    def _select(self, type_name: str) -> Selection[_Sink]:
        selection: Selection[_Sink] = Selection(self._matching)
        for sink in self._sinks:
            for one in sink.interests.to(type_name):
                if one.filter is not None:
                    selection.add(sink, one.number, one.filter)
        return selection
