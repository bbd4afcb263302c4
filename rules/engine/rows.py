"""Between batches and rows: events into the words that kernels read, and matches out of them.

Numbers cross as they are, strings as codes of the engine's :class:`Interner`; a batch costs a few
operations on whole columns, whatever its length. The numbers of sources are local to an engine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from matcher.identity import RULE_SOURCE, event_key, source_hash
from matcher.model import (
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
    Value,
)
from matcher.single import Row, Single
from rules.engine.interner import Interner
from rules.engine.kernels.layout import (
    HEADER,
    ID_IS_DIGEST,
    ID_IS_SEQUENCE,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
)


class Sources:
    """Numbers for the names of sources, with their hashes and their places in E4.

    The sources of composite events are apart from others, and ordered by their rules' places.
    Composite events of other engines bear their places as sequence numbers, whatever their source.
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

    def number(self, name: str) -> int:
        """The number of one source."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._add(name)
            self._rank()
        return number

    def rule_number(self, name: str) -> int:
        """The number of the source of a rule's composite events."""
        number = self._rule_numbers.get(name)
        if number is None:
            number = self._rule_numbers[name] = self._add(name)
        return number

    def is_rule(self, number: int) -> bool:
        """Whether a number is that of the source of a rule's composite events."""
        return self._rule_numbers.get(self.names[number]) == number

    def resume(self, names: Sequence[str]) -> None:
        """Give the numbers to the names that another engine with the same rules had given them to:
        those of rules come first.
        """
        for name in names[len(self.names) :]:
            self._numbers[name] = self._add(name)
        self._rank()

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
            is_rule = name.startswith(RULE_SOURCE)
            self.ranks[self._numbers[name]] = 0 if is_rule else rank


def row_of(batch: EventBatch) -> Row | None:
    """The event of a batch that comes alone and is known by its number; None for any other."""
    if len(batch) != 1:
        return None
    if isinstance(batch, Single):
        return batch.row if batch.row.text is None else None
    ids = batch.ids
    if ids.text is not None or ids.digest is not None:
        return None
    values = tuple(
        column[0] if isinstance(column, StringColumn) else column.item() for column in batch.columns
    )
    return Row(batch.time.item(), ids.source[0], ids.sequence.item(), None, values)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the row of an event lies in bytes; ``strings`` are the places of attributes that are."""

    type: EventType
    row: struct.Struct
    strings: tuple[int, ...]

    @classmethod
    def of(cls, type_: EventType) -> _Form:
        kinds = [attribute.kind for attribute in type_.attributes]
        letters = "".join("d" if kind is Kind.FLOAT else "q" for kind in kinds)
        strings = tuple(place for place, kind in enumerate(kinds) if kind is Kind.STRING)
        return cls(type_, struct.Struct(f"<{HEADER}q{letters}"), strings)


class RowWriter:
    """Batches into rows. Owner of the texts of ids and of the numbers of sources."""

    def __init__(self, strings: Interner) -> None:
        self.strings = strings
        self.texts = Interner()
        self.sources = Sources()
        self._forms: dict[str, _Form] = {}  # by the name of the type

    def forget_types(self) -> None:
        """Forget how types are written: no rule knows some of them any more."""
        self._forms.clear()

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

    def words(self, type_: EventType, one: Row) -> bytes:
        """An event that comes alone and is known by its number: the words that ``rows`` would give,
        in bytes.
        """
        form = self._forms.get(type_.name)
        if form is None or form.type is not type_:
            form = self._forms[type_.name] = _Form.of(type_)
        values: Sequence[Value] = one.values
        if form.strings:
            values = list(values)
            for place in form.strings:
                values[place] = self.strings.code(cast(str, values[place]))
        number = self.sources.number(one.source)
        key, sequence = self.sources.hashes.item(number), one.sequence
        return form.row.pack(one.time, key, sequence, number, sequence, ID_IS_SEQUENCE, *values)

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
