"""Messages along the single tree: what is known, what is wanted, requests."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from matcher.identity import rule_id
from matcher.model import EventType
from routing.messages.clients import (
    Advertise,
    Confirmed,
    Deploy,
    ListRules,
    LogPart,
    ReadLog,
    Refused,
    Remove,
    ShowRule,
    Unadvertise,
)
from routing.messages.rights import EVERYTHING, Rights
from routing.messages.values import Document, Name, Number, Request, Sequence, Text, Time

STAYS_BYTES = 1 << 22
"""Bytes, about, of a message with accounts."""


class RuleFacts(Struct, array_like=True, frozen=True):
    """A rule's version: its canonical text, since when it holds, and up to when, if it was removed
    or replaced, and the user who deployed it, "" for anybody.
    """

    name: Name
    text: Document
    since: Time | None
    version: Sequence
    until: Time | None = None
    owner: Name = ""

    @property
    def id(self) -> str:
        """The id that tells it from other versions."""
        return rule_id(self.name, self.version)


@dataclass(frozen=True)
class Catalog:
    """The root's catalog: all event types, and all rules in their order (E4).

    ``ended``: names of rules of which no version is in force, and their last versions. ``homes``:
    all brokers, those out of reach too, and the types that their sources publish or have
    published. ``closed``: brokers that were out of reach for too long, and are not back yet.
    """

    types: tuple[EventType, ...]
    rules: tuple[RuleFacts, ...]
    ended: tuple[tuple[Name, Sequence], ...] = ()
    homes: tuple[tuple[Name, tuple[Name, ...]], ...] = ()
    closed: tuple[Name, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # What follows from it is remembered, and looked up with each plan and by each part.
        last = self.types[-1:], self.rules[-1:], self.ended, self.homes, self.closed
        return hash((len(self.types), len(self.rules), last))


_Row = TypeVar("_Row")
TableDelta: TypeAlias = tuple[tuple[Number, ...], tuple[tuple[Number, _Row], ...]]
"""A change of a table: the places of what is gone, in what it was, and what has come, with its
places in what it is now; both rise."""


@dataclass(frozen=True, slots=True)
class CatalogDelta:
    """A change of the catalog since the sender told it last, by Catalog's tables. Types are
    flat schemas.
    """

    types: TableDelta[tuple[Name, ...]]
    rules: TableDelta[RuleFacts]
    ended: TableDelta[tuple[Name, Sequence]]
    homes: TableDelta[tuple[Name, tuple[Name, ...]]]
    closed: TableDelta[Name]


@dataclass(frozen=True, slots=True)
class SubscriptionUpdate:
    """The sender is to get the events that one of these filters matches, and no others.

    ``number`` counts what the receiver was told in this epoch. ``after`` is the number of what
    this changes: then ``filters`` come to those that were told before, and ``gone`` are wanted no
    longer. 0: what is told is the whole.
    """

    filters: tuple[Text, ...]
    number: Sequence = 0
    gone: tuple[Text, ...] = ()
    after: Sequence = 0


@dataclass(frozen=True, slots=True)
class SubscriptionAck:
    """Confirmation: what the receiver wants, up to that number, is in force at the sender and
    beyond it.
    """

    number: Sequence


@dataclass(frozen=True, slots=True)
class Awaited:
    """Events up to these times are kept until they are asked for, for masters of these types: on
    the way to the root, or from it.
    """

    types: tuple[tuple[Name, Time], ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Back-pressure: the sender, or somebody beyond it, is full, and says so anew. Sources of these
    types get no credit if they have promised as much or more. ``ANY_TYPE``: sources of whatever.
    """

    types: tuple[tuple[Name, Time], ...]


ANY_TYPE = ""
"""In Hold: all types, those too that the sender does not know."""


