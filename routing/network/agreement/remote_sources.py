"""At the root: the sources at other brokers, each as if it had a link here.

A name is one source's in the whole network: one that another broker's source bears is refused,
until that has closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, Asked, Code, Rights
from routing.serving.link import Link
from routing.serving.sources import Source

ELSEWHERE: Peer = b"\0elsewhere"
"""In place of the link of a client of another broker."""


class RemoteSources:
    """The sources at other brokers, by name."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    def __iter__(self) -> Iterator[Source]:
        return (link.source for link in self._links.values() if link.source is not None)

    def find(self, name: str) -> Source | None:
        """The source of that name, if it is at another broker."""
        link = self._links.get(name)
        return None if link is None else link.source

    def admit(self, asked: Asked, now: float) -> Link:
        """The link that stands for a client that acts as a source; Refusal for a taken name."""
        name, home = asked.client, asked.path[0]
        link = self._links.get(name)
        if link is not None and link.source is not None and link.home != home:
            raise name_taken(name, link.home)
        if link is None:
            link = self._links[name] = stand_in(name, now)
        link.home, link.rights = home, asked.rights
        return link

    def leave(self, name: str) -> None:
        """The source has closed."""
        self._links.pop(name, None)

    def clear(self) -> None:
        """The broker is the root no longer."""
        self._links.clear()


def name_taken(name: str, home: str) -> Refusal:
    """The refusal of a client under whose name one of that broker publishes."""
    return Refusal(Code.NAME_TAKEN, f"a live client of broker {home} is named {name!r}")


def stand_in(name: str, now: float, rights: Rights = EVERYTHING) -> Link:
    """A link that stands for a client of another broker."""
    return Link(ELSEWHERE, name, 0, 0.0, now, now, now, rights=rights)
