"""Between batches and rows: events into the words that kernels read, and matches out of them.

Numbers cross as they are, strings as codes of the engine's :class:`Interner`; a batch costs a few
operations on whole columns, whatever its length. The numbers of sources are local to an engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.identity import event_key, source_hash
from matcher.model import (
    Bools,
    Causes,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
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

    def place_rules(self, names: Sequence[str]) -> None:
        """Take the order of the rules' sources among simultaneous composite events."""
        for rank, name in enumerate(names):
            self.ranks[self._rule_numbers[name]] = rank

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
        present = np.unique(numbers)
        ranks = np.zeros(int(present[-1]) + 1, np.int64)
        in_order = sorted(present.tolist(), key=lambda number: rules[number].deployed.place)
        ranks[in_order] = np.arange(len(in_order))
        order = np.lexsort((ranks[numbers], out[starts + OUT_TIME]))
        types: dict[str, list[int]] = {}
        for number in in_order:
            types.setdefault(rules[number].deployed.rule.defines.name, []).append(number)
        batches, places = [], []
        for members in types.values():
            if len(types) == 1:
                chosen = order
            else:
                of_type = np.zeros(len(ranks), np.bool_)
                of_type[members] = True
                chosen = order[of_type[numbers[order]]]
            batches.append(self._batch(out, starts[chosen], numbers[chosen], members, rules))
            places.append(chosen)
        ranked = np.empty(len(order), np.int64)
        ranked[order] = np.arange(len(order))
        # Where each record of the concatenated batches stands in the common order, inverted.
        return Detections(tuple(batches), np.argsort(ranked[np.concatenate(places)]))

    def _batch(
        self,
        out: Int64s,
        starts: Int64s,
        numbers: Int64s,
        members: Sequence[int],
        rules: dict[int, LinkedRule],
    ) -> EventBatch:
        type_ = rules[members[0]].deployed.rule.defines
        codes = np.zeros(max(members) + 1, np.int32)
        codes[members] = np.arange(len(members))
        names = tuple(self._writer.sources.names[rules[number].source] for number in members)
        digest = np.stack([out[starts + OUT_HIGH], out[starts + OUT_LOW]], axis=1)
        ids = EventIds(
            StringColumn(codes[numbers], names),
            np.zeros(len(starts), np.int64),
            digest=digest.view(np.uint64),
        )
        columns = tuple(
            self._column(out[starts + (OUT_HEADER + place)], attribute.kind)
            for place, attribute in enumerate(type_.attributes)
        )
        events = np.zeros(max(members) + 1, np.int64)
        events[members] = [len(rules[number].plan.event_types) for number in members]
        causes = self._causes(out, starts, events[numbers], type_)
        return EventBatch(type_, out[starts + OUT_TIME], ids, columns, causes)

    def _column(self, words: Int64s, kind: Kind) -> Column:
        if kind is Kind.INT:
            return words
        if kind is Kind.FLOAT:
            return words.view(np.float64)
        if kind is Kind.BOOL:
            return words.astype(np.bool_)
        return _decoded(words, self._writer.strings)

    def _causes(self, out: Int64s, starts: Int64s, counts: Int64s, type_: EventType) -> Causes:
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        first = starts + (OUT_HEADER + len(type_.attributes))
        places = np.repeat(first - CAUSE_WORDS * offsets[:-1], counts)
        places += CAUSE_WORDS * np.arange(offsets[-1])
        heads = out[places]
        one, other = out[places + 1], out[places + 2]
        kinds = heads & 3
        is_digest, has_text = kinds == CAUSE_IS_DIGEST, kinds == CAUSE_IS_TEXT
        source = _decoded_by(heads >> 2, self._writer.sources.names)
        return Causes(
            offsets,
            EventIds(
                source,
                np.where(is_digest, 0, one),
                self._texts(other, has_text),
                _digests(one, other, is_digest),
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


def _digests(one: Int64s, other: Int64s, is_digest: Bools) -> np.ndarray | None:  # type: ignore[type-arg]
    if not is_digest.any():
        return None
    words = np.stack([one, other], axis=1)
    words[~is_digest] = 0
    return words.view(np.uint64)


def _decoded(words: Int64s, strings: Interner) -> StringColumn:
    used, codes = np.unique(words, return_inverse=True)
    return StringColumn(codes.astype(np.int32), tuple(map(strings.text, used.tolist())))


def _decoded_by(words: Int64s, names: Sequence[str]) -> StringColumn:
    used, codes = np.unique(words, return_inverse=True)
    return StringColumn(codes.astype(np.int32), tuple(names[number] for number in used.tolist()))
