"""Resending: what is sent again goes slice by slice, while the links that it goes over have room.

Law 1: between two slices a broker takes in what has come. So it answers its neighbours, and sends
what follows from one slice before the next. 100,000 Temps wait at b3: a pause that b1 asks for is
answered after 4,096 of them, and the rest stays where it is.

Law 2: a slice goes when fewer than UNDER_WAY_EVENTS wait, or are not acknowledged, on each of the
links that it goes over. So what is under way has a bound, however much is kept, and brokers that
send again at the same time do so at the pace of who takes it. b1 takes no more for now: b3 sends no
Temps until what it has sent is acknowledged.
"""

from __future__ import annotations

from routing.evaluation.replay import SLICE_EVENTS
from routing.network.brokers.context import BrokerContext

UNDER_WAY_EVENTS = 8 * SLICE_EVENTS
"""Events on a link from which on nothing more is sent again over it (Law 2)."""


class Resending:
    """Hands over the next slice when it is time to."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._detection = context.detection

    @property
    def due_at(self) -> float | None:
        """Now, if anything waits that may go."""
        detection = self._detection
        if not (detection.is_sending_again and detection.may_send(self._has_room)):
            return None
        return self._context.moment.now

    def handle_timer(self) -> None:
        """Hand over a slice along each tree that takes one."""
        self._detection.send_slices(self._detection.may_send(self._has_room))
        self._context.service.settle()

    def _has_room(self, neighbour: str) -> bool:
        found = self._context.overlay.neighbours.get(neighbour)
        return found is None or found.events < UNDER_WAY_EVENTS
