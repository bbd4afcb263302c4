"""DataFrames of events in one form, whatever form they come in (docs/spark.md).

A frame is *wide*: a row an event, of whatever type, in the columns ``type``, ``time`` (int64,
microseconds), ``source``, ``sequence``, ``id`` and one column for each attribute of the types, two
types sharing it where name and kind are the same. ``bad`` says of a row that is no event why; a
row's other types' attributes are null and mean nothing.

Law: what is wrong with a column is said before anything runs, with its name; what is wrong with a
row is said in the row. Rows of types that were not asked for are kept: between the first and the
last of all of them timers tick (tesla.md S13).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from matcher.errors import SchemaError
from matcher.model import MICROSECONDS, Attribute, EventType, Kind

Frames: TypeAlias = "DataFrame | Mapping[str, DataFrame]"
"""Events: one frame, or one a type."""

TYPE, TIME, SOURCE, SEQUENCE, ID, BAD = "type", "time", "source", "sequence", "id", "bad"
RESERVED = (TYPE, TIME, SOURCE, SEQUENCE, ID, "cause")
"""Columns of a given frame that are no attributes."""
SPARK_TYPES: Mapping[Kind, spark.DataType] = {
    Kind.INT: spark.LongType(),
    Kind.FLOAT: spark.DoubleType(),
    Kind.BOOL: spark.BooleanType(),
    Kind.STRING: spark.StringType(),
}
_RFC_3339 = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)$"


@dataclass(frozen=True, slots=True)
class Form:
    """Which columns a wide frame has.

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
        case spark.FloatType() | spark.DoubleType():
            return Kind.FLOAT
        case spark.StringType():
            return Kind.STRING
        case _:
            return None


def inferred(name: str, frame: DataFrame, time: str = TIME) -> EventType:
    """The event type that a frame's columns mean (tesla.md E5); SchemaError names a column."""
    attributes = []
    for field in frame.schema.fields:
        if field.name in RESERVED or field.name == time:
            continue
        kind = kind_of(field.dataType)
        if kind is None:
            raise SchemaError(
                f"column {field.name} of event {name} is of type {field.dataType.simpleString()}; "
                f"expected integers, floats, booleans or strings (declare the event, or leave the "
                f"column out)"
            )
        attributes.append(Attribute(field.name, kind))
    return EventType(name, tuple(attributes))


def wide(
    frames: Frames,
    types: Sequence[EventType],
    *,
    optional: Collection[str] = (),
    time: str = TIME,
    time_zone: str | None = None,
) -> tuple[DataFrame, Form]:
    """Frames in the wide form. ``time`` names the column of the time, which must know its zone
    unless ``time_zone`` does. A frame of many types needs no columns for the ``optional`` ones.
    Raises SchemaError, which names the column.
    """
    parts, form = wide_parts(frames, types, optional=optional, time=time, time_zone=time_zone)
    return functools.reduce(DataFrame.unionAll, parts), form


def wide_parts(
    frames: Frames,
    types: Sequence[EventType],
    *,
    optional: Collection[str] = (),
    time: str = TIME,
    time_zone: str | None = None,
) -> tuple[list[DataFrame], Form]:
    """The same, each given frame by itself in the one form of all."""
    if not isinstance(frames, Mapping):
        types = [one for one in types if one.name not in optional or _fits(frames, one)]
    given = list(frames.values()) if isinstance(frames, Mapping) else [frames]
    form = Form.of(types, given)
    if isinstance(frames, Mapping):
        known = {type_.name: type_ for type_ in types}
        parts = [
            _of_type(frame, name, known.get(name), form, time, time_zone)
            for name, frame in frames.items()
        ]
        return parts, form
    return [_of_types(frames, form, time, time_zone)], form


def _of_type(
    frame: DataFrame,
    name: str,
    event_type: EventType | None,
    form: Form,
    time: str,
    time_zone: str | None,
) -> DataFrame:
    """A frame whose rows are all of one type; that type may be of no interest (None)."""
    attributes = () if event_type is None else event_type.attributes
    for attribute in attributes:
        _check(frame, name, attribute)
    row_type = f.lit(name)
    bad = f.coalesce(_bad_time(frame, time, time_zone), _bad_values(frame, attributes))
    return _selected(frame, row_type, bad, dict.fromkeys(attributes), form, time, time_zone)


