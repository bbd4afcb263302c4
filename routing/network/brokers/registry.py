"""At the root: the sources at other brokers, which it knows as if they were its own clients' ones.

Law 1: a source's events enter the network at its own broker, which checks, counts and acknowledges
them. The root knows it as a remote source, so that its name is its own and that its types have
somebody who publishes them; that it has closed comes along the tree. Station s of b3 is a remote
source at b1: its Temps go to b3, and no other s may publish.

Law 2: only a source's own broker knows whether its client is still there. So when a name is refused
that a source elsewhere bears, the root tells that broker that it is contested. If that has lost the
link to the client it takes the source for closed, and if there is none it says so once more; the
name is free when the root has heard that. s comes to b2 while b3 has lost it: b1 refuses it, b3
hears and closes s, s tries again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from matcher.model import TIME_MIN, EventType
from routing.errors import Refusal
from routing.messages import Advertise, Asked, Code, NameContested, Unadvertise
from routing.network.agreement.remote_sources import name_taken, stand_in
from routing.network.brokers.context import BrokerContext
from routing.serving.link import Link
from routing.serving.sources import Source, SourceState

GONE_ON = "the link to it is lost, and at another broker somebody would publish under its name"


class SourceRegistry:
    """Keeper of the remote sources, until they close."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._remote_sources = context.remote_sources
        self._goodbyes: Counter[tuple[str, str]] = Counter()
        """By name and home."""
        self.closed: set[tuple[str, str]] = set()
        """Brokers, and types of which sources there have closed since this broker is the root, and
        the plan before."""

    def goodbyes(self, asked: Asked) -> int:
        """How often a source of that name has closed at the broker that asks, since these were
        forgotten: what it asked before, and is not done yet, is not to be done any more.
        """
        return self._goodbyes[asked.client, asked.path[0]]

    def forget_goodbyes(self) -> None:
        """Nothing that was asked waits."""
        self._goodbyes.clear()

    def admit(self, asked: Asked) -> Link:
        """The link that stands for the client of another broker here; Refusal for a taken name."""
        context = self._context
        if not isinstance(asked.request, Advertise | Unadvertise):
            return stand_in(asked.client, context.moment.now, asked.rights)
        if context.links.named(asked.client) is not None:
            raise name_taken(asked.client, context.name)
        with self._contesting(asked.client):
            link = self._remote_sources.admit(asked, context.moment.now)
        if link.source is not None:
            link.source.enter(SourceState.LIVE)  # it may have been lost
        return link

    def check_name(self, name: str) -> None:
        """Refusal when a client here cannot publish under this name, since a remote source does."""
        with self._contesting(name):
            self._remote_sources.check(name, self._context.name)

    @contextmanager
    def _contesting(self, name: str) -> Iterator[None]:
        """Law 2, where a remote source bears the name."""
        try:
            yield
        except Refusal:
            self._tell_contested(NameContested(name, self._remote_sources.home(name)))
            raise

    def hear_name_contested(self, neighbour: str, contested: NameContested) -> None:
        """A name is contested (Law 2)."""
        context = self._context
        if neighbour != context.router.father:
            return
        if contested.home != context.name:
            self._tell_contested(contested)
        elif context.links.named(contested.name) is None:
            self._give_up(contested.name)

    def _give_up(self, name: str) -> None:
        """No client here bears the name."""
        context = self._context
        source = context.sources.find(name)
        if source is not None and source.standing is SourceState.LOST:
            context.callbacks.log("warning", "source given up", source=name, reason=GONE_ON)
            context.callbacks.close_source(source)
        elif not context.detection.publishers.is_leaving(name):
            last = 0 if source is None else source.last_sequence
            context.router.tell_closed(name, last)

    def _tell_contested(self, contested: NameContested) -> None:
        for branch in self._context.router.children:
            self._context.send(branch.neighbour, contested)

    def introduce(self, name: str, home: str, types: tuple[EventType, ...]) -> None:
        """A source at another broker publishes; logs when its name is taken. One that is known
        there already may publish more by now than it did when this was last heard.
        """
        if home == self._context.name:
            return
        source = self._remote_sources.find(name)
        if source is not None:
            known = self._remote_sources.home(name)
            if known == home:
                self._advertise(source, [one for one in types if one.name not in source.floors])
            else:  # each went on in a part of its own
                self._tell_contested(NameContested(name, known))
                self._tell_contested(NameContested(name, home))
            return
        try:
            self._introduce(name, home, types)
        except Refusal as refusal:
            self._context.callbacks.log(
                "error", "a source is not known", source=name, reason=str(refusal)
            )

    def lose(self, forgotten: Mapping[str, Collection[str]]) -> None:
        """Brokers have forgotten who publishes these types there."""
        for source in self._remote_sources:
            if not source.floors.keys().isdisjoint(forgotten.get(source.home, ())):
                source.enter(SourceState.LOST)

    def part_with(self, present: Collection[tuple[str, str]], homes: Set[str]) -> None:
        """Part with sources of brokers that have named their open ones, each with its home: who
        is known there, not lost and not among those, has closed while nobody here heard it.
        """
        for source in list(self._remote_sources):
            is_named = (source.name, source.home) in present or source.standing is SourceState.LOST
            if source.home in homes and not is_named:
                self._close(source)

    def close_all(self, home: str, *, lost_alone: bool) -> None:
        """The sources at a broker, or those that are lost there, were waited for for too long."""
        for source in list(self._remote_sources):
            is_lost = source.standing is SourceState.LOST
            if source.home == home and (is_lost or not lost_alone):
                self._close(source)

    def _introduce(self, name: str, home: str, types: tuple[EventType, ...]) -> None:
        context = self._context
        if context.links.named(name) is not None:
            raise Refusal(Code.NAME_TAKEN, f"a client here and one of {home} are named {name!r}")
        asked = Asked((home,), 0, name, Advertise(0, types))
        source = context.callbacks.source_of(self._remote_sources.admit(asked, context.moment.now))
        self._advertise(source, types)

    def _advertise(self, source: Source, types: Iterable[EventType]) -> None:
        for schema in types:
            self._context.advertisements.advertise(source, schema, TIME_MIN)

    def hear_closed(self, name: str, last_sequence: int) -> None:
        """A source at another broker has closed; elsewhere than at the root this is told on."""
        context = self._context
        if not context.router.is_root:
            context.router.tell_closed(name, last_sequence)
            return
        source = self._remote_sources.find(name)
        if source is not None:
            source.last_sequence = max(source.last_sequence, last_sequence)
            self._goodbyes[name, source.home] += 1
            context.send_flows()
            self._close(source)

    def _close(self, source: Source) -> None:
        self.closed.update((source.home, name) for name in source.floors)
        self._context.sources.close(source)
        self._context.detection.withdraw(source, list(source.floors))
        self._remote_sources.leave(source.name)

    def leave(self) -> None:
        """Forget them: another broker is the root."""
        context = self._context
        for source in self._remote_sources:
            context.sources.close(source)
            context.advertisements.withdraw(source, list(source.floors))
        self._remote_sources.clear()
        self.closed.clear()

    def may_be_lost(self, home: str, names: Iterable[str]) -> set[str]:
        """The types that were published at a broker of which nobody is known to publish
        them there now, or to have closed.
        """
        own = [one for one in self._context.sources if (one.home or self._context.name) == home]
        lost = {name for one in own if one.standing is SourceState.LOST for name in one.floors}
        live = {name for one in own if one.standing is SourceState.LIVE for name in one.floors}
        closed = {name for one, name in self.closed if one == home} - lost
        return set(names) - live - closed

    def forget_closed(self) -> None:
        """Forget that published types were closed."""
        self.closed -= {(home, name) for _, home, name in self.published}

    @property
    def published(self) -> set[tuple[str, str, str]]:
        """The name, the home and a type of each open source."""
        return {
            (source.name, self._remote_sources.home(source.name) or self._context.name, type_name)
            for source in self._context.sources
            if source.is_open
            for type_name in source.floors
        }
