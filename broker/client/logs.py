"""The logs of the brokers of a network, read through one of them.

Example: the events of the last hour, in their order::

    logs = NetworkLogs(manager, Wanted(since=an_hour_ago))
    for step in Ordered(logs.all, logs.wanted).steps():
        ...
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from broker.client.manager import RuleManager
from broker.errors import RefusedError
from broker.store.entries import message_of
from broker.store.ordered import Wanted
from matcher.model import TIME_MIN, EventType
from routing.messages import Code, LogEntry, LogPart
from rules.pattern import TIMER

AT_ONCE = 1_024
"""Entries that are asked for by their positions."""
PATIENCE_S = 30.0
"""How long, in seconds, a broker may be out of reach, while the network changes say."""
PAUSE_S = 0.2
NOWHERE = 2**62
"""A position that no log comes to."""


class BrokerLog:
    """The log of one broker. ``read``: the position up to which its entries were outlined."""

    def __init__(self, manager: RuleManager, broker: str, wanted: Wanted) -> None:
        self.broker = broker
        self.read = 0
        self.marks: Mapping[str, int] = {}
        """As they came with the last outlines."""
        self.homes: Mapping[str, tuple[str, ...]] = {}
        """Likewise: what is published, or was, by broker."""
        self._manager = manager
        self._asked: dict[str, Any] = {
            "since": wanted.since,
            "types": () if wanted.types is None else tuple(sorted(wanted.types)),
        }

    def outlines(self) -> Iterator[LogEntry]:
        """The entries behind those that were outlined before, without their events."""
        while True:
            part = self._ask(after=self.read, outlined=True)
            yield from part.entries
            self.read = part.read
            if part.read >= part.last:
                self.marks, self.homes = dict(part.marks), dict(part.homes)
                return

    def at(self, positions: Sequence[int]) -> Iterator[LogEntry]:
        """The entries at some positions, which rise."""
        left = list(positions)
        while left:
            part = self._ask(at=left[:AT_ONCE])
            yield from part.entries
            asked, left = left[:AT_ONCE], left[AT_ONCE:]
            left = [one for one in asked if one > part.read] + left

    def outlined(self, position: int) -> LogPart:
        """The entries behind a position, as many as come at once, without their events."""
        return self._ask(after=position, outlined=True)

    def behind(self, position: int) -> LogPart:
        """The entries behind a position, as many as come at once."""
        return self._ask(after=position)

    def _ask(self, **asked: Any) -> LogPart:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._manager.read_log(self.broker, **self._asked, **asked)
            except RefusedError as refusal:
                if refusal.code != Code.SILENT.value or time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE_S)


class NetworkLogs:
    """The logs of all brokers at which anybody publishes, or has published. Whoever has read all of
    them up to where they end has every event before the marks that came with them: a broker that is
    out of reach is not passed over, reading is refused by its name.
    """

    def __init__(self, manager: RuleManager, wanted: Wanted) -> None:
        self.wanted = wanted
        self._manager = manager
        self._logs: dict[str, BrokerLog] = {}
        self.look()

    def look(self) -> None:
        """See whether there are others by now."""
        part = self._manager.read_log("", NOWHERE, outlined=True, types=self._names)
        self._clock = dict(part.marks)[TIMER.name]
        for name, types in part.homes:
            if name not in self._logs and not self._is_apart(types):
                self._logs[name] = BrokerLog(self._manager, name, self.wanted)

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.wanted.types is None else tuple(sorted(self.wanted.types))

    def _is_apart(self, types: Sequence[str]) -> bool:
        return self.wanted.types is not None and self.wanted.types.isdisjoint(types)

    @property
    def all(self) -> Sequence[BrokerLog]:
        """The logs, by the names of their brokers."""
        return [self._logs[name] for name in sorted(self._logs)]

    @property
    def marks(self) -> Mapping[str, int]:
        """Types, and the time before which all events of each were outlined, whatever logs they are
        in; TIME_MIN for one that nobody publishes yet, or that is published at a broker whose log
        is not among these yet. Those are missing that nobody may publish any more.
        """
        found = {TIMER.name: self._clock}
        published, unread = {TIMER.name}, set[str]()
        for log in self._logs.values():
            for name, types in log.homes.items():
                (published if name in self._logs else unread).update(types)
            for name, mark in log.marks.items():
                found[name] = min(mark, found.get(name, mark))
        unknown = () if self.wanted.types is None else self.wanted.types - published
        return {**found, **dict.fromkeys(unread.union(unknown), TIME_MIN)}


def logged_types(manager: RuleManager, names: Iterable[str]) -> Mapping[str, EventType]:
    """The types of these names that are in the logs, each as it was first there."""
    found: dict[str, EventType] = {}
    for name in names:
        for log in NetworkLogs(manager, Wanted(frozenset((name,)))).all:
            first = next(iter(log.outlines()), None)
            if first is not None:
                (entry,) = log.at([first.position])
                batches = message_of(entry).batches
                found[name] = next(one.type for one in batches if one.type.name == name)
                break
    return found
