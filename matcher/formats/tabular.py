"""Batches and Arrow record batches (docs/files.md): a column an attribute, numbers not copied.

Beside the attributes a table has ``time`` (a timestamp, RFC 3339 text or a number of seconds) and
may have ``type``, ``source``, ``sequence`` and ``id``, by these names or as the layout says;
``cause`` is written and read back only where it is declared.
What a row leaves out follows from its number, as with JSON lines: ``sequence`` is the row's
number, from 1, ``source`` the file's name, and ``id`` as :class:`matcher.formats.intake.Place`
has it.

What Arrow holds of an attribute becomes a column in :mod:`matcher.formats.arrowcolumns`; rows that
are found bad there are raised or skipped together (tesla.md E5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import SchemaError
from matcher.formats.arrowcolumns import (
    BadRows,
    columns_of_table,
    good_rows,
    ints_of,
    kind_of,
    mask_of,
    strings_of,
    times_of_column,
)
from matcher.formats.folders import datum_of
from matcher.formats.intake import Intake, Place
from matcher.formats.layout import (
    CAUSE,
    DATE,
    ID,
    RESERVED,
    SEQUENCE,
    SOURCE,
    TIME,
    TYPE,
    Roles,
)
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


NO_TYPE = ""
"""The type of rows that name none; it is that of no event."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one type: their columns by name, and by attribute, their numbers, their times, and
    those that are bad so far.

    ``others``: attributes that this type's rows have nothing in, where rows are of several types.
    """

    type_name: str
    columns: Mapping[str, pa.Array]
    values: Mapping[str, pa.Array]
    numbers: Int64s
    times: Int64s
    bad: BadRows
    others: frozenset[str] = frozenset()


def from_arrow(
    table: pa.RecordBatch | pa.Table,
    place: Place,
    intake: Intake,
    type_name: str | None = None,
    *,
    first_row: int = 1,
) -> EventBatch:
    """The good rows, all of one type, as a batch; else as :func:`batches_of`.

    Raises SchemaError, too, where rows are of several types.
    """
    batches = batches_of(table, place, intake, type_name, first_row=first_row)
    if len(batches) != 1:
        names = [batch.type.name for batch in batches]
        raise SchemaError(
            f"{place.file}: column 'type' holds {names[:4]}; expected one event type in the table"
        )
    return batches[0]


def batches_of(
    table: pa.RecordBatch | pa.Table,
    place: Place,
    intake: Intake,
    type_name: str | None = None,
    *,
    first_row: int = 1,
) -> list[EventBatch]:
    """The good rows as a batch for each type, numbered from ``first_row``.

    What columns mean ``place.layout`` says. ``type_name`` names the type of rows that no column
    names. Raises BadEvent unless ``intake`` skips them, and SchemaError when no type is named, two
    columns share a name or a type that must be inferred has a column that no kind holds.
    """
    names = [*table.schema.names, *(name for name, _ in place.columns)]
    check_distinct(names, place.file)
    roles = place.layout.roles(names, place.file, type_name)
    columns = whole_columns(table, place)
    bad: BadRows = []
    times = times_of_rows(columns, roles, place, intake, bad)
    parts = parts_of(columns, roles, place, type_name, first_row, times, bad)
    parts = [_with_kinds(rows, place, intake) for rows in parts]
    for rows in parts:
        if rows.type_name != NO_TYPE and rows.type_name not in intake.schemas:
            try:
                intake.learn(_inferred_schema(rows, roles, place.file))
            except SchemaError as error:
                intake.refuse_type(rows.type_name, error)
    known = [one for one in parts if one.type_name in (NO_TYPE, *intake.schemas)]
    return settled(known, roles, place, intake, type_name)


def whole_columns(table: pa.RecordBatch | pa.Table, place: Place) -> dict[str, pa.Array]:
    """The columns of a table, each in one piece, and as texts those that names of folders say."""
    columns = {name: _whole(table.column(at)) for at, name in enumerate(table.schema.names)}
    return columns | folder_columns(place, table.num_rows)


def folder_columns(place: Place, rows: int) -> dict[str, pa.Array]:
    """The columns that names of folders say, as texts."""
    return {name: pa.repeat(pa.scalar(text, pa.string()), rows) for name, text in place.columns}


def _with_kinds(rows: Rows, place: Place, intake: Intake) -> Rows:
    """The rows with values for the texts of names of folders: of the kind that is declared, or as
    they look.
    """
    texts, event_type = dict(place.columns), intake.schemas.get(rows.type_name)
    declared = () if event_type is None else event_type.declared
    kinds = {attribute.name: attribute.kind for attribute in declared}
    columns = {name: column for name, column in place.layout.columns if column in texts}
    values = {
        name: pa.array([datum_of(texts[columns.get(name, name)], kinds.get(name))] * len(column))
        for name, column in rows.values.items()
        if columns.get(name, name) in texts
    }
    return replace(rows, values={**rows.values, **values}) if values else rows


def times_of_rows(
    columns: Mapping[str, pa.Array], roles: Roles, place: Place, intake: Intake, bad: BadRows
) -> Int64s:
    """The times of the next rows of a table, of whatever types; those without are added to ``bad``
    and hold 0.
    """
    count = len(next(iter(columns.values()), ()))
    moments = moments_of(columns, roles.roles)
    read = times_of_column(moments, count, bad, place.layout.times)
    good = good_rows(count, bad)
    times = np.zeros(count, np.int64)
    times[good] = intake.note(place, read.take(good))
    return times


def parts_of(
    columns: Mapping[str, pa.Array],
    roles: Roles,
    place: Place,
    type_name: str | None,
    first_row: int,
    times: Int64s,
    bad: BadRows,
) -> list[Rows]:
    """Rows by the type that each is of; those that name none are bad, and of NO_TYPE.

    SchemaError when there is no column for it, and no ``type_name``.
    """
    numbers = np.arange(first_row, first_row + len(times), dtype=np.int64)
    column = columns[roles.roles[TYPE]] if TYPE in roles.roles else None
    if column is None and type_name is None:
        raise SchemaError(
            f"{place.file}: no column 'type' says of which type these events are; name it "
            f"(--type), or the column (--type-column)"
        )
    values = {name: columns[named] for name, named in roles.attributes.items()}
    if column is None:
        assert type_name is not None
        return [Rows(type_name, columns, values, numbers, times, bad)]
    texts = _type_names(column, roles.roles[TYPE], type_name, place.file)
    names = pc.unique(texts).to_pylist()
    if len(names) == 1 and names[0] is not None:
        return [Rows(names[0], columns, values, numbers, times, bad)]
    found = []
    for name in (one for one in names if one is not None):
        chosen = np.flatnonzero(mask_of(pc.equal(texts, name)))
        own = {key: one.take(pa.array(chosen)) for key, one in columns.items()}
        values = {key: own[column] for key, column in roles.attributes.items()}
        others = frozenset(key for key, one in values.items() if _is_blank(one))
        moved = _moved(bad, chosen)
        found.append(Rows(name, own, values, numbers[chosen], times[chosen], moved, others))
    typeless = np.flatnonzero(mask_of(texts.is_null()))
    if len(typeless):  # what else is wrong with such a row tells more
        reasons = [*_moved(bad, typeless), (np.arange(len(typeless)), "no type")]
        found.append(Rows(NO_TYPE, {}, {}, numbers[typeless], times[typeless], reasons))
    return found


def settled(
    parts: Sequence[Rows],
    roles: Roles,
    place: Place,
    intake: Intake,
    type_name: str | None,
) -> list[EventBatch]:
    """The good rows of known types as batches; each bad one is refused once, the first one first.

    BadEvent unless ``intake`` skips them.
    """
    named = [rows for rows in parts if rows.type_name != NO_TYPE]
    batches = [_batch(rows, roles, place, intake, type_name) for rows in named]
    reasons: dict[int, tuple[str, str]] = {}
    for rows in parts:
        for some, reason in rows.bad:
            for row in rows.numbers[some].tolist():
                reasons.setdefault(row, (reason, rows.type_name))
    for row, (reason, name) in sorted(reasons.items()):
        intake.refuse(reason, place.named(row), name or None)
    good = []
    for rows, batch in zip(named, batches, strict=True):
        if rows.bad:
            batch = batch.take(good_rows(len(batch), rows.bad))
        intake.events += len(batch)
        given = set(roles.guessed) - rows.others
        intake.surplus += len(batch) * len(given - set(batch.type.names))
        good.append(batch)
    return good


def _batch(
    rows: Rows, roles: Roles, place: Place, intake: Intake, type_name: str | None
) -> EventBatch:
    """All the rows; the bad ones, which are added to those of the rows, hold anything."""
    event_type, count, bad = intake.schemas[rows.type_name], len(rows.numbers), rows.bad
    columns = rows.columns
    if type_name is not None and TYPE not in roles.roles and TYPE not in event_type.names:
        _check_named_type(columns.get(TYPE), type_name, place.file)
    bad += (
        (
            np.arange(count),
            f"attribute {name} is missing: column {name} is the events' own "
            f"({place.layout.hint(name)})",
        )
        for name in event_type.names
        if name not in rows.values and name in columns
    )
    values = columns_of_table(event_type, rows.values, count, bad)
    own = {role: columns[column] for role, column in roles.roles.items()}
    return EventBatch(event_type, rows.times, _ids(own, rows.numbers, place, bad), values)


def moments_of(columns: Mapping[str, pa.Array], roles: Mapping[str, str]) -> pa.Array | None:
    """The column of the times; joined of texts where dates stand in a column of their own."""
    time = columns.get(roles[TIME])
    if DATE not in roles or time is None:
        return time
    date = columns[roles[DATE]]
    if pa.types.is_timestamp(date.type):
        date = date.cast(pa.date32(), safe=False)
    return pc.binary_join_element_wise(date.cast(pa.string()), time.cast(pa.string()), " ")


def _type_names(column: pa.Array, called: str, type_name: str | None, file: str) -> pa.Array:
    """The names of the rows' types, null where there is none."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if kind_of(column.type) is not Kind.STRING:
        raise SchemaError(
            f"{file}: column {called} is of type {column.type}; expected names of event types"
        )
    texts = column.cast(pa.string())
    empty = pc.equal(texts, "")
    if texts.null_count or pc.any(empty).as_py():
        texts = pc.if_else(empty, None, texts)
        texts = texts if type_name is None else texts.fill_null(type_name)
    return texts


