"""Event batches as bytes: a header of plain data and a body of columns (docs/protocol.md).

Numbers cross as they lie in memory (little-endian), each column whole, columns of eight bytes
first, then those of four, then those of one; so every column is aligned, nothing is padded but a
batch's end, and there is no per-event Python on either side. Dictionaries of strings are in the
header, where the msgpack decoder checks their UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from matcher.extremes import are_finite, greatest, least
from matcher.model import (
    ATTRIBUTES_MAX,
    Bools,
    Causes,
    Column,
    EventBatch,
    EventIds,
    Int32s,
    Int64s,
    StringColumn,
    UInt64s,
)
from matcher.single import Row, Single
from routing.errors import WireError
from routing.messages import Traces
from routing.wire import composites
from routing.wire.codec import check_traces
from routing.wire.composites import Encoded
from routing.wire.headers import CELLS_MAX, EVENTS_MAX, BatchHeader, CausesHeader
from routing.wire.received import Received
from routing.wire.schemas import Layout, Strings, known_schema, layout_of
from routing.wire.singles import only

_FEW_EVENTS = CELLS_MAX // (4 + ATTRIBUTES_MAX)
"""So many of any type have less than CELLS_MAX values."""
_INT64, _UINT64, _FLOAT64 = np.dtype("<i8"), np.dtype("<u8"), np.dtype("<f8")
_INT32, _BYTE, _BOOL = np.dtype("<i4"), np.dtype("u1"), np.dtype("?")

Floats: TypeAlias = npt.NDArray[np.float64]


# --- encoding --------------------------------------------------------------------------------


class BodyWriter:
    """Collects columns by width and puts them one after another."""

    __slots__ = ("_by_width",)

    def __init__(self) -> None:
        self._by_width: dict[int, list[bytes]] = {8: [], 4: [], 1: []}

    def add(self, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
        """Add one column."""
        if array.dtype is not dtype:
            array = array.astype(dtype)
        self._by_width[dtype.itemsize].append(array.tobytes())

    def add_strings(self, column: StringColumn) -> Strings:
        """Add the codes of a string column; gives its dictionary for the header. A dictionary has
        no more values than the column has rows; with a single value there are no codes.
        """
        if len(column.codes) == 1:
            return (column.values[int(column.codes[0])],)
        if len(column.values) > len(column.codes):
            column = column.compact()
        if len(column.values) > 1:
            self.add(column.codes, _INT32)
        return column.values

    def finish(self) -> bytes:
        """The body, padded to a multiple of eight bytes."""
        body = b"".join(chain.from_iterable(self._by_width.values()))
        return body + bytes(-len(body) % 8)


def encode_batches(
    batches: Sequence[EventBatch], order: Int64s | None = None
) -> tuple[tuple[BatchHeader, ...], bytes]:
    """The batches' headers, and their bodies one after another, then the order."""
    if len(batches) == 1 and order is None:  # common
        header, body = _encode_batch(batches[0])
        return (header,), body
    if not batches:
        return (), b""
    headers, bodies = zip(*map(_encode_batch, batches), strict=True)
    body = b"".join(bodies)
    return headers, body if order is None else body + order.astype("<i8", copy=False).tobytes()


_last: tuple[Single, tuple[BatchHeader, bytes]] | None = None
"""The last event that came alone, and its header and body."""


def _encode_batch(batch: EventBatch) -> tuple[BatchHeader, bytes]:
    """A batch of 1 to EVENTS_MAX events as header and body."""
    if isinstance(batch, Encoded):
        return batch.header, batch.body
    global _last  # one event goes to many, one after another
    if _last is not None and _last[0] is batch:
        return _last[1]
    _, schema, layout, dtypes = known_schema(batch.type)
    if isinstance(batch, Single):
        row = batch.row
        text_id = None if row.text is None else (row.text,)
        values, data = layout.single.encode(row)
        header = BatchHeader(schema, 1, (row.source,), text_id, False, values, None)
        _last = batch, (header, data)
        return _last[1]
    if isinstance(batch, Received):
        return batch.header, bytes(batch.body)
    assert 1 <= len(batch) <= EVENTS_MAX, f"a batch of {len(batch)} events"
    body, ids = BodyWriter(), batch.ids
    body.add(batch.time, _INT64)
    sources, texts = _add_ids(body, ids)
    strings = []
    for dtype, column in zip(dtypes, batch.columns, strict=True):
        if isinstance(column, StringColumn):
            strings.append(body.add_strings(column))
        else:
            body.add(column, dtype)
    causes = None if batch.causes is None else _add_causes(body, batch.causes)
    header = BatchHeader(
        schema,
        len(batch),
        sources,
        texts,
        ids.digest is not None,
        tuple(strings),
        causes,
    )
    return header, body.finish()


