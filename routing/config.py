"""Every choice that a Node or a Session leaves to its host, with units, validated once."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import MICROSECONDS
from routing.messages.values import HEARTBEAT_MAX_S, NAME_MAX, TYPES_MAX, Acks
from rules.overrun import COMPOSITES_MAX

TOGETHER_MAX, TOGETHER_BYTES_MAX, TOGETHER_S_MAX = 512, 2**19, 0.02
"""Messages that a broker takes in together, their bytes, and the seconds after which its host reads
no more of them.
"""
SILENCE_MAX_S = 30.0
"""How long rules wait for a source whose link is lost, in seconds, unless a broker is told."""


class Late(enum.Enum):
    """The fate of events that break their source's promise (protocol.md section 4).

    Either way they take no part in detection, and are counted and reported to their source.
    """

    REFUSE = "refuse"
    DELIVER = "deliver"  # aside, to the subscribers of their type


class Ordering(enum.Enum):
    """The meaning of an event's time to rules; all brokers of a network have the same."""

    WATERMARK = "watermark"  # its own, and an instant is evaluated once it is complete
    ARRIVAL = "arrival"  # when it has come to where a rule is evaluated, and that at once


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """A broker's choices.

    Raises ValueError naming the first one that makes no sense.
    """

    name: str = "broker"
    """The broker's name, in Welcome and status."""
    heartbeat_s: float = 1.0
    """The node sends something to every client at least this often, in seconds."""
    heartbeats_missed_max: int = 3
    """A client is lost after that many of its own heartbeat intervals in silence."""
    ordering: Ordering = Ordering.WATERMARK
    """In a network: see Ordering."""
    matching: Matching = ON_PROCESSOR
    """How many subscriptions to one type are matched together, and where."""
    late: Late = Late.REFUSE
    """The fate of late events."""
    source_silence_max_s: float | None = SILENCE_MAX_S
    """Seconds after which a source whose link is lost no longer stalls rules; None: never. Of one
    whose events are recorded, and of a part, an hour at least."""
    wait_at_most: tuple[tuple[str, float], ...] = ()
    """By type, for how many seconds rules wait at most for a source of it that lives and lags."""
    lead_max_s: float = 86_400.0
    """Seconds of event time by which a source may run ahead of the slowest of its rules."""
    ahead_max_s: float = 300.0
    """Seconds by which a live source's events and promises may be ahead of ``now``, where that is
    the wall clock; a source that replays is not bound by it."""
    waiting_events_max: int = 1_000_000
    """Events kept for rules that wait for a type that nobody has advertised; beyond it they run
    without that type."""
    retained_events_max: int = 1_000_000
    """In a network: events of own sources that are kept until nobody needs them again; beyond it
    what is under way may be lost when the network changes."""
    unasked_events_max: int = 4_096
    """In a network: events of own sources that are kept without asking whether they are needed."""
    wall_clock: bool = True
    """Whether ``now`` is seconds since the epoch, so that ``Timer`` ticks by it (S13), and so that
    times can be ahead of it."""
    timer_slack_s: float = 0.0
    """Seconds by which the mark of ``Timer`` stays behind ``now``."""
    publish_credit: int = 16_384
    """Events that a source may have under way to the node."""
    delivery_events_max: int = 4_096
    """Events in one Delivery."""
    queue_events_max: int = 1_000_000
    """The longest queue, in events, that a sink may ask for."""
    durable_bytes_max: int | None = None
    """Bytes in the store that may wait for a durable sink that asks for no other bound; None: any
    number."""
    durable_age_max_s: float | None = None
    """Seconds that an event may wait for such a sink; None: any."""
    clients_max: int = 4_096
    """Links at a time; those that do not publish may be ``OPERATORS`` more."""
    sources_max: int = 65_536
    """Names whose sequence numbers are remembered; beyond it the longest closed are forgotten."""
    repeat_ids_max: int = 1_000_000
    """Ids remembered at least, to know repeats by: of each source that publishes in parts, of all
    other sources of a broker together, and of all events with ids that have come through a network
    together; at most twice as many are."""
    types_max: int = 10_000
    """Event types known at a time; at most 50,000, so that brokers can tell one another."""
    rules_max: int = 100_000
    """Rules deployed at a time."""
    subscriptions_max: int = 1_000
    """Subscriptions of one sink."""
    drainable: bool = True
    """Whether a client may have the node drain."""
    composites_per_instant_max: int = COMPOSITES_MAX
    """Composite events of a rule at one instant; one that has more ends there. All brokers of a
    network have the same."""

    def __post_init__(self) -> None:
        _require(bool(self.name), "name must not be empty")
        _require_sayable(self.name, self.heartbeat_s)
        _require(self.lead_max_s > 0, f"lead_max_s must be positive, not {self.lead_max_s}")
        _require(self.ahead_max_s > 0, f"ahead_max_s must be positive, not {self.ahead_max_s}")
        _require(self.timer_slack_s >= 0, f"timer_slack_s is negative: {self.timer_slack_s}")
        silence = self.source_silence_max_s
        _require(silence is None or silence > 0, f"source_silence_max_s must be > 0: {silence}")
        for name, most_s in self.wait_at_most:
            _require(most_s > 0, f"wait_at_most of {name} must be positive, not {most_s}")
        for name in ("durable_bytes_max", "durable_age_max_s"):
            most = getattr(self, name)
            _require(most is None or most > 0, f"{name} must be positive, not {most}")
        for name in NODE_BOUNDS:
            _require(getattr(self, name) >= 1, f"{name} must be at least 1")
        _require(self.types_max <= TYPES_MAX, f"types_max must be at most {TYPES_MAX}")

    def changed_to(self, other: NodeConfig) -> NodeConfig:
        """``other``, with what a running node cannot change (``FIXED``) as it is here."""
        return replace(other, **{name: getattr(self, name) for name in FIXED})

    @property
    def waits_us(self) -> Mapping[str, int]:
        """``wait_at_most`` in microseconds; none where event times are no times of the clock."""
        if not self.wall_clock or self.ordering is Ordering.ARRIVAL:
            return {}
        return {name: round(most_s * MICROSECONDS) for name, most_s in self.wait_at_most}

    @property
    def lead_max_us(self) -> int:
        """``lead_max_s`` in microseconds."""
        return round(self.lead_max_s * MICROSECONDS)


