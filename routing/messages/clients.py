"""Messages between a client and its broker (protocol.md section 1).

A conversation starts with ``Hello`` and ``Welcome`` and ends with ``Goodbye`` from either side.
Requests bear a number that the client chooses, and get exactly one ``Confirmed`` or ``Refused``
with it. Everything else is one-way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from matcher.model import EventBatch, EventType, Int64s
from routing.messages.values import (
    AGE_MAX_S,
    ENTRIES_MAX,
    HEARTBEAT_MAX_S,
    Acks,
    Code,
    Document,
    Name,
    NameOfPeer,
    Number,
    Request,
    Seconds,
    Sequence,
    Text,
    Time,
    Traces,
    WhenFull,
)


class Hello(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """The first message. ``name`` is the client's, and its events' source; "" may not publish.

    ``heartbeat_s``: the client promises to send something at least that often. ``instance``
    tells a client that reconnects (the same number: it takes its place back at once) from
    another client of the same name (refused while the first is alive); 0 is never the same. Of
    two clients of a part the one with the greater number takes the other's place.
    ``replay``: its events are recorded, and may be ahead of the broker's clock. Fields with a
    default may be left out at the end.
    """

    version: Number
    name: NameOfPeer
    heartbeat_s: Seconds
    instance: Sequence = 0
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Advertise:
    """The client will publish events of these types. A source publishes once it is confirmed."""

    request: Request
    types: tuple[EventType, ...]


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """The client publishes these types no more."""

    request: Request
    types: tuple[Name, ...]


class Publish(Struct, frozen=True, gc=False):
    """Events, and a promise: nothing earlier than ``promise`` will follow (None: as before).

    Each batch has the client's name as the only source, and strictly increasing sequence
    numbers; those of several batches interleave, in the order in which the events are meant.
    """

    batches: tuple[EventBatch, ...]
    promise: Time | None = None
    acks: Acks = Acks.BROKER
    traces: Traces = ()


class Promise(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """Nothing earlier than ``mark`` will follow. Needs no credit."""

    mark: Time


class Subscribe(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """Deliver events of ``filter`` (TESLA: ``Temp(value > 20)``) as subscription ``number``.

    ``when_full`` and ``limit`` (events) are properties of the sink's one queue: its first
    subscription chooses them and the others agree. ``again``: it was confirmed on another link, so
    it is paused, not refused, where its type has not what the filter asks for. ``durable``: the
    name of the durable sink to which the client attaches, which is made where there is none; "":
    the subscription ends with the link. ``limit_bytes`` and ``limit_age_s``: further bounds of a
    durable sink's queue; 0: those that it has, or its broker's for new ones. ``group``: the name
    under which clients share the events of a filter, evenly or ``by`` the values of an attribute;
    "": each client gets them all. Fields with a default may be left out at the end.
    """

    request: Request
    number: Number
    filter: Text
    when_full: WhenFull = WhenFull.BLOCK
    limit: Annotated[int, Meta(ge=1, lt=2**31)] = 65_536
    again: bool = False
    durable: Name = ""
    limit_bytes: Sequence = 0
    limit_age_s: Annotated[float, Meta(ge=0, le=AGE_MAX_S)] = 0.0
    group: Name = ""
    by: Name = ""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End subscription ``number``."""

    request: Request
    number: Number