def _add_ids(body: BodyWriter, ids: EventIds) -> tuple[Strings, Strings | None]:
    body.add(ids.sequence, _INT64)
    if ids.digest is not None:
        body.add(ids.digest, _UINT64)
    sources = body.add_strings(ids.source)
    return sources, None if ids.text is None else body.add_strings(ids.text)


def _add_causes(body: BodyWriter, causes: Causes) -> CausesHeader:
    body.add(causes.offsets - causes.offsets[0], _INT64)
    sources, texts = _add_ids(body, causes.ids)
    if causes.ids.digest is not None:
        body.add(causes.is_digest, _BOOL)
    if causes.ids.text is not None:
        body.add(causes.has_text, _BOOL)
    return CausesHeader(len(causes.ids), sources, texts, causes.ids.digest is not None)


# --- decoding --------------------------------------------------------------------------------


class BodyReader:
    """Takes columns out of a body in the order of their widths."""

    __slots__ = ("_body", "_columns", "_offset")

    def __init__(self, body: bytes | memoryview) -> None:
        self._body = body
        self._columns: bytearray | None = None
        """A copy of it, made for the first column: that is aligned wherever the host received it,
        and arrays on it are like any others (read-only ones would make kernels compile a second
        time)."""
        self._offset = 0

    def take(self, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """The next ``count`` values; WireError when the body is too short."""
        start = self._offset
        end = start + dtype.itemsize * count
        if end > len(self._body):
            raise WireError(f"the body ends after {len(self._body)} bytes; expected {end} or more")
        self._offset = end
        if self._columns is None:
            self._columns = bytearray(self._body)
        return np.frombuffer(self._columns, dtype, count, start)

    def take_single(self, header: BatchHeader, layout: Layout) -> Single:
        """The next batch, of one event."""
        start = self._offset
        self._offset = start + layout.single.body.size
        return _single(header, layout, self._body, start)

    def take_encoded(self, header: BatchHeader, layout: Layout) -> Encoded:
        """The next batch, of one composite event."""
        found = composites.decode_alone(header, layout, self._body, self._offset)
        self._offset += len(found.body)
        return found

    @property
    def offset(self) -> int:
        """The bytes that have been taken."""
        return self._offset

    def finish_batch(self, start: int) -> memoryview:
        """Skip the padding at a batch's end; gives the bytes of the batch, from ``start`` on."""
        self._offset += -self._offset % 8
        assert self._columns is not None
        return memoryview(self._columns)[start : self._offset]

    def finish(self) -> None:
        """WireError when something is left."""
        if len(self._body) != self._offset:
            raise WireError(f"a body of {len(self._body)} bytes; expected {self._offset}")


def decode_batches(
    headers: Sequence[BatchHeader],
    body: bytes | memoryview | None,
    ordered: bool = False,
    traces: Traces = (),
) -> tuple[tuple[EventBatch, ...], Int64s | None]:
    """The batches and, where they are ``ordered``, their order; WireError for anything else, and
    for ``traces`` of events that are not there.
    """
    if body is None:
        raise WireError("events without their second frame")
    if len(headers) == 1 and not ordered and not traces:
        header = headers[0]
        if header.count == 1 and header.causes is None and not header.digest:  # common
            layout = layout_of(header.schema)
            if len(body) == layout.single.body.size:
                return (_single(header, layout, body, 0),), None
    events = 0
    for header in headers:
        events += header.count
    if events > _FEW_EVENTS:
        _check_cells(headers)
    reader = BodyReader(body)
    batches = tuple(map(_decode_batch, headers, repeat(reader)))
    order = _take_order(reader, events) if ordered else None
    reader.finish()
    if traces:
        check_traces(traces, events)
    return batches, order


def _check_cells(headers: Sequence[BatchHeader]) -> None:
    """WireError when the batches would hold more than CELLS_MAX values together."""
    cells = sum(
        [header.count * (4 + len(layout_of(header.schema).type.attributes)) for header in headers]
    )
    if cells > CELLS_MAX:
        raise WireError(f"{cells} values in one message; at most {CELLS_MAX} are taken")


def _decode_batch(header: BatchHeader, body: BodyReader) -> EventBatch:
    """The batch; WireError for anything that is not one: it is believed only after
    lengths, codes, finiteness, truth values and offsets were checked, and satisfies all that
    :mod:`matcher.model` promises.
    """
    layout, count, causes = layout_of(header.schema), header.count, header.causes
    if count == 1:
        if causes is None and not header.digest:
            return body.take_single(header, layout)
        if causes is not None and causes.count <= composites.CAUSES_MAX:
            return body.take_encoded(header, layout)
    if len(header.strings) != len(layout.strings):
        raise _mismatch(header, layout)
    columns: list[Column | None] = [None] * len(layout.type.attributes)
    start = body.offset
    # Columns of eight bytes.
    time = body.take(_INT64, count)
    sequence, digest = _take_numbers(body, count, header.digest)
    for place, is_float in layout.words:
        columns[place] = _take_floats(body, count) if is_float else body.take(_INT64, count)
    if causes is not None:
        offsets = _take_offsets(body, count, causes.count)
        cause_sequence, cause_digest = _take_numbers(body, causes.count, causes.digest)
    # Columns of four.
    source, text = _take_names(body, count, header.sources, header.texts)
    for place, values in zip(layout.strings, header.strings, strict=True):
        columns[place] = _take_strings(body, count, values)
    if causes is not None:
        names = _take_names(body, causes.count, causes.sources, causes.texts)
    # Columns of one.
    for place in layout.bools:
        columns[place] = _take_bools(body, count, True)
    provenance = None
    if causes is not None:
        provenance = Causes(
            offsets,
            EventIds(names[0], cause_sequence, names[1], cause_digest),
            _take_bools(body, causes.count, causes.digest),
            _take_bools(body, causes.count, causes.texts is not None),
        )
    own = body.finish_batch(start)
    ids = EventIds(source, sequence, text, digest)
    every: Any = tuple(columns)
    return Received(header, own, layout.type, time, ids, every, provenance)


def _single(
    header: BatchHeader, layout: Layout, body: bytes | bytearray | memoryview, start: int
) -> Single:
    if len(header.strings) != len(layout.strings):
        raise _mismatch(header, layout)
    time, sequence, values = layout.single.decode(body, start, header.strings)
    text = None if header.texts is None else only(header.texts)
    sources = header.sources
    source = sources[0] if len(sources) == 1 else only(sources)
    return Single(layout.type, Row(time, source, sequence, text, values))


def _mismatch(header: BatchHeader, layout: Layout) -> WireError:
    return WireError(f"{len(header.strings)} dictionaries for {layout.type}")


def _take_order(body: BodyReader, count: int) -> Int64s:
    order = body.take(_INT64, count)
    seen = np.zeros(count, np.bool_)
    if count and least(order) >= 0 and greatest(order) < count:
        seen[order] = True
    if not seen.all():
        raise WireError(f"an order that is no permutation of {count} places")
    return order


def _take_numbers(body: BodyReader, count: int, digest: bool) -> tuple[Int64s, UInt64s | None]:
    sequence = body.take(_INT64, count)
    return sequence, body.take(_UINT64, 2 * count).reshape(count, 2) if digest else None


def _take_floats(body: BodyReader, count: int) -> Floats:
    values = body.take(_FLOAT64, count)
    if not are_finite(values):
        raise WireError("a float that is not finite (tesla.md E1)")
    return values


def _take_offsets(body: BodyReader, count: int, causes: int) -> Int64s:
    offsets = body.take(_INT64, count + 1)
    if offsets[0] != 0 or offsets[-1] != causes or (offsets[1:] <= offsets[:-1]).any():
        raise WireError(f"offsets of causes that do not rise from 0 to {causes}")
    return offsets


def _take_names(
    body: BodyReader, count: int, sources: Strings, texts: Strings | None
) -> tuple[StringColumn, StringColumn | None]:
    source = _take_strings(body, count, sources)
    return source, None if texts is None else _take_strings(body, count, texts)


def _take_strings(body: BodyReader, count: int, values: Strings) -> StringColumn:
    if len(values) == 1:
        return StringColumn(np.zeros(count, np.int32), values)
    if not 1 < len(values) <= count or len(set(values)) != len(values):
        raise WireError(f"a dictionary of {len(values)} strings for {count} rows, or a repeat")
    codes: Int32s = body.take(_INT32, count)
    if greatest(codes.view(np.uint32)) >= len(values):
        raise WireError(f"a code outside its dictionary of {len(values)} strings")
    return StringColumn(codes, values)


def _take_bools(body: BodyReader, count: int, present: bool) -> Bools:
    if not present:
        return np.zeros(count, np.bool_)
    values = body.take(_BYTE, count)
    if greatest(values) > 1:
        raise WireError("a truth value that is neither 0 nor 1")
    return values.view(_BOOL)
