"""Between batches and rows: events into the words that kernels read, and matches out of them.

Numbers cross as they are, strings as codes of the engine's :class:`Interner`; a batch costs a few
operations on whole columns, whatever its length. The numbers of sources are local to an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matcher.identity import event_key, source_hash
from matcher.model import (
    Bools,
    Causes,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int32s,
    Int64s,
    Kind,
    StringColumn,
    UInt64s,
)
from rules.engine.engine import NOTHING, Detections
from rules.engine.interner import Interner
from rules.engine.kernels.layout import (
    CAUSE_WORDS,
    HEADER,
    ID_IS_DIGEST,
    ID_IS_SEQUENCE,
    OUT_HEADER,
    OUT_HIGH,
    OUT_LOW,
    OUT_RULE,
    OUT_TIME,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
)
from rules.engine.linker import LinkedRule

CAUSE_IS_SEQUENCE, CAUSE_IS_DIGEST, CAUSE_IS_TEXT = 0, 1, 2
"""The lowest two bits of a cause's first word; the others are its source."""


class Sources:
    """Numbers for the names of sources, with their hashes and their places in E4.

    The sources of composite events are apart from others, and ordered by their rules' places.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ranks: Int64s = np.zeros(16, np.int64)
        self.hashes: Int64s = np.zeros(16, np.int64)
        self._numbers: dict[str, int] = {}
        self._rule_numbers: dict[str, int] = {}
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_numbers: Int64s = np.empty(0, np.int64)

    def numbers(self, column: StringColumn) -> Int64s:
        """The numbers of the sources of n events."""
        if column.values is not self._dictionary:
            self._dictionary = column.values
            fresh = [name for name in column.values if name not in self._numbers]
            for name in fresh:
                self._numbers[name] = self._add(name)
            if fresh:
                self._rank()
            self._dictionary_numbers = np.array(
                [self._numbers[name] for name in column.values], np.int64
            )
        return self._dictionary_numbers[column.codes]

    def rule_number(self, name: str) -> int:
        """The number of the source of a rule's composite events."""
        number = self._rule_numbers.get(name)
        if number is None:
            number = self._rule_numbers[name] = self._add(name)
        return number

    def place_rules(self, numbers: Int64s) -> None:
        """Take the order of the rules' sources among simultaneous composite events."""
        self.ranks[numbers] = np.arange(len(numbers))

    def _add(self, name: str) -> int:
        number = len(self.names)
        self.names.append(name)
        if number == len(self.ranks):
            self.ranks = np.append(self.ranks, np.zeros(number, np.int64))
            self.hashes = np.append(self.hashes, np.zeros(number, np.int64))
        self.hashes[number] = np.uint64(source_hash(name)).astype(np.int64)
        return number

    def _rank(self) -> None:
        # The byte order of UTF-8 is the order of code points, which Python's str has.
        for rank, name in enumerate(sorted(self._numbers)):
            self.ranks[self._numbers[name]] = rank


class RowWriter:
    """Batches into rows. Owner of the texts of ids and of the numbers of sources."""

    def __init__(self, strings: Interner) -> None:
        self.strings = strings
        self.texts = Interner()
        self.sources = Sources()

    def rows(self, batch: EventBatch) -> Int64s:
        """The events of a batch as rows, int64[n, HEADER + attributes], in its order."""
        count = len(batch)
        rows = np.empty((count, HEADER + len(batch.columns)), np.int64)
        rows[:, ROW_TIME] = batch.time
        rows[:, ROW_SEQUENCE] = batch.ids.sequence
        sources = self.sources.numbers(batch.ids.source)
        rows[:, ROW_SOURCE] = sources
        self._write_ids(rows, batch.ids, sources)
        for place, column in enumerate(batch.columns, HEADER):
            rows[:, place] = self._words(column)
        return rows

    def _write_ids(self, rows: Int64s, ids: EventIds, sources: Int64s) -> None:
        if ids.digest is not None:
            rows[:, ROW_ID] = ID_IS_DIGEST
            rows[:, ROW_KEY_HIGH : ROW_KEY_LOW + 1] = ids.digest.view(np.int64)
        elif ids.text is None:
            rows[:, ROW_ID] = ID_IS_SEQUENCE
            rows[:, ROW_KEY_HIGH] = self.sources.hashes[sources]
            rows[:, ROW_KEY_LOW] = ids.sequence
        else:
            texts = ids.text.compact()
            rows[:, ROW_ID] = self.texts.codes(texts.values)[texts.codes]
            names = ids.source.tolist()
            keys = np.array(
                [event_key(name, text) for name, text in zip(names, texts.tolist(), strict=True)],
                np.uint64,
            )
            rows[:, ROW_KEY_HIGH : ROW_KEY_LOW + 1] = keys.view(np.int64).reshape(-1, 2)

    def _words(self, column: Column) -> Int64s:
        if isinstance(column, StringColumn):
            if 2 * len(column.values) > len(column) + 16:
                column = column.compact()  # a slice may carry a dictionary much larger than it
            return self.strings.codes(column.values)[column.codes]
        if column.dtype == np.float64:
            return np.ascontiguousarray(column).view(np.int64)
        return column.astype(np.int64)