OPERATORS = 4
"""So many links of clients that do not publish are kept beside ``clients_max``: whoever looks after
a broker must reach it when it is full."""

FIXED = (
    "name",
    "heartbeat_s",
    "wall_clock",
    "ordering",
    "matching",
    "unasked_events_max",
    "drainable",
    "composites_per_instant_max",
)
"""The fields of NodeConfig that hold as long as a node: clients or marks have been told of them, or
what is in use was made by them."""

NODE_BOUNDS = (
    "heartbeats_missed_max",
    "waiting_events_max",
    "retained_events_max",
    "unasked_events_max",
    "publish_credit",
    "delivery_events_max",
    "queue_events_max",
    "clients_max",
    "sources_max",
    "repeat_ids_max",
    "types_max",
    "rules_max",
    "subscriptions_max",
    "composites_per_instant_max",
)
"""The fields of NodeConfig that count something."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """A client's choices. Raises ValueError naming the first one that makes no sense."""

    name: str = ""
    """The client's name, the source of its events; "" for one that does not publish."""
    instance: int = 0
    """A number of this one client's own (63 bits; the host draws it), kept when it reconnects."""
    heartbeat_s: float = 1.0
    """The session sends something at least this often, in seconds."""
    heartbeats_missed_max: int = 3
    """The broker is lost after that many of its heartbeat intervals in silence."""
    increasing: bool = False
    """The events' times strictly increase: each Publish promises its last time + 1 us."""
    disorder_us: int | None = None
    """Or: events are at most this old when published, so the session promises by ``now``."""
    replay: bool = False
    """The events are recorded: their times say nothing about the broker's clock, and may be ahead
    of it by more than ``ahead_max_s``."""
    acks: Acks = Acks.BROKER
    """When events are acknowledged; until then they are kept, and sent again after a reconnection.
    """
    unacknowledged_max: int = 65_536
    """Events kept at most: published and not yet acknowledged, or waiting for credit."""
    delivery_credit: int = 16_384
    """Events that the broker may have under way to this client."""
    publish_events_max: int = 4_096
    """Events in one Publish."""

    def __post_init__(self) -> None:
        _require_sayable(self.name, self.heartbeat_s)
        both = self.increasing and self.disorder_us is not None
        _require(not both, "increasing and disorder_us exclude one another")
        disorder = self.disorder_us
        _require(disorder is None or disorder >= 0, f"disorder_us is negative: {disorder}")
        _require(0 <= self.instance < 2**63, f"instance must fit in 63 bits: {self.instance}")
        for name in SESSION_BOUNDS:
            _require(getattr(self, name) >= 1, f"{name} must be at least 1")


SESSION_BOUNDS = (
    "heartbeats_missed_max",
    "unacknowledged_max",
    "delivery_credit",
    "publish_events_max",
)
"""The fields of SessionConfig that count something."""


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _require_sayable(name: str, heartbeat_s: float) -> None:
    """Check that greetings have room for them (routing.messages.values)."""
    _require(len(name) <= NAME_MAX, f"name must have at most {NAME_MAX} characters")
    _require(heartbeat_s > 0, f"heartbeat_s must be positive, not {heartbeat_s}")
    most = HEARTBEAT_MAX_S
    _require(heartbeat_s <= most, f"heartbeat_s must be at most {most:g}, not {heartbeat_s}")
