"""Choice of the processor or a device for work that comes in batches and has a state, by what
batches take: ``auto`` of :mod:`studies.operators`.

As with subscriptions (:mod:`matcher.gpu.choice`) both places are tried, and times tell. Work with a
state cannot be done in both at once: a trial is a move.

Example: a join over 100,000 events takes 175 us an event on the processor. After ten seconds it
goes to a device, where it takes 0.7 us in batches of 2,048, and stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, Protocol, TypeVar


class Place(Protocol):
    """The processor or a device."""

    @property
    def is_device(self) -> bool:
        """Whether it is a device."""
        ...


Where = TypeVar("Where", bound=Place)
BEGIN_S = 10.0
"""Seconds that the first trial is thought to take: its kernels are compiled."""
TRIAL_WORTH = 64
"""Trials take one part of the time in about so many, but for the first."""
TRIAL_BATCHES = 4
"""Batches of a trial; the first is not counted, since buffers grow then."""
MARGIN = 1.3
"""How many times cheaper another place has to be."""
CHANGED = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that an event takes, with so many events in a batch."""

    event_s: float
    batch: float

    def is_like(self, other: Cost) -> bool:
        """Whether neither has doubled or halved."""
        return _alike(self.event_s, other.event_s) and _alike(self.batch, other.batch)


def _alike(one: float, other: float) -> bool:
    return one <= CHANGED * other and other <= CHANGED * one


class Choice(Generic[Where]):
    """Where work is done, and what is known of both places.

    It begins at ``host``. ``device`` gives the other place, None where there is none: then nothing
    is chosen.

    A choice concerns time alone, never an output. Work tries a device once it has computed for as
    long as it takes to compile the device's kernels; so at the worst it takes twice as long as
    without. It stays where an event costs less. It tries anew when what an event costs, or how many
    come at once, has doubled or halved since, and it has computed for ``TRIAL_WORTH`` times as long
    as the last trial took.
    """

    def __init__(
        self,
        host: Where,
        device: Callable[[], Where | None],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.place = host
        self.clock = clock
        self._find: Callable[[], Where | None] | None = device
        self._other: Where | None = None
        self._known: dict[Where, Cost] = {}
        self._events = self._batches = 0
        self._seconds = self._spent = 0.0
        self._trial_s, self._trial_left = BEGIN_S / TRIAL_WORTH, 0

    def moved(self, seconds: float) -> None:
        """Note what a move took."""
        self._spent += seconds

    def stay(self) -> None:
        """Choose nothing any more."""
        self._find = self._other = None

    def note(self, events: int, seconds: float) -> bool:
        """Note a batch; whether to go to ``place``, which is another then."""
        if events == 0 or (self._find is None and self._other is None):
            return False
        self._spent += seconds
        self._events, self._batches = self._events + events, self._batches + 1
        self._seconds += seconds
        if self._trial_left:
            return self._tried()
        cost = Cost(self._seconds / self._events, self._events / self._batches)
        known = self._known.get(self.place)
        if known is None or not cost.is_like(known):
            if self._spent >= TRIAL_WORTH * self._trial_s and self._has_other():
                self._known[self.place] = cost
                self._trial_left, self._spent = TRIAL_BATCHES, 0.0
                return self._go()
        elif self._batches >= TRIAL_BATCHES:
            self._begin()  # the cost is that of recent batches
        return False

    def _tried(self) -> bool:
        """Go on with a trial; whether it has ended with a move back."""
        self._trial_left -= 1
        if self._trial_left == TRIAL_BATCHES - 1:
            self._begin()
        if self._trial_left:
            return False
        assert self._other is not None
        cost = Cost(self._seconds / self._events, self._events / self._batches)
        self._known[self.place], self._trial_s, self._spent = cost, self._spent, 0.0
        self._begin()
        if self.place.is_device == self._is_cheaper_there():
            return False
        return self._go()

    def _is_cheaper_there(self) -> bool:
        """Whether the device is cheaper, by a MARGIN where the trial was of it."""
        assert self._other is not None
        here, there = self._known[self.place], self._known[self._other]
        if self.place.is_device:
            return here.event_s * MARGIN < there.event_s
        return there.event_s < here.event_s * MARGIN

    def _has_other(self) -> bool:
        if self._find is not None:
            self._other, self._find = self._find(), None
        return self._other is not None

    def _go(self) -> bool:
        assert self._other is not None
        self.place, self._other = self._other, self.place
        self._begin()
        return True

    def _begin(self) -> None:
        self._events = self._batches = 0
        self._seconds = 0.0
