"""Bytes that the kernels of stream operators move, counted launch by launch from what each has to
do then: events of the batch, spans of windows, matches.

Law: a count is no more than what is moved. Of a condition it counts what is read before its first
check; threads side by side that look at one word of a window read it together, 32 of them, and of
the words of a search it counts as many as the shortest has.

Example: a filter by ``v > 3`` over 2,048 events reads a word of each and writes its flag, which is
32,768 bytes; a join of 64 events with a window of 1,000 reads each word of the window twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from matcher.gpu.device import Buffer
from matcher.model import Bools, Int64s
from rules.engine.kernels.words import CHECK, END, LOAD
from studies.operators.kernels import bodies
from studies.operators.kernels.machine import EVENT, OFFSET, OP
from studies.operators.places import DevicePlace, Words

WORD = 8
TOGETHER = 32
"""Threads that read one word together."""


def moved(place: DevicePlace, kernel: str, threads: int, arguments: Sequence[Words | int]) -> int:
    """The bytes that a launch, which is done, has moved; KeyError for a kernel that WORDS lacks."""
    given = dict(zip(_names(kernel), arguments, strict=True))
    return WORD * WORDS[kernel](Launch(place, threads, given))


def moved_by_scan(size: int, *, wide: bool) -> int:
    """The bytes of the sums of so many counts: each is read, and its sum written; by many blocks
    it is read twice.
    """
    return WORD * (3 if wide else 2) * size


@cache
def _names(kernel: str) -> tuple[str, ...]:
    """The names of what a kernel is given, but for its thread and its stack."""
    parameters = inspect.signature(getattr(bodies, kernel).py_func).parameters
    return tuple(name for name in parameters if name not in ("t", "stack"))


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch that has been made: its threads, its arguments by name, and how to read them."""

    place: DevicePlace
    threads: int
    given: Mapping[str, Words | int]

    def number(self, name: str) -> int:
        """An argument that is a number."""
        found = self.given[name]
        assert isinstance(found, int)
        return found

    def words(self, name: str, count: int, first: int = 0) -> Int64s:
        """So many words of an argument, from a place on."""
        return self.place.array(self.given[name], first, count)

    def table(self, name: str) -> Int64s:
        """The rows of an argument that is a table."""
        buffer: Any = self.given[name]
        array = buffer.array
        flat = self.place.array(Buffer(array.reshape(-1), None), 0, array.size)
        return flat.reshape(array.shape)

    def programs(self, name: str) -> list[int]:
        """Where programs of a list begin."""
        (count,) = self.words(name, 1)
        return [int(first) for first in self.words(name, int(count), 1)]


def read_by(launch: Launch, programs: Collection[int]) -> set[tuple[int, int]]:
    """The columns, each with its event, that programs read in any case: up to their first check."""
    found: set[tuple[int, int]] = set()
    code = launch.table("code") if any(first >= 0 for first in programs) else None
    for first in programs:
        place = first
        while code is not None and first >= 0 and code[place, OP] not in (CHECK, END):
            if code[place, OP] == LOAD:
                found.add((int(code[place, EVENT]), int(code[place, OFFSET])))
            place += 1
    return found


def searched(size: int) -> int:
    """Words that the shortest search among so many reads."""
    return (size + 1).bit_length() - 1


def looked_at(begins: Int64s, ends: Int64s) -> int:
    """Words of a window that threads read from and to, int64[slices, threads], which only ever
    grow: TOGETHER neighbours read each once.
    """
    words = 0
    for first in range(0, begins.shape[1], TOGETHER):
        from_, to = begins[:, first : first + TOGETHER], ends[:, first : first + TOGETHER]
        read = np.maximum.accumulate(to, axis=1)
        anew = np.maximum(from_[:, 1:], read[:, :-1])
        words += int((to[:, :1] - from_[:, :1]).sum() + np.maximum(to[:, 1:] - anew, 0).sum())
    return words


# --- words by kernel -----------------------------------------------------------------------------


def _flag(launch: Launch) -> int:
    return launch.threads * (len(read_by(launch, [launch.number("first")])) + 1)


def _gather(launch: Launch) -> int:
    offsets = launch.words("offsets", launch.threads + 1)
    kept = int(offsets[-1] - offsets[0])
    return launch.threads + 1 + kept * (1 + 2 * launch.number("columns"))


def _append(launch: Launch) -> int:
    values, raw = launch.programs("values"), launch.number("raw")
    read = {column for _, column in read_by(launch, [launch.number("first"), *values])}
    return launch.threads * (len(read.union(range(raw))) + raw + 1 + len(values))