class MatchReader:
    """Output records into composite batches."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def detections(self, out: Int64s, offsets: Int64s, rules: dict[int, LinkedRule]) -> Detections:
        """All records, as batches by type, in the order of time and then E4.

        ``out`` holds the records one behind the other, ``offsets`` int64[n + 1] where each
        begins; ``rules`` the linked rules by number.
        """
        starts = offsets[:-1]
        if len(starts) == 0:
            return NOTHING
        numbers = out[starts + OUT_RULE]
        present = _Present.of(numbers, rules)
        order = np.lexsort((present.ranks[numbers], out[starts + OUT_TIME]))
        # Type after type, each in order: what is decoded below is decoded for all types at once.
        by_type = np.argsort(present.types[numbers[order]], kind="stable")
        places = order[by_type]
        starts, numbers = starts[places], numbers[places]
        ids = self._ids(out, starts, numbers, present)
        causes = self._causes(out, starts, numbers, present)
        ends = np.cumsum(np.bincount(present.types[numbers])).tolist()
        batches, first = [], 0
        for type_, end in zip(present.schemas, ends, strict=True):
            part = slice(first, end)
            columns = tuple(
                self._column(out[starts[part] + (OUT_HEADER + place)], attribute.kind)
                for place, attribute in enumerate(type_.attributes)
            )
            time = out[starts[part] + OUT_TIME]
            batches.append(
                EventBatch(type_, time, ids.take(part), columns, _causes_of(causes, first, end))
            )
            first = end
        common = np.empty(len(order), np.int64)
        common[by_type] = np.arange(len(order))
        return Detections(tuple(batches), common)

    def _ids(self, out: Int64s, starts: Int64s, numbers: Int64s, present: _Present) -> EventIds:
        names = self._writer.sources.names
        digest = np.empty((len(starts), 2), np.int64)
        digest[:, 0] = out[starts + OUT_HIGH]
        digest[:, 1] = out[starts + OUT_LOW]
        return EventIds(
            StringColumn(
                present.ranks[numbers].astype(np.int32),
                tuple(names[source] for source in present.sources),
            ),
            np.zeros(len(starts), np.int64),
            digest=digest.view(np.uint64),
        )

    def _column(self, words: Int64s, kind: Kind) -> Column:
        if kind is Kind.INT:
            return words
        if kind is Kind.FLOAT:
            return words.view(np.float64)
        if kind is Kind.BOOL:
            return words.astype(np.bool_)
        return _decoded(words, self._writer.strings)

    def _causes(self, out: Int64s, starts: Int64s, numbers: Int64s, present: _Present) -> Causes:
        counts = present.events[numbers]
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        first = starts + (OUT_HEADER + present.widths[numbers])
        places = np.repeat(first - CAUSE_WORDS * offsets[:-1], counts)
        places += CAUSE_WORDS * np.arange(offsets[-1])
        heads = out[places]
        one, other = out[places + 1], out[places + 2]
        kinds = heads & 3
        is_digest, has_text = kinds == CAUSE_IS_DIGEST, kinds == CAUSE_IS_TEXT
        source = _decoded_by(heads >> 2, self._writer.sources.names)
        if is_digest.any():
            one = np.where(is_digest, 0, one)
        return Causes(
            offsets,
            EventIds(
                source,
                one,
                self._texts(other, has_text),
                _digests(out[places + 1], other, is_digest),
            ),
            is_digest,
            has_text,
        )

    def _texts(self, words: Int64s, has_text: Bools) -> StringColumn | None:
        if not has_text.any():
            return None
        column = _decoded(words[has_text], self._writer.texts)
        codes = np.zeros(len(words), np.int32)
        codes[has_text] = column.codes
        return StringColumn(codes, column.values)


@dataclass(frozen=True, slots=True, eq=False)
class _Present:
    """The rules that some records come from: tables by rule number, and what they define.

    ``ranks`` orders rules by their places (E4, S15); ``types`` numbers ``schemas``; ``widths``
    counts attributes and ``events`` numbered events; ``sources`` stand in the order of ranks.
    """

    ranks: Int64s
    types: Int64s
    widths: Int64s
    events: Int64s
    sources: tuple[int, ...]
    schemas: tuple[EventType, ...]

    @classmethod
    def of(cls, numbers: Int64s, rules: dict[int, LinkedRule]) -> _Present:
        counted = np.bincount(numbers)
        linked = [rules[number] for number in np.flatnonzero(counted).tolist()]
        linked.sort(key=lambda one: one.deployed.place)
        schemas: dict[EventType, int] = {}
        ranks, types, widths, events = np.zeros((4, len(counted)), np.int64)
        for rank, one in enumerate(linked):
            type_ = one.deployed.rule.defines
            ranks[one.number] = rank
            types[one.number] = schemas.setdefault(type_, len(schemas))
            widths[one.number] = len(type_.attributes)
            events[one.number] = len(one.plan.event_types)
        sources = tuple(one.source for one in linked)
        return cls(ranks, types, widths, events, sources, tuple(schemas))


def _causes_of(causes: Causes, first: int, end: int) -> Causes:
    """The provenance of consecutive composite events."""
    offsets = causes.offsets[first : end + 1]
    part = slice(int(offsets[0]), int(offsets[-1]))
    return Causes(
        offsets - offsets[0], causes.ids.take(part), causes.is_digest[part], causes.has_text[part]
    )


def _digests(one: Int64s, other: Int64s, is_digest: Bools) -> UInt64s | None:
    if not is_digest.any():
        return None
    words = np.stack([one, other], axis=1)
    words[~is_digest] = 0
    return words.view(np.uint64)


def _decoded(words: Int64s, strings: Interner) -> StringColumn:
    used, codes = _numbered(words)
    return StringColumn(codes, tuple(map(strings.text, used)))


def _decoded_by(words: Int64s, names: Sequence[str]) -> StringColumn:
    used, codes = _numbered(words)
    return StringColumn(codes, tuple(names[number] for number in used))


def _numbered(words: Int64s) -> tuple[list[int], Int32s]:
    """The distinct words, ascending, and each word's place among them. Words are codes: small."""
    seen = np.bincount(words) > 0
    places = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen).tolist(), places[words]
