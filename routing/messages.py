"""Everything that crosses a link, as values (architecture.md 4; docs/protocol.md).

A conversation starts with ``Hello`` and ``Welcome`` and ends with ``Goodbye`` from either side.
Requests bear a number that the client chooses, and get exactly one ``Confirmed`` or ``Refused``
with it. Everything else is one-way. Times are int microseconds of event time, intervals are
seconds; credit and limits count events.

Between brokers a link starts with ``LinkHello`` from both sides; everything else that the brokers
tell one another is then numbered, in a ``Packet`` (routing.overlay).

The annotations are the law for :mod:`routing.wire` too: what they do not allow is not decoded.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from matcher.model import EventBatch, EventType, Int64s

VERSION = 1
"""The version of the protocol, in every message's header and in ``Hello`` and ``Welcome``."""

Request: TypeAlias = Annotated[int, Meta(ge=0, lt=2**53)]
Number: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Time: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Name: TypeAlias = Annotated[str, Meta(max_length=255)]
Text: TypeAlias = Annotated[str, Meta(max_length=65_536)]
Document: TypeAlias = Annotated[str, Meta(max_length=2**24)]
Tag: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32)]
Delay: TypeAlias = Annotated[int, Meta(ge=0, lt=2**40)]
"""Microseconds that a message needs over a link."""


class WhenFull(enum.Enum):
    """What becomes of a sink whose queue at the broker is full: its own choice."""

    BLOCK = "block"
    DROP_OLDEST = "drop-oldest"
    DISCONNECT = "disconnect"


class Acks(enum.Enum):
    """Whether published events are acknowledged."""

    BROKER = "broker"
    NONE = "none"


class Code(enum.Enum):
    """Why something was refused, for programs; the reason beside it is for people."""

    VERSION = "version"  # another version of the protocol
    TERMS = "terms"  # brokers of two networks, one of another strategy, say
    PROTOCOL = "protocol"  # malformed, or not allowed in this state: the link is closed
    NAME_TAKEN = "name-taken"  # a live client bears this name; later it may be free
    BAD_NAME = "bad-name"
    LIMIT = "limit"  # a bound of the broker's configuration
    SCHEMA = "schema"  # two schemas for one type (tesla.md E5)
    UNADVERTISED = "unadvertised"  # events of a type that their source has not advertised
    LATE = "late"  # events before the promise of their source
    BAD_EVENT = "bad-event"
    BAD_FILTER = "bad-filter"
    BAD_RULES = "bad-rules"  # the reason is the whole text of the RuleErrors
    UNKNOWN = "unknown"  # no such rule, type or subscription
    IN_USE = "in-use"  # a number or name that is taken
    QUEUE_FULL = "queue-full"  # a sink that chose to be disconnected
    SILENT = "silent"  # nothing heard beyond the heartbeat timeout
    CLOSING = "closing"  # the broker stops


# --- from a client to a broker ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message. ``name`` is the client's, and its events' source; "" may not publish.

    ``heartbeat_s``: the client promises to send something at least that often. ``instance``
    tells a client that reconnects (the same number: it takes its place back at once) from
    another client of the same name (refused while the first is alive); 0 is never the same.
    """

    version: Number
    name: Name
    heartbeat_s: Seconds
    instance: Sequence = 0


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


class Publish(Struct, frozen=True):
    """Events, and a promise: nothing earlier than ``promise`` will follow (None: as before).

    Each batch has the client's name as the only source, and strictly increasing sequence
    numbers; those of several batches interleave, in the order in which the events are meant.
    """

    batches: tuple[EventBatch, ...]
    promise: Time | None = None
    acks: Acks = Acks.BROKER


@dataclass(frozen=True, slots=True)
class Promise:
    """Nothing earlier than ``mark`` will follow. Needs no credit."""

    mark: Time


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Deliver events of ``filter`` (TESLA: ``Temp(value > 20)``) as subscription ``number``.

    ``when_full`` and ``limit`` (events) are properties of the sink's one queue: its first
    subscription chooses them and the others agree.
    """

    request: Request
    number: Number
    filter: Text
    when_full: WhenFull = WhenFull.BLOCK
    limit: Annotated[int, Meta(ge=1, lt=2**31)] = 65_536


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End subscription ``number``."""

    request: Request
    number: Number


@dataclass(frozen=True, slots=True)
class Deploy:
    """Deploy the rules of ``text``, whole or not at all; ``replace`` those of the same names.

    ``file`` is the name that errors point at.
    """

    request: Request
    text: Document
    replace: bool = False
    file: Name = "<rules>"


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
    """Confirmed with the broker's status (docs/protocol.md)."""

    request: Request


