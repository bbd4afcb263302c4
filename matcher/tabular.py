"""Batches and Arrow record batches (cli.md, Files): a column an attribute, numbers not copied.

Beside the attributes a table has ``time`` (a timestamp, RFC 3339 text or a number of seconds) and
may have ``type``, ``source``, ``sequence`` and ``id``; ``cause`` is written and never read back.
What a row leaves out follows from its number, as with JSON lines: ``sequence`` is the row's
number, from 1, ``id`` the sequence number, ``source`` the file's name.

Reading checks whole columns. Each gives its values and, where there is one, the rows that are
bad with the reason; those rows are then raised or skipped together (tesla.md E5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import BadEvent, SchemaError
from matcher.intake import Intake, Place
from matcher.model import (
    MICROSECONDS,
    Attribute,
    Bools,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
)
from matcher.printed import printed_causes, printed_ids
from matcher.rows import INT_MAX, id_texts
from matcher.times import of_float_seconds, time_of, times_of

TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE = "type", "time", "source", "sequence", "id", "cause"
RESERVED = (TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE)
"""Columns that are no attributes."""

BadRows: TypeAlias = list[tuple[Int64s, str]]
"""Rows that are refused, from 0, with the reason."""
_TIMESTAMP = pa.timestamp("us", "UTC")
_TICKS: Mapping[str, int] = {"s": MICROSECONDS, "ms": 1000, "us": 1}


# --- writing ---------------------------------------------------------------------------------


def to_arrow(
    batch: EventBatch, *, full_cause: bool = False, dictionaries: bool = True
) -> pa.RecordBatch:
    """The batch as a record batch of :func:`arrow_schema`; numbers and times are not copied.

    Without ``dictionaries`` strings stand in full, for forms that have none. Raises SchemaError
    when an attribute has the name of a reserved column.
    """
    composite = batch.is_composite
    schema = arrow_schema(batch.type, composite=composite, dictionaries=dictionaries)
    ids = batch.ids
    leading: list[Any] = [
        StringColumn.constant(batch.type.name, len(batch)),
        pa.array(batch.time).view(_TIMESTAMP),
        ids.source,
    ]
    trailing: list[Any] = []
    if not composite:
        leading.append(ids.sequence)
    elif batch.causes is None:
        trailing.append([[]] * len(batch))
    else:
        trailing.append(printed_causes(batch.causes, full=full_cause))
    columns = [*leading, printed_ids(ids), *batch.columns, *trailing]
    return pa.record_batch(
        [_arrow_array(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def arrow_schema(
    event_type: EventType, *, composite: bool = False, dictionaries: bool = True
) -> pa.Schema:
    """The columns of a type: ``type time source [sequence] id``, attributes, ``[cause]``."""
    for name in event_type.names:
        if name in RESERVED:
            raise SchemaError(
                f"event {event_type.name}: attribute {name} has the name of a column that every "
                f"table of events has; JSON lines can hold it"
            )
    text = pa.dictionary(pa.int32(), pa.string()) if dictionaries else pa.string()
    kinds = {
        Kind.INT: pa.int64(),
        Kind.FLOAT: pa.float64(),
        Kind.BOOL: pa.bool_(),
        Kind.STRING: text,
    }
    fields = [(TYPE, text), (TIME, _TIMESTAMP), (SOURCE, text)]
    if not composite:
        fields.append((SEQUENCE, pa.int64()))
    fields.append((ID, pa.string()))
    fields += [(attribute.name, kinds[attribute.kind]) for attribute in event_type.attributes]
    if composite:
        fields.append((CAUSE, pa.list_(pa.string())))
    return pa.schema(fields)


def _arrow_array(column: Any, wanted: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if not isinstance(column, StringColumn):
        return pa.array(column, wanted)
    array = pa.DictionaryArray.from_arrays(
        pa.array(column.codes), pa.array(column.values, pa.string())
    )
    return array if pa.types.is_dictionary(wanted) else array.cast(wanted)


# --- reading ---------------------------------------------------------------------------------


def from_arrow(
    table: pa.RecordBatch | pa.Table,
    place: Place,
    intake: Intake,
    type_name: str | None = None,
    *,
    first_row: int = 1,
    bad: BadRows | None = None,
) -> EventBatch:
    """The good rows as a batch, numbered from ``first_row``.

    ``type_name`` names the type; without it the ``type`` column does, with one value in all rows.
    With it, a ``type`` column is an attribute, or names the same type.
    ``bad`` holds rows that the caller has found bad. Raises BadEvent unless ``intake`` skips
    them, and SchemaError when no type is named or a type that must be inferred has a column that
    no kind holds.
    """
    names = table.schema.names
    columns = {name: _whole(table.column(index)) for index, name in enumerate(names)}
    name = type_name or named_type(columns.get(TYPE), place.file)
    reserved = RESERVED if type_name is None else RESERVED[1:]
    attributes = {key: column for key, column in columns.items() if key not in reserved}
    event_type = intake.schemas.get(name) or intake.learn(
        _inferred_schema(name, attributes, place.file)
    )
    if type_name is not None and TYPE in columns and TYPE not in event_type.names:
        _check_named_type(columns[TYPE], type_name, place.file)
    bad = [] if bad is None else bad
    time = times_of_column(columns.get(TIME), table.num_rows, bad)
    values = tuple(
        _attribute_column(attribute, attributes.get(attribute.name), table.num_rows, bad)
        for attribute in event_type.attributes
    )
    numbers = np.arange(first_row, first_row + table.num_rows, dtype=np.int64)
    ids = _ids(columns, numbers, place.source, bad)
    batch = _good_rows(EventBatch(event_type, time, ids, values), numbers, bad, place.file, intake)
    intake.surplus += len(batch) * len(set(attributes) - set(event_type.names))
    return batch


def _good_rows(
    batch: EventBatch, numbers: Int64s, bad: BadRows, file: str, intake: Intake
) -> EventBatch:
    """The batch without its bad rows, each of which is refused once, the first one first."""
    intake.events += len(batch)
    if not bad:
        return batch
    reasons: dict[int, str] = {}
    for rows, reason in bad:
        for row in rows.tolist():
            reasons.setdefault(row, reason)
    intake.events -= len(reasons)
    for row in sorted(reasons):
        intake.refuse(reasons[row], f"{file}:row {numbers[row]}", batch.type.name)
    keep = np.ones(len(batch), np.bool_)
    keep[list(reasons)] = False
    return batch.take(keep)


def _inferred_schema(name: str, columns: Mapping[str, pa.Array], file: str) -> EventType:
    """The schema that the columns' types mean (E5)."""
    attributes = []
    for key, column in columns.items():
        kind = _kind_of(column.type)
        if kind is None:
            raise SchemaError(
                f"{file}: column {key} of event {name} is of type {column.type}; expected "
                f"integers, floats, bools or strings (declare the event, without it or as it is)"
            )
        attributes.append(Attribute(key, kind))
    return EventType(name, tuple(attributes))