def _of_types(frame: DataFrame, form: Form, time: str, time_zone: str | None) -> DataFrame:
    """A frame whose column ``type`` tells of which type a row is."""
    if TYPE not in frame.columns:
        raise SchemaError(
            "no column 'type' says of which type the rows are; give {type: frame} instead"
        )
    bad = _bad_time(frame, time, time_zone)
    of_attribute: dict[Attribute, None] = {}
    for event_type in form.types:
        for attribute in event_type.attributes:
            _check(frame, event_type.name, attribute)
            of_attribute[attribute] = None
        values = _bad_values(frame, event_type.attributes)
        bad = f.coalesce(bad, f.when(f.col(TYPE) == event_type.name, values))
    bad = f.coalesce(f.when(f.col(TYPE).isNull(), f.lit("no type")), bad)
    return _selected(frame, f.col(TYPE), bad, of_attribute, form, time, time_zone)


def _selected(
    frame: DataFrame,
    row_type: Column,
    bad: Column,
    attributes: Mapping[Attribute, None],
    form: Form,
    time: str,
    time_zone: str | None,
) -> DataFrame:
    source = f.col(SOURCE).cast("string") if SOURCE in frame.columns else f.lit(None)
    sequence = f.col(SEQUENCE).cast("long") if SEQUENCE in frame.columns else f.lit(None)
    text = f.col(ID).cast("string") if ID in frame.columns else f.lit(None)
    values = [
        (
            _quoted(attribute.name).cast(SPARK_TYPES[attribute.kind])
            if attribute in attributes
            else f.lit(None).cast(SPARK_TYPES[attribute.kind])
        ).alias(form.column(attribute))
        for attribute in form.attributes
    ]
    return frame.select(
        row_type.alias(TYPE),
        _microseconds(frame, time, time_zone).alias(TIME),
        f.coalesce(source, row_type).cast("string").alias(SOURCE),
        sequence.cast("long").alias(SEQUENCE),
        text.cast("string").alias(ID),
        *values,
        bad.cast("string").alias(BAD),
    )


# --- columns -----------------------------------------------------------------------------------


def _check(frame: DataFrame, name: str, attribute: Attribute) -> None:
    """SchemaError unless the frame has a column that holds the attribute."""
    if attribute.name not in frame.columns:
        raise SchemaError(f"event {name} lacks column {attribute.name} ({attribute.kind.value})")
    data_type = frame.schema[attribute.name].dataType
    kind = kind_of(data_type)
    if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
        raise SchemaError(
            f"column {attribute.name} of event {name} is of type {data_type.simpleString()}; "
            f"expected {attribute.kind.value}"
        )


def _fits(frame: DataFrame, event_type: EventType) -> bool:
    return all(name in frame.columns for name in event_type.names)


def _bad_values(frame: DataFrame, attributes: Sequence[Attribute]) -> Column:
    """Why a row's attributes make it no event (tesla.md E5), or null."""
    reasons = []
    for attribute in attributes:
        column = _quoted(attribute.name)
        expected = f"attribute {attribute.name}: expected"
        found = f.lit(f"{expected} {attribute.kind.value}, found null")
        reasons.append(f.when(column.isNull(), found))
        if kind_of(frame.schema[attribute.name].dataType) is Kind.FLOAT:
            infinite = f.isnan(column) | (f.abs(column) == float("inf"))
            reasons.append(f.when(infinite, f.lit(f"{expected} a finite float")))
    return f.coalesce(*reasons) if reasons else f.lit(None).cast("string")


def _bad_time(frame: DataFrame, time: str, time_zone: str | None) -> Column:
    return f.when(_microseconds(frame, time, time_zone).isNull(), f.lit("no time"))


def _microseconds(frame: DataFrame, time: str, time_zone: str | None) -> Column:
    """The time in microseconds since the epoch; null where there is none."""
    if time not in frame.columns:
        raise SchemaError(f"no column {time} holds the time of the events")
    column, data_type = _quoted(time), frame.schema[time].dataType
    match data_type:
        case spark.TimestampType():
            return f.unix_micros(column)
        case spark.TimestampNTZType() if time_zone is not None:
            # By way of the session's own zone, in which Spark reads such times.
            here = f.convert_timezone(f.lit(time_zone), f.current_timezone(), column)
            return f.unix_micros(here.cast("timestamp"))
        case spark.TimestampNTZType():
            raise SchemaError(
                f"column {time} holds times without a time zone; say which they are in: "
                f"time_zone='UTC', or 'Europe/Rome'"
            )
        case spark.StringType():
            sound = f.when(column.rlike(_RFC_3339), f.try_to_timestamp(column))
            return f.unix_micros(sound)
        case spark.DecimalType() | spark.FloatType() | spark.DoubleType():
            return f.round(column * MICROSECONDS).try_cast("long")
        case _ if kind_of(data_type) is Kind.INT:
            return f.try_multiply(column.cast("long"), f.lit(MICROSECONDS))
    raise SchemaError(
        f"column {time} is of type {data_type.simpleString()}; expected timestamps, RFC 3339 text "
        f"or seconds since the epoch"
    )


def _quoted(name: str) -> Column:
    return f.col("`" + name.replace("`", "``") + "`")
