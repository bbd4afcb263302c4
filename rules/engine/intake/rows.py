"""Between batches and rows: how events become the words that kernels read.

Numbers cross as they are, strings as codes of the engine's :class:`Interner`. A batch is not
copied here: kernels are told where its columns stand, and what the codes in them mean. The
numbers of sources are local to an engine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from matcher.contents import start_of, text_hashes
from matcher.identity import source_hash
from matcher.model import AnyArray, EventBatch, EventIds, Int64s, StringColumn
from matcher.single import Row, Single
from rules.engine.intake.naming import keys_of
from rules.engine.kernels.layout import (
    COLUMN_IS_BYTES,
    COLUMN_IS_CODES,
    COLUMN_IS_FLOATS,
    COLUMN_IS_WORDS,
    HEADER,
    ID_IS_DIGEST,
    ID_IS_SEQUENCE,
)
from rules.engine.linking.interner import Interner, Texts
from runtime.memory import filled, first_length, grown, zeros


class Sources:
    """Numbers for the names of sources, with their hashes and their places in E4.

    The sources of composite events are apart from others, and ordered by their rules' places.
    Composite events of other engines bear their places as sequence numbers, whatever their source;
    primitive events may have a source of the same name. So other sources have ranks below 0, by
    which kernels tell both kinds of composite events apart (layout.RANK_ELSEWHERE).
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ranks: Int64s = zeros((first_length(16),), np.int64)
        self.hashes: Int64s = zeros((first_length(16),), np.int64)
        self._numbers: dict[str, int] = {}
        self._rule_numbers: dict[str, int] = {}
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_numbers: Int64s = np.empty(0, np.int64)

    def numbers(self, column: StringColumn) -> Int64s:
        """The numbers of the sources of a column's dictionary."""
        if column.values is not self._dictionary:
            self._dictionary = column.values
            fresh = [name for name in column.values if name not in self._numbers]
            for name in fresh:
                self._numbers[name] = self._add(name)
            if fresh:
                self._rank()
            numbers = [self._numbers[name] for name in column.values]
            self._dictionary_numbers = np.array(numbers, np.int64)
        return self._dictionary_numbers

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
            self.ranks = grown(self.ranks, 2 * number)
            self.hashes = grown(self.hashes, 2 * number)
        self.hashes[number] = np.uint64(source_hash(name)).astype(np.int64)
        return number

    def _rank(self) -> None:
        # The byte order of UTF-8 is the order of code points, which Python's str has.
        for rank, name in enumerate(sorted(self._numbers), -len(self._numbers)):
            self.ranks[self._numbers[name]] = rank


def row_of(batch: EventBatch) -> Row | None:
    """The event of a batch that comes alone and is known by the number that it was given here; None
    for any other.
    """
    if isinstance(batch, Single):
        return batch.row if batch.row.text is None else None
    if len(batch) != 1:
        return None
    ids = batch.ids
    if ids.are_explicit or ids.digest is not None:
        return None
    values = tuple(
        column[0] if isinstance(column, StringColumn) else column.item() for column in batch.columns
    )
    return Row(batch.time.item(), ids.source[0], ids.sequence.item(), None, values)


class Parcel(NamedTuple):
    """A batch as kernels are told of it: the words of layout.PARCEL_HEADER, and the arrays that
    these name, which must live until it is taken in.
    """

    words: Sequence[int]
    held: Sequence[AnyArray]


_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class RowWriter:
    """Batches as parcels. Owner of the texts of ids and of the numbers of sources.

    ``asked`` tells kernels whom to ask which of two ids is less.
    """

    def __init__(self, strings: Interner) -> None:
        self.strings = strings
        self.texts = Texts()
        self.sources = Sources()
        self._answer = _ANSWER(partial(is_lesser_id, self.texts))
        address = ctypes.cast(self._answer, ctypes.c_void_p).value or 0
        self.asked: Int64s = filled(1, address)

    def parcel(self, type_number: int, batch: EventBatch, seen: Int64s | None) -> Parcel:
        """The events of a batch, none of which repeats any known by ``seen``: the numbers by which
        their sources, the column's dictionary, are known there; None to look for no repeats.
        Repeats of explicit numbers are told from conflicts by digests of what events hold.
        """
        ids, held = batch.ids, []
        is_digested = seen is not None and ids.are_explicit

        def address(array: AnyArray) -> int:
            array = np.ascontiguousarray(array)
            held.append(array)
            return array.ctypes.data

        source = ids.source
        form, texts, keys = self.ids(ids)
        words = [
            type_number,
            len(batch),
            HEADER + len(batch.columns),
            0,
            address(batch.time),
            address(ids.sequence),
            0 if len(source.values) == 1 else address(source.codes),
            address(self.sources.numbers(source)),
            0 if seen is None else address(seen),
            form,
            0 if texts is None else address(texts),
            0 if keys is None else address(keys),
            start_of(batch.type) or 1 if is_digested else 0,
            0,
            len(source.values),
        ]
        for column in batch.columns:
            if isinstance(column, StringColumn):
                if 2 * len(column.values) > len(column) + 16:
                    column = column.compact()  # a slice may carry a dictionary much larger than it
                codes = self.strings.codes(column.values)
                hashes = address(text_hashes(column.values)) if is_digested else 0
                words += COLUMN_IS_CODES, address(column.codes), address(codes), hashes, len(codes)
            elif column.dtype == np.bool_:
                words += COLUMN_IS_BYTES, address(column), 0, 0, 0
            elif column.dtype == np.float64:
                words += COLUMN_IS_FLOATS, address(column), 0, 0, 0
            else:
                words += COLUMN_IS_WORDS, address(column), 0, 0, 0
        return Parcel(words, held)

    def ids(self, ids: EventIds) -> tuple[int, Int64s | None, Int64s | None]:
        """ROW_ID of all ids, or of each, int64[n]; and their keys, int64[n, 2], if they do not
        follow from sources and sequence numbers.
        """
        if ids.digest is not None:
            return ID_IS_DIGEST, None, ids.digest.view(np.int64)
        if ids.text is None:
            return ID_IS_SEQUENCE, None, None
        texts = ids.text.compact()
        keys = keys_of(ids.source, texts)
        return 0, self.texts.codes(texts.values)[texts.codes], keys.view(np.int64)


def is_lesser_id(texts: Texts, one: int, other: int, sequence: int) -> bool:
    """Whether one id is less than another, by code point: what E4 leaves open of two events that
    have one source and ``sequence``. Ids are given as ROW_ID says them.
    """
    first, second = (
        str(sequence) if id_ == ID_IS_SEQUENCE else texts.text(id_) for id_ in (one, other)
    )
    return first < second
