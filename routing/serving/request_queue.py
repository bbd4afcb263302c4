"""Requests that change what all brokers agree on, until the tree pauses for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from routing.messages import Asking, Deploy

TOGETHER, TEXT_LEAST = 4_096, 256
"""Characters of a client's texts that are deployed together, but for the last; one that has fewer
counts as so many."""
Queued = TypeVar("Queued")


class _Behind(NamedTuple, Generic[Queued]):
    """A request, and whatever is to be given when it can be done."""

    request: Asking
    entry: Queued


@dataclass(slots=True)
class _Lane(Generic[Queued]):
    """The requests of a client of whom texts are read, or have been and are not deployed yet."""

    behind: deque[_Behind[Queued]] = field(default_factory=deque)
    """The rest; first the text that is read, if any."""
    is_reading: bool = False
    characters: int = 0
    """So many of its texts have been read."""


class RequestQueue(Generic[Queued]):
    """The requests, of each client in its order.

    Of each client about a slice of text is deployed at a time (serving.slices), and what it asks
    behind that waits; what others ask does not. m sends 200 texts, then n advertises Temp: n is
    answered with the first of them.
    """

    def __init__(
        self,
        read_ahead: Callable[[Deploy, Callable[[], None]], None],
        tell_soon: Callable[[], None],
    ) -> None:
        """``read_ahead``: has a text read, and calls back. ``tell_soon``: something can be done."""
        self._read_ahead = read_ahead
        self._tell_soon = tell_soon
        self._ready: list[Queued] = []
        self._lanes: dict[Hashable, _Lane[Queued]] = {}
        self._taken: dict[Hashable, int] = {}
        """By client, the characters that were taken."""

    @property
    def is_ready(self) -> bool:
        """Whether something can be done."""
        return bool(self._ready)

    def __len__(self) -> int:
        """How many wait, ready or not."""
        return len(self._ready) + sum(len(lane.behind) for lane in self._lanes.values())

    def add(self, client: Hashable, request: Asking, entry: Queued) -> None:
        """A client asks."""
        if client in self._lanes or isinstance(request, Deploy):
            lane = self._lanes.setdefault(client, _Lane())
            lane.behind.append(_Behind(request, entry))
            self._go_on(client, lane)
        else:
            self.add_ready(entry)

    def add_ready(self, entry: Queued) -> None:
        """Something can be done."""
        self._ready.append(entry)
        self._tell_soon()

    def take(self) -> list[Queued]:
        """Give what can be done."""
        self._taken = {
            client: lane.characters for client, lane in self._lanes.items() if lane.characters
        }
        ready, self._ready = self._ready, []
        return ready

    def go_on(self) -> None:
        """All that was taken has been done: what stands behind it is next."""
        taken, self._taken = self._taken, {}
        for client, characters in taken.items():
            lane = self._lanes[client]
            lane.characters -= characters
            self._go_on(client, lane)

    def clear(self) -> list[Queued]:
        """Give all that waits."""
        behind = [one.entry for lane in self._lanes.values() for one in lane.behind]
        ready, self._ready, self._lanes, self._taken = self._ready, [], {}, {}
        return ready + behind

    def _go_on(self, client: Hashable, lane: _Lane[Queued]) -> None:
        while lane.behind and not lane.is_reading and lane.characters < TOGETHER:
            request, entry = lane.behind[0]
            if isinstance(request, Deploy):
                lane.is_reading = True
                characters = max(len(request.text), TEXT_LEAST)
                self._read_ahead(request, partial(self._have_read, client, lane, characters))
            else:
                lane.behind.popleft()
                self.add_ready(entry)
        if not (lane.behind or lane.is_reading or lane.characters):
            self._lanes.pop(client, None)

    def _have_read(self, client: Hashable, lane: _Lane[Queued], characters: int) -> None:
        if self._lanes.get(client) is lane:  # else all was cleared meanwhile
            lane.is_reading = False
            lane.characters += characters
            self.add_ready(lane.behind.popleft().entry)
            self._go_on(client, lane)
