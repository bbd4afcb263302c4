"""Events from outside until they arrive: the host's side of ``kernels.intake`` and ``ordering``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import is_
from typing import NamedTuple, cast

import numpy as np

from matcher.model import (
    TIME_MAX,
    TIME_MIN,
    AnyArray,
    EventBatch,
    EventType,
    Int64s,
    Kind,
    Value,
)
from matcher.single import Row, Single
from rules.engine.intake.duplicates import DuplicateFilter, Remembered
from rules.engine.intake.rows import RowWriter
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.intake import repack, take_in, take_in_staged
from rules.engine.linking.columns import ColumnTables
from runtime.memory import filled, first_length, zeros

_LASTING = (layout.LEAST, layout.GREATEST, layout.DROPPED, layout.ENTERED)
"""Counters that go along into other arrays."""
KEPT_MAX = 1 << 20
"""So many words stay reserved for what waits when nothing does."""


class _Form(NamedTuple):
    """How an event of a type that comes alone is written; ``strings`` are the places of attributes
    that are.
    """

    type: EventType
    number: int
    write: Callable[..., None]
    strings: tuple[int, ...]

    @classmethod
    def of(cls, type_: EventType, number: int) -> _Form:
        kinds = [attribute.kind for attribute in type_.attributes]
        letters = "".join("d" if kind is Kind.FLOAT else "q" for kind in kinds)
        strings = tuple(place for place, kind in enumerate(kinds) if kind is Kind.STRING)
        words = struct.Struct(f"<{layout.STAGED_ROW + layout.HEADER}q{letters}")
        return cls(type_, number, words.pack_into, strings)


class Pending:
    """Owner of the events that wait, and of ``repeats``, which tells events from their repeats.

    An event waits until its type's mark has passed it; then it arrives, in the order of (time, E4).
    """

    def __init__(self, arrays: Arrays, tables: ColumnTables, writer: RowWriter) -> None:
        self.repeats = DuplicateFilter()
        self._is_trusting = False
        self._tables = tables
        self._writer = writer
        self._forms: dict[str, _Form] = {}  # by the name of the type
        self._sources: dict[str, tuple[int, int, int]] = {}  # of events that came alone
        self._types: set[int] = set()  # all that wait are of these
        self._types_fitted = 0  # for so many there is room
        self._held: Sequence[AnyArray] = ()  # what the parcel has the addresses of
        self._use(arrays)

    def _use(self, arrays: Arrays) -> None:
        self._arrays = arrays
        arrays["asked"] = self._writer.asked
        self._shown: tuple[object, ...] = (None,) * 6
        self._counters = arrays.counters
        self._counters[layout.LEAST], self._counters[layout.GREATEST] = TIME_MAX, TIME_MIN
        self._counters[layout.FLOOR], self._counters[layout.UNTIL] = TIME_MIN, TIME_MAX
        self.fit()

    def move_to(self, arrays: Arrays) -> None:
        """Go on in other arrays, where nothing waits."""
        old, self._types, self._types_fitted = self._counters, set(), 0
        self._use(arrays)
        for place in _LASTING:
            arrays.counters[place] = old[place]

    def fit(self) -> None:
        """Follow the tables of types after rules were added or removed."""
        arrays, types = self._arrays, len(self._tables.types.array)
        arrays.grow("staged", layout.STAGED_ROW + self._tables.width)
        attributes = self._tables.width - layout.HEADER
        arrays.grow("parcel", layout.PARCEL_HEADER + layout.PARCEL_COLUMN * attributes)
        self._staged = arrays["staged"].data.cast("B")
        self._parcel = arrays["parcel"].data.cast("B")
        self._forms.clear()
        least = filled(types, TIME_MAX)
        least[: self._types_fitted] = arrays["type_least"][: self._types_fitted]
        self._types_fitted = types
        arrays["type_least"] = least
        arrays["type_marks"] = filled(types, TIME_MIN)
        self._marks = arrays["type_marks"].data

    # --- what waits ------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return self.count != 0

    def __len__(self) -> int:
        return len(self._records())

    @property
    def count(self) -> int:
        """How many there are, repeats among those that were only written down included."""
        counters = self._counters
        waiting = counters[layout.WAITING_TOP] - counters[layout.WAITING_FIRST]
        return waiting + counters[layout.STAGED]

    @property
    def dropped(self) -> int:
        """How many events were dropped as repeats."""
        self.settle()
        return self.repeats.dropped + self._counters[layout.DROPPED]

    @property
    def conflicts(self) -> int:
        """How many of these were in conflict with what bears their ids."""
        return self.repeats.conflicts

    @property
    def times(self) -> tuple[int, int] | None:
        """The least and the greatest time of all events that came; None before the first."""
        self.settle()
        least, greatest = self._counters[layout.LEAST], self._counters[layout.GREATEST]
        return (least, greatest) if least <= greatest else None

    def rows(self, type_number: int) -> Int64s:
        """The rows of a type that wait, int64[n, width]."""
        records = self._records()
        offsets = records["offset"][records["type"] == type_number]
        width = int(self._tables.types.array[type_number]["width"])
        found: Int64s = self._arrays["inbox"][offsets[:, None] + np.arange(width)]
        return found

    def _records(self) -> AnyArray:
        self.settle()
        first, top = self._counters[layout.WAITING_FIRST], self._counters[layout.WAITING_TOP]
        return self._arrays["waiting"][first:top]

    def forget(self, type_number: int) -> None:
        """Drop what waits of a type."""
        if type_number not in self._types:
            return
        self._types.discard(type_number)
        records, counters = self._records(), self._counters
        kept = records["type"] != type_number
        first, late = counters[layout.WAITING_FIRST], counters[layout.WAITING_LATE]
        counters[layout.WAITING_LATE] = first + int(np.count_nonzero(kept[: late - first]))
        left = records[kept]
        records[: len(left)] = left
        counters[layout.WAITING_TOP] = first + len(left)
        self._arrays["type_least"][type_number] = TIME_MAX

    # --- what comes ------------------------------------------------------------------------

    def trust(self) -> None:
        """Look for no repeats from now on."""
        self._is_trusting = True
        self._sources.clear()

    def resume(self, kept: Remembered) -> None:
        """Know the repeats of what came to another engine, and of nothing else."""
        self.repeats.resume(kept)
        self._sources.clear()

    def note(self, times: tuple[int, int] | None) -> None:
        """Note the least and the greatest time of events that do not come here."""
        if times is not None:
            counters = self._counters
            counters[layout.LEAST] = min(counters[layout.LEAST], times[0])
            counters[layout.GREATEST] = max(counters[layout.GREATEST], times[1])

    def restore(self, type_number: int, rows: Int64s) -> None:
        """Let events wait of which these are the rows, int64[n, width]; none is a repeat."""
        count, arrays, counters = len(rows), self._arrays, self._counters
        arrays["parcel"][layout.PARCEL_COUNT] = count  # so many are coming
        if counters[layout.WAITING_TOP] + count > len(arrays["waiting"]):
            self.grow(layout.GROW_WAITING)
        if counters[layout.INBOX_TOP] + rows.size > len(arrays["inbox"]):
            self.grow(layout.GROW_INBOX)
        top, start = counters[layout.WAITING_TOP], counters[layout.INBOX_TOP]
        records = arrays["waiting"][top : top + count]
        records["time"], records["type"] = rows[:, layout.ROW_TIME], type_number
        records["offset"] = np.arange(start, start + rows.size, rows.shape[1])
        arrays["inbox"][start : start + rows.size] = rows.ravel()
        counters[layout.WAITING_TOP], counters[layout.INBOX_TOP] = top + count, start + rows.size
        arrays["parcel"][layout.PARCEL_COUNT] = 0
        self._types.add(type_number)

    def add(self, type_number: int, batch: EventBatch, *, is_new: bool = False) -> None:
        """Take in the events of a batch; if ``is_new``, without looking for repeats."""
        self.settle()
        seen = None
        if not (is_new or self._is_trusting):
            ids = batch.ids
            if ids.text is None and ids.digest is None and not isinstance(batch, Single):
                seen = self.repeats.numbers(ids.source)
                if ids.are_explicit:
                    self._expect_explicit(len(batch))
            else:
                came, batch = batch, self.repeats.accept(batch)
                if batch is not came:  # else the kernel notes all of them
                    self.note(times_of(came))
        words, self._held = self._writer.parcel(type_number, batch, seen)
        struct.pack_into(f"{len(words)}q", self._parcel, 0, *words)
        self._types.add(type_number)
        self._run(take_in)
        if count := self._arrays["parcel"].item(layout.PARCEL_REPEATS):
            places = self._arrays["repeats"][:count]
            self.repeats.compare(batch, places, self._arrays["digests"][places])
        struct.pack_into("q", self._parcel, 8 * layout.PARCEL_COUNT, 0)
        self._held = ()

    def _expect_explicit(self, count: int) -> None:
        """Have room for what the kernels note of so many events whose ids are explicit."""
        self._arrays.grow("digests", count)
        self._arrays.grow("repeats", count)
        self.repeats.explicit.reserve(count)

    def put(self, type_: EventType, one: Row) -> bool:
        """Write down an event known by its number; False if its type was not ``expect``-ed. The
        kernels take it in when they are called anyway, or before anything else is looked at or
        comes: calls cost more than what is done with one event.
        """
        form = self._forms.get(type_.name)
        if form is None:
            return False
        known, type_number, write, strings = form
        if known is not type_:
            return False
        if self._counters[layout.STAGED]:
            self.settle()
        values, sequence = one.values, one.sequence
        if strings:
            values = self._coded(form, values)
        key, number, seen = self._sources.get(one.source) or self._source(one.source)
        write(
            self._staged,
            0,
            type_number,
            seen,
            one.time,
            key,
            sequence,
            number,
            sequence,
            layout.ID_IS_SEQUENCE,
            *values,
        )
        self._counters[layout.STAGED] = 1
        self._types.add(type_number)
        return True

    def expect(self, type_: EventType, number: int) -> None:
        """Be ready for events of a type that come alone."""
        self._forms[type_.name] = _Form.of(type_, number)

    def _coded(self, form: _Form, values: tuple[Value, ...]) -> tuple[Value, ...]:
        coded = list(values)
        for place in form.strings:
            coded[place] = self._writer.strings.code(cast(str, values[place]))
        return tuple(coded)

    def _source(self, name: str) -> tuple[int, int, int]:
        """The hash and the numbers of a source."""
        sources = self._writer.sources
        number = sources.number(name)
        seen = -1 if self._is_trusting else self.repeats.number(name)
        found = self._sources[name] = sources.hashes.item(number), number, seen
        return found

    def settle(self) -> None:
        """Take in the event that was only written down, if there is one."""
        if self._counters[layout.STAGED]:
            self._run(take_in_staged)

    def _run(self, kernel: Callable[[int], int]) -> None:
        self.show()
        while (status := kernel(self._arrays.state)) != layout.DONE:
            self.grow(status)

    # --- how it leaves ---------------------------------------------------------------------

    def show(self) -> None:
        """Let the kernels see what may have been replaced since."""
        writer, shown = self._writer, self._shown
        strings, journal = writer.strings, self.repeats.explicit.chunk
        hashes, seen = writer.sources.hashes, self.repeats.table
        now = (hashes, seen, journal, strings.extents, strings.data, strings.results)
        if all(map(is_, shown, now)):
            return
        arrays = self._arrays
        arrays["source_hashes"], arrays["source_ranks"] = hashes, writer.sources.ranks
        arrays["seen"], arrays["text_results"] = seen, strings.results
        arrays["journal"] = journal
        arrays["strings"], arrays["string_bytes"] = strings.extents, strings.data
        self._shown = now

    def let_arrive(
        self, floor: int, mark_of: Callable[[str], int] | None, until: int = TIME_MAX
    ) -> None:
        """Have the kernels take out, at their next call, what is earlier than ``until`` and has
        been passed by the mark of its type.

        ``mark_of`` gives the marks by the types' names; None if each is ``floor``, and none is
        less.
        """
        counters = self._counters
        counters[layout.FLOOR], counters[layout.UNTIL] = floor, until
        counters[layout.ORDERING] = 1
        if mark_of is not None:
            types = self._tables.event_types
            for number in self._types:
                self._marks[number] = mark_of(types[number].name)
        self.show()

    def arrived(self) -> None:
        """Forget which types waited, as far as none of their events does."""
        if self._counters[layout.WAITING_TOP]:
            least = self._arrays["type_least"]
            self._types = {number for number in self._types if least[number] != TIME_MAX}
        else:
            self._types.clear()

    def grow(self, status: int) -> None:
        """Give what kernels ask for."""
        arrays, counters = self._arrays, self._counters
        first, top = counters[layout.WAITING_FIRST], counters[layout.WAITING_TOP]
        if status == layout.GROW_SEEN:
            self.repeats.grow()
            self.show()
        elif status == layout.GROW_ARRIVALS:
            for name in ("arrivals", "merging"):
                arrays.grow(name, _room(top - first))
        elif status == layout.GROW_WAITING:
            self._make_room_behind(first, top - first)
        else:
            self._make_room_for_rows(first, top)

    def _make_room_behind(self, first: int, count: int) -> None:
        """Room for what is coming behind the records that are left, which go to the beginning."""
        arrays, counters = self._arrays, self._counters
        length = _room(count + self._coming())
        if length < len(arrays["waiting"]):
            room = zeros((length,), layout.ARRIVING)
            room[:count] = arrays["waiting"][first : first + count]
            arrays["waiting"] = room
        else:
            arrays["waiting"][:count] = arrays["waiting"][first : first + count]
            arrays.grow("waiting", length)
        counters[layout.WAITING_LATE] -= first
        counters[layout.WAITING_TOP] -= first
        counters[layout.WAITING_FIRST] = 0

    def _make_room_for_rows(self, first: int, top: int) -> None:
        """Room for the rows of what is coming; those that are left are packed where they are less
        than half.
        """
        arrays, counters = self._arrays, self._counters
        widths, used = self._tables.types.array["width"], int(counters[layout.INBOX_TOP])
        held = int(widths[arrays["waiting"][first:top]["type"]].sum())
        coming = self._coming() * self._tables.width
        if used < 2 * held:
            arrays.grow("inbox", _room(used + coming))
        else:
            inbox = zeros((_room(held + coming),), np.int64)
            counters[layout.INBOX_TOP] = repack(arrays.state, inbox)
            arrays["inbox"] = inbox

    def _coming(self) -> int:
        """How many events are about to be taken in, at most."""
        return max(1, int(self._arrays["parcel"][layout.PARCEL_COUNT]))

    def forget_before(self, time: int) -> None:
        """Forget which events earlier than ``time`` have come: nobody looks at any any more. And
        give back what only a great many events that waited needed, once they are gone.
        """
        self.repeats.forget(time)
        if not self and len(self._arrays["inbox"]) > KEPT_MAX:
            for name in ("waiting", "arrivals", "merging"):
                self._arrays[name] = zeros((0,), layout.ARRIVING)
            self._arrays["inbox"] = zeros((0,), np.int64)


def times_of(batch: EventBatch) -> tuple[int, int] | None:
    """The least and the greatest time of a batch; None for an empty one."""
    if len(batch) == 1:
        return (time := int(batch.time[0])), time
    return (int(batch.time.min()), int(batch.time.max())) if len(batch) else None


def _room(least: int) -> int:
    """A length for at least so many, and as many again."""
    return max(first_length(64), 1 << (2 * least - 1).bit_length())
