"""Events as rows: one mapping from attribute names to values each, and their way into columns.

A row fits its schema or is refused with what was expected and found (tesla.md E1, E5): every
attribute is there, of its kind, numbers within 64 bits and finite, an int standing for a float
where one is declared. One that is optional may be null (None) or left out. Names that the schema
lacks are left out, where the caller does not refuse them (``refuse_surplus``).

Columns are checked as columns; only when one of them does not fit are its values looked at one
by one, for the message.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from matcher.errors import BadEvent
from matcher.model import (
    BLANKS,
    DTYPES,
    Attribute,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
    Value,
    with_presences,
)
from matcher.times import spoken, time_of, times_of

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

_PYTHON_TYPES: Mapping[Kind, frozenset[type]] = {
    Kind.INT: frozenset([int]),
    Kind.FLOAT: frozenset([int, float]),
    Kind.BOOL: frozenset([bool]),
    Kind.STRING: frozenset([str]),
}
_KIND_OF: Mapping[type, Kind] = {
    int: Kind.INT,
    float: Kind.FLOAT,
    bool: Kind.BOOL,
    str: Kind.STRING,
}


def value_of(attribute: Attribute, value: object) -> Value:
    """``value`` as the attribute's kind holds it; BadEvent when it does not fit (E1, E5)."""
    # As most are.
    if type(value) is float and attribute.kind is Kind.FLOAT and math.isfinite(value):
        return value
    if type(value) is str and attribute.kind is Kind.STRING and value.isascii():
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) not in _PYTHON_TYPES[attribute.kind]:
        raise BadEvent(
            f"attribute {attribute.name}: expected {attribute.kind.value}, found {spoken(value)}"
        )
    match value:
        case str():
            return _text(f"attribute {attribute.name}", value)
        case bool():
            return value
        case int() if attribute.kind is Kind.INT:
            if not INT_MIN <= value <= INT_MAX:
                raise BadEvent(f"attribute {attribute.name}: an int beyond 64 bits")
            return value
        case int() | float():
            return _finite(attribute, value)
        case _:
            raise AssertionError(value)


def values_of(event_type: EventType, data: Mapping[str, object]) -> tuple[Value, ...]:
    """One event's values in the schema's order; BadEvent names the first that does not fit."""
    if type(data) is not dict and not isinstance(data, Mapping):
        raise BadEvent(f"data: expected an object, found {spoken(data)}")
    declared = event_type.declared
    if not event_type.has_optional:
        try:
            return tuple([value_of(attribute, data[attribute.name]) for attribute in declared])
        except KeyError:
            pass  # told of below
    for place, attribute in enumerate(declared):
        if attribute.name not in data and event_type.presences[place] < 0:
            raise BadEvent(f"attribute {attribute.name} is missing")
    values: list[Value] = []
    present: list[Value] = []
    for attribute, presence in zip(declared, event_type.presences, strict=True):
        value = data.get(attribute.name)
        is_null = value is None and presence >= 0
        values.append(BLANKS[attribute.kind] if is_null else value_of(attribute, value))
        if presence >= 0:
            present.append(not is_null)
    return (*values, *present)


