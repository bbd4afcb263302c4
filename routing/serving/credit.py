"""How much a source may send (protocol.md section 4): the bound on everything that waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from matcher.model import TIME_MIN
from routing.config import NodeConfig, Ordering
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.errors import ProtocolError
from routing.messages import ANY_TYPE, Code
from routing.serving.advertisements import Advertisements
from routing.serving.moment import Moment
from routing.serving.sources import Source, SourceState
from rules.pattern import TIMER

Held: TypeAlias = Mapping[str, int]
"""By type: sources of it that have promised as much, or more, get no credit."""
NOTHING_HELD: Held = {}


def held_by_all(several: Iterable[Held]) -> Held:
    """Put together several holds: all that any of them holds up."""
    found: dict[str, int] = {}
    for held in several:
        for name, since in held.items():
            found[name] = min(since, found.get(name, since))
    return found


@dataclass(frozen=True, slots=True)
class Grant:
    """``events`` more credit for ``source``."""

    source: Source
    events: int


class PublishCredit:
    """Decides on the sources' credit; remembers which of them wait for it.

    A source has at most ``publish_credit`` events under way. It gets new credit once half of that
    is used up, unless it is withheld. What is gathered (routing.node, Law 3) is settled then, so
    that a source which keeps its broker busy does not stand still for want of credit. With 16,384
    of it, and batches of 256: behind each 32.
    """

    def __init__(
        self,
        config: NodeConfig,
        advertisements: Advertisements,
        deployments: Deployments,
        sinks: Sinks,
        moment: Moment,
    ) -> None:
        self._config = config
        self._moment = moment
        self._advertisements = advertisements
        self._deployments = deployments
        self._sinks = sinks
        self._held = NOTHING_HELD
        self._waiting: dict[str, Source] = {}
        self.waiting: Mapping[str, Source] = self._waiting
        """The sources that wait for credit, by name."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self._config = config

    def hold(self, held: Held) -> None:
        """Give no credit to these sources, in place of those that were held up: what they feed is
        full elsewhere in a network, or waits there for others that are too far behind it.
        """
        self._held = held

    def spend(self, source: Source, events: int) -> None:
        """Note what a source has sent; ProtocolError when that is more than it may."""
        if events > source.outstanding:
            raise ProtocolError(
                Code.PROTOCOL,
                f"{events} events published with a credit of {source.outstanding}",
            )
        source.outstanding -= events
        if source.bucket is not None:
            source.bucket.spend(events, self._moment.now)
        if source.outstanding <= min(self._config.publish_credit, source.credit_max) // 2:
            self._waiting[source.name] = source

    def grants(self) -> Iterable[Grant]:
        """The credit to give now."""
        if not self._waiting:
            return ()
        granted = []
        for source in list(self._waiting.values()):
            if source.standing is not SourceState.LIVE:
                del self._waiting[source.name]
                continue
            source.withheld = (
                self._ahead(source)
                or self._blocked(source)
                or self._held_up(source)
                or self._too_fast(source)
            )
            if source.withheld is None:
                del self._waiting[source.name]
                events = max(
                    0, min(self._config.publish_credit, source.credit_max) - source.outstanding
                )
                granted.append(Grant(source, events))
        return granted

    def _ahead(self, source: Source) -> str | None:
        """Sources whose events run more than ``lead_max_s`` ahead of the slowest source of the
        rules that they feed. The slowest itself never is one, so a full queue cannot hold back the
        mark that would empty it. Types that nobody has advertised hold nobody back, and nobody does
        by arrival, where nothing waits; nor do, in a network, the sources of other brokers, which
        alone know what these have promised (``hold``).
        """
        by_arrival = self._config.ordering is Ordering.ARRIVAL
        if by_arrival or source.front is None or source.first is None:
            return None
        for name in source.floors:
            for group in self._deployments.groups(name):
                slowest = self._slowest(group)
                if slowest is None or source.promise <= slowest[0]:
                    continue
                start = source.first if slowest[0] == TIME_MIN else slowest[0]
                if source.front - start > self._config.lead_max_us:
                    return f"too far ahead of {slowest[1]}"
        return None

    def _slowest(self, group: Iterable[str]) -> tuple[int, str] | None:
        marks = []
        for name in group:
            known = None if name == TIMER.name else self._advertisements.find(name)
            if known is not None:
                own = (one for one in known.open_advertisers if not one.home)
                marks += [(one.mark(name), one.name) for one in own]
        return min(marks, default=None)

    def _blocked(self, source: Source) -> str | None:
        """Sources that feed a full sink which chose to block. Where its events wait only for marks,
        sources that the marks wait for get their credit: the queue is full of Fires of 12:05 that
        wait for the mark of Flood, and what feeds Flood goes on.
        """
        for sink in self._sinks:
            is_held = _is_as_far(source, sink.full_from)
            if is_held and not sink.feeds.isdisjoint(source.floors):
                return f"sink {sink.name or sink.peer.hex()} is full"
        return None

    def _too_fast(self, source: Source) -> str | None:
        """Sources whose user has published more in a second than it may
        (:mod:`routing.serving.buckets`).
        """
        bucket = source.bucket
        if bucket is None or not bucket.is_empty(self._moment.now):
            return None
        return f"its user has published more than {bucket.rate} events a second"

    def _held_up(self, source: Source) -> str | None:
        """Sources that are held up elsewhere."""
        if ANY_TYPE in self._held:
            return "the way through the network is full"
        for name in source.floors:
            if _is_as_far(source, self._held.get(name)):
                return f"what {name} feeds is full, or waits for others, in the network"
        return None


def _is_as_far(source: Source, since: int | None) -> bool:
    """Whether a source has promised as much as those that are to wait."""
    return since is not None and source.promise >= since
