"""Silent sources for which other brokers wait (protocol.md section 4, ``source_silence_max_s``).

Law 1: only a source's own broker knows when it last spoke, and only the brokers that evaluate rules
know what waits for it. So these tell the root for which types events have waited since they last
looked, and up to when; the root tells all. A source is left out if it has been silent for too long
and its promise is not beyond that.

Law 2: types that rules define stand for the published types whose marks bind these rules.

Law 3: for silent sources, what was said counts until it would have been said twice again: who waits
no longer says nothing, and nobody says anything while marks keep up.

Law 4: what waits to be asked for, for masters (7.3.7), waits where nobody evaluates the rule. Who
keeps it says so, too, when it is far ahead of them (stations.lagging). Who would ask says from when
on it may still do so, and takes what is kept for having come if there are no masters any more.
"""

from __future__ import annotations

from routing.config import Ordering
from routing.messages import Awaited
from routing.network.brokers.ground import Ground


class Awaiting:
    """Tells for which types events wait here, and hears where else they do."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._router = ground.router

    def tell(self) -> None:
        """Tell for what events have waited here since this was last done."""
        awaited = self._take_awaited()
        if awaited:
            self._pass_on(Awaited(tuple(sorted(awaited.items()))))

    def tell_kept(self) -> None:
        """Tell how far what is kept for masters has come (Law 4)."""
        kept = self._ground.detection.lags.take_kept()
        if kept:
            self._pass_on(Awaited(tuple(sorted(kept.items()))))

    def _take_awaited(self) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._ground.config.ordering is Ordering.ARRIVAL:
            return found  # nothing waits
        for station in self._ground.detection.stations:
            for name, front in station.take_awaited().items():
                for published in self._ground.deployments.published_below(name):  # Law 2
                    found[published] = max(front, found.get(published, front))
        return found

    def hear_awaited(self, neighbour: str, message: Awaited) -> None:
        """Events wait elsewhere, as a broker below says to the root, or the root to all."""
        if neighbour == self._router.father:
            self._spread(message)
        elif neighbour in self._router.branches:
            self._pass_on(message)

    def _pass_on(self, message: Awaited) -> None:
        """On to the root, and from there to all."""
        if self._router.is_root:
            self._spread(message)
        elif self._router.father is not None:
            self._ground.send(self._router.father, message)

    def _spread(self, message: Awaited) -> None:
        ground = self._ground
        now = ground.moment.now
        until = now + ground.config.heartbeat_s  # in which brokers look twice
        ground.detection.hear_awaited(message.types, now, until)
        for branch in self._router.children:
            ground.send(branch.neighbour, message)
