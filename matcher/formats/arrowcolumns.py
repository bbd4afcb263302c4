"""Arrays of Arrow as columns of ours, numbers not copied where they need not be.

Whole columns are checked, not values. Each function gives the values and adds to ``bad`` the rows
that do not fit, with the reason; these hold anything, and are raised or skipped together (tesla.md
E5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import BadEvent
from matcher.formats.timeform import RFC_3339, Moment, Read, TimeForm, read_of
from matcher.model import (
    BLANKS,
    Attribute,
    Bools,
    Column,
    EventType,
    Int64s,
    Kind,
    StringColumn,
)
from matcher.rows import INT_MAX, INT_MIN
from matcher.times import STAMP, of_floats, time_text

BadRows: TypeAlias = list[tuple[Int64s, str]]
"""Rows that are refused, from 0, with the reason."""
_NO_TIMES = np.zeros(0, np.int64)


def kind_of(arrow_type: pa.DataType) -> Kind | None:
    """The kind that a type of Arrow means; None for one that no kind holds."""
    types = pa.types
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
        return Kind.STRING if kind_of(arrow_type) is Kind.STRING else None
    if types.is_boolean(arrow_type):
        return Kind.BOOL
    if types.is_integer(arrow_type):
        return Kind.INT
    if types.is_decimal(arrow_type):
        return Kind.FLOAT if arrow_type.scale > 0 else Kind.INT
    if types.is_floating(arrow_type):
        return Kind.FLOAT
    is_text = types.is_string, types.is_large_string, types.is_string_view
    return Kind.STRING if any(test(arrow_type) for test in is_text) else None


def columns_of_table(
    event_type: EventType, columns: Mapping[str, pa.Array], rows: int, bad: BadRows
) -> tuple[Column, ...]:
    """The columns of a type; rows that do not fit are added to ``bad`` and hold anything.

    An optional attribute is null where its column is, or has none.
    """
    values: list[Column] = []
    present: list[Column] = []
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        column = columns.get(attribute.name)
        if presence < 0:
            values.append(values_of_column(attribute, column, columns, rows, bad))
        elif column is None or pa.types.is_null(column.type):
            values.append(_blank(attribute.kind, rows))
            present.append(np.zeros(rows, np.bool_))
        else:
            present.append(mask_of(column.is_valid()))
            values.append(values_of_column(attribute, _without_nulls(column), columns, rows, bad))
    return (*values, *present)


def _without_nulls(column: pa.Array) -> pa.Array:
    """The column with the blank of its kind in place of nulls (matcher.model, Rule 5)."""
    kind = kind_of(column.type)
    if kind is None or not column.null_count:
        return column
    if kind is Kind.STRING:
        column = column.cast(pa.string())
    return column.fill_null(pa.scalar(BLANKS[kind]).cast(column.type))


def values_of_column(
    attribute: Attribute,
    column: pa.Array | None,
    columns: Iterable[str],
    rows: int,
    bad: BadRows,
) -> Column:
    """The values of an attribute; rows that do not fit are added to ``bad`` and hold anything.

    ``columns`` are the names that there are, for a message.
    """
    everywhere = np.arange(rows)
    if column is None:
        bad.append((everywhere, _missing(attribute.name, columns)))
        return _blank(attribute.kind, rows)
    kind = kind_of(column.type)
    expected = f"attribute {attribute.name}: expected {attribute.kind.value}, found"
    if column.null_count:
        bad.append((np.flatnonzero(mask_of(column.is_null())), f"{expected} null"))
    if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
        found = kind.value if kind else str(column.type)
        bad.append((everywhere, f"{expected} {found}"))
        return _blank(attribute.kind, rows)
    if pa.types.is_decimal(column.type):
        column = _undecimal(attribute, column, bad)
    return _READERS[attribute.kind](attribute, column, bad)


def _undecimal(attribute: Attribute, column: pa.Array, bad: BadRows) -> pa.Array:
    """Decimals as ints where they have no digits behind the point, else as the nearest floats."""
    if column.type.scale > 0 or attribute.kind is Kind.FLOAT:
        return column.cast(pa.string()).cast(pa.float64())  # rounded once, as Arrow's own is not
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        values = column.to_pylist()
        beyond = [
            row
            for row, value in enumerate(values)
            if value is not None and not INT_MIN <= value <= INT_MAX
        ]
        bad.append((np.array(beyond), f"attribute {attribute.name}: an int beyond 64 bits"))
        return pa.array(
            [
                None if one is None else int(one) if INT_MIN <= one <= INT_MAX else 0
                for one in values
            ],
            pa.int64(),
        )


def _missing(name: str, columns: Iterable[str]) -> str:
    """An attribute without a column, and the column that may be meant."""
    near = [one for one in columns if one.strip().casefold() == name.strip().casefold()]
    hint = f" (the column {near[0]!r} is called otherwise)" if near else ""
    return f"attribute {name} is missing{hint}"


def ints_of(attribute: Attribute, column: pa.Array, bad: BadRows) -> Int64s:
    """The ints of a column, nulls being 0."""
    if pa.types.is_uint64(column.type):
        beyond = mask_of(pc.greater(_filled(column, 0), pa.scalar(INT_MAX, pa.uint64())))
        if beyond.any():
            bad.append(
                (np.flatnonzero(beyond), f"attribute {attribute.name}: an int beyond 64 bits")
            )
    numbers: Int64s = _filled(column, 0).to_numpy().astype(np.int64, copy=False)
    return numbers


def _floats(attribute: Attribute, column: pa.Array, bad: BadRows) -> Column:
    numbers: npt.NDArray[np.float64] = _filled(column, 0).to_numpy().astype(np.float64, copy=False)
    finite = np.isfinite(numbers)
    if not finite.all():
        bad.append(
            (np.flatnonzero(~finite), f"attribute {attribute.name}: expected a finite float")
        )
    return numbers


def _bools(attribute: Attribute, column: pa.Array, bad: BadRows) -> Column:
    return mask_of(column)


def _strings(attribute: Attribute, column: pa.Array, bad: BadRows) -> Column:
    return strings_of(column, f"attribute {attribute.name}", bad)


_READERS: Mapping[Kind, Callable[[Attribute, pa.Array, BadRows], Column]] = {
    Kind.INT: ints_of,
    Kind.FLOAT: _floats,
    Kind.BOOL: _bools,
    Kind.STRING: _strings,
}


def strings_of(column: pa.Array, what: str, bad: BadRows) -> StringColumn:
    """A text column, nulls being empty; rows that are not UTF-8 are added to ``bad``.

    A dictionary holds no nulls.
    """
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).fill_null("").dictionary_encode()
    try:
        values = tuple(column.dictionary.to_pylist())
    except UnicodeDecodeError:
        broken, texts = _decoded(column.cast(pa.binary()).to_pylist())
        bad.append((broken, f"{what}: text that is not UTF-8"))
        return StringColumn.from_strings(texts)
    if len(set(values)) != len(values):  # Arrow allows what StringColumn bars
        return StringColumn.from_strings([text or "" for text in column.to_pylist()])
    codes = _filled(column.indices, 0).to_numpy().astype(np.int32, copy=False)
    return StringColumn(codes, values if len(column) == 0 or values else ("",))


def times_of_column(
    column: pa.Array | None, rows: int, bad: BadRows, form: TimeForm = RFC_3339
) -> Read:
    """Times in microseconds, as ``form`` says that they are written; rows without one are added to
    ``bad`` and hold 0.
    """
    if column is None or pa.types.is_null(column.type):
        bad.append((np.arange(rows), "no time"))
        return Read(np.zeros(rows, np.int64))
    is_stamp = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    read = None if column.null_count else _times_together(column, form, is_stamp=is_stamp)
    if read is not None:
        return read
    if is_stamp:
        return _stamps_one_by_one(column, bad, form)
    return _times_one_by_one(column.to_pylist(), bad, form.time_of)


def _times_together(column: pa.Array, form: TimeForm, *, is_stamp: bool) -> Read | None:
    """The times of a column without nulls; None when one needs a closer look."""
    if is_stamp:
        return form.of_stamps(column)
    if kind_of(column.type) is Kind.STRING:
        return form.of_texts(column.cast(pa.string())) if len(column) else Read(_NO_TIMES)
    if pa.types.is_floating(column.type) and form.format is None:
        times = of_floats(column.cast(pa.float64()).to_numpy(), form.unit)
        if times is not None:
            return Read(times)
    return form.times_of(column.to_pylist()) if len(column) else Read(_NO_TIMES)


def _stamps_one_by_one(column: pa.Array, bad: BadRows, form: TimeForm) -> Read:
    """Timestamps as exact decimals of a second: Python's datetimes end with the year 9999 and with
    microseconds, Arrow's timestamps do not.
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[column.type.unit]
    seconds = replace(form, unit=STAMP, format=None)

    def of_tick(tick: int) -> Moment:
        moment = seconds.time_of(Decimal(tick).scaleb(-digits))
        if column.type.tz is not None or form.zone is None:
            return moment
        return form.at_clock(moment.time, time_text(moment.time).removesuffix("Z"))

    return _times_one_by_one(column.view(pa.int64()).to_pylist(), bad, of_tick)


