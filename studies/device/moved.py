"""Bytes that the kernels of a rule's evaluation move, counted launch by launch from what each has
to do then: windows that were found, candidates in them, partial sequences, marks, results.

Law: a count is no more than what is moved. Of a word that may be read it counts those that must be:
a search for the last fitting event looks at all candidates behind the one that it found, perhaps at
others too, and what a second condition reads may be spared by the first. Words that caches keep
count in each launch.

Example: the last event of a window of 1,000,000 with ``b.v * 2 + b.w = $x``, which none satisfies,
is looked for in 16,000,000 bytes, and the rest of the evaluation adds some thousand.

Launches wait for each other here, and nothing is timed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.gpu import scan
from matcher.gpu.device import Buffer, Device, Lane
from matcher.model import Int64s
from rules.engine.gpu import kernels, records
from rules.engine.gpu.machine import INSTRUCTION
from rules.engine.kernels.words import CHECK, END, LOAD

WORD = 8


@contextmanager
def counting(on: Device) -> Iterator[Counter[Any]]:
    """Count by kernel the bytes that the launches of a device object move in the meantime; a
    kernel that MOVED does not have is a KeyError.
    """
    counted: Counter[Any] = Counter()
    launch = on.launch

    def counted_launch(
        kernel: Any,
        blocks: tuple[int, int],
        threads: int,
        lane: Lane,
        *arguments: Buffer | int,
        shared: int = 0,
    ) -> None:
        moved, names = MOVED[kernel]
        launch(kernel, blocks, threads, lane, *arguments, shared=shared)
        given = dict(zip(names.split(), arguments, strict=True))
        counted[kernel] += WORD * moved(Launch(on, lane, given))

    on.launch = counted_launch  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        del on.launch


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch that has been made: its arguments by name, and how to read them."""

    on: Device
    lane: Lane
    given: Mapping[str, Buffer | int]

    def number(self, name: str) -> int:
        """An argument that is a number."""
        found = self.given[name]
        assert isinstance(found, int)
        return found

    def words(self, name: str, first: int, count: int) -> Int64s:
        """So many words of an argument that is a buffer, from a place on."""
        buffer = self.given[name]
        assert isinstance(buffer, Buffer)
        found, part = np.empty(count, np.int64), buffer.array[first : first + count]
        self.on.download(found, Buffer(part, None), self.lane)
        self.lane.wait()
        return found

    def size(self, place: int) -> int:
        """One of the sizes."""
        return int(self.words("sizes", place, 1)[0])

    @property
    def partials(self) -> int:
        """Partial sequences of the launch's level."""
        return self.size(records.LEVELS + self.number("level"))

    def of_partials(self, name: str) -> Int64s:
        """A word of each partial sequence."""
        return self.words(name, 0, self.partials)

    @property
    def step(self) -> Int64s:
        """The words of the step."""
        return self.words("heap", self.number("step"), records.STEP_WORDS)

    def heap(self, place: int) -> int:
        """A word of the heap."""
        return int(self.words("heap", place, 1)[0])


# --- words of a candidate, and of searches -------------------------------------------------------


def read_of_each(launch: Launch, step: Sequence[int]) -> int:
    """Words that are read of each candidate in any case: by all terms, each segment once; without
    terms by the first condition of the program; without both, what is aggregated.
    """
    terms, indexed = step[records.TERMS], int(step[records.ORDER] >= 0)
    if terms:
        first, words = step[records.FIRST_TERM], terms * records.TERM_WORDS
        table = launch.words("heap", first, words).reshape(terms, records.TERM_WORDS)
        return len(set(table[:, records.TERM_SEGMENT].tolist())) + indexed
    place, segments = step[records.REST], set()
    if place < 0:
        return int(step[records.REDUCTION] > records.REDUCE_LAST and step[records.VALUES] >= 0)
    while (word := launch.heap(place)) & 255 not in (CHECK, END):
        if word & 255 == LOAD and (word >> 8) & 255 == step[records.OWN]:
            segments.add(word >> 16)
        place += INSTRUCTION
    return len(segments)


def probed(size: int) -> int:
    """Words that a search for two places among so many reads (kernels.both_not_before)."""
    words = 0
    while size > kernels.PROBES:
        words, size = words + 2 * kernels.PROBES, size // (kernels.PROBES + 1) - 1
    return words


# --- words by kernel -----------------------------------------------------------------------------


def _spread(launch: Launch) -> int:
    runs = launch.number("runs")
    return 3 * runs + 2 * int(launch.words("staged", 0, 3 * runs)[2::3].sum())


def _begin(launch: Launch) -> int:
    return 2 * launch.size(records.TERMINATORS) + records.SIZES - records.LEVELS