# --- from a broker to a client ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to Hello. The client's next event bears a number above ``last_sequence``.

    ``credit``: how many events it may publish for now; ``heartbeat_s``: as in Hello, for the
    broker; ``resumed`` when the broker still knows the client's promise.
    """

    version: Number
    broker: Name
    last_sequence: Sequence
    credit: Number
    heartbeat_s: Seconds
    resumed: bool = False


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
class Acknowledged:
    """The broker has dealt with every event of the client up to ``sequence``."""

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Rejected:
    """Published events that were not taken: runs of (first, last) sequence numbers."""

    code: Code
    sequences: tuple[tuple[Sequence, Sequence], ...]
    reason: Text


class Delivery(Struct, frozen=True, eq=False):
    """Events for a sink. ``subscriptions[i]`` are the numbers that batch ``i`` matched.

    ``order`` int64[n] lists positions in the concatenation of the batches, in the order of
    delivery; None: as they stand. ``dropped``: how many events the sink has lost since its last
    Delivery because its queue was full. ``late``: the events broke their source's promise and
    took no part in detection.
    """

    batches: tuple[EventBatch, ...]
    subscriptions: tuple[tuple[Number, ...], ...]
    order: Int64s | None = None
    dropped: Sequence = 0
    late: bool = False

    def __len__(self) -> int:
        return sum(map(len, self.batches))


# --- both ways -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Credit:
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


# --- between brokers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinkHello:
    """A broker greets a neighbour, or answers its greeting (``answers``).

    ``life`` is a number that grows whenever the sender forgets what it knew of this link: its
    starting time. ``knows`` is the neighbour's life that it has heard of (0: none), ``received``
    the last packet that it has, in order, of those that this life sent to that one. ``terms``
    name what all brokers of a network must share.
    """

    version: Number
    name: Name
    life: Sequence
    knows: Sequence
    received: Sequence
    answers: bool
    heartbeat_s: Seconds
    terms: Name = ""


@dataclass(frozen=True, slots=True)
class Packet:
    """Message number ``sequence`` of a link, counted from 1 for each pair of lives, its ``tag``.

    ``acknowledged``: the sender has everything up to that number of the other direction.
    """

    tag: Tag
    sequence: Sequence
    acknowledged: Sequence
    message: Routed


@dataclass(frozen=True, slots=True)
class LinkAck:
    """Everything up to ``acknowledged`` has come; also the sign of life of an idle link."""

    tag: Tag
    acknowledged: Sequence


class LinkState(Struct, array_like=True, frozen=True, order=True):
    """What one broker says of itself to the whole network, by floods; the newest version counts.

    ``neighbours`` are pairs of name and delay, in order. ``epoch`` is that of the tree of which
    the broker is the root (0: of none), ``central`` whether it is meant as the single tree.
    ``broken`` are pairs of root and epoch: trees of which the broker has lost a link.
    """

    origin: Name
    version: Sequence
    neighbours: tuple[tuple[Name, Delay], ...] = ()
    epoch: Sequence = 0
    central: bool = False
    broken: tuple[tuple[Name, Sequence], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStates:
    """Link states that the sender thinks are news."""

    states: tuple[LinkState, ...]


@dataclass(frozen=True, slots=True)
class CreateTree:
    """The sender is in the tree of ``root`` and offers to be the receiver's father (7.3.1)."""

    root: Name
    epoch: Sequence


@dataclass(frozen=True, slots=True)
class TreeAck:
    """The receiver is the sender's father in this tree."""

    root: Name
    epoch: Sequence


@dataclass(frozen=True, slots=True)
class TreeNack:
    """The sender has another father in this tree, or knows a later one of the same root."""

    root: Name
    epoch: Sequence


class RuleFacts(Struct, array_like=True, frozen=True):
    """A deployed rule, for brokers that do not evaluate it: its canonical text, since when."""

    name: Name
    text: Document
    since: Time | None
    version: Sequence


