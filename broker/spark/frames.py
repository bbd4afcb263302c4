"""DataFrames of events in one form, whatever form they come in (docs/spark.md).

A frame is *wide*: a row an event, of whatever type, in the columns ``type``, ``time`` (int64,
microseconds), ``source``, ``sequence``, ``id`` and one column for each attribute of the types, two
types sharing it where name and kind are the same. ``bad`` says of a row that is no event why; a
row's other types' attributes are null and mean nothing. An optional attribute that is null is there
as in columns of events: a blank, and a presence that is false (matcher.model, Rule 5).

Law: what is wrong with a column is said before anything runs, with its name, and none is cast to
a kind that it may not fit; what is wrong with a row is said in the row. Rows of types that were not
asked for are kept: between the first and the last of all of them timers tick (tesla.md S13).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, functions as f, types as spark

from broker.spark.instants import bad_time, check_time, check_zone, microseconds
from matcher.errors import SchemaError
from matcher.formats.timeform import RFC_3339, TimeForm
from matcher.model import BLANKS, OPTIONAL, Attribute, EventType, Kind, with_presences

Frames: TypeAlias = "DataFrame | Mapping[str, DataFrame]"
"""Events: one frame, or one a type."""

TYPE, TIME, SOURCE, SEQUENCE, ID, BAD = "type", "time", "source", "sequence", "id", "bad"
RESERVED = (TYPE, TIME, SOURCE, SEQUENCE, ID, "cause")
"""Columns of a given frame that are no attributes."""
NAMED, DECLARED = "attribute ", "declared "
"""Prefixes of the name of a column of an attribute that is called like one of these, and of
one that is an attribute only where it is declared (``layouts``)."""
SPARK_TYPES: Mapping[Kind, spark.DataType] = {
    Kind.INT: spark.LongType(),
    Kind.FLOAT: spark.DoubleType(),
    Kind.BOOL: spark.BooleanType(),
    Kind.STRING: spark.StringType(),
}
NO_SEQUENCE = "no sequence number"
"""Why a row without one is no event, where the others have one."""
_EXPECTED: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    TYPE: ((Kind.STRING,), "names of types (string)"),
    SOURCE: ((Kind.STRING, Kind.INT), "text"),
    SEQUENCE: ((Kind.INT,), "integers"),
    ID: ((Kind.STRING, Kind.INT), "text"),
}
"""The kinds of columns that say which event a row is, and what they are called."""


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of a wide frame.

    ``types`` are those whose attributes it holds; ``attributes`` the distinct ones, in the order
    of their columns ``v0``, ``v1``, ...; ``has_sequence`` and ``has_source`` whether rows bear
    what orders simultaneous events (tesla.md E4), ``has_id`` whether some bear ids.
    """

    types: tuple[EventType, ...]
    attributes: tuple[Attribute, ...]
    has_source: bool
    has_sequence: bool
    has_id: bool

    @classmethod
    def of(cls, types: Iterable[EventType], frames: Sequence[DataFrame]) -> Form:
        """The form in which these types of these frames fit."""
        ordered = tuple(types)
        attributes = dict.fromkeys(one for type_ in ordered for one in type_.attributes)
        return cls(
            ordered,
            tuple(attributes),
            all(SOURCE in frame.columns for frame in frames),
            all(SEQUENCE in frame.columns for frame in frames),
            any(ID in frame.columns for frame in frames),
        )

    def column(self, attribute: Attribute) -> str:
        """The name of an attribute's column."""
        return f"v{self.attributes.index(attribute)}"

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of the attributes."""
        return tuple(f"v{place}" for place in range(len(self.attributes)))

    @property
    def contents(self) -> tuple[str, ...]:
        """The columns by which rows without numbers are ordered: attributes by their names, so that
        the order of a type's rows does not depend on which other types there are.
        """
        by_name = sorted(self.attributes, key=lambda one: (one.name, one.kind.value))
        return (TIME, SOURCE, TYPE, *map(self.column, by_name), ID)

    @property
    def orders(self) -> bool:
        """Whether the rows say in which order simultaneous events come."""
        return self.has_source and self.has_sequence


def kind_of(data_type: spark.DataType) -> Kind | None:
    """The kind of attribute that a column holds; None for what no kind holds."""
    match data_type:
        case spark.BooleanType():
            return Kind.BOOL
        case spark.ByteType() | spark.ShortType() | spark.IntegerType() | spark.LongType():
            return Kind.INT
        case spark.DecimalType():
            return Kind.FLOAT if data_type.scale > 0 else Kind.INT
        case spark.FloatType() | spark.DoubleType():
            return Kind.FLOAT
        case spark.StringType():
            return Kind.STRING
        case _:
            return None


def check_frames(events: object) -> None:
    """TypeError unless these are a DataFrame, or DataFrames by type."""
    frames = events.values() if isinstance(events, Mapping) else [events]
    for frame in frames:
        if not isinstance(frame, DataFrame):
            raise TypeError(
                f"events are a DataFrame with a column 'type', or DataFrames by type such as "
                f"{{'Temp': frame}}; found {type(frame).__name__}"
            )


def inferred(name: str, frame: DataFrame, time: str = TIME) -> EventType:
    """The event type that a frame's columns mean (tesla.md E5); SchemaError names a column."""
    attributes = []
    for field in frame.schema.fields:
        if field.name in RESERVED or field.name == time or field.name.startswith(DECLARED):
            continue
        kind = kind_of(field.dataType)
        if kind is None:
            raise SchemaError(
                f"column {field.name} of event {name} is of type {field.dataType.simpleString()}; "
                f"expected integers, floats, booleans or strings (declare the event, or leave the "
                f"column out)"
            )
        attributes.append(Attribute(field.name.removeprefix(NAMED), kind))
    return EventType(name, with_presences(attributes))