def _attribute_column(
    attribute: Attribute, column: pa.Array | None, rows: int, bad: BadRows
) -> Column:
    """The values of an attribute; rows that do not fit are added to ``bad`` and hold anything."""
    everywhere = np.arange(rows)
    if column is None:
        bad.append((everywhere, f"attribute {attribute.name} is missing"))
        return _blank(attribute.kind, rows)
    kind = _kind_of(column.type)
    expected = f"attribute {attribute.name}: expected {attribute.kind.value}, found"
    if column.null_count:
        bad.append((np.flatnonzero(_mask(column.is_null())), f"{expected} null"))
    if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
        found = kind.value if kind else str(column.type)
        bad.append((everywhere, f"{expected} {found}"))
        return _blank(attribute.kind, rows)
    return _READERS[attribute.kind](attribute, column, bad)


def _ints(attribute: Attribute, column: pa.Array, bad: BadRows) -> Column:
    if pa.types.is_uint64(column.type):
        beyond = _mask(pc.greater(_filled(column, 0), pa.scalar(INT_MAX, pa.uint64())))
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
    return _mask(_filled(column, False))


def _strings(attribute: Attribute, column: pa.Array, bad: BadRows) -> Column:
    return _strings_of(column, f"attribute {attribute.name}", bad)


_READERS: Mapping[Kind, Callable[[Attribute, pa.Array, BadRows], Column]] = {
    Kind.INT: _ints,
    Kind.FLOAT: _floats,
    Kind.BOOL: _bools,
    Kind.STRING: _strings,
}


