"""Row groups of Parquet files as rows of a wide frame, read by Python's workers themselves.

Spark hands rows to Python one at a time. Where a frame is nothing but files (``scans``), workers
read these with Arrow instead, and Java has nothing to hand over.

Law 1: the rows are those that Spark would hand over, null for null and microsecond for microsecond.
Which columns are read alike is a table (ALIKE); ``unlike`` says before anything runs what else is
in a file, which then is Spark's to read.

Law 2: a file is read as it was when it was looked at; one that has changed since is an error.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.errors import BrokerError
from broker.spark.blocks import Packing
from broker.spark.errors import in_a_sentence
from broker.spark.frames import BAD, ID, NO_SEQUENCE, SEQUENCE, SOURCE, TIME, TYPE
from broker.spark.instants import NO_TIME, UNREAD_TIME
from matcher.model import Kind
from matcher.times import RFC_3339_MAX

Value: TypeAlias = "str | int | None"
_Meaning: TypeAlias = "tuple[str, Mapping[str, object]]"
"""A physical type, and what must be in the logical one."""

_PLAIN: Mapping[str, object] = {"Type": "None"}


def _int(bits: int) -> _Meaning:
    return f"INT{max(bits, 32)}", {"Type": "Int", "bitWidth": bits, "isSigned": True}


def _instants(unit: str) -> _Meaning:
    return "INT64", {"Type": "Timestamp", "isAdjustedToUTC": True, "timeUnit": unit}


ALIKE: Mapping[str, Sequence[_Meaning]] = {
    "tinyint": [_int(8)],
    "smallint": [_int(16)],
    "int": [_int(32), ("INT32", _PLAIN)],
    "bigint": [_int(64), ("INT64", _PLAIN)],
    "boolean": [("BOOLEAN", _PLAIN)],
    "float": [("FLOAT", _PLAIN)],
    "double": [("DOUBLE", _PLAIN)],
    "string": [("BYTE_ARRAY", {"Type": "String"})],
    "timestamp": [("INT96", _PLAIN), _instants("milliseconds"), _instants("microseconds")],
}
"""By Spark's type of a column, what in a file means the same values to Arrow as to Spark."""
CONSTANTS = ("string", "int", "bigint")
"""Spark's types of columns that are names of folders; others are left to Spark."""
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")
READ_TOGETHER = 1 << 17
"""So many rows are read at once."""
FETCHED_WHOLE = 1 << 18
"""Files of so many bytes are fetched as a whole."""
_ARROW = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.BOOL: pa.bool_()}
_TEXT = pa.dictionary(pa.int32(), pa.string())
# Spark before 3.1 wrote times of another calendar; later ones say so if they do.
_VERSION, _VERSION_MIN = b"org.apache.spark.version", (3, 1)
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


class FileChanged(BrokerError):
    """A file is no longer what it was when it was looked at; the message names it."""


