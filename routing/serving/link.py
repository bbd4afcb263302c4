"""A client's link, as the node knows it after Hello, and the accounts of who is connected.

A name belongs to one live client at a time. A client that reconnects (the same ``instance``), and
any other once the first has been silent beyond its heartbeats, takes the name over; so does the
client of a part that was made later (the greater ``instance``): an attempt supersedes another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, VERSION, Code, Hello, ReadLog, Rights
from routing.names import name_fault, whole_of
from routing.serving.shares import who_gives_way
from routing.serving.sources import Source


@dataclass(slots=True, eq=False)
class LogReading:
    """A part of a log that a client has asked for. ``told_at``: when it was sent, in seconds of
    ``now``; None before.
    """

    request: ReadLog
    told_at: float | None = None


@dataclass(slots=True, eq=False)
class Link:
    """One client. Times are in seconds of ``now``; ``name`` may be empty, and is then not unique.

    ``source`` is set once the client advertises or publishes.
    """

    peer: Peer
    name: str
    instance: int
    timeout_s: float
    joined_at: float
    heard_at: float
    sent_at: float
    source: Source | None = None
    last_sequence: int = 0
    """The last number of its source as Welcome told it."""
    replays: bool = False
    """Whether what it publishes is recorded."""
    home: str = ""
    """In a network: the client's broker, where it is another one."""
    reading: LogReading | None = None
    """The part of a log that it has asked for, until it says that it has it."""
    rights: Rights = EVERYTHING
    publishable: set[str] = field(default_factory=set)
    """Types that the rights are known to let it publish."""
    message_bytes_told: int | None = None
    """How long Welcome told it that a message may be; None: as long as any."""
    number: int = 0
    """Its own among all links of the broker, once it is added."""
    looks: set[int] = field(default_factory=set)
    """Its requests without an answer that change nothing which a store keeps."""

    def is_silent(self, now: float) -> bool:
        """Whether nothing was heard for longer than the client promised."""
        return now - self.heard_at > self.timeout_s

    def may_be_taken_over(self, hello: Hello, user: str, now: float) -> bool:
        """Whether ``hello`` is of the same client again or supersedes it, or this one is dead."""
        follows = 0 != self.instance == hello.instance or self.is_superseded_by(hello)
        return (follows and user == self.rights.user) or self.is_silent(now)

    def is_superseded_by(self, hello: Hello) -> bool:
        """Whether ``hello``, under the same name, is of a client of the same part made later."""
        return self.instance < hello.instance and whole_of(self.name) is not None


class Links:
    """The clients by peer and, those that have one, by name."""

    def __init__(self) -> None:
        self._by_peer: dict[Peer, Link] = {}
        self.by_peer: Mapping[Peer, Link] = self._by_peer
        """The clients that have said Hello."""
        self._by_name: dict[str, Link] = {}
        self._count = 0
        """How many clients there have been."""

    def __len__(self) -> int:
        return len(self._by_peer)

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._by_peer.values()))

    def named(self, name: str) -> Link | None:
        """The client of that name."""
        return self._by_name.get(name) if name else None

    def crowded_out(self, user: str) -> Link | None:
        """The link whose place a user's client may take where all are taken: the last one of the
        user who gives way (serving.shares).
        """
        users = [link.rights.user for link in self._by_peer.values()]
        most = who_gives_way(Counter(filter(None, users)), user, len(users))
        newest_first = reversed(self._by_peer.values())
        return (
            None if most is None else next(one for one in newest_first if one.rights.user == most)
        )

    def predecessor(self, hello: Hello, user: str, now: float) -> Link | None:
        """The link whose place a user's client takes that says ``hello``; None if it is a new one.

        Refusal when it speaks another version or may not bear its name.
        """
        _check(hello)
        former = self.named(hello.name)
        if former is not None and not former.may_be_taken_over(hello, user, now):
            code = Code.IN_USE if whole_of(hello.name) else Code.NAME_TAKEN
            raise Refusal(code, f"a live client is named {hello.name!r}")
        return former

    def add(self, link: Link) -> None:
        """A client was welcomed."""
        assert link.peer not in self._by_peer
        self._count += 1
        link.number = self._count
        self._by_peer[link.peer] = link
        if link.name:
            assert link.name not in self._by_name
            self._by_name[link.name] = link

    def remove(self, link: Link) -> None:
        """A client is gone."""
        del self._by_peer[link.peer]
        if link.name:
            del self._by_name[link.name]


def _check(hello: Hello) -> None:
    if hello.version != VERSION:
        reason = f"protocol version {hello.version}, but this broker speaks version {VERSION}"
        raise Refusal(Code.VERSION, reason)
    if hello.name and (fault := name_fault(hello.name)):
        raise Refusal(Code.BAD_NAME, fault)