def _strings_of(column: pa.Array, what: str, bad: BadRows) -> StringColumn:
    """A text column, nulls being empty; rows that are not UTF-8 are added to ``bad``."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).fill_null("").dictionary_encode()
    try:
        values = tuple(column.dictionary.to_pylist())
    except UnicodeDecodeError:
        broken, texts = _decoded(column.cast(pa.binary()).to_pylist())
        bad.append((broken, f"{what}: text that is not UTF-8"))
        return StringColumn.from_strings(texts)
    if None in values or len(set(values)) != len(values):  # Arrow allows what StringColumn bars
        return StringColumn.from_strings([text or "" for text in column.to_pylist()])
    codes = _filled(column.indices, 0).to_numpy().astype(np.int32, copy=False)
    return StringColumn(codes, values if len(column) == 0 or values else ("",))


def times_of_column(column: pa.Array | None, rows: int, bad: BadRows) -> Int64s:
    """Times in microseconds; rows without one are added to ``bad`` and hold 0."""
    if column is None or pa.types.is_null(column.type):
        bad.append((np.arange(rows), "no time"))
        return np.zeros(rows, np.int64)
    if pa.types.is_timestamp(column.type) and not column.null_count:
        times = _of_ticks(column.view(pa.int64()).to_numpy(), column.type.unit)
        if times is not None:
            return times
    if pa.types.is_floating(column.type) and not column.null_count:
        times = of_float_seconds(column.cast(pa.float64()).to_numpy())
        if times is not None:
            return times
    values = _time_values(column)
    whole = times_of(values) if rows and None not in values else None
    return _times_one_by_one(values, bad) if whole is None else whole


def _of_ticks(ticks: Int64s, unit: str) -> Int64s | None:
    """Ticks of a unit in microseconds; None where one does not fit, or is finer."""
    if unit == "ns":  # as Spark's Parquet files have them
        return None if (ticks % 1_000).any() else ticks // 1_000
    factor = _TICKS[unit]
    fits = len(ticks) == 0 or np.abs(ticks // 2).max() < INT_MAX // 2 // factor
    return ticks * factor if fits else None


def without(times: Int64s, bad: BadRows) -> Int64s:
    """The times of the rows that are not bad."""
    if not bad:
        return times
    keep = np.ones(len(times), np.bool_)
    for rows, _ in bad:
        keep[rows] = False
    return times[keep]


def _time_values(column: pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    # As exact decimals of a second: Python's datetimes end with the year 9999 and with
    # microseconds, Arrow's timestamps do not.
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[column.type.unit]
    ticks = column.view(pa.int64()).to_pylist()
    return [None if tick is None else Decimal(tick).scaleb(-digits) for tick in ticks]


def _times_one_by_one(values: Sequence[Any], bad: BadRows) -> Int64s:
    times = np.zeros(len(values), np.int64)
    for row, value in enumerate(values):
        try:
            if value is None:
                raise BadEvent("no time")
            times[row] = time_of(value)
        except BadEvent as error:
            bad.append((np.array([row]), error.reason))
    return times


def _ids(
    columns: Mapping[str, pa.Array], numbers: Int64s, default_source: str, bad: BadRows
) -> EventIds:
    sequence = _sequence(columns[SEQUENCE], numbers, bad) if SEQUENCE in columns else numbers
    source = StringColumn.constant(default_source, len(numbers))
    if SOURCE in columns and not pa.types.is_null(columns[SOURCE].type):
        given = _text_column(SOURCE, columns[SOURCE])
        source = _strings_of(given.fill_null(default_source), SOURCE, bad)
    if ID not in columns or pa.types.is_null(columns[ID].type):
        return EventIds(source, sequence)
    texts = _text_column(ID, columns[ID])
    decimals = pa.array(sequence).cast(pa.string())
    if texts.null_count:
        texts = pc.coalesce(texts, decimals)
    if texts.equals(decimals):
        return EventIds(source, sequence)
    return EventIds(source, sequence, id_texts(_strings_of(texts, ID, bad).tolist(), sequence))


def _sequence(column: pa.Array, rows: Int64s, bad: BadRows) -> Int64s:
    if not pa.types.is_integer(column.type):
        raise SchemaError(f"column {SEQUENCE} is of type {column.type}; expected integers")
    attribute = Attribute(SEQUENCE, Kind.INT)
    filled = pc.coalesce(column, pa.array(rows)) if column.null_count else column
    numbers = _ints(attribute, filled, bad)
    assert not isinstance(numbers, StringColumn)
    return numbers.astype(np.int64, copy=False)


def _text_column(name: str, column: pa.Array) -> pa.Array:
    kind = _kind_of(column.type)
    if kind not in (Kind.STRING, Kind.INT):
        raise SchemaError(f"column {name} is of type {column.type}; expected text")
    texts = column.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), None, texts)  # what is empty is left out


def named_type(column: pa.Array | None, file: str) -> str:
    """The one type that the ``type`` column names; SchemaError when it names none, or several."""
    if column is None:
        raise SchemaError(
            f"{file}: no column 'type' says of which type these events are; name it (--type)"
        )
    names = pc.unique(column).to_pylist()
    if len(names) != 1 or not isinstance(names[0], str) or not names[0]:
        raise SchemaError(
            f"{file}: column 'type' holds {names[:4]}; expected one event type in the whole file"
        )
    return names[0]


def _check_named_type(column: pa.Array, type_name: str, file: str) -> None:
    """SchemaError when the rows say that they are of another type than their reader does."""
    names = pc.unique(column).to_pylist()
    others = [name for name in names if name not in (type_name, None, "")]
    if others:
        raise SchemaError(
            f"{file}: column 'type' says {others[0]!r}, but the rows were to be of type {type_name}"
        )


def _kind_of(arrow_type: pa.DataType) -> Kind | None:
    types = pa.types
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
        return Kind.STRING if _kind_of(arrow_type) is Kind.STRING else None
    if types.is_boolean(arrow_type):
        return Kind.BOOL
    if types.is_integer(arrow_type):
        return Kind.INT
    if types.is_floating(arrow_type):
        return Kind.FLOAT
    is_text = types.is_string, types.is_large_string, types.is_string_view
    return Kind.STRING if any(test(arrow_type) for test in is_text) else None


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _blank(kind: Kind, rows: int) -> Column:
    if kind is Kind.STRING:
        return StringColumn.constant("", rows)
    dtypes = {Kind.INT: np.int64, Kind.FLOAT: np.float64, Kind.BOOL: np.bool_}
    blank: Column = np.zeros(rows, dtypes[kind])
    return blank


def _filled(column: pa.Array, value: int | bool) -> pa.Array:
    """The column with a value for its nulls; itself, not a copy, where there are none."""
    return column.fill_null(value) if column.null_count else column


def _mask(column: pa.Array) -> Bools:
    mask: Bools = column.to_numpy(zero_copy_only=False)
    return mask


def _decoded(texts: Sequence[bytes | None]) -> tuple[Int64s, list[str]]:
    """The rows that are not UTF-8, and all rows as text."""
    decoded = [(text or b"").decode("utf-8", "replace") for text in texts]
    pairs = zip(texts, decoded, strict=True)
    broken = [row for row, (text, new) in enumerate(pairs) if (text or b"") != new.encode()]
    return np.array(broken, np.int64), decoded