def _is_blank(column: pa.Array) -> bool:
    """Whether a column holds nothing: nulls, or empty texts."""
    if column.null_count == len(column):
        return True
    return kind_of(column.type) is Kind.STRING and not pc.any(pc.not_equal(column, "")).as_py()


def _moved(bad: BadRows, chosen: Int64s) -> BadRows:
    """The bad rows among those chosen, counted among these."""
    places = [(np.flatnonzero(np.isin(chosen, rows)), reason) for rows, reason in bad]
    return [(rows, reason) for rows, reason in places if len(rows)]


def _inferred_schema(rows: Rows, roles: Roles, file: str) -> EventType:
    """The schema that the columns' types mean, those with nulls being optional (E5)."""
    attributes, nullable = [], []
    for name in roles.guessed:
        column = rows.values[name]
        kind = kind_of(column.type)
        if name in rows.others or pa.types.is_null(column.type):
            continue
        if kind is None:
            raise SchemaError(
                f"{file}: column {name} of event {rows.type_name} is of type {column.type}; "
                f"expected integers, floats, bools or strings (declare the event, without it or "
                f"as it is)"
            )
        attributes.append(Attribute(name, kind))
        if column.null_count:
            nullable.append(name)
    return EventType(rows.type_name, with_presences(attributes, nullable))