class Deploy(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Deploy the rules of ``text``, whole or not at all; ``replace`` those of the same names.

    ``file`` is the name that errors point at. ``since``: the rules hold from a past instant on, and
    find in the brokers' logs what they would have found. ``removes``: rules of these names are
    removed by the same change. Fields with a default may be left out at the end.
    """

    request: Request
    text: Document
    replace: bool = False
    file: Name = "<rules>"
    since: Time | None = None
    removes: Annotated[tuple[Name, ...], Meta(max_length=ENTRIES_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a rule."""

    request: Request
    name: Name


@dataclass(frozen=True, slots=True)
class ListRules:
    """Confirmed with ``{"rules": [{"name", "type", "since", "version", "state", ...}]}``."""

    request: Request


@dataclass(frozen=True, slots=True)
class ShowRule:
    """Confirmed with one entry of ListRules and the rule's canonical ``text``."""

    request: Request
    name: Name


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Confirmed with the broker's status (protocol.md section 7)."""

    request: Request


@dataclass(frozen=True, slots=True)
class ShowTrace:
    """Confirmed with what the broker has kept of an event's path: ``source#id``, or an id."""

    request: Request
    event: Text


@dataclass(frozen=True, slots=True)
class ShowNetwork:
    """Confirmed with what each broker of the network does (protocol.md section 7)."""

    request: Request


AskingAll: TypeAlias = ShowTrace | ShowNetwork
"""Requests of a client that all brokers answer."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Let the broker send its clients to others and leave the network, as soon as it may.
    Confirmed with ``{"draining": [...]}``, as status has it.
    """

    request: Request


@dataclass(frozen=True, slots=True)
class ShowUsers:
    """Confirmed with the users of the access file, and what each may do."""

    request: Request


@dataclass(frozen=True, slots=True)
class ShowLog:
    """Confirmed with the last lines of the broker's log."""

    request: Request


@dataclass(frozen=True, slots=True)
class ShowQueue:
    """Confirmed with the first events that wait in the durable sink of that name."""

    request: Request
    name: Name


@dataclass(frozen=True, slots=True)
class SendAway:
    """Let a client go, by the number of its link in the status."""

    request: Request
    client: Number


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to Hello. The client's next event bears a number above ``last_sequence``.

    ``credit``: how many events it may publish for now; ``heartbeat_s``: as in Hello, for the
    broker; ``resumed`` when the broker still knows the client's promise; ``message_bytes_max``: how
    many bytes a message of the user may have, None for as many as anybody's.
    """

    version: Number
    broker: Name
    last_sequence: Sequence
    credit: Number
    heartbeat_s: Seconds
    resumed: bool = False
    message_bytes_max: Sequence | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A request was done; ``detail`` is plain data (strings, numbers, lists, mappings)."""

    request: Request
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request (or, None, the last thing that the client did) was refused."""

    request: Request | None
    code: Code
    reason: Document


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read the log of a broker's store, of the broker that is asked for "", from behind a position;
    with 0 from its beginning. Answered by LogPart.

    ``since``: entries whose events are all earlier may be left out. ``types``: so may those with
    none of these types; () for all. ``outlined``: without their events. ``at``: the entries at
    these positions alone. A client asks for the next part once it has said that it has the one
    before (LogReceived).
    """

    request: Request
    broker: Name = ""
    after: Sequence = 0
    since: Time | None = None
    types: tuple[Name, ...] = ()
    outlined: bool = False
    at: Annotated[tuple[Sequence, ...], Meta(max_length=1_024)] = ()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a log: its position, the least and the greatest time of its events, their types,
    how many they are, and themselves as the frames of a Publish, the first of these behind its
    length (four bytes, least significant first).
    """

    position: Sequence
    first_time: Time
    last_time: Time
    types: tuple[Name, ...]
    events: Number
    frames: bytes = b""


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a broker's log, as ReadLog asks for it.

    ``read``: the position up to which it goes, ``last``: that of the last entry there is.
    ``marks``: types, and the least time up to which sources there have promised events of each,
    all of which are in the entries up to ``last``; ``Timer`` and the broker's clock among them, and
    no type that nobody may publish there any more. ``homes``: all brokers at which anybody
    publishes or has published, those out of reach too, and what.
    """

    request: Request
    broker: Name
    entries: tuple[LogEntry, ...]
    read: Sequence
    last: Sequence
    marks: tuple[tuple[Name, Time], ...]
    homes: tuple[tuple[Name, tuple[Name, ...]], ...]


@dataclass(frozen=True, slots=True)
class LogReceived:
    """The client has the part of a log that has answered its request."""

    request: Request


@dataclass(frozen=True, slots=True)
class RemoveDurable:
    """Remove the durable sink of that name, with what waits for it."""

    request: Request
    name: Name


@dataclass(frozen=True, slots=True)
class KeepDurable:
    """Go on with the durable sink of that name, though it may be at the broker that it was handed
    over to: that does not come back.
    """

    request: Request
    name: Name


class Acknowledged(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """The broker has dealt with every event of the client up to ``sequence``."""

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class ResendDurable:
    """Queue the dead letters of the durable sink of that name once more, as new events of it."""

    request: Request
    name: Name


class Nack(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """The client could not deal with events of its durable sink, whose numbers are ``first`` to
    ``last``, as far as it was given them. They come again after ``delay_s``; those that have been
    given ``deliveries_max`` times (0: any number) become dead letters.
    """

    first: Sequence
    last: Sequence
    delay_s: Annotated[float, Meta(ge=0, le=HEARTBEAT_MAX_S)] = 0.0
    deliveries_max: Number = 0


class DealtWith(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """The client has dealt with the events of its durable sink whose numbers are ``first`` to
    ``last``, as far as it was given them; with others it may have, or not.
    """

    first: Sequence
    last: Sequence


@dataclass(frozen=True, slots=True)
class Rejected:
    """Published events that were not taken: runs of (first, last) sequence numbers."""

    code: Code
    sequences: tuple[tuple[Sequence, Sequence], ...]
    reason: Text


class Delivery(Struct, frozen=True, eq=False, gc=False):
    """Events for a sink. ``subscriptions[i]`` are the numbers that batch ``i`` matched.

    ``order`` int64[n] lists positions in the concatenation of the batches, in the order of
    delivery; None: as they stand. ``dropped``: how many events the sink has lost since its last
    Delivery because its queue was full. ``late``: the events broke their source's promise and
    took no part in detection. ``number``: that of the last event, among those of a durable sink;
    0 of any other. ``again``: a client of the durable sink had them before.
    """

    batches: tuple[EventBatch, ...]
    subscriptions: tuple[tuple[Number, ...], ...]
    order: Int64s | None = None
    dropped: Sequence = 0
    late: bool = False
    number: Sequence = 0
    again: bool = False
    traces: Traces = ()

    def __len__(self) -> int:
        return sum(map(len, self.batches))


@dataclass(frozen=True, slots=True)
class SubscriptionPaused:
    """Subscription ``number`` brings nothing for now: its type is another and has not what the
    filter asks for, as ``reason`` says. None: the type has it again, and the subscription goes on.
    """

    number: Number
    reason: Document | None


class Credit(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """The receiver may send ``events`` more events."""

    events: Number


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The sender is alive."""


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The sender leaves; a source that does has published everything."""

    reason: Text = ""
    code: Code = Code.CLOSING


FromClient: TypeAlias = (
    Hello
    | Advertise
    | Unadvertise
    | Publish
    | Promise
    | Subscribe
    | Unsubscribe
    | Deploy
    | Remove
    | ListRules
    | ShowRule
    | StatusRequest
    | RemoveDurable
    | KeepDurable
    | ResendDurable
    | Nack
    | ReadLog
    | LogReceived
    | DealtWith
    | Drain
    | ShowTrace
    | ShowNetwork
    | ShowUsers
    | ShowLog
    | ShowQueue
    | SendAway
    | Credit
    | Heartbeat
    | Goodbye
)
FromBroker: TypeAlias = (
    Welcome
    | Confirmed
    | LogPart
    | Refused
    | Acknowledged
    | Rejected
    | Delivery
    | SubscriptionPaused
    | Credit
    | Heartbeat
    | Goodbye
)

PLAIN_KINDS: Mapping[int, type] = {
    1: Hello,
    3: Unadvertise,
    5: Promise,
    6: Subscribe,
    7: Unsubscribe,
    8: Deploy,
    9: Remove,
    10: ListRules,
    11: ShowRule,
    12: StatusRequest,
    13: Drain,
    14: ShowTrace,
    15: RemoveDurable,
    16: Welcome,
    17: Confirmed,
    18: Refused,
    19: Acknowledged,
    21: Rejected,
    22: SubscriptionPaused,
    23: ReadLog,
    24: LogPart,
    25: LogReceived,
    26: DealtWith,
    27: KeepDurable,
    28: ShowNetwork,
    29: ShowUsers,
    30: ShowLog,
    31: ShowQueue,
    32: Credit,
    33: Heartbeat,
    34: Goodbye,
    35: SendAway,
    36: Nack,
    37: ResendDurable,
}
"""Messages that are written as their fields, by kind: docs/protocol.md, section 2."""
