"""Events of recorded frames as few rows: blocks, each the events of one bucket as Arrow's bytes.

What Java does it does for each row: it sorts rows, writes them to a shuffle and reads them there.
So the rows of a frame are packed as soon as they have been read, and from then on Spark moves and
keeps blocks, some ten thousand rows each.

Law 1: a block's events are of one pass and one bucket of keys, and none of them is bad; they are in
order of time. Buckets are numbered through all passes, so that the frames are read once.

Law 2: blocks are cut by time as well as by key, so that a slice of time takes little besides its
own: an average bucket of the rows that are packed together makes PIECES of them.

Law 3: with the blocks come tallies, rows without a bucket: how many rows of whatever type there
were, from when to when, and how many were no events, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.spark.columns import to_bytes
from broker.spark.frames import BAD, SOURCE, TIME, TYPE
from broker.spark.mixing import buckets
from broker.spark.narrowing import narrowed
from broker.spark.settling import settle
from matcher.model import AnyArray, Int64s
from matcher.sorting import stable_order

BUCKET, FIRST, LAST, ROWS, EVENTS = "bucket", "first", "last", "rows", "events"
"""The columns of blocks: times of the first and the last event, how many there are, and they."""
OF_TYPE, REASON = "of_type", "reason"
"""Of tallies: why so many ROWS of that type are no events; both null for those that are."""
BLOCKS = (
    f"{BUCKET} int, {FIRST} long, {LAST} long, {ROWS} long, {EVENTS} binary, "
    f"{OF_TYPE} string, {REASON} string"
)


class Packed(NamedTuple):
    """A block or a tally: a row of BLOCKS."""

    bucket: int | None
    first: int | None
    last: int | None
    rows: int
    events: bytes | None = None
    of_type: str | None = None
    reason: str | None = None


ROWS_TOGETHER = 1 << 19
"""So many rows are packed together, or a little more."""
ROWS_MIN = 256
"""A block of fewer rows costs more than it spares, and is not made smaller."""
PIECES = 4


@dataclass(frozen=True, slots=True)
class Portion:
    """The portion that a pass wants: of rows of ``types``, these ``columns``, in ``buckets``
    buckets whose numbers begin at ``first``. ``keys``: by type, the column of the key; none where
    no key cuts.
    """

    types: frozenset[str]
    columns: Sequence[str]
    keys: Mapping[str, str]
    first: int
    buckets: int
    pieces: int


@dataclass(frozen=True)
class Packing:
    """For ``mapInArrow``: rows of a wide frame to blocks and tallies.

    ``row_type`` is the type of all rows, where they have no column for it; without a column SOURCE
    that is their source too. ``encodes``: whether texts are written by dictionary, which is shorter
    and of no use to what sorts by them.
    """

    portions: Sequence[Portion]
    row_type: str | None
    encodes: bool
    rows_min: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack so many record batches together as make ROWS_TOGETHER rows."""
        held, count = list[pa.RecordBatch](), 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            if count >= ROWS_TOGETHER:
                yield self._packed(held)
                held, count = [], 0
        if count:
            yield self._packed(held)
        settle("pack")

    def _packed(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        good, packed = self.tallied(rows)
        if good.num_rows:
            good = _encoded(good)
            for portion in self.portions:
                packed += self._blocks(portion, good)
        columns = zip(*packed, strict=True)
        kinds = (pa.int32(), *[pa.int64()] * 3, pa.binary(), pa.string(), pa.string())
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.record_batch(arrays, names=[*Packed._fields])

    def _with_constants(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.row_type is None:
            return rows
        codes = pa.array(np.zeros(rows.num_rows, np.int32))
        constant = pa.DictionaryArray.from_arrays(codes, pa.array([self.row_type]))
        for name in (TYPE, SOURCE):
            if name not in rows.schema.names:
                rows = rows.append_column(name, constant)
        return rows

    def tallied(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Packed]]:
        """The rows that are events, with the columns that all of them share, and all tallies."""
        rows = self._with_constants(rows)
        reasons, tallies = rows.column(BAD), list[Packed]()
        if reasons.null_count < rows.num_rows:
            bad = rows.filter(reasons.is_valid())
            named = zip(bad.column(TYPE).to_pylist(), bad.column(BAD).to_pylist(), strict=True)
            for (name, reason), count in Counter(named).items():
                tallies.append(Packed(None, None, None, count, None, name or "no type", reason))
            rows = rows.filter(reasons.is_null())
        if rows.num_rows:
            ends = pc.min_max(rows.column(TIME)).as_py()
            tallies.append(Packed(None, ends["min"], ends["max"], rows.num_rows))
        return rows, tallies

    def _blocks(self, portion: Portion, good: pa.RecordBatch) -> Iterator[Packed]:
        time: Int64s = good.column(TIME).to_numpy()
        places, bucket = chosen(portion, good)
        if not (np.diff(time[places]) >= 0).all():
            order = np.argsort(time[places], kind="stable")
            places, bucket = places[order], bucket[order]
        if portion.buckets > 1:
            order = stable_order(bucket)
            places, bucket = places[order], bucket[order]
        columns = [name for name in portion.columns if name in good.schema.names]
        rows = good.select(columns)
        if len(places) != len(time) or (np.diff(places) != 1).any():
            rows = rows.take(pa.array(places))
        time = rows.column(TIME).to_numpy()
        size = max(self.rows_min, len(places) // (portion.buckets * portion.pieces))
        ends = np.searchsorted(bucket, np.arange(portion.buckets + 1))
        for number in np.flatnonzero(np.diff(ends)).tolist():
            begin, end = int(ends[number]), int(ends[number + 1])
            for start in range(begin, end, size):
                count = min(size, end - start)
                data = self._bytes(rows.slice(start, count))
                first, last = int(time[start]), int(time[start + count - 1])
                yield Packed(portion.first + number, first, last, count, data)

    def _bytes(self, rows: pa.RecordBatch) -> bytes:
        """A block of rows, whose dictionaries hold no more than they use."""
        arrays = []
        for array in rows.columns:
            if pa.types.is_dictionary(array.type):
                array = _compact(array) if self.encodes else array.cast(pa.string())
            arrays.append(array)
        # Spark compresses what it shuffles; that is enough, and costs less than doing it here.
        packed = narrowed(pa.record_batch(arrays, names=rows.schema.names))
        return to_bytes(packed, compresses=False)


def _encoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with texts as dictionaries and codes."""
    arrays = [
        array.dictionary_encode() if pa.types.is_string(array.type) else array
        for array in rows.columns
    ]
    return pa.record_batch(arrays, names=rows.schema.names)


def chosen(portion: Portion, good: pa.RecordBatch) -> tuple[AnyArray, Int64s]:
    """Where the rows are that a portion wants, and their buckets, counted from nought. The types of
    rows are encoded.
    """
    types = good.column(TYPE)
    names = types.dictionary.to_pylist()
    codes: Int64s = types.indices.to_numpy()
    places: AnyArray = np.arange(good.num_rows)
    if not portion.types.issuperset(names):
        wanted = np.array([name in portion.types for name in names], bool)
        places = np.flatnonzero(wanted[codes])
    return places, _bucket(portion, good, names, codes)[places]


def _bucket(portion: Portion, good: pa.RecordBatch, names: Sequence[str], codes: Int64s) -> Int64s:
    """The bucket of each row's key, counted from nought; of rows that are not wanted, any."""
    bucket = np.zeros(good.num_rows, np.int64)
    if portion.buckets == 1:
        return bucket
    of_column: dict[str, Int64s] = {}
    for code, name in enumerate(names):
        column = portion.keys.get(name)
        if column is None:
            continue
        if column not in of_column:
            of_column[column] = buckets(good.column(column), portion.buckets)
        bucket = np.where(codes == code, of_column[column], bucket)
    return bucket


def _compact(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same with a dictionary of just the values in use."""
    if array.null_count:
        return array.cast(pa.string()).dictionary_encode()
    codes: Int64s = array.indices.to_numpy()
    counts = np.bincount(codes, minlength=len(array.dictionary))
    used = np.flatnonzero(counts)
    if len(used) == len(counts):
        return array
    numbers = np.zeros(len(counts), np.int32)
    numbers[used] = np.arange(len(used))
    return pa.DictionaryArray.from_arrays(
        pa.array(numbers[codes]), array.dictionary.take(pa.array(used))
    )
