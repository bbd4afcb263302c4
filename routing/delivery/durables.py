"""The durable sinks of a broker, by name, and the clients that are attached to them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from matcher.model import EventType
from routing import messages
from routing.delivery.durable import DEAD, NOBODY, DurableSink, QueueBounds, SinkKeeper
from routing.delivery.sinks import Sinks
from routing.delivery.subscriptions import Interest
from routing.effects import Peer
from routing.errors import ProtocolError, Refusal
from routing.messages import EVERYTHING, Code, Rights, Subscribe
from routing.messages.values import NAME_MAX

FULL_DELAY_S = 10.0
"""Seconds, at least, after which an event comes again for which dead letters have no room."""
DurableChange: TypeAlias = messages.RemoveDurable | messages.KeepDurable | messages.ResendDurable


class Durables:
    """The durable sinks. ``keeper``: keeps them; None where there is no store, and so can be none
    of them.

    A name is one sink's in the network, which stays at the broker where it was made until that
    hands it over (routing.network.brokers.giver), and lets no client in while it is between the
    two; every broker tells all others which it has, in its link state (routing.overlay). Made at
    two brokers in the moment that word takes, or while they are out of reach, it is two sinks.
    """

    def __init__(self, sinks: Sinks, keeper: SinkKeeper | None = None) -> None:
        self._all = sinks
        self._keeper = keeper
        self._sinks: dict[str, DurableSink] = {}
        self._attached: dict[Peer, DurableSink] = {}
        self.due_at = math.inf
        """When events that clients gave back come again; infinite for none."""
        self.coming: set[str] = set()
        """Names of sinks that another broker is handing over to this one."""

    def __iter__(self) -> Iterator[DurableSink]:
        return iter(self._sinks.values())

    def __contains__(self, name: str) -> bool:
        return name in self._sinks

    def get(self, name: str) -> DurableSink | None:
        """The sink of that name."""
        return self._sinks.get(name)

    def has(self, message: Subscribe) -> bool:
        """Whether a durable sink has the filter that a client asks for already."""
        sink = self._sinks.get(message.durable)
        return sink is not None and sink.interest_of(message.filter) is not None

    @property
    def names(self) -> Collection[str]:
        """The names of the sinks."""
        return self._sinks.keys()

    def find(self, peer: Peer) -> DurableSink | None:
        """The durable sink that a client is attached to."""
        return self._attached.get(peer)

    def subscribe(
        self,
        peer: Peer,
        message: Subscribe,
        schemas: Mapping[str, EventType],
        rights: Rights = EVERYTHING,
    ) -> Interest:
        """Attach a client, with a filter that the sink has, or gets; Refusal, with nothing changed,
        when that is refused: a sink belongs to the user that has made it. Gives the subscription
        with the client's own number. A client gets the sink that is there, with the bounds and the
        user that it was made with, or a new one: billing was made by alice to block at 1,000
        events, and bob, or whoever asks for other bounds, is refused.
        """
        keeper = self._keeper
        if keeper is None:
            reason = "this broker keeps nothing (--data): nothing there can be durable"
            raise Refusal(Code.NO_STORE, reason)
        attached = self._attached.get(peer)
        if attached is not None and attached.name != message.durable:
            raise Refusal(Code.IN_USE, f"this client is already attached to {attached.name!r}")
        if attached is not None and message.number in attached.attached[peer].numbers:
            raise Refusal(Code.IN_USE, f"subscription {message.number} exists")
        if self._all.find(peer) is not None or message.group:
            raise Refusal(Code.IN_USE, "this client has subscriptions that end with its link")
        if message.when_full is messages.WhenFull.DISCONNECT:
            raise Refusal(Code.IN_USE, "a durable sink blocks or drops: it has no link to end")
        self._all.check_limit(message.limit)
        sink = self._sinks.get(message.durable)
        if sink is not None:
            _check_owner(sink, rights)  # before anything is told of it
        # What is there already takes no more room; that it is there is not for a client to say.
        if not message.again or sink is None or sink.interest_of(message.filter) is None:
            keeper.check_room()
        if message.durable in self.coming or (sink is not None and sink.heir != NOBODY):
            reason = f"the durable sink {message.durable!r} is on its way to another broker"
            raise ProtocolError(Code.LEAVING, reason)
        if sink is None:
            self._check_home(message.durable)
            if message.durable.endswith(DEAD):
                raise Refusal(Code.UNKNOWN, f"no event of {message.durable!r} is there")
            if (letters := message.durable + DEAD) in self._sinks:
                reason = f"{letters!r} is there, of an earlier sink: remove it first"
                raise Refusal(Code.IN_USE, reason)
            sink = DurableSink(message.durable, self._bounds(message), keeper)
            keeper.begin(sink)
        elif sink.is_fed and not sink.bounds.agree(message):
            raise Refusal(Code.IN_USE, f"the queue of {sink.name!r} is already {sink.bounds}")
        elif rights != sink.rights:
            self._all.change_rights(sink.peer, rights, schemas)
            keeper.note(sink)
        added = sink.interest_of(message.filter)
        if added is None and not sink.is_fed:
            texts = ", ".join(text for _, text in sink.filters)
            raise Refusal(Code.UNKNOWN, f"dead letters are of the filters {texts}")
        if added is None:
            asked = sink.filters_made + 1, message.filter
            added = self._all.add(sink, *asked, schemas, again=message.again, rights=rights)
            sink.filters_made += 1
            keeper.note(sink)
        else:
            self._all.index()  # so that it is confirmed as any other
        self._sinks[sink.name] = self._attached[peer] = sink
        sink.attach(peer).numbers[message.number] = added.number
        self._all.touch(sink)
        return replace(added, number=message.number)

    def _check_home(self, name: str) -> None:
        """Refusal where another broker has the sink of that name."""
        home = None if self._keeper is None else self._keeper.elsewhere.get(name)
        if home is not None:
            reason = f"the durable sink {name!r} is at broker {home}, which serves its clients"
            raise Refusal(Code.ELSEWHERE, reason)

    def _bounds(self, message: Subscribe) -> QueueBounds:
        """The bounds of a new sink: those that are asked for, else the broker's."""
        config = self._all.config
        return QueueBounds(
            message.when_full,
            message.limit,
            message.limit_bytes or config.durable_bytes_max,
            message.limit_age_s or config.durable_age_max_s,
        )

    def take_back(self, sink: DurableSink, peer: Peer, nack: messages.Nack) -> None:
        """A client gives events back. Those that were given as often as they may be become dead
        letters; while these have no room they come again, too.
        """
        if dead := sink.take_back(peer, nack):
            letters = self._letters_of(sink)
            if letters is None or letters.is_over or letters.excess >= 0:
                assert self._keeper is not None
                sink.put_off(dead, self._keeper.now + max(nack.delay_s, FULL_DELAY_S))
            else:
                sink.move(dead, letters)
                self._all.touch(letters)
        self.due_at = min(self.due_at, sink.due_at)

    def _letters_of(self, sink: DurableSink) -> DurableSink | None:
        """The sink of the dead letters of one, which may have to be made; None if it cannot be."""
        name, keeper = sink.name + DEAD, self._keeper
        letters = self._sinks.get(name)
        if letters is None:
            assert keeper is not None
            is_elsewhere = name in self.coming or name in keeper.elsewhere
            if is_elsewhere or not sink.is_fed or len(name) > NAME_MAX:
                return None
            bounds = sink.bounds._replace(when_full=messages.WhenFull.DROP_OLDEST)
            letters = self._sinks[name] = DurableSink(name, bounds, keeper)
            keeper.begin(letters)
        self._all.copy(sink, letters)
        return letters if letters.heir == NOBODY else None

    def take_due(self, now: float) -> None:
        """Queue what clients gave back until now."""
        if now >= self.due_at:
            for sink in self._sinks.values():
                sink.take_due(now)
                self._all.touch(sink)
            self.due_at = min(sink.due_at for sink in self._sinks.values())

    def unsubscribe(self, peer: Peer, number: int) -> None:
        """End a subscription of the sink that a client is attached to, unless it, or another one,
        has the same by another number; Refusal for none.
        """
        sink = self._attached[peer]
        own = sink.attached[peer].numbers.pop(number, None)
        if own is None:
            raise Refusal(Code.UNKNOWN, f"there is no subscription {number}")
        if all(own not in one.numbers.values() for one in sink.attached.values()):
            self._all.unsubscribe(sink.peer, own)
            sink.note()

    def detach(self, peer: Peer) -> None:
        """A client has gone."""
        sink = self._attached.pop(peer, None)
        if sink is not None:
            sink.detach(peer)
            self._all.touch(sink)

    def change(self, message: DurableChange, rights: Rights) -> int:
        """Do what a client asks of a durable sink; gives how many events that is about. Refusal for
        one that is not there, or another user's.
        """
        acts = {
            messages.RemoveDurable: self.remove,
            messages.KeepDurable: self.keep,
            messages.ResendDurable: self.resend,
        }
        return acts[type(message)](message.name, rights)

    def remove(self, name: str, rights: Rights = EVERYTHING) -> int:
        """Remove a durable sink and its dead letters, which bear the numbers of its filters.
        Refusal for one that has clients, and while dead letters wait.
        """
        sink, letters = self._here(name, rights), self._sinks.get(name + DEAD)
        if letters is not None and letters.queued:
            reason = f"{letters.queued} dead letters of {name!r} wait: resend them, or remove "
            raise Refusal(Code.IN_USE, f"{reason}{letters.name!r} first")
        leaving = [sink] if letters is None else [sink, letters]
        for one in leaving:
            if one.attached:
                reason = f"{len(one.attached)} clients are attached to {one.name!r}"
                raise Refusal(Code.IN_USE, reason)
        self._check_stays(*leaving)
        for one in leaving:
            self.give_up(one)
        return sink.queued

    def resend(self, name: str, rights: Rights = EVERYTHING) -> int:
        """Queue the dead letters of a sink once more."""
        sink, letters = (self._here(one, rights) for one in (name, name + DEAD))
        self._check_stays(sink, letters)
        self._all.touch(sink)
        return letters.move_all(sink)

    def keep(self, name: str, rights: Rights = EVERYTHING) -> int:
        """Go on with a durable sink that was on its way to a broker which does not come back, and
        may have it; Refusal for one that is not, or while that broker is within reach to be asked.
        """
        sink, keeper = self._here(name, rights), self._keeper
        assert keeper is not None, "it has the sink"
        heir = sink.heir[0]
        if sink.heir == NOBODY:
            raise Refusal(Code.IN_USE, f"{name!r} is not on its way to another broker")
        if heir in keeper.brokers:
            raise Refusal(Code.IN_USE, f"{name!r} is on its way to broker {heir!r}, which is asked")
        keeper.check_room()
        sink.heir = NOBODY
        sink.note()
        self._all.touch(sink)
        return sink.queued

    def _here(self, name: str, rights: Rights) -> DurableSink:
        """A user's durable sink; Refusal where there is none."""
        sink = self._sinks.get(name)
        if sink is None:
            self._check_home(name)
            raise Refusal(Code.UNKNOWN, f"no durable sink is named {name!r}")
        _check_owner(sink, rights)
        return sink

    def _check_stays(self, *sinks: DurableSink) -> None:
        """Refusal while sinks are on their way, or nothing more is kept."""
        for one in sinks:
            if one.heir != NOBODY:
                raise Refusal(Code.IN_USE, f"{one.name!r} is on its way to broker {one.heir[0]!r}")
        if self._keeper is not None:
            self._keeper.check_room()

    def give_up(self, sink: DurableSink) -> None:
        """Forget a sink that is no more, or another broker's from now on."""
        del self._sinks[sink.name]
        self._all.remove(sink.peer)
        sink.end()

    def recall(
        self,
        name: str,
        bounds: QueueBounds,
        filters: Sequence[tuple[int, str]],
        rights: Rights,
        schemas: Mapping[str, EventType],
    ) -> DurableSink:
        """Have a durable sink that was kept, with its filters by number, and its user's rights."""
        assert self._keeper is not None, "it was kept"
        sink = DurableSink(name, bounds, self._keeper)
        try:
            for number, text in filters:
                self._all.recall(sink, number, text, schemas, rights)
        except Refusal:
            self._all.remove(sink.peer)
            raise
        self._sinks[name] = sink
        return sink

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """The durable sinks of other brokers: their brokers, by name."""
        return {} if self._keeper is None else self._keeper.elsewhere

    @property
    def facts(self) -> Sequence[Mapping[str, Any]]:
        """The durable sinks, as plain data."""
        return [
            {
                "name": one.name,
                "filters": [f"{text:.200}" for _, text in one.filters],
                "user": one.rights.user,
                "heir": one.heir[0],
                "clients": len(one.attached),
                "queued": one.queued + one.held.events,
                "bytes": one.bytes,
                "queue": str(one.bounds),
                "given": one.given,
                "last": one.last,
                "acknowledged": one.acknowledged,
                "beyond": one.acknowledged_beyond,
                "dropped": one.dropped,
            }
            for one in self._sinks.values()
        ]


def _check_owner(sink: DurableSink, rights: Rights) -> None:
    if rights.user != sink.rights.user:
        reason = f"durable sink {sink.name!r} is another user's than {rights.user!r}"
        raise Refusal(Code.NOT_ALLOWED, reason)
