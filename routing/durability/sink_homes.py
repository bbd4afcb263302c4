"""Homes of the durable sinks of other brokers, as these tell them, and as the store has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from routing.durability.records import homes_record
from routing.overlay.overlay import Overlay
from routing.storage import Put


class SinkHomes:
    """Where the durable sinks of other brokers are. ``overlay`` hears of these. A broker that is
    started again remembers them until it hears of that one, or would have forgotten it. b3 has
    billing, and all brokers start again after a failure of the power. b1 is there first: it refuses
    a client that asks for billing, and names b3.
    """

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._kept: Mapping[str, str] = {}
        """Homes that the store has been asked to keep."""
        self._recalled: Mapping[str, str] = {}
        """Homes that the store had at the start, while they count."""
        self._recalled_until = 0.0
        self._news = overlay.topology.database.changes

    def recall(self, homes: Mapping[str, str], now: float) -> None:
        """The store has these. ``now``: seconds of the broker's clock."""
        self._kept = self._recalled = homes
        self._recalled_until = now + self._overlay.config.forget_s

    def by_name(self, now: float) -> Mapping[str, str]:
        """The brokers that have the sinks, by the names of these."""
        told = self._overlay.durables
        if not self._recalled:
            return told
        if now >= self._recalled_until:
            self._recalled = {}
            return told
        heard_of = {state.origin for state in self._overlay.topology.states}
        self._recalled = {
            name: home for name, home in self._recalled.items() if home not in heard_of
        }
        return {**self._recalled, **told}

    def take_changes(self, now: float) -> Iterator[Put]:
        """A record to keep, if others have told something else since the last time."""
        if self._overlay.topology.database.changes == self._news:
            return
        self._news = self._overlay.topology.database.changes
        homes = self.by_name(now)
        if homes != self._kept:
            self._kept = homes
            yield homes_record(homes)
