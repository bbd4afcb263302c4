"""The pairs of a join: a batch under way, from counting them to what is selected of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matcher.model import EventBatch, EventType, Int64s, Kind
from studies.operators.conditions import RIGHT, condition_of
from studies.operators.filters import Sieve
from studies.operators.joinplan import Programs
from studies.operators.linear import Columns
from studies.operators.places import Place, Turn, Words
from studies.operators.texts import Texts
from studies.operators.windows import UNBOUNDED, Extent, Ring

ROOM_MAX = 2**22
"""Pairs that are written at a time, so that memory on a device is bounded."""
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Stream:
    """One side of a join: its events' type, their name in the condition, and their window.

    ``where``: a condition of events that come at all, as of a filter ahead of the window.
    """

    type: EventType
    name: str
    window: Extent
    where: str = ""


@dataclass(slots=True)
class Loss:
    """Pairs that a join by snapshots has found, beside those of the exact one."""

    exact: int = 0
    lost: int = 0
    spurious: int = 0

    def add(self, other: Loss) -> None:
        """Count those of a batch."""
        self.exact += other.exact
        self.lost += other.lost
        self.spurious += other.spurious


Told: TypeAlias = tuple[list[Int64s], list[Loss]]
"""The words that were selected for each trigger, and the losses of each."""


class Side:
    """One stream's window."""

    def __init__(
        self,
        place: Place,
        texts: Texts,
        stream: Stream,
        columns: Columns,
        kinds: Sequence[Kind],
        within: int | None,
    ) -> None:
        self.stream, self.columns = stream, columns
        self.raw = len(columns)
        self.texts = columns.texts
        self.texts += [self.raw + 1 + k for k, kind in enumerate(kinds) if kind is Kind.STRING]
        more = UNBOUNDED if within is None else within
        self.ring = Ring(place, self.raw + 1 + len(kinds), stream.window, more)
        self.sieve: Sieve | None = None
        if stream.where.strip():  # its columns stand behind those that are kept
            conditions = condition_of(stream.type, stream.where)
            self.sieve = Sieve(place, texts, columns, conditions)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """State that all batches of a join share."""

    sides: tuple[Side, Side]
    programs: Programs
    exact: bool


class Joining:
    """A batch that is joined; ``tell`` makes events of what was found."""

    def __init__(
        self, of: Joined, turn: Turn, results: tuple[Words, int], tell: Callable[[Told], EventBatch]
    ) -> None:
        self._of, self._turn, self._results, self._tell = of, turn, results, tell
        self._parts: list[Part] = []
        self._settled = False

    def begin(self, side: int, counts: Sequence[int]) -> None:
        """Count the pairs that the new events of a side make."""
        self._parts.append(Part(self._of, self._turn, self._results, side, counts))

    def settle(self) -> None:
        """Wait for the counts, and begin to write pairs."""
        if self._settled:
            return
        self._settled = True
        self._turn.wait()
        for part in self._parts:
            part.emit(0)

    def result(self) -> EventBatch:
        """The events that come out."""
        made: list[Int64s] = []
        # At one time the right stream's events came first: a stable sort keeps it so.
        for part in self._parts[::-1]:
            made += part.words()
        return self._tell((made, [part.loss for part in self._parts]))


