"""Work that takes long, a slice at a time, and events that are sent again.

Law 1: between two slices a broker takes in what has come. So it answers its neighbours, and sends
what follows from one slice before the next. 100,000 Temps wait at b3: a pause that b1 asks for is
answered after 4,096 of them, and the rest stays where it is.

Law 2: a slice goes when fewer than UNDER_WAY_EVENTS wait, or are not acknowledged, on each of the
links that it goes over. So what is under way has a bound, however much is kept, and brokers that
send again at the same time do so at the pace of who takes it. b1 takes no more for now: b3 sends no
Temps until what it has sent is acknowledged.

Law 3: what is *prepared* before it is done changes nothing that anybody sees, and is done at one
moment, as a whole, when it is prepared. Until then all that neighbours say waits behind it, in its
order; clients are served. 1,000 rules are told to b3: it loads them, RULES at a time, and then
hears of them all at once.

Law 4: what is *read ahead* holds up nobody. A text of 1,000 rules comes to the root: events flow,
and the network pauses once it has been checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from routing.evaluation.replay import SLICE_EVENTS
from routing.network.brokers.context import BrokerContext
from rules.collector import collector_paused

UNDER_WAY_EVENTS = 8 * SLICE_EVENTS
"""Events on a link from which on nothing more is sent again over it (Law 2)."""
RULES = 16
"""Rules of a slice: one takes about a millisecond to be loaded, and half of one to be installed."""


class Slices:
    """Does the next slice when it is time to."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._detection = context.detection
        self._prepared: Iterator[None] = iter(())
        self._then: Callable[[], None] | None = None
        """Work that waits for what is prepared."""
        self._ahead: deque[tuple[Iterator[None], Callable[[], None]]] = deque()
        """Work that is read ahead, and what follows when it has been."""

    @property
    def is_preparing(self) -> bool:
        """Whether something is prepared, and what neighbours say waits behind it (Law 3)."""
        return self._then is not None

    def prepare(self, work: Iterator[None], then: Callable[[], None]) -> None:
        """Prepare by work that yields behind each rule; ``then`` is called when it is done, before
        this returns if that takes one slice.
        """
        self.finish()
        self._prepared, self._then = work, then
        self._go_on()

    def finish(self) -> None:
        """Prepare the rest at once, and do what has waited for it."""
        while self._then is not None:
            self._go_on()

    def read_ahead(self, work: Iterator[None], then: Callable[[], None]) -> None:
        """Read ahead (Law 4), as ``prepare``, behind what is read ahead already."""
        self._ahead.append((work, then))
        if len(self._ahead) == 1:
            self._go_on_ahead()

    def _go_on(self) -> None:
        if _is_over(self._prepared) and self._then is not None:
            then, self._then = self._then, None
            then()

    def _go_on_ahead(self) -> None:
        work, then = self._ahead[0]
        if _is_over(work):
            self._ahead.popleft()
            then()

    @property
    def due_at(self) -> float | None:
        """Now, if anything waits that may go."""
        if self.is_preparing or self._ahead or self._sends_again:
            return self._context.moment.now
        return None

    @property
    def _sends_again(self) -> bool:
        detection = self._detection
        return detection.is_sending_again and bool(detection.may_send(self._has_room))

    def handle_timer(self) -> None:
        """Do a slice of what is prepared; else of what is read ahead, and hand one over along each
        tree that takes one.
        """
        if self.is_preparing:
            self._go_on()
        else:
            if self._ahead:
                self._go_on_ahead()
            if self._sends_again:
                self._detection.send_slices(self._detection.may_send(self._has_room))
        self._context.callbacks.settle()

    def _has_room(self, neighbour: str) -> bool:
        found = self._context.overlay.neighbours.get(neighbour)
        return found is None or found.events < UNDER_WAY_EVENTS


@collector_paused()
def _is_over(work: Iterator[None]) -> bool:
    """Whether a slice of it was the last."""
    return sum(1 for _ in islice(work, RULES)) < RULES
