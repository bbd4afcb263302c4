"""Where rows go and as what: brokers and columns are looked at before anything is sent.

Law: a column that does not fit the type as the broker knows it is named in an error, and nothing
was sent. A type that the broker does not know is advertised as the columns say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import types as spark

from broker.client.manager import RuleManager
from broker.client.publisher import Publisher
from broker.errors import BrokerUnreachable
from broker.spark.delivery import Delivery
from broker.spark.frames import RESERVED, Form, kind_of
from broker.spark.instants import check_time
from broker.spark.options import NO_KEYS, Keys, WriteOptions
from broker.spark.outgoing import PlainRows, Rows, TypedRows, WideRows
from matcher.errors import SchemaError
from matcher.formats.layout import Layout
from matcher.model import Attribute, EventType, Kind, with_presences
from routing.names import part_name
from rules.language import load

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_NAMING = (
    spark.BooleanType,
    spark.NumericType,
    spark.StringType,
    spark.DateType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.NullType,
)
"""Types of columns that ids can be made of."""
_Answer = TypeVar("_Answer")
_NOTHING = spark.NullType().simpleString()


@dataclass(frozen=True)
class Target:
    """Where rows go and as what; the same in every task."""

    options: WriteOptions
    types: tuple[EventType, ...]
    form: Form | None

    @classmethod
    def of(cls, options: WriteOptions, schema: StructType) -> Target:
        """Look at the brokers and the columns. Raises SchemaError, which names the column, and
        BrokerUnreachable.
        """
        known = known_types(options.brokers, options.timeout_s, options.keys)
        if options.form:
            form = form_of(options.form)
            for event_type in form.types:
                if known.get(event_type.name, event_type) != event_type:
                    check_columns(known[event_type.name], _kinds(event_type))
                    raise SchemaError(
                        f"the broker knows {known[event_type.name]}; expected {event_type}"
                    )
            return cls(options, form.types, form)
        _check_named(options, schema)
        kinds = _kinds_of(schema, options.layout)
        types = [known.get(name) or _type_of(name, options, schema) for name in options.types]
        for event_type in types:
            check_columns(event_type, kinds)
        return cls(options, tuple(types), None)

    def rows(self) -> Rows:
        """A reader for one task."""
        if self.form is not None:
            return WideRows(self.form)
        options = self.options
        skip_bad = options.on_bad == "drop"
        if options.type_column:
            named = options.type_column, options.time, options.ids
            return TypedRows(self.types, *named, skip_bad, options.layout)
        return PlainRows(self.types[0], options.time, options.ids, skip_bad, options.layout)

    def delivery(self, part: int, attempt: int = 0) -> Delivery:
        """The publisher of one task, at its first ``attempt`` (0) or a later one."""
        options = self.options
        return Delivery(
            options.brokers,
            part_name(options.source, part),
            self.types,
            acks=options.acks,
            batch_events=options.batch_events,
            timeout_s=options.timeout_s,
            replay=options.replay,
            keys=options.keys,
            attempt=attempt,
        )

    def hold_again(self, endpoint: str) -> None:
        """Let rules wait at a broker that has forgotten that they are held, for it was started
        again; one that knows of it, be it that all is over, is left alone.
        """
        name = part_name(self.options.source, None)
        address, timeout_s = self.options.keys.address(endpoint), min(self.options.timeout_s, 5.0)
        with RuleManager(address, connect_timeout_s=timeout_s) as manager:
            sources = {one["name"] for one in manager.status()["sources"]}
        if name not in sources:
            replace(self, options=replace(self.options, brokers=(endpoint,))).hold(None)

    def hold(self, part: int | None, promise: int | None = None, *, ends: bool = False) -> None:
        """Let a part promise something, and leave; ``ends``: it has published everything."""
        publisher = connected(self.options, part_name(self.options.source, part), self.types)
        if promise is not None:
            publisher.promise(promise)
        if ends:
            publisher.close()
        else:
            publisher.pause()


def of_first(brokers: Iterable[str], ask: Callable[[str], _Answer]) -> _Answer:
    """The answer of the first broker that gives one, by endpoints; BrokerUnreachable when none
    does.
    """
    told = []
    for endpoint in brokers:
        try:
            return ask(endpoint)
        except BrokerUnreachable as error:
            told.append(str(error))
    raise BrokerUnreachable(f"no broker is left: {'; '.join(told)}")


def connected(options: WriteOptions, name: str, types: Sequence[EventType]) -> Publisher:
    """A publisher at the first broker that answers."""

    def connect(endpoint: str) -> Publisher:
        return Publisher(
            options.keys.address(endpoint),
            name=name,
            types=types,
            replay=options.replay,
            live=False,
            timeout_s=options.timeout_s,
            connect_timeout_s=min(options.timeout_s, 5.0),
        )

    return of_first(options.brokers, connect)


def known_types(
    brokers: Sequence[str], timeout_s: float, keys: Keys = NO_KEYS
) -> dict[str, EventType]:
    """The types that the first broker to answer knows."""

    def ask(endpoint: str) -> dict[str, EventType]:
        address, wait_s = keys.address(endpoint), min(timeout_s, 5.0)
        with RuleManager(address, connect_timeout_s=wait_s) as manager:
            schemas = [known["schema"] for known in manager.status()["types"]]
        return dict(load("\n".join(f"event {schema}" for schema in schemas)).schemas)

    return of_first(brokers, ask)


def check_columns(event_type: EventType, kinds: Mapping[str, tuple[Kind | None, str]]) -> None:
    """SchemaError, naming the column, unless the columns hold the type's attributes."""
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        if presence >= 0 and kinds.get(attribute.name, (None, _NOTHING)) == (None, _NOTHING):
            continue  # null in every row
        if attribute.name not in kinds:
            raise SchemaError(
                f"no column {attribute.name} ({attribute.kind.value}), which event "
                f"{event_type.name} has"
            )
        kind, named = kinds[attribute.name]
        if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
            raise SchemaError(
                f"column {attribute.name} is of type {named}; event {event_type.name} has "
                f"{attribute}"
            )