def _append_values(launch: Launch) -> int:
    values, raw = launch.programs("values"), launch.number("raw")
    conditions = launch.programs("conditions")
    sure = [one for one, first in zip(values, conditions, strict=True) if first < 0]
    read = {column for _, column in read_by(launch, [*conditions, *sure])}
    return launch.threads * (len(read.union(range(raw))) + raw + 2 * len(values))


def _move(launch: Launch) -> int:
    return launch.threads * 2 * launch.number("columns")


def _oldest(launch: Launch) -> int:
    if launch.number("duration") < 0:
        return launch.threads
    return launch.threads * (2 + searched(launch.number("end") - launch.number("start")))


def _arrange(launch: Launch) -> int:
    count = launch.number("count")
    gone = int(launch.words("lows", 1, count - 1)[0]) - launch.number("start") if count else 0
    return 2 * count + gone


def _span(launch: Launch) -> int:
    end, start = launch.number("their_end"), launch.number("their_start")
    words = 3 + searched(launch.number("their_new_end") - end)
    if launch.number("duration") >= 0:
        words += searched(end - start)
    return launch.threads * words


def _common(launch: Launch) -> int:
    return 6 * launch.threads


def _pair(launch: Launch) -> int:
    count, slices = launch.number("count"), launch.number("slices")
    spans = launch.words("spans", 2 * count).reshape(count, 2)
    looks: Bools = np.tile(_asks(launch, count), (slices, 1))
    written, room = launch.threads, launch.number("room")
    if room >= 0:
        matches = _matches(launch, count, slices)
        left = max(int(matches.sum()) - launch.number("skip"), 0)
        looks &= matches > 0
        written = 2 * min(room, left)
    size = launch.number("size")
    begins, ends = _sliced(int(spans[0, 0]), spans[:, 0], spans[:, 1], slices, size)
    return launch.threads + written + looked_at(begins, np.where(looks, ends, begins))


def _asks(launch: Launch, count: int) -> Bools:
    """Which of the events that are joined count at all."""
    capacity, raw = launch.number("my_capacity"), launch.number("my_raw")
    column = launch.words("mine", capacity, raw * capacity)
    found: Bools = column[(launch.number("my_end") + np.arange(count)) & (capacity - 1)] != 0
    return found


def _matches(launch: Launch, count: int, slices: int) -> Int64s:
    """The matches of each slice and event, int64[slices, count], by what ``total`` made of them."""
    before = launch.words("counts", count * slices).reshape(slices, count)
    totals = launch.words("totals", count + 1)
    found: Int64s = np.diff(np.vstack([before, np.diff(totals)]), axis=0)
    return found


def _sliced(
    origin: int, lows: Int64s, highs: Int64s, slices: int, size: int
) -> tuple[Int64s, Int64s]:
    """Where each event looks in each slice, from and to, int64[slices, events]."""
    cuts = origin + size * np.arange(slices)[:, None]
    begins, ends = np.maximum(cuts, lows), np.minimum(cuts + size, highs)
    return begins, np.maximum(begins, ends)


def _total(launch: Launch) -> int:
    return launch.threads * (2 * launch.number("slices") + 1)


def _select(launch: Launch) -> int:
    values = launch.programs("values")
    times = {(0, 0), (1, 0)}
    return launch.threads * (2 + len(times | read_by(launch, values)) + 2 + len(values))


def _aggregate(launch: Launch) -> int:
    count, slices = launch.number("count"), launch.number("slices")
    many = launch.threads // max(count * slices, 1)
    lows, end = launch.words("lows", count), launch.number("end")
    highs = end + 1 + np.arange(count)
    cut = _sliced(int(lows[0]) if count else 0, lows, highs, slices, launch.number("size"))
    return 6 * launch.threads + many * looked_at(*cut)


def _combine(launch: Launch) -> int:
    of_each = launch.number("slices")
    cells = launch.threads * of_each
    some = int((launch.words("parts", cells) != 0).sum())
    return cells + 4 * some + 5 * launch.threads


WORDS: Mapping[str, Callable[[Launch], int]] = {
    "flag": _flag,
    "gather": _gather,
    "append": _append,
    "append_values": _append_values,
    "move": _move,
    "oldest": _oldest,
    "arrange": _arrange,
    "span": _span,
    "common": _common,
    "pair": _pair,
    "total": _total,
    "select": _select,
    "aggregate": _aggregate,
    "combine": _combine,
}
"""Words that a launch moves, by kernel."""