def columns_of(event_type: EventType, lists: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    """The columns of a type from the values of each declared attribute, None where it may be null.

    BadEvent names the first value that does not fit.
    """
    columns: list[Column] = []
    present: list[Column] = []
    for place, (attribute, values) in enumerate(zip(event_type.declared, lists, strict=True)):
        if event_type.presences[place] >= 0:
            given = [value is not None for value in values]
            present.append(np.array(given, np.bool_))
            if not all(given):
                blank = BLANKS[attribute.kind]
                values = [blank if value is None else value for value in values]
        columns.append(column_of(attribute, values))
    return (*columns, *present)


def filled(event_type: EventType, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """One event's attributes with blanks and presences in place of nulls, unchecked.

    ``data`` itself where the type has no optional attribute.
    """
    if not event_type.has_optional:
        return data
    whole = dict(data)
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        if presence >= 0:
            is_null = data.get(attribute.name) is None
            whole[event_type.names[presence]] = not is_null
            if is_null:
                whole[attribute.name] = BLANKS[attribute.kind]
    return whole


def refuse_taken(
    event_type: EventType, data: Mapping[str, object], taken: Mapping[str, str]
) -> None:
    """BadEvent for an attribute that is missing since a call takes its name for something else.

    ``taken``: these names, and what they are of the event there.
    """
    for name, what in taken.items():
        place = event_type.index(name)
        if place is not None and name not in data and event_type.presences[place] < 0:
            raise BadEvent(
                f"attribute {name} is missing: {name}=... was taken for the event's {what}; "
                f"attributes of that name are given in a dict: "
                f"publish({event_type.name!r}, {{{name!r}: ...}})"
            )


def refuse_surplus(event_type: EventType, given: Iterable[str]) -> None:
    """BadEvent where names are ``given`` that no attribute of the type has."""
    known = [one.name for one in event_type.declared]
    surplus = [name for name in given if name not in known]
    if surplus:
        has = ", ".join(known) or "none"
        raise BadEvent(
            f"event type {event_type.name} has no attribute {', '.join(surplus)}; it has: {has}"
        )


OF_THE_EVENT = ("time", "id")
"""Keys of rows that say when and who an event is."""


def refuse_surplus_of_rows(event_type: EventType, rows: Sequence[Mapping[str, object]]) -> None:
    """``refuse_surplus`` for rows, which have an event's time and id beside its attributes."""
    given = set[str]().union(*rows).difference(OF_THE_EVENT)
    refuse_surplus(event_type, sorted(given, key=str))


def inferred_type(
    name: str, data: object, others: Sequence[Mapping[str, object]] = ()
) -> EventType:
    """The schema of a type's first event (E5); BadEvent when a value is of no kind.

    What is null there, or in one of the ``others``, is optional. Where the first is null another
    one tells the kind, and where all are there is no such attribute.
    """
    if not isinstance(data, Mapping):
        raise BadEvent(f"data: expected an object, found {spoken(data)}")
    attributes, nullable = [], []
    for key, value in data.items():
        given = [other[key] for other in others if key in other]
        if value is None or None in given:
            nullable.append(key)
        if value is None:
            value = next((one for one in given if type(one) in _KIND_OF), None)
        if value is None:
            continue
        kind = _KIND_OF.get(type(value))
        if kind is None:
            raise BadEvent(
                f"attribute {key}: expected int, float, bool or string, found {spoken(value)}"
            )
        attributes.append(Attribute(key, kind))
    event_type = EventType(name, with_presences(attributes, nullable))
    values_of(event_type, data)
    return event_type


def column_of(attribute: Attribute, values: Sequence[Any]) -> Column:
    """A column of an attribute's values; BadEvent names the first that does not fit."""
    column = _whole_column(attribute.kind, values)
    if column is None:  # something does not fit, or comes in a form that needs a closer look
        checked = [value_of(attribute, value) for value in values]
        column = _whole_column(attribute.kind, checked)
    assert column is not None
    return column


def batch_of(
    event_type: EventType,
    rows: Sequence[Mapping[str, Any]],
    *,
    source: str,
    first_sequence: int = 1,
    times: Sequence[int] | Int64s | None = None,
    ids: Sequence[str] | None = None,
    time_unit: str = "s",
) -> EventBatch:
    """A batch of ``rows``, numbered from ``first_sequence`` at their source.

    ``times`` are in microseconds; without them each row has its own under ``"time"``, in a form
    that tesla.md E2 knows (RFC 3339, a number of seconds, or of the ``time_unit`` said, a
    datetime). ``ids`` default to the
    rows' ``"id"`` where all have one that is no attribute, else to the sequence numbers.
    Raises BadEvent, its place being ``row N`` from 1 where it is known.
    """
    if times is None:
        times = _row_times(rows, time_unit)
    if ids is None and rows and event_type.index("id") is None and all("id" in row for row in rows):
        ids = [str(row["id"]) for row in rows]
    check_names(source, ids or ())
    sequence = np.arange(first_sequence, first_sequence + len(rows), dtype=np.int64)
    sources, texts = StringColumn.constant(source, len(rows)), id_texts(ids, sequence)
    return EventBatch(
        event_type,
        np.asarray(times, np.int64),
        EventIds(sources, sequence, texts, given=ids is not None),
        _row_columns(event_type, rows),
    )


def id_texts(ids: Sequence[str] | None, sequence: Int64s) -> StringColumn | None:
    """The column of text ids, or None where each is just its sequence number in decimal."""
    if ids is None or len(ids) == 0:
        return None
    # Most often the first tells already; only if it does not are all of them compared.
    if ids[0] == str(sequence[0]) and list(ids) == list(map(str, sequence.tolist())):
        return None
    return StringColumn.from_strings(ids)


def check_names(source: str, ids: Sequence[str]) -> None:
    """BadEvent for a source or an id that UTF-8 cannot hold (E1)."""
    try:
        "".join((source, *ids)).encode()
    except UnicodeEncodeError:
        _text("source", source)
        for place, text in enumerate(ids):
            _at_row(place, _text, "id", text)
        raise


def _row_times(rows: Sequence[Mapping[str, Any]], unit: str) -> Int64s:
    values = [row.get("time") for row in rows]
    times = times_of(values, unit) if None not in values else None
    if times is not None:
        return times
    return np.array([_at_row(place, time_of, value, unit) for place, value in enumerate(values)])


def _row_columns(event_type: EventType, rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    try:
        lists = (
            [row[attribute.name] for row in rows]
            if presence < 0
            else [row.get(attribute.name) for row in rows]
            for attribute, presence in zip(event_type.declared, event_type.presences, strict=True)
        )
        return columns_of(event_type, list(lists))
    except (KeyError, BadEvent):
        for place, row in enumerate(rows):
            _at_row(place, values_of, event_type, row)
        raise


def _at_row(place: int, check: Any, *arguments: Any) -> Any:
    try:
        return check(*arguments)
    except BadEvent as error:
        raise BadEvent(error.reason, f"row {place + 1}") from None


def _whole_column(kind: Kind, values: Sequence[Any]) -> Column | None:
    """The column, or None when not every value plainly is of the kind."""
    if not set(map(type, values)) <= _PYTHON_TYPES[kind]:
        return None
    try:
        if kind is Kind.STRING:
            column = StringColumn.from_strings(values)
            "".join(column.values).encode()  # refuses lone surrogates
            return column
        numbers = np.array(values, DTYPES[kind])
    except (OverflowError, UnicodeEncodeError):
        return None
    return None if kind is Kind.FLOAT and not np.isfinite(numbers).all() else numbers


def _text(what: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadEvent(f"{what}: text that UTF-8 cannot hold") from None
    return value


def _finite(attribute: Attribute, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadEvent(f"attribute {attribute.name}: expected a finite float, found {number}")
    return number
