"""How one task gets its events to a broker: with back-pressure, and to the next one if need be.

Law: nothing is forgotten until a broker has acknowledged it. A broker that is lost meanwhile loses
its turn, and the next in the list gets what was not acknowledged, under the same ids. A broker that
answers but takes nothing is waited for without end: that is back-pressure.

Of several attempts at one part (``spark.speculation``) the latest is at work. The broker sends
the others away; they stand by until Spark ends them, for it would count an error as a failure of
the task, and go on if the latest is lost. So does an attempt that finds the part just ended: were
it at work when Spark ends it, rules would wait for the part. What several have published counts
once, by its ids.

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
from broker.errors import BrokerUnreachable, ClientClosed, PublishBlocked, RefusedError
from broker.spark.options import NO_KEYS, Keys
from matcher.model import EventBatch, EventType
from routing.messages import Code

TURN_S = 0.5
"""So often an attempt looks whether another is over."""
STAND_BY_S = 5.0
"""So long an attempt is idle once no other is at work. Where one has ended well, Spark ends others
within ``spark.python.task.killTimeout`` (2 s).
"""
_TAKEN = (Code.NAME_TAKEN.value, Code.IN_USE.value)


@dataclass(frozen=True, slots=True)
class Kept:
    """Events that are sent whole or not at all, and what is promised with them."""

    events: EventBatch
    promise: int | None


class Delivery:
    """The publisher of one part of a source. ``attempt`` counts those before it at the same task.
    ``resent`` counts events that were sent again, ``endpoint`` is the broker's that they go to.
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
        attempt: int = 0,
    ) -> None:
        self._keys = keys
        self._brokers = list(brokers)
        self._name = name
        self._types = types
        self._acks = acks
        self._batch_events = batch_events
        self._timeout_s = timeout_s
        self._replay = replay
        self._attempt = attempt
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
        self._somewhere(self._close)

    def give_up(self) -> None:
        """Leave; another attempt may go on."""
        self._publisher.pause()

    def _publish(self, kept: Kept) -> None:
        self._patiently(lambda: self._publisher.publish_batch(kept.events))
        if kept.promise is not None:
            self._publisher.promise(kept.promise)

    def _close(self) -> None:
        self._publisher.close()
        try:
            self._publisher.wait()  # raises whatever else had ended the publisher before
        except ClientClosed:
            return

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
        """Do it; where the broker is lost, at the next one, and where another attempt took the
        place and was lost, at the same one again, which gets what is kept before.
        """
        try:
            step()
            return
        except (PublishBlocked, BrokerUnreachable, RefusedError) as error:
            self._make_way(error)
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
            except (PublishBlocked, BrokerUnreachable, RefusedError) as error:
                self._make_way(error)

    def _make_way(self, error: Exception) -> None:
        """Have the next broker take the turn, or wait while a later attempt is at work; any other
        refusal is raised.
        """
        if not isinstance(error, RefusedError):
            self._told.append(str(error))
            return
        if error.code != Code.IN_USE.value:
            raise error
        self._brokers.insert(0, self.endpoint)
        self._stand_by()

    def _stand_by(self) -> None:
        """Wait until no other attempt has been at work for ``STAND_BY_S``."""
        ends = time.monotonic() + STAND_BY_S
        while (now := time.monotonic()) < ends:
            time.sleep(TURN_S)
            if self._standing() == "live":
                ends = now + STAND_BY_S

    def _standing(self) -> str:
        """The part's standing at the broker; "" where it knows none, or does not answer."""
        address, timeout_s = self._keys.address(self.endpoint), min(self._timeout_s, 5.0)
        try:
            with RuleManager(address, connect_timeout_s=timeout_s) as manager:
                sources = manager.status()["sources"]
        except BrokerUnreachable:
            return ""
        here = (one for one in sources if one["name"] == self._name and not one["home"])
        return next((str(one["standing"]) for one in here), "")

    def _next(self) -> Publisher:
        """A publisher at the first broker left that answers; BrokerUnreachable when none is."""
        while self._brokers:
            self.endpoint = self._brokers.pop(0)
            if self._attempt and self._standing() == "closed":
                self._stand_by()
            try:
                return self._in_turn()
            except BrokerUnreachable as error:
                self._told.append(str(error))
        raise BrokerUnreachable(f"no broker is left: {'; '.join(self._told)}")

    def _in_turn(self) -> Publisher:
        """A publisher, once the name is free: another broker may have to hear first that it is, and
        another machine's clock may be ahead. RefusedError where it is taken after ``timeout_s``.
        """
        ends = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._connected()
            except RefusedError as refusal:
                if refusal.code not in _TAKEN or time.monotonic() > ends:
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