def _kinds(event_type: EventType) -> dict[str, tuple[Kind | None, str]]:
    return {one.name: (one.kind, one.kind.value) for one in event_type.attributes}


def _kinds_of(schema: StructType, layout: Layout) -> dict[str, tuple[Kind | None, str]]:
    """The kinds of the columns of attributes, by the attributes' names."""
    kinds: dict[str, tuple[Kind | None, str]] = {
        field.name: (kind_of(field.dataType), field.dataType.simpleString())
        for field in schema.fields
    }
    renamed = layout.renamed
    own = {name: kind for name, kind in kinds.items() if name not in renamed.values()}
    return own | {name: kinds[column] for name, column in renamed.items()}


def _check_named(options: WriteOptions, schema: StructType) -> None:
    """SchemaError for a column that an option names and that cannot serve."""
    if options.time not in schema.names:
        raise SchemaError(f"no column {options.time} holds the time of the events")
    has_zone = options.layout.times.zone is not None
    check_time(options.time, schema[options.time].dataType, has_zone=has_zone)
    for _, column in options.layout.columns:
        if column not in schema.names:
            raise SchemaError(f"no column {column}, which option columns names")
    for name in options.ids:
        if name not in schema.names:
            raise SchemaError(f"no column {name}, which option id names")
    for name in options.ids or schema.names:
        data_type = schema[name].dataType
        if not isinstance(data_type, _NAMING):
            raise SchemaError(
                f"column {name} is of type {data_type.simpleString()}, which cannot be part of an "
                f"id; option id names the columns that are (or leave it out)"
            )
    column = options.type_column
    if not column:
        return
    if column not in schema.names:
        raise SchemaError(f"no column {column}, which option typeColumn names")
    if kind_of(schema[column].dataType) is not Kind.STRING:
        raise SchemaError(
            f"column {column} is of type {schema[column].dataType.simpleString()}; expected names "
            f"of types (string)"
        )


def _type_of(name: str, options: WriteOptions, schema: StructType) -> EventType:
    """The type that the columns mean when the broker knows none of that name."""
    if options.type_column:
        raise SchemaError(
            f"the broker knows no event {name}, and of rows of many types the columns do not say "
            f"which are its; declare it in a rule file, or write a frame of each type"
        )
    attributes, renamed = [], options.layout.renamed
    for attribute, (kind, called) in _kinds_of(schema, options.layout).items():
        if attribute not in renamed and (attribute in RESERVED or attribute == options.time):
            continue
        if kind is None:
            raise SchemaError(
                f"column {attribute} is of type {called}; expected integers, floats, booleans or "
                f"strings"
            )
        attributes.append(Attribute(attribute, kind))
    return EventType(name, with_presences(attributes))


# --- the form of publish(), as an option -------------------------------------------------------


def text_of(form: Form) -> str:
    """A form as text that an option can hold."""
    types = [
        [one.name, [[attribute.name, attribute.kind.value] for attribute in one.attributes]]
        for one in form.types
    ]
    return json.dumps({"types": types, "has_sequence": form.has_sequence})


def form_of(text: str) -> Form:
    """The inverse of text_of, as far as writers need it."""
    given = json.loads(text)
    types = [
        EventType(name, tuple(Attribute(key, Kind(kind)) for key, kind in attributes))
        for name, attributes in given["types"]
    ]
    return replace(Form.of(types, []), has_sequence=given["has_sequence"])
