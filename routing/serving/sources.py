"""Sources: how far each has published, and what it has promised (protocol.md section 4)."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from matcher.model import TIME_MIN, EventBatch
from routing.config import NodeConfig
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, Code, LostSource, Rights
from routing.names import whole_of
from routing.order import first_time
from routing.serving.accounts import Accounts
from routing.serving.buckets import CREDIT_MAX, TokenBucket
from routing.serving.shares import who_gives_way
from routing.silence import excused

FAR = 2**62
"""Event times and marks lie within 2**62 us of the epoch (146,000 years), so that no window that
is added to one overflows. A promise beyond FAR means that everything has been published."""


class SourceState(enum.Enum):
    """The state of a source: what its promise counts for. A source that lives is never closed,
    however long it says nothing. One whose link is lost keeps its promise where it stands, and
    thereby stalls what waits for it: for ``source_silence_max_s``, then it is closed as if it had
    said Goodbye. It comes back as any other source that had closed does.
    """

    LIVE = "live"
    LOST = "lost"  # the link broke: the promise stays where it is
    CLOSED = "closed"


SOURCE_MOVES: Mapping[SourceState, Mapping[SourceState, str]] = {
    SourceState.LIVE: {
        SourceState.LOST: "its link is lost, or Goodbye with another code than closing",
        SourceState.CLOSED: "Goodbye with code closing",
    },
    SourceState.LOST: {
        SourceState.LIVE: "a client of the name is back, and advertises types",
        SourceState.CLOSED: "lost for source_silence_max_s, or it goes on elsewhere",
    },
    SourceState.CLOSED: {SourceState.LIVE: "a client of the name advertises types"},
}
"""The next states of each, and what leads there. docs/protocol.md shows them drawn."""


GOODBYE, LOST_FOR_LONG, MOVED = "goodbye", "lost", "gone on elsewhere"
CROWDED_OUT = "its user had the most sources"
"""Why a source has closed."""
HAND_OVER_S = 10.0
"""Seconds that a source that was sent away has to be at another broker."""
REPLAY_SILENCE_S = 3_600.0
"""Seconds that a source of recorded events, or a part of one, is waited for at least: jobs take
long, and nobody waits for their alerts."""


@dataclass(slots=True, eq=False)
class Source:
    """One source. ``floors`` has a time for each advertised type: the mark it found when it came.

    ``front`` and ``first`` are the greatest and the first event time of this stay (None: none
    yet). ``goes_on``: its promise has counted ever since it advertised its types, so that nobody
    is beyond it. ``promised_at`` and ``lost_at`` are when it last promised something new, and
    when its link was lost, in seconds of ``now``. ``closed_by``: why it has closed, once it has.
    ``replays``: its events are recorded. ``is_sent_away``: its broker drains.
    ``outstanding`` is the publish credit that it has not used, ``withheld`` why it gets no more
    (None: it does).
    ``home``: in a network, the broker of whose clients it is, where it is another one; that alone
    knows its promise.
    """

    name: str
    standing: SourceState = SourceState.LIVE
    peer: Peer | None = None
    home: str = ""
    last_sequence: int = 0
    promise: int = TIME_MIN
    promised_at: float = 0.0
    floors: dict[str, int] = field(default_factory=dict)
    goes_on: bool = False
    first: int | None = None
    front: int | None = None
    lost_at: float = 0.0
    closed_by: str | None = None
    replays: bool = False
    is_recalled: bool = False
    """Whether nothing was heard of it since its broker was started."""
    is_sent_away: bool = False
    overtaken: set[str] = field(default_factory=set)
    """Types for which it is not waited for, since it lags (routing.serving.waits)."""
    outstanding: int = 0
    bucket: TokenBucket | None = None
    """Bound of the rate of all sources of its user together, where it has one."""
    credit_max: int = CREDIT_MAX
    """The most credit that its user may have."""
    rights: Rights = EVERYTHING
    """Of its user."""
    user: str = ""
    """The user who published when it came last."""
    withheld: str | None = None
    events: int = 0
    late: int = 0
    ahead: int = 0
    duplicates: int = 0
    rejected: int = 0
    whole: str | None = field(init=False)
    """The source that this one is a part of (routing.serving.parts)."""

    def __post_init__(self) -> None:
        self.whole = whole_of(self.name)

    @property
    def is_open(self) -> bool:
        """Whether more of its events may come, so that its promise counts."""
        return self.standing in (SourceState.LIVE, SourceState.LOST) and self.promise < FAR

    def patience_s(self, silence_max_s: float | None) -> float:
        """Seconds that it is waited for while its link is lost."""
        if self.is_sent_away:
            return HAND_OVER_S
        if silence_max_s is None:
            return math.inf
        is_recorded = self.replays or self.whole is not None
        return max(silence_max_s, REPLAY_SILENCE_S) if is_recorded else silence_max_s

    def enter(self, state: SourceState) -> None:
        """Go to another state, or stay."""
        assert state is self.standing or state in SOURCE_MOVES[self.standing], (self, state)
        self.standing = state

    def mark(self, type_name: str) -> int:
        """Before it, this source publishes no event of an advertised type any more."""
        return max(self.promise, self.floors[type_name])

    def begin_at(self, type_name: str, floor: int) -> None:
        """Begin a type that it publishes from now on, and nothing before ``floor``. One that goes
        on has published it all along: where that began stands.
        """
        if not (self.goes_on and type_name in self.floors):
            self.floors[type_name] = max(floor, self.floors.get(type_name, floor))

    def keep_promise(self, mark: int | None, now: float) -> bool:
        """Take a promise over; whether it says anything new."""
        if mark is None or mark <= max(self.promise, -FAR):
            return False
        self.promise = mark
        self.promised_at = now
        return True

    def note(self, batch: EventBatch, front: int) -> None:
        """Note the event times of what was accepted: its first batch, and the greatest time."""
        if self.first is None or self.front is None:
            self.first, self.front = first_time(batch), front
        elif front > self.front:
            self.front = front


class Sources:
    """Every source that is remembered, by name, at most ``sources_max`` of them. A source is known
    by its name, and its sequence numbers strictly increase for as long as that is remembered, over
    reconnections and restarts. Its promise never goes back while it is open.
    """

    def __init__(self, config: NodeConfig, accounts: Accounts) -> None:
        self._accounts = accounts
        self._sources: dict[str, Source] = {}
        self._lost: dict[str, Source] = {}
        """Sources without a link that have not closed."""
        self._open = Counter[str]()
        """How many sources each user has that have not closed."""
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limit."""
        self._sources_max = config.sources_max

    def __iter__(self) -> Iterator[Source]:
        return iter(self._sources.values())

    def find(self, name: str) -> Source | None:
        """The source of that name, if it is remembered."""
        return self._sources.get(name)

    def taken(self, name: str) -> int:
        """The number up to which this broker, and those where it was before, have its events."""
        source = self._sources.get(name)
        return max(self._accounts.taken(name), 0 if source is None else source.last_sequence)

    def crowded_out(self, name: str, user: str) -> Source | None:
        """The source that is to be closed before a user's one can join, if any: the user who gives
        way (serving.shares) gives up the one that was lost the longest ago, or that came last if
        none is lost.
        """
        is_full = len(self._sources) >= self._sources_max and name not in self._sources
        if not is_full or self._open.total() < len(self._sources):
            return None
        most = who_gives_way(self._open, user, self._sources_max)
        last_first = reversed(self._sources.values())
        live = (one for one in last_first if one.standing is SourceState.LIVE and not one.home)
        return next((one for one in (*self._lost.values(), *live) if one.user == most), None)

    def join(self, name: str, peer: Peer, now: float, home: str = "", user: str = "") -> Source:
        """A link of that name publishes: resume the source, or begin a new stay of it, as it does
        where it comes to another broker.

        Raises Refusal when there are too many sources, all of them connected or lost.
        """
        if name not in self._sources:
            self._make_room()
        # Moved to the end: the closed ones at the front have been gone the longest.
        source = self._sources.pop(name, None) or Source(name, SourceState.CLOSED)
        if source.standing is not SourceState.LOST or source.home != home:
            source.goes_on = False
            if source.peer != peer:
                source.promise = TIME_MIN
                source.promised_at = now
                source.first = source.front = None
        self._lost.pop(name, None)
        if source.standing is not SourceState.CLOSED:
            self._open[source.user] -= 1
        source.user = user
        self._open[user] += 1
        source.enter(SourceState.LIVE)
        source.last_sequence = max(source.last_sequence, self._accounts.taken(name))
        source.is_sent_away = source.is_recalled = False
        source.peer = peer
        source.home = home
        source.closed_by = None
        self._sources[name] = source
        return source

    def recall(self, source: Source, now: float) -> None:
        """Remember a source as it was before a restart: if it was open its link is lost."""
        self._sources[source.name] = source
        source.is_recalled = True
        source.user = self._accounts.owner(source.name)
        if source.standing is SourceState.LOST:
            self._open[source.user] += 1
            source.lost_at = now
            self._lost[source.name] = source

    def lose(self, source: Source, now: float) -> None:
        """The source's link broke."""
        source.peer = None
        source.lost_at = now
        self._lost[source.name] = source
        source.withheld = None
        if source.standing is SourceState.LIVE:
            source.enter(SourceState.LOST)

    def close(self, source: Source, why: str = GOODBYE) -> None:
        """The source said Goodbye, or counts as one that did: it has published everything."""
        self._lost.pop(source.name, None)
        if source.standing is not SourceState.CLOSED:
            self._open[source.user] -= 1
        source.peer = None
        source.closed_by = why
        source.enter(SourceState.CLOSED)
        source.withheld = None

    def overdue(self, silence_max_s: float | None, now: float) -> list[Source]:
        """The sources whose links have been lost for too long."""
        lost = self._lost.values()
        return [one for one in lost if now - one.lost_at >= one.patience_s(silence_max_s)]

    def send_away(self, now: float) -> None:
        """Wait no longer than ``HAND_OVER_S`` for those that are lost: their broker drains. A
        source that goes on at another broker has closed here by that, and begins there where its
        promise stands here (network.brokers.registry). s has promised Temp up to 40 s, u up to 90
        s: rules over Temp stay at 40 s until another broker has s, whose next Temp is of 41 s.
        """
        for source in self._lost.values():
            if not source.is_sent_away:
                source.is_sent_away, source.lost_at = True, now

    def lost_at(self, home: str) -> tuple[LostSource, ...]:
        """The sources without a link that have not closed, as this broker tells others."""
        return tuple(
            LostSource(
                source.name,
                home,
                source.last_sequence,
                tuple((name, source.mark(name)) for name in sorted(source.floors)),
            )
            for source in self._lost.values()
        )

    def excuse(self, due: float, now: float) -> None:
        """Excuse sources for what their broker was late by (routing.silence)."""
        for source in self._lost.values():
            source.lost_at = excused(source.lost_at, due, now)

    @property
    def has_lost(self) -> bool:
        """Whether a source is lost."""
        return bool(self._lost)

    def _make_room(self) -> None:
        if len(self._sources) < self._sources_max:
            return
        for name, source in self._sources.items():
            if source.standing is SourceState.CLOSED:
                del self._sources[name]
                return
        raise Refusal(
            Code.LIMIT, f"more than {self._sources_max} sources (sources_max); lost ones count"
        )
