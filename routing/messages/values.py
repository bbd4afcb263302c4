"""Parts of messages: numbers within bounds, names, and choices among few."""

from __future__ import annotations

import enum
from typing import Annotated, TypeAlias

from msgspec import Meta

from matcher.traces import CONTEXTS_MAX, EVENTS_MAX, TRACEPARENT

VERSION = 1
"""The version of the clients' protocol, in their messages' headers, ``Hello`` and ``Welcome``."""
LINK_VERSION = 2
"""The version of the protocol among brokers, in their messages' headers and ``LinkHello``."""

Request: TypeAlias = Annotated[int, Meta(ge=0, lt=2**53)]
Number: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Time: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
HEARTBEAT_MAX_S = 86_400.0
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=HEARTBEAT_MAX_S)]
AGE_MAX_S = 1e10
"""Some centuries: the oldest that an event in a queue may become."""
NAME_MAX, ID_MAX, TEXT_MAX, DOCUMENT_MAX = 255, 1_024, 65_536, 2**24
"""Characters in a name, in an event's id, in a filter or reason, in the text of rules."""
UNPRINTABLE = (
    "\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\ud800-\\udfff\\ufeff\\ufff0-\\ufffb\\U000e0000-\\U000e007f"
)
"""Characters that print nothing of their own, as a set of a regular expression: of control, line
ends, and what turns the direction of a text or hides in it."""
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_MAX, pattern=rf"\A[^{UNPRINTABLE}]*\Z")]
NameOfPeer: TypeAlias = Annotated[str, Meta(max_length=NAME_MAX)]
"""A name by which a peer greets, which is told what is wrong with it."""
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_MAX)]
Document: TypeAlias = Annotated[str, Meta(max_length=DOCUMENT_MAX)]
Trace: TypeAlias = Annotated[str, Meta(pattern=TRACEPARENT, max_length=55)]
"""A trace context, as W3C's header ``traceparent`` has it."""
Traces: TypeAlias = Annotated[
    tuple[
        tuple[Number, Annotated[tuple[Trace, ...], Meta(min_length=1, max_length=CONTEXTS_MAX)]],
        ...,
    ],
    Meta(max_length=EVENTS_MAX),
]
"""Trace contexts of some of a message's events, by their places in the batches one after another;
a message without them is as long as if there were no such thing."""
ENTRIES_MAX = 10_000
"""Entries of one table of a message, where its size follows from how many brokers or types somebody
speaks of."""
TYPES_MAX = 50_000
"""Event types that a broker may know: half of what a message holds, for two parts of a network."""
Tag: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32)]
Delay: TypeAlias = Annotated[int, Meta(ge=0, lt=2**40)]
"""Microseconds that a message needs over a link."""


class WhenFull(enum.Enum):
    """The fate of a sink whose queue at the broker is full: its own choice."""

    BLOCK = "block"
    DROP_OLDEST = "drop-oldest"
    DISCONNECT = "disconnect"


class Acks(enum.Enum):
    """When published events are acknowledged."""

    BROKER = "broker"  # once their broker has them, in its store where it has one
    COMMITTED = "committed"  # once all that follows from them has come where it is going
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
    AHEAD = "ahead"  # events, or a promise, too far ahead of the broker's clock
    BAD_EVENT = "bad-event"
    BAD_FILTER = "bad-filter"
    NOT_ALLOWED = "not-allowed"  # the rights of the user
    BAD_RULES = "bad-rules"  # the reason is the whole text of the RuleErrors
    UNKNOWN = "unknown"  # no such rule, type or subscription
    IN_USE = "in-use"  # a number or name that is taken
    QUEUE_FULL = "queue-full"  # a sink that chose to be disconnected
    SILENT = "silent"  # nothing heard beyond the heartbeat timeout
    CLOSING = "closing"  # the broker stops
    ELSEWHERE = "elsewhere"  # another broker of the network has what is asked for: ask there
    NO_STORE = "no-store"  # the broker keeps nothing, so that nothing there can be durable
    STORE_FULL = "store-full"  # the broker's store takes nothing more; later it may
    TRIMMED = "trimmed"  # what is asked of a log is kept no more
    LEAVING = "leaving"  # the broker will stop, and goes on without this client: go to another one
    CONFLICT = "conflict"  # events whose id names another event of their source (tesla.md E1)