@dataclass(frozen=True, slots=True)
class Known:
    """What the root knows: all event types, and all rules in force in their order (E4).

    ``ended``: names of rules that were taken out of force, and their last versions. ``homes``:
    all brokers, those out of reach too, and the types that their sources publish or have
    published. ``given_up``: types that rules wait for no longer.
    """

    types: tuple[EventType, ...]
    rules: tuple[RuleFacts, ...]
    ended: tuple[tuple[Name, Sequence], ...] = ()
    homes: tuple[tuple[Name, tuple[Name, ...]], ...] = ()
    given_up: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Want:
    """The sender is to get the events that one of these filters matches, and no others.

    ``number`` counts what the receiver was told in this epoch.
    """

    filters: tuple[Text, ...]
    number: Sequence = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the receiver wants, up to that number, is in force at the sender and beyond it."""

    number: Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Events on their way along a tree, and what is promised behind them.

    ``order`` as in Delivery. ``promises``: sources and their promises; one beyond everything says
    that the source has closed. ``marks``: rules, and up to where the receiver has all their
    composite events that it wants.
    """

    batches: tuple[EventBatch, ...] = ()
    order: Int64s | None = None
    promises: tuple[tuple[Name, Time], ...] = ()
    marks: tuple[tuple[Name, Time], ...] = ()


Asking: TypeAlias = Advertise | Unadvertise | Deploy | Remove | ListRules | ShowRule
"""What a client asks of the whole network."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client of another broker, for the root. ``path``: the brokers on the way.

    ``number`` is the first broker's own, by which it knows the answer.
    """

    path: tuple[Name, ...]
    number: Request
    client: Name
    request: Asking


@dataclass(frozen=True, slots=True)
class Answered:
    """The root's answer; ``path``: the brokers that it has still to pass."""

    path: tuple[Name, ...]
    number: Request
    answer: Confirmed | Refused


class Needed(enum.Enum):
    """What a broker asks its root to do."""

    PLAN = "plan"  # brokers have joined the tree that are not in the plan
    SURVEY = "survey"  # it keeps many events, and might let some of them go
    RELEASE = "release"  # rules here wait in vain, and too many events wait with them
    TREES = "trees"  # what sinks want of their own tree is another, or a link of a tree was lost


@dataclass(frozen=True, slots=True)
class Need:
    """The sender, or a broker below it, needs something of the root.

    ``names``: for PLAN the brokers that have none, for RELEASE the types to be given up, for TREES
    the two ends of the link, if one was lost.
    """

    what: Needed
    names: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """The root is about to divide the rules anew: local sources are to be held, below too.

    ``root`` and ``epoch`` are those of the tree, ``number`` counts the plans of a root. ``known``
    is the digest of what the root knows; ``introduce``: it has to be told who publishes.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    known: Name
    introduce: bool


@dataclass(frozen=True, slots=True)
class Paused:
    """The sender and all below hold their sources; all that they said before has gone up.

    ``nodes``: each broker there, its father, and the types that its sources publish or have
    published. ``fronts``: types, and the greatest time of an event that was taken in there;
    ``marks`` and ``rules``: types and rules, and the greatest mark that was given there. ``due``:
    rules, and the least mark up to which those there who want a rule's composite events have
    them. ``sources``: names, homes and types of the open sources there. ``known``: what brokers
    there know otherwise than the root. ``wants``: brokers, and what their own sinks want.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    fronts: tuple[tuple[Name, Time], ...] = ()
    marks: tuple[tuple[Name, Time], ...] = ()
    rules: tuple[tuple[Name, Time], ...] = ()
    due: tuple[tuple[Name, Time], ...] = ()
    sources: tuple[tuple[Name, Name, tuple[Name, ...]], ...] = ()
    known: tuple[Known, ...] = ()
    wants: tuple[tuple[Name, tuple[Text, ...]], ...] = ()


