"""When what somebody wants is in force everywhere that events may come from.

Law: what a broker wants is told from neighbour to neighbour, away from it, and confirmed back: it
is in force with a neighbour that has said so, and a neighbour says so once it is in force with all
that it has told in turn. So a client hears that it has subscribed once every broker of the network
sends it, or sends on to it, what is published from then on; and the root answers who wants to
publish once its own wants are in force there. In another tree all of this starts anew.
A client of b3 subscribes to Temp: b3 tells b2, b2 tells b1; b1 confirms to b2, then b2 to b3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Client:
    """A client that waits for its answer, or a part of this broker that goes on then."""

    go_on: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour that waits to hear that its wants up to this number are in force."""

    name: str
    number: int


Waiter = Client | Neighbour


@dataclass(slots=True)
class Confirmations:
    """Waiters, and the confirmations of neighbours that each of them waits for."""

    _count: int = 0
    _told: dict[str, int] = field(default_factory=dict)
    _said: dict[str, int] = field(default_factory=dict)
    _fresh: list[Waiter] = field(default_factory=list)
    """Waiters for the neighbours to be told."""
    _waiting: list[tuple[Waiter, dict[str, int]]] = field(default_factory=list)
    """Waiters, each with the numbers that it waits for, by neighbour."""

    def next_number(self, neighbour: str) -> int:
        """The number of what a neighbour is told now: greater than any before."""
        self._count += 1
        self._told[neighbour] = self._count
        return self._count

    def add(self, waiter: Waiter) -> None:
        """Somebody wants something else, which is to be told soon."""
        if isinstance(waiter, Neighbour):  # the greater number stands for those before
            self._fresh = [one for one in self._fresh if not _is_of(one, waiter.name)]
            self._waiting = [one for one in self._waiting if not _is_of(one[0], waiter.name)]
        self._fresh.append(waiter)

    @property
    def is_settled(self) -> bool:
        """Whether nobody waits for anything."""
        said = self._said
        is_confirmed = all(number <= said.get(name, 0) for name, number in self._told.items())
        return is_confirmed and not self._fresh and not self._waiting

    def take_done(self, *, clients: bool = True) -> list[Waiter]:
        """Everybody was told; gives those who need wait no longer. Without ``clients`` these wait
        until it is called again.
        """
        fresh, self._fresh = self._fresh, []
        for waiter in fresh:
            if isinstance(waiter, Client) and not clients:
                self._fresh.append(waiter)
                continue
            awaited = dict(self._told)
            if isinstance(waiter, Neighbour):
                awaited.pop(waiter.name, None)
            self._waiting.append((waiter, awaited))
        return self._take_confirmed()

    def confirm(self, neighbour: str, number: int) -> list[Waiter]:
        """A neighbour says that what it was told is in force; gives who need wait no longer."""
        self._said[neighbour] = max(number, self._said.get(neighbour, 0))
        return self._take_confirmed()

    def start_anew(self) -> None:
        """The tree is another: the neighbours there are told everything anew."""
        self._told.clear()
        waiters = [*(waiter for waiter, _ in self._waiting), *self._fresh]
        self._waiting = []
        self._fresh = [waiter for waiter in waiters if not isinstance(waiter, Neighbour)]

    def leave(self, neighbour: str) -> list[Waiter]:
        """A neighbour is in the tree no more; gives who need wait no longer."""
        self._told.pop(neighbour, None)
        for _, awaited in self._waiting:
            awaited.pop(neighbour, None)
        return self._take_confirmed()

    def _take_confirmed(self) -> list[Waiter]:
        done, waiting = [], []
        for waiter, awaited in self._waiting:
            if all(self._said.get(name, 0) >= number for name, number in awaited.items()):
                done.append(waiter)
            else:
                waiting.append((waiter, awaited))
        self._waiting = waiting
        return done


def _is_of(waiter: Waiter, neighbour: str) -> bool:
    return isinstance(waiter, Neighbour) and waiter.name == neighbour