@dataclass(frozen=True, slots=True)
class State:
    """A file's state, by which it is known: its ``size`` in bytes, and when it was written, in
    milliseconds.
    """

    size: int
    written_ms: int

    @classmethod
    def of(cls, path: str) -> State:
        """The state that a file is in; raises OSError."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns // 1_000_000)


@dataclass(frozen=True, slots=True)
class Group:
    """A row group of a file: its number there and how many rows it has. ``constants`` are columns
    that its folders' names give; ``nulls`` those that may hold nulls, as far as the file tells.
    """

    path: str
    state: State
    number: int
    rows: int
    constants: Mapping[str, Value]
    nulls: frozenset[str]

    @classmethod
    def all_of(
        cls, path: str, state: State, metadata: pq.FileMetaData, constants: Mapping[str, Value]
    ) -> tuple[Group, ...]:
        """The row groups of a file that have rows."""
        found = []
        for number in range(metadata.num_row_groups):
            rows, nulls = metadata.row_group(number).num_rows, _with_nulls(metadata, number)
            if rows:  # tables without rows have row groups of none, which would give no batch
                found.append(cls(path, state, number, rows, constants, nulls))
        return tuple(found)

    def read(self, columns: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The rows with these columns of the file, ``texts`` of them as dictionaries.

        A batch is handed on once the file is known to be still what it was (Law 2), whatever has
        come of it: gone, cut short, written over or replaced. BrokerError for a file that cannot be
        read all the same.
        """
        try:
            self._verify()
            with opened(self.path, set(texts).difference(self.constants), self.state.size) as file:
                for batch in file.iter_batches(
                    READ_TOGETHER,
                    row_groups=[self.number],
                    columns=sorted(columns),
                    use_threads=False,
                ):
                    self._verify()
                    yield batch
        except (OSError, pa.ArrowException) as error:
            self._verify()
            raise BrokerError(f"{self.path} cannot be read: {error}") from error

    def _verify(self) -> None:
        """FileChanged unless the file is what it was."""
        try:
            is_same = State.of(self.path) == self.state
        except OSError:
            is_same = False
        if not is_same:
            raise FileChanged(f"{self.path} is not what it was when detect looked at it")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece to read at a time: a row group, or several small ones of files that are alike, one
    after another, for to open and hand on each would take longer than to read it.
    """

    groups: tuple[Group, ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(group.rows for group in self.groups)


@dataclass(frozen=True, slots=True)
class Given:
    """An attribute: its column in the wide frame, name, kind, and the column of files that holds
    it. ``checks``: whether that may hold numbers that are not finite.
    """

    column: str
    name: str
    kind: Kind
    field: str
    checks: bool


@dataclass(frozen=True)
class WideRows:
    """How rows of files become rows of a wide frame with these ``columns``.

    ``fields``: the columns of files that hold TYPE, TIME, SOURCE, SEQUENCE and ID, as far as there
    are some; ``attributes`` by type; ``row_type`` the type of all rows, if no column tells.
    """

    columns: Sequence[str]
    fields: Mapping[str, str]
    attributes: Mapping[str, Sequence[Given]]
    row_type: str | None

    @cached_property
    def given(self) -> Mapping[str, Given]:
        """All attributes, by column of the wide frame."""
        return {one.column: one for own in self.attributes.values() for one in own}

    @cached_property
    def needed(self) -> frozenset[str]:
        """The columns of files on which rows depend, be it only for whether they are events."""
        return frozenset({*self.fields.values(), *(one.field for one in self.given.values())})

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows of a piece. Raises FileChanged, and BrokerError."""
        names = self._to_read(piece)
        batches = itertools.chain.from_iterable(self._batches(one, names) for one in piece.groups)
        if len(piece.groups) > 1:
            table = pa.Table.from_batches(batches).combine_chunks()
            batches = iter(table.to_batches(READ_TOGETHER))
        yield from map(self._wide, batches)

    def _batches(self, group: Group, names: frozenset[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a row group with the columns of these names."""
        texts = {self.fields[name] for name in (TYPE, SOURCE) if name in self.fields}
        texts |= {one.field for one in self.given.values() if one.kind is Kind.STRING}
        for batch in group.read(names.difference(group.constants), texts):
            for name in sorted(names.intersection(group.constants)):
                column = _repeated(group.constants[name], batch.num_rows)
                batch = batch.append_column(name, column)
            yield batch

    def _to_read(self, piece: Piece) -> frozenset[str]:
        """Columns that are wanted, or that may make a row no event."""
        wanted = {self.fields[name] for name in self.columns if name in self.fields}
        wanted |= {self.given[name].field for name in self.columns if name in self.given}
        unsure = {name for group in piece.groups for name in (*group.nulls, *group.constants)}
        given = self.given.values()
        wanted |= {one.field for one in given if one.checks or one.field in unsure}
        wanted |= {self.fields[SEQUENCE]} & unsure if SEQUENCE in self.fields else set()
        return frozenset(wanted)

    def _wide(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        count = batch.num_rows
        read = dict(zip(batch.schema.names, batch.columns, strict=True))
        known = {name: read[field] for name, field in self.fields.items() if field in read}
        wide = {TIME: _microseconds(known[TIME])}
        for name in self.columns:
            if name in self.given:
                given = self.given[name]
                wide[name] = _of_kind(read[given.field], given.kind)
            elif name == SOURCE:
                wide[name] = self._source(known, count)
            elif name == BAD:
                wide[name] = self._reasons(read, known, count)
            elif name == TYPE:
                wide[name] = _text(known[name]) if name in known else pa.nulls(count, _TEXT)
            elif name == ID:  # all distinct: a dictionary would be of no use
                held = known[name] if name in known else pa.nulls(count)
                wide[name] = held.cast(pa.string())
            elif name != TIME:
                wide[name] = known[name].cast(pa.int64())
        return pa.record_batch([wide[name] for name in self.columns], names=list(self.columns))

    def _source(self, known: Mapping[str, pa.Array], count: int) -> pa.Array:
        """The sources; those of rows that have none are called like the type."""
        own = _text(known[SOURCE]) if SOURCE in known else pa.nulls(count, _TEXT)
        if not own.null_count and "" not in own.dictionary.to_pylist():
            return own
        others = known.get(TYPE, self.row_type)
        others = others.cast(pa.string()) if isinstance(others, pa.Array) else others
        texts = own.cast(pa.string())
        named = pc.if_else(pc.equal(texts, ""), None, texts)
        return pc.coalesce(named, others).dictionary_encode()

    def _reasons(
        self, read: Mapping[str, pa.Array], known: Mapping[str, pa.Array], count: int
    ) -> pa.Array:
        """Why rows are no events, null for those that are (as ``frames`` words it)."""
        reasons = pa.nulls(count, pa.string())
        for rows, reason in reversed([*self._faults(read, known)]):
            reasons = pc.if_else(rows, reason, reasons)
        return reasons

    def _faults(
        self, read: Mapping[str, pa.Array], known: Mapping[str, pa.Array]
    ) -> Iterator[tuple[pa.Array, str]]:
        """Faults of rows: a mask of them, and the reason; the first reason counts."""
        types = known[TYPE].cast(pa.string()) if self.row_type is None else None
        if types is not None and types.null_count:
            yield types.is_null(), "no type"
        yield from _faulty_times(known[TIME])
        if SEQUENCE in known and known[SEQUENCE].null_count:
            yield known[SEQUENCE].is_null(), NO_SEQUENCE
        for name, own in self.attributes.items():
            for one in own:
                if one.field not in read:
                    continue
                for rows, found in _faulty(read[one.field], one):
                    if types is not None:
                        rows = pc.and_(rows, pc.equal(types, name).fill_null(False))
                    yield rows, f"attribute {one.name}: expected {found}"


@dataclass(frozen=True)
class FilePacking:
    """For ``mapInArrow``: numbers of ``tasks`` in, the blocks and tallies of their pieces out."""

    tasks: Sequence[Sequence[Piece]]
    rows: WideRows
    packing: Packing

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read and pack the pieces of each task."""
        with in_a_sentence():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    rows = map(self.rows.read, self.tasks[number])
                    yield from self.packing(itertools.chain.from_iterable(rows))


# --- files ---------------------------------------------------------------------------------------


def opened(path: str, texts: Collection[str] = (), size: float = math.inf) -> pq.ParquetFile:
    """A file, with ``texts`` read as dictionaries; one of a small ``size`` in bytes is fetched as a
    whole, for to fetch each column takes longer. Raises OSError and ArrowException.
    """
    source: pa.NativeFile | str = path
    if size <= FETCHED_WHOLE:
        with open(path, "rb", buffering=0) as file:
            source = pa.BufferReader(file.read())
    return pq.ParquetFile(source, read_dictionary=list(texts), coerce_int96_timestamp_unit="us")


def unlike(file: pq.ParquetFile, fields: Mapping[str, str]) -> str | None:
    """The reason why Spark may read files with the schema and the keys of this one in another way
    than Arrow; None if nothing. ``fields``: the columns that matter, with Spark's types of them.
    """
    found = _old_calendar(file.metadata.metadata or {})
    places = {file.schema.column(place).path: place for place in range(len(file.schema))}
    for name, data_type in fields.items():
        alike = [one for one in file.schema_arrow.names if one.lower() == name.lower()]
        if alike != [name] or name not in places or "." in name:
            return f"column {name} is not there once, and flat"
        found = found or _unlike_column(file, places[name], name, data_type)
    return found


def unread(metadata: pq.FileMetaData, fields: Collection[str]) -> str | None:
    """A column of these that is packed in a way that Arrow may not know; None if none is."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            if column.compression not in CODECS and column.path_in_schema in fields:
                return f"column {column.path_in_schema} is compressed with {column.compression}"
    return None


def _old_calendar(keys: Mapping[bytes, bytes]) -> str | None:
    version = keys.get(_VERSION, b"9.9").decode().split(".")
    numbers = tuple(int(one) for one in version[:2] if one.isdecimal())
    if numbers < _VERSION_MIN or any(key in keys for key in _LEGACY):
        return "its times may be of the calendar before 1582"
    return None


def _unlike_column(file: pq.ParquetFile, place: int, name: str, data_type: str) -> str | None:
    column = file.schema.column(place)
    logical = json.loads(column.logical_type.to_json())
    means = [
        physical == column.physical_type and meant.items() <= logical.items()
        for physical, meant in ALIKE.get(data_type, ())
    ]
    told = f"column {name} is {column.physical_type} of logical type {logical['Type']}"
    if not any(means) or column.max_repetition_level or column.max_definition_level > 1:
        return f"{told}, not surely {data_type}"
    # What wrote the file may have told Arrow to make something else of it.
    arrow = file.schema_arrow.field(name).type
    if not _is_plain(arrow, data_type):
        return f"{told}, which Arrow takes for {arrow}"
    return None


def _is_plain(arrow: pa.DataType, data_type: str) -> bool:
    """Whether Arrow's type is that which follows from Spark's."""
    match data_type:
        case "string":
            if pa.types.is_dictionary(arrow):
                arrow = arrow.value_type
            return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))
        case "timestamp":
            return bool(pa.types.is_timestamp(arrow) and arrow.unit in ("ms", "us"))
        case "boolean":
            return bool(pa.types.is_boolean(arrow))
        case "float" | "double":
            return bool(pa.types.is_float32(arrow) or pa.types.is_float64(arrow))
    return bool(pa.types.is_signed_integer(arrow))


def _with_nulls(metadata: pq.FileMetaData, group: int) -> frozenset[str]:
    """The columns that may hold nulls in a row group, as far as the file tells."""
    found = metadata.row_group(group)
    unsure = set()
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.max_definition_level:
            statistics = found.column(place).statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                unsure.add(column.path)
    return frozenset(unsure)


# --- columns -------------------------------------------------------------------------------------


def _repeated(value: Value, count: int) -> pa.Array:
    """A column of one value."""
    if value is None:
        return pa.nulls(count)
    if isinstance(value, int):
        return pa.array(np.full(count, value, np.int64))
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def _microseconds(instants: pa.Array) -> pa.Array:
    return instants.cast(pa.timestamp("us", instants.type.tz)).view(pa.int64())


def _faulty_times(instants: pa.Array) -> Iterator[tuple[pa.Array, str]]:
    """Rows without a time, and those with one that is too late to be printed."""
    if instants.null_count:
        yield instants.is_null(), NO_TIME
    late = pc.greater(_microseconds(instants), RFC_3339_MAX).fill_null(False)
    if pc.any(late).as_py():
        yield late, UNREAD_TIME


def _of_kind(values: pa.Array, kind: Kind) -> pa.Array:
    # Not safe, for an integer becomes the nearest float, as it does in Spark.
    return _text(values) if kind is Kind.STRING else values.cast(_ARROW[kind], safe=False)


def _text(values: pa.Array) -> pa.Array:
    """Texts as dictionaries and codes."""
    return values if values.type == _TEXT else values.cast(pa.string()).dictionary_encode()


def _faulty(values: pa.Array, given: Given) -> Iterator[tuple[pa.Array, str]]:
    """Rows without a value, and those whose value is not finite."""
    if values.null_count:
        yield values.is_null(), f"{given.kind.value}, found null"
    if given.checks:
        finite = np.isfinite(values.to_numpy(zero_copy_only=values.null_count == 0))
        if not finite.all():
            yield pa.array(~finite), "a finite float"