def wide(
    frames: Frames,
    types: Sequence[EventType],
    *,
    optional: Collection[str] = (),
    time: str = TIME,
    times: TimeForm = RFC_3339,
) -> tuple[DataFrame, Form]:
    """Frames in the wide form. ``time`` names the column of the time, which must know its zone
    unless ``times`` says it. A frame of many types needs no columns for the ``optional`` ones.
    Raises SchemaError, which names the column.
    """
    parts, form = wide_parts(frames, types, optional=optional, time=time, times=times)
    return functools.reduce(DataFrame.unionAll, parts), form


def wide_parts(
    frames: Frames,
    types: Sequence[EventType],
    *,
    optional: Collection[str] = (),
    time: str = TIME,
    times: TimeForm = RFC_3339,
) -> tuple[list[DataFrame], Form]:
    """The same, each given frame by itself in the one form of all."""
    if not isinstance(frames, Mapping):
        types = [one for one in types if one.name not in optional or _fits(frames, one)]
    frames = _without_nulls(frames, types)
    given = list(frames.values()) if isinstance(frames, Mapping) else [frames]
    for frame in given:
        _check_reserved(frame, time, times, names_type=not isinstance(frames, Mapping))
    form = Form.of(types, given)
    if isinstance(frames, Mapping):
        known = {type_.name: type_ for type_ in types}
        parts = [
            _of_type(frame, name, known.get(name), form, time, times)
            for name, frame in frames.items()
        ]
        return parts, form
    return [_of_types(frames, form, time, times)], form


def _of_type(
    frame: DataFrame,
    name: str,
    event_type: EventType | None,
    form: Form,
    time: str,
    times: TimeForm,
) -> DataFrame:
    """A frame whose rows are all of one type; that type may be of no interest (None)."""
    attributes = () if event_type is None else event_type.attributes
    for attribute in attributes:
        _check(frame, name, attribute)
    row_type = f.lit(name)
    bad = f.coalesce(
        _bad_time(frame, time, times), _bad_sequence(form), _bad_values(frame, attributes)
    )
    return _selected(frame, row_type, bad, dict.fromkeys(attributes), form, time, times)


