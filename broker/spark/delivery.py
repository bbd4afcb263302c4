"""How one task gets its events to a broker: with back-pressure, and to the next one if need be.

Law: nothing is forgotten until a broker has acknowledged it. A broker that is lost meanwhile loses
its turn, and the next in the list gets what was not acknowledged, under the same ids. A broker that
answers but takes nothing is waited for without end: that is back-pressure.

Of several attempts at one part (``spark.speculation``) one is at work: another waits for as long as
the broker has a live client of that name. It goes on when the first has ended or is lost, and what
that had published counts once, by its ids. So an attempt is never refused for being early, which
Spark would count as a failure of the task.

What the lost broker had taken, without its word having come back, is sent to another. Brokers of
one network know by the ids what has come to them before (routing.delivery.deduplicator), so
it takes effect once. What the lost broker had confirmed and not passed on is lost with it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.client.manager import RuleManager
from broker.client.publisher import Publisher
from broker.errors import BrokerUnreachable, PublishBlocked, RefusedError
from broker.spark.options import NO_KEYS, Keys
from matcher.model import EventBatch, EventType
from routing.messages import Code

TURN_S = 0.5
"""So often an attempt looks whether the one before it is over."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Events that are sent whole or not at all, and what is promised with them."""

    events: EventBatch
    promise: int | None


class Delivery:
    """The publisher of one part of a source. ``resent`` counts events that were sent again,
    ``endpoint`` is the broker's that they go to.
    """

    def __init__(
        self,
        brokers: Sequence[str],
        name: str,
        types: Sequence[EventType],
        *,
        acks: str,
        batch_events: int,
        timeout_s: float,
        replay: bool = False,
        keys: Keys = NO_KEYS,
    ) -> None:
        self._keys = keys
        self._brokers = list(brokers)
        self._name = name
        self._types = types
        self._acks = acks
        self._batch_events = batch_events
        self._timeout_s = timeout_s
        self._replay = replay
        self._kept: deque[Kept] = deque()
        self._kept_events = 0  # no more than a publisher has under way, and a piece
        self._told: list[str] = []
        self.resent = 0
        self.endpoint = ""
        self._publisher = self._next()

    def send(self, batches: Sequence[EventBatch], promise: int | None = None) -> None:
        """Send events; ``promise``: nothing earlier will follow (microseconds)."""
        pieces = [
            batch.take(slice(start, start + self._batch_events))
            for batch in batches
            for start in range(0, len(batch), self._batch_events)
        ]
        for place, piece in enumerate(pieces):
            kept = Kept(piece, promise if place == len(pieces) - 1 else None)
            self._somewhere(lambda kept=kept: self._publish(kept))  # type: ignore[misc]
            self._kept.append(kept)
            self._kept_events += len(piece)
            self._forget()

    def confirm(self) -> None:
        """Wait until a broker has everything."""
        self._somewhere(self._wait)
        self._forget()

    @property
    def unconfirmed(self) -> int:
        """How many events no broker is known to have."""
        self._forget()
        return self._kept_events

    def finish(self) -> None:
        """Everything was published."""
        self.confirm()
        self._publisher.close()

    def give_up(self) -> None:
        """Leave; another attempt may go on."""
        self._publisher.pause()

    def _publish(self, kept: Kept) -> None:
        self._patiently(lambda: self._publisher.publish_batch(kept.events))
        if kept.promise is not None:
            self._publisher.promise(kept.promise)

    def _wait(self) -> None:
        self._patiently(self._publisher.wait)

    def _forget(self) -> None:
        """Let go of what the broker has: all but the last events, in whole pieces.

        Everything that is kept was published to this broker, in this order.
        """
        waiting = self._publisher.unacknowledged
        while self._kept and self._kept_events - len(self._kept[0].events) >= waiting:
            self._kept_events -= len(self._kept.popleft().events)

    def _patiently(self, step: Callable[[], object]) -> None:
        """Do it again for as long as the broker answers and is only slow."""
        while True:
            try:
                step()
                return
            except PublishBlocked:
                if not self._publisher.is_connected:
                    raise

    def _somewhere(self, step: Callable[[], object]) -> None:
        """Do it; where the broker is lost, at the next one, which gets what is kept before."""
        try:
            step()
            return
        except (PublishBlocked, BrokerUnreachable) as error:
            self._told.append(str(error))
        self._forget()
        while True:
            self._publisher.pause()
            self._publisher = self._next()
            try:
                for kept in self._kept:
                    self._publish(kept)
                    self.resent += len(kept.events)
                step()
                return
            except (PublishBlocked, BrokerUnreachable) as error:
                self._told.append(str(error))

    def _next(self) -> Publisher:
        """A publisher at the first broker left that answers; BrokerUnreachable when none is."""
        while self._brokers:
            self.endpoint = self._brokers.pop(0)
            try:
                return self._in_turn()
            except BrokerUnreachable as error:
                self._told.append(str(error))
        raise BrokerUnreachable(f"no broker is left: {'; '.join(self._told)}")

    def _in_turn(self) -> Publisher:
        """A publisher, once no other attempt at the part is at work. RefusedError where the name is
        taken, and nobody has been at work under it for ``timeout_s``.
        """
        ends = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._connected()
            except RefusedError as refusal:
                if refusal.code != Code.NAME_TAKEN.value:
                    raise
                now = time.monotonic()
                if self._is_at_work():
                    ends = now + self._timeout_s
                elif now > ends:
                    raise
            time.sleep(TURN_S)

    def _connected(self) -> Publisher:
        return Publisher(
            self._keys.address(self.endpoint),
            name=self._name,
            types=self._types,
            acks="none" if self._acks == "none" else "broker",
            replay=self._replay,
            live=False,
            timeout_s=self._timeout_s,
            connect_timeout_s=min(self._timeout_s, 5.0),
        )

    def _is_at_work(self) -> bool:
        """Whether a live client of the broker bears the name."""
        address, timeout_s = self._keys.address(self.endpoint), min(self._timeout_s, 5.0)
        with RuleManager(address, connect_timeout_s=timeout_s) as manager:
            sources = manager.status()["sources"]
        return any(
            source["name"] == self._name and source["standing"] == "live" and not source["home"]
            for source in sources
        )