class Stay(Struct, array_like=True, frozen=True, order=True):
    """The account of a source, as of its last stay at a broker that is known.

    ``number`` is greater than that of any stay before; ``is_over``: the source has closed there.
    ``owner``: the user whose name it is; "" while none with a key has used it. ``since``: when that
    user first used it, in microseconds.
    ``types``: what it has published there. ``taken``: the number up to which brokers have taken its
    events, by their own word; ``last``: the greatest number of one that anybody has heard of.
    """

    number: Sequence
    home: Name
    is_over: bool
    name: Name
    types: tuple[Name, ...] = ()
    taken: Sequence = 0
    last: Sequence = 0
    owner: Name = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Stays:
    """Accounts of sources that are news to the receiver, from the root on."""

    stays: tuple[Stay, ...]

    @classmethod
    def in_parts(cls, stays: Iterable[Stay]) -> Iterator[Stays]:
        """Messages of some STAYS_BYTES: all that there are may be longer than a frame may be."""
        part, size = list[Stay](), 0
        for stay in stays:
            part.append(stay)
            size += 64 + 4 * sum(map(len, (stay.name, stay.home, stay.owner, *stay.types)))
            if size >= STAYS_BYTES:
                yield cls(tuple(part))
                part, size = [], 0
        if part:
            yield cls(tuple(part))


class Question(enum.Enum):
    """Something that a client asks of all brokers."""

    TRACE = "trace"  # what is kept of an event's way
    STATUS = "status"  # what the broker does, as ShowNetwork is answered


@dataclass(frozen=True, slots=True)
class NetworkQuery:
    """A client of the first broker of ``path`` asks something of all brokers.

    ``path``: the brokers on the way here; ``number``: the first one's own; ``event``: whose way is
    asked for.
    """

    path: tuple[Name, ...]
    number: Request
    question: Question
    event: Text = ""


@dataclass(frozen=True, slots=True)
class NetworkAnswer:
    """One broker's answer; ``path``: the brokers that it has still to pass. ``found``: plain data,
    with the ``broker`` that says so.
    """

    path: tuple[Name, ...]
    number: Request
    found: Mapping[str, Any]


class HandOverStep(enum.Enum):
    """Parts of a hand-over, in their order (docs/brokers.md)."""

    RECORDS = "records"  # records of the queue are to be kept
    BEGIN = "begin"  # what the sink wants is to be gathered from now on
    COMMIT = "commit"  # the sink is the receiver's from now on
    ASK = "ask"  # whether it is: the answer to COMMIT was lost


class HandOver(Struct, array_like=True, frozen=True):
    """A step by which the first broker of Asked's path gives a durable sink to ``broker``.

    ``attempt`` tells this try from others. ``queued``: records of the sink's queue as the store has
    them, keys and values, behind that of the key ``after``, the last one that was sent before; ""
    begins. ``record``: of the sink itself, to BEGIN and COMMIT. ``numbers``, to COMMIT: sources,
    and the greatest number of an event that had come for the queue; ``ids``: of events with ids of
    their own, by source. ``root`` and ``epoch``: the tree in which that is so.
    """

    request: Request
    broker: Name
    sink: Name
    attempt: Sequence
    step: HandOverStep
    after: Text = ""
    queued: tuple[tuple[Text, bytes], ...] = ()
    record: bytes = b""
    numbers: tuple[tuple[Name, Sequence], ...] = ()
    ids: tuple[tuple[Name, tuple[Text, ...]], ...] = ()
    root: Name = ""
    epoch: Sequence = 0


Asking: TypeAlias = Advertise | Unadvertise | Deploy | Remove | ListRules | ShowRule | ReadLog
"""Requests of a client that another broker than its own may have to answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client of another broker, or of that broker (HandOver), for the root, or for
    the broker that it names. ``path``: the brokers on the way.

    ``number`` is the first broker's own, by which it knows the answer. ``rights``: of the client.
    """

    path: tuple[Name, ...]
    number: Request
    client: Name
    request: Asking | HandOver
    rights: Rights = EVERYTHING


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer; ``path``: the brokers that it has still to pass."""

    path: tuple[Name, ...]
    number: Request
    answer: Confirmed | Refused | LogPart