class Part:
    """The pairs of one side's new events."""

    def __init__(
        self,
        of: Joined,
        turn: Turn,
        results: tuple[Words, int],
        side: int,
        counts: Sequence[int],
    ) -> None:
        self._of, self._turn, self._results = of, turn, results
        self._mine, self._theirs = of.sides[side], of.sides[1 - side]
        self._flipped, self._count = int(side == RIGHT), counts[side]
        self._name = SIDES[side]
        mine, theirs = self._mine.ring, self._theirs.ring
        self._my_end, self._their_end = mine.end, theirs.end
        self._rings = (mine.words, mine.capacity, theirs.words, theirs.capacity)
        new = counts[1 - side]
        population = theirs.end + new - theirs.start
        self._slices = turn.place.slices(self._count, population)
        self._size = -(-population // self._slices) if population else 1
        self.loss, self._total = Loss(), 0
        self._exact = self._spans("exact", new, UNBOUNDED)
        self._counted = ["exact"]
        if not of.exact:
            self._count_snapshot(new)
        else:
            self._count_pairs("exact", self._exact)

    def _count_snapshot(self, new: int) -> None:
        """Count the pairs as they were published, the exact ones, and those that are both."""
        visible, last = (new, self._their_end + new) if self._flipped else (0, self._their_end)
        published = self._spans("published", visible, last)
        both = self._turn.words(f"{self._name} both spans", 2 * self._count)
        self._turn.run("common", self._count, self._exact, published, both)
        for name, spans in (("exact", self._exact), ("both", both), ("published", published)):
            self._count_pairs(name, spans)
        self._counted = ["exact", "both", "published"]
        self._exact = published

    def _spans(self, name: str, new: int, snapshot: int) -> Words:
        spans = self._turn.words(f"{self._name} {name} spans", 2 * self._count)
        mine, my_capacity, theirs, their_capacity = self._rings
        ring = self._theirs.ring
        self._turn.run(
            "span",
            self._count,
            mine,
            my_capacity,
            self._my_end,
            theirs,
            their_capacity,
            ring.start,
            self._their_end,
            self._their_end + new,
            ring.length,
            ring.duration,
            1 - self._flipped,  # at one time the right stream's events come first
            snapshot,
            spans,
        )
        return spans

    def _count_pairs(self, name: str, spans: Words) -> None:
        turn, count = self._turn, self._count
        counts = turn.words(f"{self._name} {name} counts", count * self._slices)
        totals = turn.words(f"{self._name} {name} totals", count + 1)
        self._pair(spans, counts, totals, totals, 0, UNBOUNDED)
        turn.run("total", count, count, self._slices, counts, totals)
        turn.scan(f"{self._name} {name}", totals, count)
        turn.ask(f"{self._name} {name}", totals, count, 1)
        self._counts, self._totals = counts, totals

    def _pair(
        self, spans: Words, counts: Words, totals: Words, pairs: Words, skip: int, room: int
    ) -> None:
        mine, my_capacity, theirs, their_capacity = self._rings
        programs = self._of.programs
        self._turn.run(
            "pair",
            self._count * self._slices,
            self._count,
            self._slices,
            self._size,
            spans,
            mine,
            my_capacity,
            self._my_end,
            theirs,
            their_capacity,
            self._flipped,
            self._mine.raw,
            self._theirs.raw,
            programs.compared,
            programs.code,
            programs.rest,
            *self._results,
            counts,
            totals,
            pairs,
            skip,
            room,
        )

    def emit(self, skip: int) -> None:
        """Begin to write the pairs from number ``skip`` on; the turn has been waited for."""
        turn, of = self._turn, self._of.programs
        if skip == 0:
            found = [int(turn.answer(f"{self._name} {one}", 1)[0]) for one in self._counted]
            self._total = found[-1]
            self.loss = Loss(found[0])
            if not self._of.exact:
                self.loss = Loss(found[0], found[0] - found[1], found[2] - found[1])
        rows = self._rows(skip)
        if not rows:
            return
        pairs = turn.words(f"{self._name} pairs", 2 * rows)
        self._pair(self._exact, self._counts, self._totals, pairs, skip, rows)
        size = (2 + of.width) * rows
        out = turn.words(f"{self._name} selected", size)
        programs = (of.code, of.selected, *self._results)
        turn.run("select", rows, pairs, self._flipped, *self._rings, *programs, out, rows)
        turn.ask(f"{self._name} selected", out, 0, size)

    def _rows(self, skip: int) -> int:
        return min(self._total - skip, ROOM_MAX)

    def words(self) -> list[Int64s]:
        """The words that were selected, int64[2 + attributes, pairs]."""
        made, skip = [], 0
        while skip < self._total:
            self._turn.wait()
            rows = self._rows(skip)
            width = 2 + self._of.programs.width
            found = self._turn.answer(f"{self._name} selected", width * rows)
            made.append(found.reshape(width, rows))
            skip += rows
            if skip < self._total:
                self.emit(skip)
        return made
