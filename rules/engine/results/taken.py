"""Results of one advance, as batches: made when somebody asks for them.

Kernels write composite events where they stay, and a batch of them is slices of those columns
beside dictionaries of the strings in them. To make one takes longer than to detect a single
event, and not everybody looks: a host passes on the types that are subscribed to, a benchmark
counts. So what :meth:`rules.engine.results.outlets.Outlets.taken` gives is where the events stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from matcher.lone import Digest, Lone
from matcher.model import (
    AnyArray,
    Bools,
    Causes,
    Column,
    Event,
    EventBatch,
    EventIds,
    EventType,
    Int32s,
    Int64s,
    Kind,
    StringColumn,
    UInt64s,
)
from rules.engine.engine import Detections
from rules.engine.kernels import layout
from rules.engine.kernels.emission import RUN_WORDS, TAKEN_WORDS, renumber, spread_runs
from rules.engine.results.pool import Pool
from runtime.memory import grown

FEW = 16
"""So few codes are looked up one by one."""
_ZEROS: Int32s = np.zeros(FEW, np.int32)  # codes of a column of one string; never written to


class Words(NamedTuple):
    """The memory of :class:`Columns` as words of each width, whose items are read far sooner than
    those of arrays, and where in each the columns begin.
    """

    signed: memoryview
    unsigned: memoryview
    floats: memoryview[float]
    codes: memoryview
    bytes: memoryview
    time: int
    digest: int
    source: int
    attributes: tuple[tuple[memoryview | memoryview[float], int], ...]
    cause_source: int
    cause_sequence: int
    cause_kind: int
    cause_name: int

    @classmethod
    def of(
        cls, type_: EventType, capacity: int, piece: memoryview, starts: Mapping[str, int]
    ) -> Words:
        """The words of a piece of memory in which columns begin at these bytes."""
        signed, floats = piece.cast("q"), piece.cast("d")
        first = starts["words"] // 8
        return cls(
            signed,
            piece.cast("Q"),
            floats,
            piece.cast("i"),
            piece,
            starts["time"] // 8,
            starts["digest"] // 8,
            starts["source"] // 4,
            tuple(
                (floats if attribute.kind is Kind.FLOAT else signed, first + place * capacity)
                for place, attribute in enumerate(type_.attributes)
            ),
            starts["cause_source"] // 4,
            starts["cause_sequence"] // 8,
            starts["cause_kind"],
            starts["cause_name"] // 8,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns lent to the outlet of a type: see layout.OUTLET."""

    type: EventType
    time: Int64s
    digest: UInt64s  # [capacity, 2]
    source: Int32s
    words: Int64s  # [attributes, capacity]
    floats: AnyArray  # the same memory
    offsets: Int64s
    cause_source: Int32s
    cause_sequence: Int64s
    cause_kind: AnyArray
    cause_name: Int64s  # [capacity, 2]
    addresses: Mapping[str, int]  # where each of them stands
    memory: Words  # the same memory

    @classmethod
    def empty(cls, type_: EventType, capacity: int, causes: int, pool: Pool) -> Columns:
        """Columns with room for so many events and causes, in memory of a pool."""
        attributes = len(type_.attributes)
        lengths = {
            "time": 8 * capacity,
            "digest": 16 * capacity,
            "words": 8 * attributes * capacity,
            "offsets": 16 * capacity + 16,
            "cause_sequence": 8 * causes,
            "source": 4 * capacity,
            "cause_source": 4 * causes,
            "cause_kind": causes,
            "cause_name": 16 * causes,  # at the end: most causes have none, and no page is touched
        }
        # One piece of memory: what comes from the system in pieces of its own costs far more than
        # to write to it, and large ones come in large pages.
        rooms = {name: -(-length // 8) * 8 for name, length in lengths.items()}
        piece, start = pool.lend(sum(rooms.values())), 0
        parts, starts, first = {}, {}, piece.ctypes.data
        for name, length in lengths.items():
            parts[name], starts[name] = piece[start : start + length], start
            start += rooms[name]
        words = parts["words"].view(np.int64).reshape(attributes, capacity)
        return cls(
            type_,
            parts["time"].view(np.int64),
            parts["digest"].view(np.uint64).reshape(capacity, 2),
            parts["source"].view(np.int32),
            words,
            words.view(np.float64),
            parts["offsets"].view(np.int64),
            parts["cause_source"].view(np.int32),
            parts["cause_sequence"].view(np.int64),
            parts["cause_kind"],
            parts["cause_name"].view(np.int64).reshape(causes, 2),
            {name: first + start for name, start in starts.items()},
            Words.of(type_, capacity, piece.data, starts),
        )

    def take_over(self, other: Columns, events: slice, causes: slice, offsets: slice) -> None:
        """Copy what the present advance wrote elsewhere to the beginning."""
        for mine, theirs, part in (
            (self.time, other.time, events),
            (self.digest, other.digest, events),
            (self.source, other.source, events),
            (self.words.T, other.words.T, events),
            (self.offsets, other.offsets, offsets),
            (self.cause_source, other.cause_source, causes),
            (self.cause_sequence, other.cause_sequence, causes),
            (self.cause_kind, other.cause_kind, causes),
            (self.cause_name, other.cause_name, causes),
        ):
            mine[: part.stop - part.start] = theirs[part]


class Dictionary:
    """Codes of a list of strings, which only grows, into columns with dictionaries of their own. A
    code means the string that it stood for at the advance: an interner that forgets some begins
    another list.
    """

    def __init__(self, strings: Sequence[str | None]) -> None:
        self.strings = strings
        self._places: Int32s = np.full(16, -1, np.int32)
        self._used: Int64s = np.zeros(16, np.int64)

    def column(self, codes: Int32s) -> StringColumn:
        """The strings that n codes stand for; ``codes`` is written to, and kept."""
        if len(codes) <= FEW:
            return self._short(codes.tolist())
        if len(self._places) < len(self.strings):
            self._places = np.full(2 * len(self.strings), -1, np.int32)
            self._used = grown(self._used, 2 * len(self.strings))
        count = renumber(codes, self._places, self._used)
        return StringColumn(codes, self._values(self._used[:count].tolist()))

    def _short(self, codes: list[int]) -> StringColumn:
        if codes.count(codes[0]) == len(codes):
            return StringColumn(_ZEROS[: len(codes)], self._values(codes[:1]))
        places = {code: place for place, code in enumerate(dict.fromkeys(codes))}
        numbers = np.array([places[code] for code in codes], np.int32)
        return StringColumn(numbers, self._values(places))

    def _values(self, codes: Iterable[int]) -> tuple[str, ...]:
        return _read(self.strings, codes)


def _named(texts: Sequence[str | None], codes: Iterable[int]) -> StringColumn:
    """The texts that n codes stand for, of which some may be alike."""
    return StringColumn.from_strings(_read(texts, codes))


def _read(strings: Sequence[str | None], codes: Iterable[int]) -> tuple[str, ...]:
    values: Any = tuple(map(strings.__getitem__, codes))
    assert None not in values, "a code in use was forgotten"
    read: tuple[str, ...] = values
    return read


class SourceNames(Dictionary):
    """Names of sources, for one of which two numbers may stand: that of a rule here, and that of
    the composite events of the rule from elsewhere.
    """

    def column(self, codes: Int32s) -> StringColumn:
        """The names that n codes stand for; ``codes`` is written to, and kept."""
        column = super().column(codes)
        if len(column.values) == 1:
            return column
        places = {name: place for place, name in enumerate(dict.fromkeys(column.values))}
        if len(places) == len(column.values):
            return column
        numbers = np.array([places[name] for name in column.values], np.int32)
        return StringColumn(numbers[column.codes], tuple(places))


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names that codes stand for: names of sources, texts of ids, attributes."""

    sources: Dictionary
    texts: Sequence[str | None]
    strings: Dictionary


class Part(Struct, frozen=True, gc=False):
    """The part that an advance wrote into one outlet; the words are those of layout.OUTLET."""

    columns: Columns
    number: int  # of the type
    first: int
    end: int
    capacity: int
    first_cause: int
    causes: int
    advances: int
    kinds: int

    @property
    def length(self) -> int:
        """How many events."""
        return self.end - self.first

    def batch(self, names: Names) -> EventBatch:
        """Its events, as slices of the columns."""
        columns, events = self.columns, slice(self.first, self.end)
        start = self.first + self.advances
        return EventBatch(
            columns.type,
            columns.time[events],
            EventIds(
                names.sources.column(columns.source[events]),
                np.zeros(self.length, np.int64),
                None,
                columns.digest[events],
            ),
            tuple(
                self._column(place, events, attribute.kind, names)
                for place, attribute in enumerate(columns.type.attributes)
            ),
            Causes(
                columns.offsets[start : start + self.length + 1],
                *self._causes(names),
            ),
        )

    def alone(self, names: Names) -> Lone:
        """Its event, where it has but one, as plain values, word by word from
        the memory that the columns lie in: a rule on a live link finds one Fire at a time, and
        arrays of length one cost more to make than it took to find it.
        """
        type_, memory, first = self.columns.type, self.columns.memory, self.first
        strings, digest = names.strings.strings, memory.digest + 2 * first
        begin, end = self.first_cause, self.causes
        codes = memory.codes[memory.cause_source + begin : memory.cause_source + end].tolist()
        numbers = memory.signed[memory.cause_sequence + begin : memory.cause_sequence + end]
        source, *sources = _read(
            names.sources.strings, (memory.codes[memory.source + first], *codes)
        )
        values: list[Any] = []
        for attribute, (words, start) in zip(type_.attributes, memory.attributes, strict=True):
            word: Any = words[start + first]
            if attribute.kind is Kind.STRING:
                word = strings[word]
            elif attribute.kind is Kind.BOOL:
                word = bool(word)
            values.append(word)
        assert None not in values, "a code in use was forgotten"
        digests, texts = self._names_of_causes(names) if self.kinds else (_NONE, _NONE)
        return Lone(
            type_,
            memory.signed[memory.time + first],
            (memory.unsigned[digest], memory.unsigned[digest + 1]),
            source,
            tuple(values),
            sources,
            numbers.tolist(),
            digests,
            texts,
        )

    def _names_of_causes(
        self, names: Names
    ) -> tuple[Sequence[Digest | None], Sequence[str | None]]:
        """Of each cause its digest, if it has one, and its text, if that names it."""
        memory, begin, end = self.columns.memory, self.first_cause, self.causes
        words = memory.unsigned[memory.cause_name + 2 * begin : memory.cause_name + 2 * end]
        digests, texts = list[Digest | None](), list[str | None]()
        for place, kind in enumerate(
            memory.bytes[memory.cause_kind + begin : memory.cause_kind + end]
        ):
            high, low = words[2 * place], words[2 * place + 1]
            digests.append((high, low) if kind == layout.CAUSE_IS_DIGEST else None)
            is_text = kind == layout.CAUSE_IS_TEXT
            texts.append(_read(names.texts, (low,))[0] if is_text else None)
        return digests, texts

    def _column(self, place: int, events: slice, kind: Kind, names: Names) -> Column:
        if kind is Kind.FLOAT:
            return self.columns.floats[place, events]
        words = self.columns.words[place, events]
        if kind is Kind.INT:
            return words
        if kind is Kind.BOOL:
            return words.astype(np.bool_)
        return names.strings.column(words.astype(np.int32))

    def _causes(self, names: Names) -> tuple[EventIds, Bools, Bools]:
        """The ids of the causes; which ones a digest names, and which ones a text."""
        columns, causes = self.columns, slice(self.first_cause, self.causes)
        source = names.sources.column(columns.cause_source[causes])
        sequence = columns.cause_sequence[causes]
        if not self.kinds:
            none = np.zeros(len(sequence), np.bool_)
            return EventIds(source, sequence), none, none
        kind, name = columns.cause_kind[causes], columns.cause_name[causes]
        is_digest = kind == layout.CAUSE_IS_DIGEST
        has_text = kind == layout.CAUSE_IS_TEXT
        text, digest = None, None
        if has_text.any():
            column = _named(names.texts, name[has_text, 1].tolist())
            codes = np.zeros(len(kind), np.int32)
            codes[has_text] = column.codes
            text = StringColumn(codes, column.values)
        if is_digest.any():
            digest = np.where(is_digest[:, None], name, 0).view(np.uint64)
        return EventIds(source, sequence, text, digest), is_digest, has_text


_NONE: tuple[None, ...] = ()
"""No cause has any."""
LONE_CAUSES_MAX = 64
"""An event with more causes is made a row by way of columns."""


Written: TypeAlias = tuple[int, list[Columns], Int64s, int, int, Names, bool]
"""How many events there are; the columns of outlets; what
:func:`rules.engine.kernels.emission.take` wrote about them, from one word to another; what codes
mean; and whether the runs are out of order. One is made for each event that comes alone."""


class Taken(Detections):
    """Detections of which only the number is known until somebody asks for more. Results are a
    value: while anybody holds the columns they are never written again but to give codes of strings
    the numbers of a dictionary, once.
    """

    # The fields are the slots of Detections, empty until ``__getattr__`` is asked for one.
    __slots__ = ("_written",)
    _written: Written

    def __init__(self, written: Written) -> None:
        _set(self, "_written", written)

    def __len__(self) -> int:
        return self._written[0]

    def parts(self) -> list[Part]:
        """The content of each outlet."""
        _, columns, words, start, *_ = self._written
        records = words[start : start + TAKEN_WORDS * len(columns)]
        return [
            Part(one, *record)
            for one, record in zip(columns, records.reshape(-1, TAKEN_WORDS).tolist(), strict=True)
        ]

    def alone(self, causes_max: int) -> tuple[list[Lone], list[int]] | None:
        """Its events and their order, if each is the only one of its type and has no more causes
        than that; else None.
        """
        count, columns, words, start, end, names, is_disordered = self._written
        if count != len(columns):
            return None
        written, places = words[start:end].tolist(), dict[int, int]()
        events, order = list[Lone](), list[int]()
        for place, one in enumerate(columns):
            first = TAKEN_WORDS * place
            part = Part(one, *written[first : first + TAKEN_WORDS])
            if part.causes - part.first_cause > causes_max:
                return None
            places[part.number] = place
            events.append(part.alone(names))
        runs: Sequence[int] = range(TAKEN_WORDS * count, len(written), RUN_WORDS)
        if is_disordered:
            runs = sorted(runs, key=lambda run: (written[run], written[run + 1]))
        for run in runs:
            order.append(places[written[run + 2]])
        return events, order

    def events(self) -> Iterator[Event]:
        """The composite events as rows, in order; of few without columns."""
        alone = self.alone(LONE_CAUSES_MAX)
        if alone is None:
            return super().events()
        events, order = alone
        return (events[place].event() for place in order)

    def __getattr__(self, name: str) -> Any:
        if name == "batches":
            names = self._written[5]
            made: Any = tuple(part.batch(names) for part in self.parts())
        elif name == "order":
            made = self._in_order()
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        _set(self, name, made)
        return made

    def runs(self) -> AnyArray:
        """The events of all batches by the evaluations that made them, layout.RUN, in order."""
        _, columns, words, start, end, _, is_disordered = self._written
        runs = words[start + TAKEN_WORDS * len(columns) : end].view(layout.RUN)
        if is_disordered:
            runs = runs[np.lexsort((runs["place"], runs["time"]))]
        return runs

    def positions(self, before: int = 0) -> Int64s:
        """By type: where its events begin in the concatenation of the batches, which ``before``
        others precede.
        """
        parts = self.parts()
        first = np.zeros(1 + max(part.number for part in parts), np.int64)
        for part in parts:
            first[part.number] = before
            before += part.length
        return first

    def _in_order(self) -> Int64s:
        """The common order of the batches' events."""
        count, columns, *_, is_disordered = self._written
        if len(columns) == 1 and not is_disordered:
            return np.arange(count)
        order = np.empty(count, np.int64)
        spread_runs(self.runs(), self.positions(), order)
        return order


_set = object.__setattr__
