"""Batches and Arrow record batches (docs/files.md): a column an attribute, numbers not copied.

Beside the attributes a table has ``time`` (a timestamp, RFC 3339 text or a number of seconds) and
may have ``type``, ``source``, ``sequence`` and ``id``; ``cause`` is written and never read back.
What a row leaves out follows from its number, as with JSON lines: ``sequence`` is the row's
number, from 1, ``source`` the file's name, and ``id`` as :class:`matcher.formats.intake.Place`
has it.

What Arrow holds of an attribute becomes a column in :mod:`matcher.formats.arrowcolumns`; rows that
are found bad there are raised or skipped together (tesla.md E5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import SchemaError
from matcher.formats.arrowcolumns import (
    BadRows,
    columns_of_table,
    ints_of,
    kind_of,
    strings_of,
    times_of_column,
)
from matcher.formats.intake import Intake, Place
from matcher.formats.printed import printed_causes, printed_ids
from matcher.model import (
    Attribute,
    Bools,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
    with_presences,
)

TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE = "type", "time", "source", "sequence", "id", "cause"
RESERVED = (TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE)
"""Columns that are no attributes."""

COLUMNS_SHOWN = 12
"""So many names of columns are told."""
_TIMESTAMP = pa.timestamp("us", "UTC")


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
    nulls = [None if there is None else ~there for there in _presences(batch)]
    columns = [*leading, printed_ids(ids), *batch.columns[: len(nulls)], *trailing]
    masks = [*(None for _ in leading), None, *nulls, *(None for _ in trailing)]
    return pa.record_batch(
        [
            _arrow_array(column, field.type, mask)
            for column, field, mask in zip(columns, schema, masks, strict=True)
        ],
        schema=schema,
    )


def _presences(batch: EventBatch) -> list[Bools | None]:
    return list(map(batch.presence, range(len(batch.type.declared))))


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
    fields += [(attribute.name, kinds[attribute.kind]) for attribute in event_type.declared]
    if composite:
        fields.append((CAUSE, pa.list_(pa.string())))
    return pa.schema(fields)


def _arrow_array(column: Any, wanted: pa.DataType, nulls: Bools | None) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if not isinstance(column, StringColumn):
        return pa.array(column, wanted, mask=nulls)
    array = pa.DictionaryArray.from_arrays(
        pa.array(column.codes, mask=nulls), pa.array(column.values, pa.string())
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
    them, and SchemaError when no type is named, two columns share a name or a type that must be
    inferred has a column that no kind holds.
    """
    names = table.schema.names
    check_distinct(names, place.file)
    check_time(names, place.file)
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
    time = times_of_column(columns.get(TIME), table.num_rows, bad, place.time_unit)
    bad += (
        (
            np.arange(table.num_rows),
            f"attribute {name} is missing: column {name} is the events' own",
        )
        for name in event_type.names
        if name in reserved and name in columns
    )
    values = columns_of_table(event_type, attributes, table.num_rows, bad)
    numbers = np.arange(first_row, first_row + table.num_rows, dtype=np.int64)
    ids = _ids(columns, numbers, place, bad)
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
        kind = kind_of(column.type)
        if kind is None:
            raise SchemaError(
                f"{file}: column {key} of event {name} is of type {column.type}; expected "
                f"integers, floats, bools or strings (declare the event, without it or as it is)"
            )
        attributes.append(Attribute(key, kind))
    return EventType(name, with_presences(attributes))


def _ids(columns: Mapping[str, pa.Array], rows: Int64s, place: Place, bad: BadRows) -> EventIds:
    """Who the events of ``rows`` are."""
    has_sequence = SEQUENCE in columns
    sequence = _sequence(columns[SEQUENCE], rows, place.file, bad) if has_sequence else rows
    source = StringColumn.constant(place.source, len(rows))
    sources, texts = (_given_texts(name, columns, place.file) for name in (SOURCE, ID))
    if sources is not None:
        source = strings_of(sources.fill_null(place.source), SOURCE, bad)
    decimals = pa.array(sequence).cast(pa.string())
    own = decimals
    if sources is not None and place.source:
        is_ours = sources.is_valid()
        if has_sequence:
            is_ours = pc.and_(is_ours, columns[SEQUENCE].is_null())
        own = pc.if_else(is_ours, pa.array(place.names(rows), pa.string()), decimals)
    named = own if texts is None else pc.coalesce(texts, own)
    if place.by_row:
        return EventIds(source, rows, strings_of(named, ID, bad))
    if named is decimals or named.equals(decimals):
        return EventIds(source, sequence, given=has_sequence or texts is not None)
    return EventIds(source, sequence, strings_of(named, ID, bad))


def _given_texts(name: str, columns: Mapping[str, pa.Array], file: str) -> pa.Array | None:
    """A column of texts, null where one is left out; None where all are."""
    if name not in columns or pa.types.is_null(columns[name].type):
        return None
    return _text_column(name, columns[name], file)


def _sequence(column: pa.Array, rows: Int64s, file: str, bad: BadRows) -> Int64s:
    if not pa.types.is_integer(column.type):
        raise SchemaError(f"{file}: column {SEQUENCE} is of type {column.type}; expected integers")
    attribute = Attribute(SEQUENCE, Kind.INT)
    filled = pc.coalesce(column, pa.array(rows)) if column.null_count else column
    return ints_of(attribute, filled, bad)


def _text_column(name: str, column: pa.Array, file: str) -> pa.Array:
    kind = kind_of(column.type)
    if kind not in (Kind.STRING, Kind.INT):
        raise SchemaError(f"{file}: column {name} is of type {column.type}; expected text")
    texts = column.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), None, texts)  # what is empty is left out


def check_distinct(names: Sequence[str], file: str) -> None:
    """SchemaError when two columns have the same name."""
    if len(set(names)) == len(names):
        return
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, 1):
        places.setdefault(name, []).append(place)
    name, (first, second, *_) = next(one for one in places.items() if len(one[1]) > 1)
    if name:
        raise SchemaError(f"{file}: two columns have the same name: {name}, {first} and {second}")
    raise SchemaError(f"{file}: columns {first} and {second} have no name")


def check_time(names: Sequence[str], file: str) -> None:
    """SchemaError when no column holds times."""
    if TIME not in names:
        shown = ", ".join(map(repr, names[:COLUMNS_SHOWN])) or "none"
        more = ", ..." if len(names) > COLUMNS_SHOWN else ""
        raise SchemaError(f"{file}: no column 'time'; the columns are {shown}{more}")


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


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, nulls in its rows alone."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    # A row may name a null in its dictionary too, and none of Arrow's tests for nulls sees it.
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in chunks):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
