"""Knowledge and counts of a reading of events: schemas, bad events, surplus attributes (E5).

One :class:`Intake` serves all the files that are read together. It owns the schemas, declared or
inferred from the first event of a type, and decides what becomes of a bad event: it is raised
with its place, or, if the reader was told to skip them, counted by its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from matcher.errors import BadEvent, EventError
from matcher.formats.inputs import FolderColumn
from matcher.formats.layout import PLAIN, Layout
from matcher.formats.timeform import Read
from matcher.formats.wallclock import WallClock
from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from matcher.rows import inferred_type
from matcher.traces import TraceContexts

FIRST_MAX = 20
REASONS_MAX = 100
"""Distinct reasons counted apart; what comes beyond is counted as OTHER_REASONS."""
OTHER_REASONS = "other reasons"


@dataclass(frozen=True, slots=True)
class Place:
    """Where events come from: ``file`` as messages name it, their ``source`` by default, and the
    ``layout``, what its columns mean and how its times are written.

    An event that leaves its id out has its number in decimal; but where it bears a source and no
    number it is known by the file and its row, for other files may have that source too. ``by_row``
    has the rows stand in place of all sequence numbers, for one who looks for an event's place.
    ``rows_before``: the number of the row before the first one, 0 but where the rows of several
    tables are numbered together. ``columns``: those that names of folders say. ``clock``: what this
    reading has shown of local times.
    """

    file: str
    source: str
    layout: Layout = PLAIN
    by_row: bool = False
    rows_before: int = 0
    columns: tuple[FolderColumn, ...] = ()
    clock: WallClock = field(default_factory=WallClock, compare=False)

    def named(self, row: int) -> str:
        """A row as messages name it."""
        return f"{self.file}:row {row - self.rows_before}"

    def names(self, rows: Int64s) -> list[str]:
        """The ids of events of other sources that are known by their rows: ``Temp.csv:1``."""
        return [f"{self.source}:{row}" for row in rows.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Events read in one piece, a batch a type; ``end`` is the last line or row in it."""

    end: int
    batches: list[EventBatch]


@dataclass(frozen=True, slots=True, eq=False)
class Glance:
    """The times int64[n] of a piece of a file, not sorted; ``end`` is the last line or row in it.

    A glance may hold times of events that a reading refuses, and be cut at other places. So of
    times that clocks show twice the reading may choose others; ``least`` is none of their later.
    """

    end: int
    times: Int64s
    least: int


class Intake:
    """Schemas of the events read so far, and counts of what was refused or left out.

    ``events``: good events; ``bad``: skipped ones by reason; ``surplus``: values of attributes
    beyond the schema that were dropped; ``without_zone``: files among whose times some bore no time
    zone and were taken for UTC, for nothing was said (layout). ``unlearnt``: why
    types have no schema, by the first event of each. ``used``: the types of which bad events
    matter, None for all.
    """

    def __init__(
        self, declared: Mapping[str, EventType] | None = None, *, skip_bad: bool = False
    ) -> None:
        self._schemas: dict[str, EventType] = dict(declared or {})
        self._inferred: set[str] = set()
        self._skip_bad = skip_bad
        self.events = 0
        self.surplus = 0
        self.bad: Counter[str] = Counter()
        self.without_zone: dict[str, None] = {}
        self._clocks: dict[str, WallClock] = {}
        self.unlearnt: dict[str, EventError] = {}
        self._is_aside = False
        self.used: Collection[str] | None = None
        self.first_bad: list[BadEvent] = []
        """The first bad events that were skipped, ``FIRST_MAX`` of them."""
        self.traces = TraceContexts()
        """The traces that events read of late belong to."""

    def aside(self) -> Intake:
        """One that knows the same schemas, for a look at events that nobody counts."""
        aside = Intake(self._schemas, skip_bad=True)
        aside.without_zone = self.without_zone
        aside.unlearnt, aside._is_aside = self.unlearnt, True
        return aside

    def refuse_as(self, other: Intake) -> None:
        """Raise the first bad event that another intake has skipped, unless this one skips, too."""
        if other.first_bad and not self._skip_bad:
            raise other.first_bad[0]

    def note(self, place: Place, read: Read) -> Int64s:
        """The times of the next rows, noting what was assumed of them."""
        if read.lacks_zone:
            self.without_zone[place.file] = None
        if self._is_aside:
            return read.times
        times = place.clock.told(read)
        if read.second is not None:
            self._clocks[place.file] = place.clock
        return times

    @property
    def undecided(self) -> Mapping[str, int]:
        """By file, how many times clocks show twice, of which nothing says that the second is
        meant; files without such times are left out.
        """
        counts = {file: clock.undecided for file, clock in self._clocks.items()}
        return {file: count for file, count in counts.items() if count}

    def glance(self, place: Place, end: int, read: Read) -> Glance:
        """A first look at the times of the next rows, up to the line or row ``end``."""
        return Glance(end, self.note(place, read), int(read.times.min(initial=TIME_MAX)))

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """Every type known: declared ones, then inferred ones in the order they came."""
        return self._schemas

    def is_inferred(self, name: str) -> bool:
        """Whether the type's schema comes from its first event."""
        return name in self._inferred

    def learn(self, event_type: EventType) -> EventType:
        """Add an inferred schema; returns it."""
        self._schemas[event_type.name] = event_type
        self._inferred.add(event_type.name)
        return event_type

    def infer(
        self, name: str, data: object, others: Sequence[Mapping[str, object]] = ()
    ) -> EventType:
        """The schema of a type's first event, beside ``others``, learnt; BadEvent when a value is
        of no kind.
        """
        return self.learn(inferred_type(name, data, others))

    def refuse_type(self, name: str, error: EventError) -> None:
        """Raise why a type has no schema, unless it is not used, or that is not known yet."""
        if self._is_aside:
            self.unlearnt.setdefault(name, error)
        elif self.used is None or name in self.used:
            raise error

    def refuse(self, reason: str, place: str, type_name: str | None = None) -> None:
        """Count a bad event, or raise it (BadEvent) when they are not to be skipped. One of a type
        that is not used is passed over.
        """
        if type_name is not None and self.used is not None and type_name not in self.used:
            return
        if not self._skip_bad:
            hint = ""
            if reason.endswith(("found null", "found ''")):
                hint = " (declared optional, by ? behind its type, it may be null)"
            elif type_name is not None and self.is_inferred(type_name):
                hint = f" (inferred from the first events: {self._schemas[type_name]})"
            raise BadEvent(reason + hint, place)
        if len(self.first_bad) < FIRST_MAX:
            self.first_bad.append(BadEvent(reason, place))
        known = reason in self.bad or len(self.bad) < REASONS_MAX
        self.bad[reason if known else OTHER_REASONS] += 1