def _of_types(frame: DataFrame, form: Form, time: str, times: TimeForm) -> DataFrame:
    """A frame whose column ``type`` tells of which type a row is."""
    if TYPE not in frame.columns:
        raise SchemaError(
            "no column 'type' says of which type the rows are; give {type: frame} instead"
        )
    bad = f.coalesce(_bad_time(frame, time, times), _bad_sequence(form))
    of_attribute: dict[Attribute, list[str]] = {}
    for event_type in form.types:
        for attribute in event_type.attributes:
            _check(frame, event_type.name, attribute)
            of_attribute.setdefault(attribute, []).append(event_type.name)
        values = _bad_values(frame, event_type.attributes)
        bad = f.coalesce(bad, f.when(f.col(TYPE) == event_type.name, values))
    bad = f.coalesce(f.when(f.col(TYPE).isNull(), f.lit("no type")), bad)
    return _selected(frame, f.col(TYPE), bad, of_attribute, form, time, times)


def _selected(
    frame: DataFrame,
    row_type: Column,
    bad: Column,
    attributes: Mapping[Attribute, Collection[str] | None],
    form: Form,
    time: str,
    times: TimeForm,
) -> DataFrame:
    """The frame in the form; ``attributes`` are those that it has, each with the types that have
    it, where rows are of several.
    """
    given = f.col(SOURCE).cast("string") if SOURCE in frame.columns else f.lit(None)
    source = f.when(given != "", given)
    sequence = f.col(SEQUENCE).cast("long") if SEQUENCE in frame.columns else f.lit(None)
    text = f.col(ID).cast("string") if ID in frame.columns else f.lit(None)
    values = [
        _value(frame, attribute, attributes, form).alias(form.column(attribute))
        for attribute in form.attributes
    ]
    return frame.select(
        row_type.alias(TYPE),
        _microseconds(frame, time, times).alias(TIME),
        f.coalesce(source, row_type).cast("string").alias(SOURCE),
        sequence.cast("long").alias(SEQUENCE),
        text.cast("string").alias(ID),
        *values,
        bad.cast("string").alias(BAD),
    )


# --- columns -----------------------------------------------------------------------------------


def _check(frame: DataFrame, name: str, attribute: Attribute) -> None:
    """SchemaError unless the frame has a column that holds the attribute."""
    column = held(frame, attribute.name)
    if column is None:
        raise SchemaError(f"event {name} lacks column {attribute.name} ({attribute.kind.value})")
    data_type = frame.schema[column].dataType
    kind = kind_of(data_type)
    if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
        raise SchemaError(
            f"column {attribute.name} of event {name} is of type {data_type.simpleString()}; "
            f"expected {attribute.kind.value}"
        )


def _check_reserved(frame: DataFrame, time: str, times: TimeForm, *, names_type: bool) -> None:
    """SchemaError unless the columns that say when an event was, and which it is, can be read."""
    if time not in frame.columns:
        raise SchemaError(f"no column {time} holds the time of the events")
    check_zone(frame, times.zone)
    check_time(time, frame.schema[time].dataType, has_zone=times.zone is not None)
    for name, (kinds, expected) in _EXPECTED.items():
        if name not in frame.columns or (name == TYPE and not names_type):
            continue
        data_type = frame.schema[name].dataType
        is_decimal = name == SEQUENCE and isinstance(data_type, spark.DecimalType)
        if is_decimal or (
            kind_of(data_type) not in kinds and not isinstance(data_type, spark.NullType)
        ):
            raise SchemaError(
                f"column {name} is of type {data_type.simpleString()}; expected {expected}"
            )


def _fits(frame: DataFrame, event_type: EventType) -> bool:
    return all(held(frame, one.name) is not None for one in event_type.declared)


def _without_nulls(frames: Frames, types: Sequence[EventType]) -> Frames:
    """The frames with a blank where an optional attribute is null, or its column lacks, and with
    columns of presences.
    """
    if not isinstance(frames, Mapping):
        return _filled(frames, types, names_type=True)
    known = {type_.name: type_ for type_ in types}
    return {
        name: _filled(frame, [known[name]] if name in known else [], names_type=False)
        for name, frame in frames.items()
    }


