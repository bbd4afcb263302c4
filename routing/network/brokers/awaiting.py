"""Silent sources for which other brokers wait (architecture.md 4.2, ``source_silence_max_s``).

Law 1: only a source's own broker knows when it last spoke, and only the brokers that evaluate rules
know what waits for it. So these tell the root for which types events have waited since they last
looked, and up to when; the root tells all. A source is left out if it has been silent for too long
and its promise is not beyond that.

Law 2: types that rules define stand for the published types whose marks bind these rules.

Law 3: what was said counts until it would have been said twice again: who waits no longer says
nothing, and nobody says anything while marks keep up.
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.config import Ordering
from routing.messages import Awaited
from routing.network.brokers.surveying import SurveyingBroker
from routing.network.stations.divided import DividedDetection


class AwaitingBroker(SurveyingBroker):
    """A Broker that tells for which types events wait here, and hears where else they do."""

    _detection: DividedDetection

    def _look_for_silence(self, silence_max_s: float) -> None:
        super()._look_for_silence(silence_max_s)
        awaited = self._take_awaited()
        if awaited:
            self._pass_awaited(Awaited(tuple(sorted(awaited.items()))))

    def _take_awaited(self) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._config.ordering is Ordering.ARRIVAL:
            return found  # nothing waits
        for station in self._detection.stations:
            for name, front in station.take_awaited().items():
                for published in self._published_below(name):
                    found[published] = max(front, found.get(published, front))
        return found

    def _published_below(self, name: str) -> Iterable[str]:
        """Law 2."""
        defining = self._deployments.defining(name)
        return {name}.union(*(self._deployments.needs(one.rule.name) for one in defining))

    def _hear_awaited(self, neighbour: str, message: Awaited) -> None:
        if neighbour == self._router.father:
            self._spread_awaited(message)
        elif neighbour in self._router.branches:
            self._pass_awaited(message)

    def _pass_awaited(self, message: Awaited) -> None:
        """On to the root, and from there to all."""
        if self._router.is_root:
            self._spread_awaited(message)
        elif self._router.father is not None:
            self.overlay.send(self._router.father, message, self._now)

    def _spread_awaited(self, message: Awaited) -> None:
        until = self._now + self._config.heartbeat_s  # in which brokers look twice
        self._detection.hear_awaited(message.types, self._now, until)
        for branch in self._router.children:
            self.overlay.send(branch.neighbour, message, self._now)
