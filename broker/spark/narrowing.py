"""Columns of a block in fewer bytes, for as long as Spark moves and keeps them.

Law: ``widened`` gives back what ``narrowed`` was given, to the bit and with its types. Integers
become what they are above the least of them, or their steps above the least step, whichever takes
fewer bytes; codes of texts take as many bytes as there are texts to tell apart; and a column of one
value takes none at all. Whatever else there is stays as it is, and so do columns with nulls.

How a column was narrowed is told by its field, so a block needs nothing besides itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from matcher.model import AnyArray, Int64s

_LEAST, _FIRST, _TEXT = b"least", b"first", b"text"
_WIDTHS = (np.uint8, np.uint16, np.uint32)
_TEXTS = pa.dictionary(pa.int32(), pa.string())


def narrowed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with columns in as few bytes as is easily done."""
    pairs = [_narrow(name, column) for name, column in zip(rows.schema.names, rows, strict=True)]
    fields, arrays = zip(*pairs, strict=True)
    return pa.record_batch(list(arrays), schema=pa.schema(fields))


def widened(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as they were before ``narrowed``."""
    arrays = [_widen(field, column) for field, column in zip(rows.schema, rows, strict=True)]
    return pa.record_batch(arrays, names=rows.schema.names)


def _narrow(name: str, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    if len(column) and not column.null_count:
        if column.type == pa.int64():
            return _narrow_integers(name, column)
        if column.type == _TEXTS:
            return _narrow_codes(name, column)
    return pa.field(name, column.type), column


def _narrow_integers(name: str, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    values: Int64s = column.to_numpy()
    steps: Int64s = np.diff(values)  # may wrap around, and back again in their sums
    least, width = _range_of(values)
    if width == 0:
        return _field(name, pa.null(), {_LEAST: least}), pa.nulls(len(values))
    least_step, step_width = _range_of(steps)
    if step_width < width:
        told = {_FIRST: int(values[0]), _LEAST: least_step}
        values, least, width = steps, least_step, step_width
    else:
        told = {_LEAST: least}
    if width > _WIDTHS[-1]().nbytes:
        return pa.field(name, column.type), column
    small = next(one for one in _WIDTHS if one().nbytes >= width)
    if _FIRST in told:
        values = np.concatenate([np.array([least], np.int64), values])
    array = pa.array((values - least).astype(small))
    return _field(name, array.type, told), array


def _range_of(values: Int64s) -> tuple[int, int]:
    """The least of some values, and how many bytes they take above it."""
    if not len(values):
        return 0, 0
    least = int(values.min())
    return least, ((int(values.max()) - least).bit_length() + 7) // 8


def _narrow_codes(name: str, column: pa.DictionaryArray) -> tuple[pa.Field, pa.Array]:
    count = len(column.dictionary)
    if count == 1:
        text = column.dictionary[0].as_py()
        return _field(name, pa.null(), {_TEXT: text}), pa.nulls(len(column))
    width = ((count - 1).bit_length() + 7) // 8
    small = next(one for one in _WIDTHS if one().nbytes >= width)
    codes: AnyArray = column.indices.to_numpy().astype(small, copy=False)
    array = pa.DictionaryArray.from_arrays(pa.array(codes), column.dictionary)
    return pa.field(name, array.type), array


def _widen(field: pa.Field, column: pa.Array) -> pa.Array:
    told, count = field.metadata or {}, len(column)
    if _TEXT in told:
        codes = pa.array(np.zeros(count, np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([told[_TEXT].decode()]))
    if _LEAST in told:
        least = np.int64(int(told[_LEAST]))
        if pa.types.is_null(column.type):
            return pa.array(np.full(count, least))
        values: Int64s = column.to_numpy().astype(np.int64)
        values += least
        if _FIRST in told:
            values[0] = int(told[_FIRST])
            np.cumsum(values, out=values)
        return pa.array(values)
    if pa.types.is_dictionary(column.type) and column.type != _TEXTS:
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary)
    return column


def _field(name: str, data_type: pa.DataType, told: Mapping[bytes, int | str]) -> pa.Field:
    return pa.field(name, data_type, metadata={key: str(value) for key, value in told.items()})