def _times_one_by_one(
    values: Sequence[Any], bad: BadRows, time_of: Callable[[Any], Moment]
) -> Read:
    moments = []
    for row, value in enumerate(values):
        try:
            if value is None:
                raise BadEvent("no time")
            moments.append(time_of(value))
        except BadEvent as error:
            bad.append((np.array([row]), error.reason))
            moments.append(Moment(0))
    return read_of(moments)


def good_rows(count: int, bad: BadRows) -> Bools:
    """The mask of the rows that are not bad, bool[count]."""
    good = np.ones(count, np.bool_)
    for rows, _ in bad:
        good[rows] = False
    return good


def _blank(kind: Kind, rows: int) -> Column:
    if kind is Kind.STRING:
        return StringColumn.constant("", rows)
    dtypes = {Kind.INT: np.int64, Kind.FLOAT: np.float64, Kind.BOOL: np.bool_}
    blank: Column = np.zeros(rows, dtypes[kind])
    return blank


def _filled(column: pa.Array, value: int | bool) -> pa.Array:
    """The column with a value for its nulls; itself, not a copy, where there are none."""
    return column.fill_null(value) if column.null_count else column


def mask_of(column: pa.Array) -> Bools:
    """A column of truth values as bool[n], false where it is null."""
    mask: Bools = column.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _decoded(texts: Sequence[bytes | None]) -> tuple[Int64s, list[str]]:
    """The rows that are not UTF-8, and all rows as text."""
    decoded = [(text or b"").decode("utf-8", "replace") for text in texts]
    pairs = zip(texts, decoded, strict=True)
    broken = [row for row, (text, new) in enumerate(pairs) if (text or b"") != new.encode()]
    return np.array(broken, np.int64), decoded