def _ids(columns: Mapping[str, pa.Array], rows: Int64s, place: Place, bad: BadRows) -> EventIds:
    """The ids of the events of ``rows``."""
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


def _check_named_type(column: pa.Array | None, type_name: str, file: str) -> None:
    """SchemaError when the rows say that they are of another type than their reader does."""
    if column is None:
        return
    names = pc.unique(column).to_pylist()
    others = [name for name in names if name not in (type_name, None, "")]
    if others:
        raise SchemaError(
            f"{file}: column 'type' says {others[0]!r}, but the rows were to be of type "
            f"{type_name} (--type-column type takes each row's own)"
        )


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, nulls in its rows alone; texts in the forms that all functions of
    Arrow take, and dictionaries of nothing but texts.
    """
    plain = _plain(column.type)
    column = column if plain == column.type else column.cast(plain)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    # A row may name a null in its dictionary too, and none of Arrow's tests for nulls sees it.
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in chunks):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _plain(arrow_type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string_view(arrow_type):
        return pa.string()
    if not types.is_dictionary(arrow_type):
        return arrow_type
    if kind_of(arrow_type.value_type) is not Kind.STRING:
        return arrow_type.value_type
    values = _plain(arrow_type.value_type)
    return pa.dictionary(arrow_type.index_type, values, ordered=arrow_type.ordered)
