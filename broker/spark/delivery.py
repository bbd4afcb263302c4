"""How one task gets its events to a broker: with back-pressure, and to the next one if need be.

Law: nothing is forgotten until a broker has confirmed it. Events are kept until the next
confirmation is awaited, every CONFIRM_EVENTS; a broker that is lost meanwhile loses its turn, and
the next in the list gets them all again under their ids. A broker that answers but takes nothing
is waited for without end: that is back-pressure.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.client.publisher import Publisher
from broker.errors import BrokerUnreachable, PublishBlocked
from matcher.model import EventBatch, EventType

CONFIRM_EVENTS = 65_536
"""Events kept for a broker that may come to be lost."""


class Delivery:
    """The publisher of one part of a source. ``resent`` counts events that were sent again."""

    def __init__(
        self,
        brokers: Sequence[str],
        name: str,
        types: Sequence[EventType],
        *,
        acks: str,
        batch_events: int,
        timeout_s: float,
    ) -> None:
        self._brokers = list(brokers)
        self._name = name
        self._types = types
        self._acks = acks
        self._batch_events = batch_events
        self._timeout_s = timeout_s
        self._kept: list[tuple[list[EventBatch], int | None]] = []
        self._kept_events = 0
        self._told: list[str] = []
        self.resent = 0
        self._publisher = self._next()

    def send(self, batches: Sequence[EventBatch], promise: int | None = None) -> None:
        """Send events; ``promise``: nothing earlier will follow (microseconds)."""
        whole = sum(map(len, batches))
        if whole == 0:
            return
        self._kept.append((list(batches), promise))
        self._kept_events += whole
        self._until_sent(lambda: self._publish(batches, promise))
        if self._kept_events >= CONFIRM_EVENTS:
            self.confirm()

    def confirm(self) -> None:
        """Wait until a broker has everything."""
        self._until_sent(self._wait)
        self._kept.clear()
        self._kept_events = 0

    def finish(self) -> None:
        """Everything was published."""
        self.confirm()
        self._publisher.close()

    def give_up(self) -> None:
        """Leave; another attempt may go on."""
        self._publisher.pause()

    def _publish(self, batches: Sequence[EventBatch], promise: int | None) -> None:
        """In pieces, each of which is sent whole or not at all."""
        for place, batch in enumerate(batches):
            for start in range(0, len(batch), self._batch_events):
                piece = batch.take(slice(start, start + self._batch_events))
                self._patiently(lambda piece=piece: self._publisher.publish_batch(piece))  # type: ignore[misc]
            if promise is not None and place == len(batches) - 1:
                self._publisher.promise(promise)

    def _wait(self) -> None:
        self._patiently(self._publisher.wait)

    def _patiently(self, step: object) -> None:
        """Do it again for as long as the broker answers and is only slow."""
        assert callable(step)
        while True:
            try:
                step()
                return
            except PublishBlocked:
                if not self._publisher.is_connected:
                    raise

    def _until_sent(self, step: object) -> None:
        """Do it; where the broker is lost, go to the next with all that was kept."""
        assert callable(step)
        try:
            step()
            return
        except (PublishBlocked, BrokerUnreachable) as error:
            self._told.append(str(error))
        while True:
            self._publisher.pause()
            self._publisher = self._next()
            try:
                for batches, promise in self._kept:
                    self.resent += sum(map(len, batches))
                    self._publish(batches, promise)
                self._wait()
                return
            except (PublishBlocked, BrokerUnreachable) as error:
                self._told.append(str(error))

    def _next(self) -> Publisher:
        """A publisher at the first broker left that answers; BrokerUnreachable when none is."""
        while self._brokers:
            endpoint = self._brokers.pop(0)
            try:
                return Publisher(
                    endpoint,
                    name=self._name,
                    types=self._types,
                    acks="none" if self._acks == "none" else "broker",
                    timeout_s=self._timeout_s,
                    connect_timeout_s=min(self._timeout_s, 5.0),
                )
            except BrokerUnreachable as error:
                self._told.append(str(error))
        raise BrokerUnreachable(f"no broker is left: {'; '.join(self._told)}")