class SinkTree(Struct, array_like=True, frozen=True):
    """A processing tree whose root is a broker that has sinks (7.3.2).

    ``number``: that of the plan which it began with. ``filters``: what the root's sinks want of it;
    ``mixed``: whether they want composite events of the single tree, too.
    """

    root: Name
    number: Sequence
    filters: tuple[Text, ...]
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules are divided over these brokers from now on; local sources are held no longer.

    ``nodes``: a broker, its father ("" for the root), the types that its sources publish or have
    published. ``anew``: everything that is kept is sent again, and evaluated again; ``due`` are
    rules, and the times from which on their composite events are to be found once more.
    ``absent``: brokers that are out of reach, and their types. ``trees``: those of brokers with
    sinks, by root; ``links``: two brokers and the delay between them in us, of which they consist.
    ``rates``: types, and how many events of each come in 1,000 s, where masters are chosen by it.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    absent: tuple[tuple[Name, tuple[Name, ...]], ...] = ()
    anew: bool = False
    due: tuple[tuple[Name, Time], ...] = ()
    trees: tuple[SinkTree, ...] = ()
    links: tuple[tuple[Name, Name, Delay], ...] = ()
    rates: tuple[tuple[Name, Sequence], ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """The root asks up to where composite events have arrived."""

    number: Sequence


@dataclass(frozen=True, slots=True)
class Surveyed:
    """For the sender and all below: ``due`` as in Paused. ``counts``: types, how many events of
    each were published there so far, and the greatest time of one; where masters are chosen by it.
    """

    number: Sequence
    due: tuple[tuple[Name, Time], ...]
    counts: tuple[tuple[Name, Sequence, Time], ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """What the whole tree has answered to a survey: nobody will need again what lies before."""

    number: Sequence
    due: tuple[tuple[Name, Time], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """What fragments and subscribers above let pass on the way up (7.3.6), and then marks.

    The first ``fresh`` batches are published events that come the first time, and in the order of
    their sources; the others come for the sake of rules alone. ``marks``: types, and up to where
    the receiver has all of their events that it needs; one beyond everything says that nobody
    below publishes the type any more. ``answers``: rules, the number of the last Awakening of the
    plan that spoke of them, and a mark: of all masters before it that were asked for, everything
    before it has been sent (the thesis's End).
    """

    batches: tuple[EventBatch, ...] = ()
    marks: tuple[tuple[Name, Time], ...] = ()
    fresh: Number = 0
    answers: tuple[tuple[Name, Sequence, Time], ...] = ()


@dataclass(frozen=True, slots=True)
class Awakening:
    """Masters have come: what lies in the windows around them is to be sent (7.3.7).

    ``asked``: rules, first and last times of their masters, and a horizon: windows of masters that
    are earlier will not be asked for any more.
    """

    asked: tuple[tuple[Name, tuple[tuple[Time, Time], ...], Time], ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """The sender takes what the receiver has for it in these trees of brokers with sinks.

    ``centre`` and ``epoch``: of the single tree whose root has planned them. ``trees``: roots, and
    the numbers of the plans that they began with. ``mark`` is what Part has to bear from now on;
    ``anew``: events are to be numbered anew, too.
    """

    centre: Name
    epoch: Sequence
    trees: tuple[tuple[Name, Sequence], ...]
    mark: Number
    anew: bool


class Part(Struct, array_like=True, frozen=True):
    """What of a Shared is for one tree: a Forward, or a Flow of what was ``detected``.

    ``root``: of the tree; ``mark`` as in Opened. ``picks``: for each batch of the tree the place of
    one of the message's, or the numbers of its events, less the message's first, as int32[n];
    ``marks`` as in Forward and Flow; ``order`` as in Delivery, as int32[n].
    """

    root: Name
    mark: Number
    picks: tuple[Number | bytes, ...]
    marks: tuple[tuple[Name, Time], ...] = ()
    detected: bool = False
    order: bytes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What goes up the trees of brokers with sinks over one link, each event once.

    Events are numbered as they go over a link; ``first``: the number of the first one here.
    """

    first: Sequence
    batches: tuple[EventBatch, ...]
    parts: tuple[Part, ...]


Carried: TypeAlias = (
    Known
    | Want
    | Wanted
    | Flow
    | Asked
    | Answered
    | Pause
    | Paused
    | Plan
    | Forward
    | Awakening
    | Need
    | Survey
    | Surveyed
    | Committed
    | Opened
    | Shared
)
"""What neighbours send one another that is not the overlay's own business."""
Routed: TypeAlias = LinkStates | CreateTree | TreeAck | TreeNack | Carried
"""What goes in packets."""
FromNeighbour: TypeAlias = LinkHello | Packet | LinkAck | Goodbye
"""What comes over a link between brokers."""

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
    | Credit
    | Heartbeat
    | Goodbye
)
FromBroker: TypeAlias = (
    Welcome
    | Confirmed
    | Refused
    | Acknowledged
    | Rejected
    | Delivery
    | Credit
    | Heartbeat
    | Goodbye
)
Message: TypeAlias = FromClient | FromBroker | FromNeighbour | Routed
