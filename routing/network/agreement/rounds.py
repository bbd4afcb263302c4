"""Findings of a round, in which the whole tree pauses or is surveyed (planning, Laws 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from matcher.model import TIME_MIN
from routing.messages import Known, Pause, Paused, Surveyed
from routing.network.agreement.knowledge import distinct
from routing.network.recovery.dues import Times, least

ReportedNode = tuple[str, str, tuple[str, ...]]
"""A broker, its father ("" for the root), and what its sources publish or have published."""
Absent = tuple[tuple[str, tuple[str, ...]], ...]
"""Brokers out of reach, and what their sources publish or have published."""


@dataclass(slots=True)
class Round:
    """One pause: whose answers are awaited, and what was said so far."""

    pause: Pause
    awaited: set[str]
    nodes: list[ReportedNode] = field(default_factory=list)
    fronts: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)
    sources: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    wants: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    front: int = TIME_MIN
    ended: dict[str, int] = field(default_factory=dict)
    promises: dict[str, int] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    is_anew: bool = False
    """At the root: whether rules are to begin anew, whatever else there is."""

    def is_answered_by(self, said: Paused) -> bool:
        """Whether that is said in answer to this pause."""
        own = self.pause
        return (own.root, own.epoch, own.number) == (said.root, said.epoch, said.number)

    def add(self, said: Paused) -> None:
        """Take in what a child has said."""
        self.nodes += said.nodes
        raise_all(self.fronts, said.fronts)
        raise_all(self.marks, said.marks)
        raise_all(self.rules, said.rules)
        self.need(said.due)
        self.sources += said.sources
        self.known = distinct((*self.known, *said.known))
        self.wants += said.wants
        self.front = max(self.front, said.front)
        self.ended.update(said.ended)
        self.promise(said.promises)
        raise_all(self.committed, said.committed)

    def need(self, due: Times) -> None:
        """Somebody has the composite events of rules up to these times."""
        self.due = least((self.due.items(), due))

    def promise(self, promises: Iterable[tuple[str, int]]) -> None:
        """Sources somewhere promise as much of these types."""
        self.promises = least((self.promises.items(), promises))

    def said(self) -> Paused:
        """All of it, for the father."""
        return Paused(
            self.pause.root,
            self.pause.epoch,
            self.pause.number,
            tuple(self.nodes),
            _table(self.fronts),
            _table(self.marks),
            _table(self.rules),
            _table(self.due),
            tuple(self.sources),
            tuple(self.known),
            tuple(self.wants),
            self.front,
            _table(self.ended),
            _table(self.promises),
            _table(self.committed),
        )


@dataclass(slots=True)
class Tally:
    """One survey: whose answers are awaited, and what was said so far."""

    number: int
    awaited: set[str]
    due: dict[str, int]
    promises: dict[str, int]
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    found: dict[str, tuple[int, int]] = field(default_factory=dict)
    wants: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def add(self, said: Surveyed) -> None:
        """Take in what a child has said."""
        self.due = least((self.due.items(), said.due))
        self.promises = least((self.promises.items(), said.promises))
        self.count(said.counts)
        self.find(said.found)
        self.wants += said.wants

    def count(self, counts: Iterable[tuple[str, int, int]]) -> None:
        """Events of these types were published somewhere, and the greatest time of one."""
        for name, events, front in counts:
            before, latest = self.counts.get(name, (0, front))
            self.counts[name] = before + events, max(latest, front)

    def find(self, found: Iterable[tuple[str, int, int]]) -> None:
        """So many bytes of rules' composite events were found somewhere, in so many batches."""
        for name, size, batches in found:
            self.found[name] = max((size, batches), self.found.get(name, (0, 0)))

    def said(self) -> Surveyed:
        """All of it, for the father."""
        counts = ((name, events, front) for name, (events, front) in sorted(self.counts.items()))
        found = ((name, size, batches) for name, (size, batches) in sorted(self.found.items()))
        due, promises = _table(self.due), _table(self.promises)
        wants = tuple(self.wants)
        return Surveyed(self.number, due, tuple(counts), tuple(found), wants, promises)


def raise_all(known: dict[str, int], said: Iterable[tuple[str, int]]) -> None:
    """Take over the greater times."""
    for name, time in said:
        known[name] = max(time, known.get(name, TIME_MIN))


def _table(times: Mapping[str, int]) -> Times:
    return tuple(sorted(times.items()))
