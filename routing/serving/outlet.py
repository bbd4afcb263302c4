"""The way out of a broker to its clients and its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from routing.effects import Close, Effect, Log, Peer, Send
from routing.messages import Acknowledged, Code, Confirmed, Goodbye, Message, Refused
from routing.serving.link import Link, Links
from routing.serving.moment import Moment


class Outlet:
    """Takes what is to be sent and logged, as effects."""

    def __init__(self, links: Links, moment: Moment) -> None:
        self._by_peer = links.by_peer
        self._moment = moment
        self.effects: list[Effect] = []
        """The effects since ``take_effects`` was called."""
        self.emit: Callable[[Effect], object] = self.effects.append
        """The use of each effect: kept for ``take_effects``, unless the host carries it out
        as soon as it arises."""
        self.when_kept: Callable[[Callable[[], object]], object] | None = None
        """Does something once all that has changed so far is kept; None without a store."""

    def take_effects(self) -> list[Effect]:
        """Give the effects since the last call, in order."""
        effects = self.effects.copy()
        self.effects.clear()
        return effects

    def send(self, peer: Peer, message: Message) -> None:
        """Send to a client."""
        link = self._by_peer.get(peer)
        if link is not None:
            link.sent_at = self._moment.now
        effect = Send(peer, message)
        if self.when_kept is not None and self._is_promise(message, link):
            self.when_kept(lambda: self.emit(effect))
        else:
            self.emit(effect)

    def note_look(self, link: Link, request: int) -> None:
        """A client's request changes nothing that is kept: its answer waits for nothing. A broker
        whose disk is full can be asked what is the matter.
        """
        if self.when_kept is not None:
            link.looks.add(request)

    def _is_promise(self, message: Message, link: Link | None) -> bool:
        """Whether a message tells a client that something is safe. Acknowledged or Confirmed waits
        until that is kept, if a store keeps anything: Acknowledged of Temp 7 leaves when the store
        has Temp 7 (routing.durability).
        """
        if not isinstance(message, Confirmed | Refused):
            return isinstance(message, Acknowledged)
        if link is not None and message.request in link.looks:
            link.looks.remove(message.request)
            return False
        return isinstance(message, Confirmed)

    def once_kept(self, action: Callable[[], object]) -> None:
        """Do this once all that has changed so far is kept: at once without a store."""
        if self.when_kept is not None:
            self.when_kept(action)
        else:
            action()

    def part(self, peer: Peer, code: Code, reason: str) -> None:
        """Say Goodbye, and close the link."""
        self.send(peer, Goodbye(reason, code))
        self.emit(Close(peer, reason))

    def log(self, level: str, text: str, **fields: Any) -> None:
        """Write a line into the log."""
        self.emit(Log(level, text, fields))
