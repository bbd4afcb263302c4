"""Event types that are known, by whose word, and up to where each is complete (E5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from matcher.model import TIME_MIN, EventBatch, EventType
from routing.config import NodeConfig
from routing.errors import Refusal
from routing.messages import Code
from routing.order import greatest_time
from routing.serving.sources import Source
from rules.pattern import TIMER

NAMES_BYTES_MAX = 1 << 21
"""Bytes of the names in all types, which brokers tell one another in one message."""


@dataclass(slots=True, eq=False)
class KnownType:
    """One type. ``mentions`` counts the deployed rules that name it; ``front`` is the greatest
    time of its published events, None before the first, and ``near`` that of those which were not
    too far ahead of the clock when they came.
    """

    schema: EventType
    advertisers: dict[str, Source] = field(default_factory=dict)
    was_advertised: bool = False
    mentions: int = 0
    events: int = 0
    late: int = 0
    front: int | None = None
    near: int | None = None
    begin: int | None = None
    """The least time of the first batch of its events that is counted."""
    given_up: bool = False
    """Whether the rules that waited for a first advertiser wait no longer."""

    @property
    def open_advertisers(self) -> list[Source]:
        """The advertisers whose promises count."""
        return [source for source in self.advertisers.values() if source.is_open]

    def take(self, batch: EventBatch, horizon: int) -> int:
        """Published events have come; those beyond the horizon are too far ahead of the clock.
        Gives the greatest time of one.
        """
        front = greatest = greatest_time(batch)
        self.front = greatest if self.front is None else max(self.front, greatest)
        self.events += len(batch)
        if self.begin is None:
            self.begin = int(batch.time.min())
        if greatest > horizon:
            near = batch.time[batch.time <= horizon]
            if not len(near):
                return front
            greatest = int(near.max())
        self.near = greatest if self.near is None else max(self.near, greatest)
        return front

    def has_come_to(self, front: int) -> None:
        """Events up to this time are known to have come, though they are not here any more."""
        self.front = front if self.front is None else max(self.front, front)
        self.near = front if self.near is None else max(self.near, front)

    @property
    def is_replayed(self) -> bool:
        """Whether somebody replays it."""
        return any(one.replays for one in self.open_advertisers)

    @property
    def mark(self) -> int | None:
        """The least of the marks of its open advertisers. Where none is open the type has no mark
        of its own: if it never had an advertiser, what needs it waits.
        """
        name = self.schema.name
        marks = [source.mark(name) for source in self.advertisers.values() if source.is_open]
        return min(marks) if marks else None


@dataclass(frozen=True, slots=True)
class _Former:
    """A type that was forgotten; ``front`` as in KnownType. A rule that uses it from now on holds
    from a later instant (tesla.md S15), and waits for no first advertiser; its schema says what a
    client guesses a value to be, and binds nobody. Of those that were forgotten first, if they are
    more than ``types_max``, only the latest event of all is kept.
    """

    schema: EventType
    front: int | None


class Advertisements:
    """The known types by name, at most ``types_max`` of them. A type is known, with one schema,
    while a source advertises it or a deployed rule mentions it.
    """

    def __init__(self, config: NodeConfig) -> None:
        self._types: dict[str, KnownType] = {}
        self._former: dict[str, _Former] = {}
        self._lost_front: int | None = None
        self._schemas: Mapping[str, EventType] | None = None  # until a type comes or goes
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limit."""
        self._types_max = config.types_max

    def __iter__(self) -> Iterator[KnownType]:
        return iter(self._types.values())

    def __getitem__(self, name: str) -> KnownType:
        return self._types[name]

    def find(self, name: str) -> KnownType | None:
        """The type of that name, if it is known."""
        return self._types.get(name)

    def front(self, name: str) -> int | None:
        """The greatest time of a type's published events; None if there were none."""
        known = self._types.get(name)
        if known is not None:
            return known.front
        former = self._former.get(name)
        return self._lost_front if former is None or former.front is None else former.front

    def former(self, name: str) -> EventType | None:
        """The last schema of a type that was forgotten; None where there is none."""
        former = self._former.get(name)
        return None if former is None else former.schema

    @property
    def published(self) -> list[str]:
        """The names of the types that have, or have had, advertisers."""
        return [name for name, known in self._types.items() if known.was_advertised]

    def is_replayed(self, name: str) -> bool:
        """Whether somebody replays a type."""
        known = self._types.get(name)
        return known is not None and known.is_replayed

    def forget_far(self, are_over: Callable[[str], bool]) -> None:
        """Forget events that were too far ahead of the clock when they came, before it is asked how
        far types went: replays alone bring them, and they are no part of what comes after the
        replay. Once it has closed, and no rule names their type, they do not count: a rule that is
        deployed after a replay of 2030 holds from beyond the last event that was not of 2030.
        ``are_over``: whether rules name a type.
        """
        for name, known in self._types.items():
            if not (are_over(name) or known.is_replayed):
                known.front = known.near

    def release(self, names: Iterable[str]) -> None:
        """No rule uses these types any more: nothing that has been evaluated makes what their
        sources publish late.
        """
        for name in names:
            known = self._types.get(name)
            for source in () if known is None else known.advertisers.values():
                source.floors[name] = TIME_MIN

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """The known schemas by name."""
        if self._schemas is None:
            self._schemas = {name: known.schema for name, known in self._types.items()}
        return self._schemas

    def check(self, types: Iterable[EventType], source_name: str) -> None:
        """Refusal when a source may not advertise these types; changes nothing."""
        seen: dict[str, EventType] = {}
        for schema in types:
            if schema.name == TIMER.name:
                raise Refusal(Code.SCHEMA, "Timer is built in (tesla.md S13)")
            known = self._types.get(schema.name)
            present = seen.setdefault(schema.name, schema)
            if known is not None and not self._may_replace(known, source_name):
                present = known.schema
            if present != schema:
                raise Refusal(
                    Code.SCHEMA,
                    f"event {schema} is refused: it is already known as {present} (tesla.md E5)",
                )
        if seen.items() <= self.schemas.items():
            return
        all_types = {**self.schemas, **seen}
        if len(all_types) > self._types_max:
            raise Refusal(Code.LIMIT, f"more than {self._types_max} event types (types_max)")
        names = (name for schema in all_types.values() for name in (schema.name, *schema.names))
        if sum(len(name.encode()) for name in names) > NAMES_BYTES_MAX:
            reason = f"the names of all types and attributes take more than {NAMES_BYTES_MAX} bytes"
            raise Refusal(Code.LIMIT, reason)

    def advertise(self, source: Source, schema: EventType, floor: int) -> None:
        """Add an advertisement that was checked; nothing before ``floor`` is taken (but see
        ``Source.begin_at``).
        """
        self._schemas = None
        known = self._known(schema)
        known.schema = schema
        known.advertisers[source.name] = source
        known.was_advertised = True
        source.begin_at(schema.name, floor)

    def withdraw(self, source: Source, names: Iterable[str]) -> list[str]:
        """The source publishes these types no more; gives those that are forgotten."""
        withdrawn = list(names)
        for name in withdrawn:
            del self._types[name].advertisers[source.name]
            del source.floors[name]
        return self._forget(withdrawn)

    def exchange(self, gone: Iterable[EventType], new: Iterable[EventType]) -> None:
        """Rules that named types (each once for every rule) are gone, and others have come."""
        self._schemas = None
        names = []
        for schema in gone:
            self._types[schema.name].mentions -= 1
            names.append(schema.name)
        for schema in new:
            known = self._known(schema)
            if known.schema != schema:
                assert not known.advertisers, f"{schema} beside {known.schema}"
                assert not known.mentions, f"{schema} beside {known.schema}"
                known.schema = schema
            known.mentions += 1
        self._forget(names)

    def _may_replace(self, known: KnownType, source_name: str) -> bool:
        # A publisher that comes back with a new schema, where nobody else relies on the old one.
        return known.mentions == 0 and known.advertisers.keys() <= {source_name}

    def _forget(self, names: Iterable[str]) -> list[str]:
        gone = [
            name
            for name in dict.fromkeys(names)
            if not self._types[name].advertisers and not self._types[name].mentions
        ]
        for name in gone:
            known = self._types.pop(name)
            known.front = known.near
            self._schemas = None
            self._keep(known)
        return gone

    def _known(self, schema: EventType) -> KnownType:
        """The type of that name; a new one where it was not known, or had been forgotten."""
        known = self._types.get(schema.name)
        if known is None:
            front = self.front(schema.name)
            known = self._types[schema.name] = KnownType(schema, front=front, near=front)
            former = self._former.pop(schema.name, None)
            known.was_advertised = former is not None and former.front is not None
        return known

    def _keep(self, known: KnownType) -> None:
        self._former[known.schema.name] = _Former(known.schema, known.front)
        while len(self._former) > self._types_max:
            lost = self._former.pop(next(iter(self._former))).front
            if lost is not None:
                self._lost_front = max(lost, lost if self._lost_front is None else self._lost_front)
