"""At the root: the sources at other brokers, which it knows as if they were its own clients' ones.

Law 1: a source's events enter the network at its own broker, which checks, counts and acknowledges
them. The root knows it as a remote source, so that its name is its own and its types are published.
Station s of b3 is a remote source at b1: its Temps go to b3, and no other s may publish.

Law 2: a source may begin at another broker if its account (serving.accounts) says that it has
closed, or its broker that it has lost the link to it, or if that is out of reach. It goes on beyond
what it had promised (nobody knows that: what has been evaluated), and by its plan all begins anew.
s has promised Temp up to 40 s at b3, and comes to b2, where u is at 90 s: Temp is at 40 s again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from matcher.model import TIME_MIN, EventType
from routing.messages import Advertise, Asked, Code, LostSource, Report, Stay, Unadvertise
from routing.network.agreement.remote_sources import name_taken, stand_in
from routing.network.brokers.context import BrokerContext
from routing.serving.link import Link
from routing.serving.sources import MOVED, Source, SourceState

GONE_ON = "source has gone on at another broker"
ELSEWHERE_NOW = "its source is known otherwise in the network: advertise the types again"
KNOWN_BEYOND = "other brokers know more events of a source than this one, which goes on above them"


class SourceRegistry:
    """Keeper of the remote sources, until they close; elsewhere, of what the root says of them."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._accounts = context.accounts
        self._remote_sources = context.remote_sources
        self._lost: Mapping[tuple[str, str], LostSource] = {}
        self._present: Collection[str] = ()
        """The sources that are lost, by name and home, and the brokers of the tree, as reported."""
        self.heard_of: Callable[[], Mapping[str, int]] = dict
        """Gives the greatest numbers that have come, by source."""

    # --- who may begin (Law 2) ---

    def note(self, found: Report) -> None:
        """Take in which sources are lost, and which brokers are there."""
        self._lost = {(one.name, one.home): one for one in found.lost}
        self._present = {name for name, _, _ in found.nodes}

    def admit(self, asked: Asked) -> Link:
        """The link that stands for the client of another broker here; Refusal for a taken name."""
        context, request, name = self._context, asked.request, asked.client
        if not isinstance(request, Advertise | Unadvertise):
            return stand_in(name, context.moment.now, asked.rights)
        if context.links.named(name) is not None:
            raise name_taken(name, context.name)
        if isinstance(request, Advertise):
            self.claim(asked, request)
        link = self._remote_sources.admit(asked, context.moment.now)
        if link.source is not None:
            link.source.enter(SourceState.LIVE)  # it may have been lost
        return link

    def claim(self, asked: Asked, request: Advertise) -> None:
        """A client would publish under its name; Refusal where it cannot."""
        name, home = asked.client, asked.path[0]
        self._context.names.check(asked.rights, name)
        stay = self._accounts.find(name)
        if stay is None or stay.is_over or stay.home == home:
            return
        lost, source = self._lost.get((name, stay.home)), self._context.sources.find(name)
        is_live = source is not None and source.standing is SourceState.LIVE and lost is None
        if is_live and stay.home in self._present:
            raise name_taken(name, stay.home)
        known = dict(lost.promises if lost else ())
        moved = {*stay.types, *known}.intersection(schema.name for schema in request.types)
        self._context.detection.let_back({one: known.get(one) for one in moved})
        self._accounts.end(name, stay.home, lost.taken if lost else stay.taken)
        self.part_with_closed((name,))
        if source is not None:
            self._let_go(source)

    # --- accounts ---

    def learn(self, stays: Iterable[Stay]) -> None:
        """Others know these accounts: own sources that are known otherwise go by that."""
        for stay in self._accounts.learn(stays):
            source = self._context.sources.find(stay.name)
            if source is not None and not source.home:
                self._follow(source, stay)

    def _follow(self, source: Source, stay: Stay) -> None:
        context = self._context
        is_own = stay.owner in ("", source.rights.user or stay.owner)
        is_here = is_own and stay.home == context.name and not stay.is_over
        publishes = context.detection.publishers.has(source)  # else it is about to begin here
        if publishes and stay.home == context.name and stay.last > source.last_sequence:
            said = {"before": source.last_sequence, "last": stay.last}
            context.outlet.log("warning", KNOWN_BEYOND, source=source.name, **said)
        if not publishes or (is_here and not stay.last > source.last_sequence > 0):
            return
        if source.peer is not None:
            context.service.expel(source.peer, Code.SILENT, ELSEWHERE_NOW)
        if not is_own:
            source.last_sequence = stay.taken
            context.service.close_source(source, Code.NOT_ALLOWED.value)
        elif not is_here:
            self._let_go(source)

    def _let_go(self, source: Source) -> None:
        """A source here has gone on elsewhere, which nobody has to be told."""
        if self._context.detection.publishers.drop(source):
            self._context.outlet.log("info", GONE_ON, source=source.name)
            self._context.service.close_source(source, MOVED)

    def stays(self) -> tuple[Stay, ...]:
        """The accounts that are known here, with the greatest numbers that have come."""
        return self._accounts.with_numbers(self.heard_of(), self._context.sources.taken)

    def introduce(self, name: str, home: str, types: tuple[EventType, ...]) -> None:
        """A source at another broker publishes, maybe more, unless its account says otherwise."""
        context, asked = self._context, Asked((home,), 0, name, Advertise(0, types))
        if home == context.name or not self._accounts.is_at(name, home):
            return
        source = self._remote_sources.find(name) or context.service.source_of(
            self._remote_sources.admit(asked, context.moment.now)
        )
        for schema in types:
            if schema.name not in source.floors:
                context.advertisements.advertise(source, schema, TIME_MIN)

    def lose(self, forgotten: Mapping[str, Collection[str]]) -> None:
        """Brokers have forgotten who publishes these types there."""
        for source in self._remote_sources:
            if not source.floors.keys().isdisjoint(forgotten.get(source.home, ())):
                source.enter(SourceState.LOST)

    def part_with_closed(self, names: Iterable[str]) -> None:
        """Part with those of these sources that have closed, or have gone on elsewhere."""
        for source in filter(None, map(self._remote_sources.find, names)):
            if not self._accounts.is_at(source.name, source.home):
                self._close(source)

    def close_all(self, home: str, *, lost_alone: bool) -> None:
        """The sources at a broker, or those that are lost there, were waited for for too long."""
        for source in list(self._remote_sources):
            if source.home == home and not (lost_alone and source.standing is SourceState.LIVE):
                self._close(source)
        for stay in list(self._accounts) if lost_alone else ():
            found = self._context.sources.find(stay.name)
            if stay.home == home and not (found and found.standing is SourceState.LIVE):
                self._accounts.end(stay.name, home, stay.taken)

    def hear_closed(self, stays: Iterable[Stay]) -> None:
        """At the root: sources at other brokers have closed."""
        self._accounts.learn(stays)
        self.part_with_closed(stay.name for stay in stays)

    def _close(self, source: Source) -> None:
        self._context.sources.close(source)
        self._context.detection.withdraw(source, list(source.floors))
        self._remote_sources.leave(source.name)

    def leave(self) -> None:
        """Forget them: another broker is the root."""
        for source in self._remote_sources:
            self._context.sources.close(source)
            self._context.advertisements.withdraw(source, list(source.floors))
        self._remote_sources.clear()

    def may_be_lost(self, home: str, names: Iterable[str]) -> set[str]:
        """The types of these that sources may come back to publish at a broker where nobody is
        known to publish them now.
        """
        sources = [one for one in self._context.sources if (one.home or self._context.name) == home]
        live = {name for one in sources if one.standing is SourceState.LIVE for name in one.floors}
        stays = (stay for stay in self._accounts if stay.home == home and not stay.is_over)
        return set(names).intersection(name for stay in stays for name in stay.types) - live

    @property
    def published(self) -> set[tuple[str, str, str]]:
        """The name, the home and a type of each open source."""
        return {
            (source.name, source.home or self._context.name, type_name)
            for source in self._context.sources
            if source.is_open
            for type_name in source.floors
        }