def _look(launch: Launch) -> int:
    step, searches = launch.step.tolist(), int((launch.of_partials("alive") != 0).sum())
    if step[records.ORDER] >= 0:
        searches += int((launch.of_partials("lows") < launch.of_partials("highs")).sum())
    return 5 * launch.partials + searches * probed(launch.heap(step[records.SIZE]))


def _narrow(launch: Launch) -> int:
    return 6 * launch.partials


def _candidates(launch: Launch, step: Sequence[int]) -> int:
    """Words that are read of the candidates of windows, as many as must be looked at."""
    lows, highs = launch.of_partials("lows"), launch.of_partials("highs")
    looked, how = highs - lows, step[records.REDUCTION]
    if how in (records.REDUCE_FIRST, records.REDUCE_LAST) and "results" in launch.given:
        found = launch.of_partials("results")
        is_found = (lows <= found) & (found < highs)
        until = found - lows + 1 if how == records.REDUCE_FIRST else highs - found
        looked = np.where(is_found, until, looked)
    return int(np.maximum(looked, 0).sum()) * read_of_each(launch, step)


def _reduce(launch: Launch) -> int:
    return 2 * launch.partials + _candidates(launch, launch.step.tolist())


def _of_range(launch: Launch) -> int:
    counts = launch.of_partials("counts")
    tails = launch.of_partials("ends") - launch.of_partials("tails")
    looked, indexed = int((counts + tails).sum()), int(counts.sum())
    return 3 * launch.partials + looked * read_of_each(launch, launch.step.tolist()) + indexed


def _partials(launch: Launch) -> int:
    return launch.partials


def _marked(launch: Launch) -> int:
    if launch.size(records.WORDS) == 0:  # there was no room
        return 0
    return 2 * launch.partials + _candidates(launch, launch.step.tolist())


def _range_marked(launch: Launch) -> int:
    return _of_range(launch) if launch.size(records.WORDS) else 0


def _tally(launch: Launch) -> int:
    return launch.size(records.WORDS) + launch.size(records.CHUNKS_PLACE)


def _extend(launch: Launch) -> int:
    bound = int(launch.step[records.BOUND])
    longer = launch.size(records.LEVELS + launch.number("level") + 1)
    of_each = 2 * (bound + launch.number("slot_words")) + 2
    return launch.size(records.WORDS) + longer * of_each


def _words_of_marks(launch: Launch) -> int:
    return launch.size(records.WORDS)


def _conclude(launch: Launch) -> int:
    alive = int((launch.of_partials("alive") != 0).sum())
    events, values = launch.number("events"), launch.number("values")
    return 2 * records.SIZES + 2 * launch.partials + alive * (3 * events + 2 * values)


def _sums(launch: Launch) -> int:
    return int(launch.words("length", launch.number("place"), 1)[0])


def _wide_sums(launch: Launch) -> int:
    return 2 * _sums(launch)


_BASE = "heap step frames slots "
_RANGES = " firsts counts tails ends"
MOVED: Mapping[Any, tuple[Callable[[Launch], int], str]] = {
    kernels.spread: (_spread, "heap staged runs"),
    kernels.begin: (_begin, "frames alive sizes"),
    kernels.look: (
        _look,
        _BASE + "alive lows highs operands stride sizes level results seconds",
    ),
    kernels.narrow: (_narrow, _BASE + "lows highs stride sizes level" + _RANGES),
    kernels.reduce: (_reduce, _BASE + "lows highs operands stride sizes level results seconds"),
    kernels.reduce_range: (
        _of_range,
        _BASE + "lows operands stride sizes level results seconds" + _RANGES,
    ),
    kernels.settle: (_partials, _BASE + "alive stride sizes level results seconds"),
    kernels.mark: (_marked, _BASE + "lows highs operands stride sizes level marks"),
    kernels.mark_range: (
        _range_marked,
        _BASE + "lows operands stride sizes level marks" + _RANGES,
    ),
    kernels.tally: (_tally, "marks counts sizes"),
    kernels.extend: (
        _extend,
        _BASE + "lows stride sizes level marks sums longer longer_slots alive slot_words",
    ),
    kernels.pick: (_partials, "heap step frames alive lows stride sizes level marks sums"),
    kernels.clear: (_words_of_marks, "marks sizes"),
    kernels.check: (_partials, _BASE + "alive stride sizes level"),
    kernels.conclude: (
        _conclude,
        "heap numbers events values first_value frames slots alive stride sizes level results",
    ),
    scan.part_sums: (_sums, "counts parts length place"),
    scan.wide_sums: (_wide_sums, "counts parts length place"),
}
"""Words that a launch moves, by kernel, and the names of its arguments."""