def _filled(frame: DataFrame, types: Sequence[EventType], *, names_type: bool) -> DataFrame:
    by_attribute: dict[Attribute, list[str]] = {}
    for event_type in types:
        for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
            if presence >= 0:
                by_attribute.setdefault(attribute, []).append(event_type.name)
    columns: dict[str, Column] = {}
    for attribute, names in by_attribute.items():
        value, is_there = _given(frame, attribute), f.lit(False)
        column = held(frame, attribute.name)
        if column is not None:
            is_there = quoted(column).isNotNull()
        blank = f.lit(BLANKS[attribute.kind])
        if names_type and TYPE in frame.columns:
            blank = f.when(f.col(TYPE).isin(names), blank)
        columns[column or attribute.name] = f.coalesce(value, blank)
        columns[attribute.name + OPTIONAL] = is_there
    return frame.withColumns(columns) if columns else frame


def _given(frame: DataFrame, attribute: Attribute) -> Column:
    """The column of an attribute, of nulls where there is none, or nothing in it."""
    column = held(frame, attribute.name)
    if column is not None and not isinstance(frame.schema[column].dataType, spark.NullType):
        return quoted(column)
    return f.lit(None).cast(SPARK_TYPES[attribute.kind])


def _bad_values(frame: DataFrame, attributes: Sequence[Attribute]) -> Column:
    """Why a row's attributes make it no event (tesla.md E5), or null."""
    reasons = []
    for attribute in attributes:
        name = held(frame, attribute.name) or attribute.name
        column, data_type = quoted(name), frame.schema[name].dataType
        expected = f"attribute {attribute.name}: expected"
        found = f.lit(f"{expected} {attribute.kind.value}, found null")
        reasons.append(f.when(column.isNull(), found))
        if kind_of(data_type) is Kind.FLOAT:
            infinite = f.isnan(column) | (f.abs(column) == float("inf"))
            reasons.append(f.when(infinite, f.lit(f"{expected} a finite float")))
        elif isinstance(data_type, spark.DecimalType) and attribute.kind is Kind.INT:
            beyond = column.try_cast("long").isNull()
            reasons.append(
                f.when(beyond, f.lit(f"attribute {attribute.name}: an int beyond 64 bits"))
            )
    return f.coalesce(*reasons) if reasons else f.lit(None).cast("string")


def _bad_sequence(form: Form) -> Column:
    """Why a row without a number makes no event where rows are numbered, or null."""
    if not form.has_sequence:
        return f.lit(None).cast("string")
    return f.when(f.col(SEQUENCE).isNull(), f.lit(NO_SEQUENCE))


def _bad_time(frame: DataFrame, time: str, times: TimeForm) -> Column:
    return bad_time(quoted(time), _microseconds(frame, time, times))


def _microseconds(frame: DataFrame, time: str, times: TimeForm) -> Column:
    return microseconds(quoted(time), frame.schema[time].dataType, times)


def _value(
    frame: DataFrame,
    attribute: Attribute,
    attributes: Mapping[Attribute, Collection[str] | None],
    form: Form,
) -> Column:
    data_type = SPARK_TYPES[attribute.kind]
    if attribute not in attributes:
        return f.lit(None).cast(data_type)
    column, types = held(frame, attribute.name) or attribute.name, attributes[attribute]
    is_decimal = isinstance(frame.schema[column].dataType, spark.DecimalType)
    value = quoted(column).try_cast(data_type) if is_decimal else quoted(column).cast(data_type)
    if form.has_sequence or types is None:
        return value
    # Rows are named and ordered by what they hold, to which what other types have does not belong.
    return f.when(f.col(TYPE).isNull() | f.col(TYPE).isin([*types]), value)


def held(frame: DataFrame, name: str) -> str | None:
    """The column that holds an attribute; None where there is none."""
    called = (NAMED + name, DECLARED + name, name)
    return next((one for one in called if one in frame.columns), None)


def column_name(attribute: str) -> str:
    """The name of an attribute's column in a table, beside the columns that every table has. Names
    that differ in case alone are one name to Spark.
    """
    return NAMED + attribute if attribute.lower() in RESERVED else attribute


def quoted(name: str) -> Column:
    """A column by its name, whatever characters that has."""
    return f.col("`" + name.replace("`", "``") + "`")
