"""Readings: the events that messages become, by a layout as files have it (docs/files.md)."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec

from broker.client.outbox import Checked, Rows, checked_id
from broker.cloudevents import STRUCTURED, Unsupported, events_of
from broker.connect.bodies import Decode
from broker.connect.lots import held, rows_of, value_of
from broker.connect.systems import HEADING, Message
from broker.connect.templates import Template
from matcher.errors import BadEvent, EventError
from matcher.formats import csvfiles
from matcher.formats.jsondata import REFUSED, Members, unquoted
from matcher.formats.layout import ID, TIME, TYPE, Layout
from matcher.model import EventType, Kind, Value
from matcher.times import RFC_3339_MAX, RFC_3339_MIN
from routing.messages.values import ID_MAX
from routing.session import NO_TIME

SENT_AT = "$time"
"""The ``time_column`` that is the time when the other system got the message."""
PREFIXES = ("ce-", "ce_", "cloudEvents:", "cloudEvents_", "")
"""Texts before the attributes of a CloudEvent in headers: of HTTP and NATS, Kafka, AMQP, MQTT."""
_NOTHING = {msgspec.UnsetType, type(None)}


class _Type:
    """A type that messages may be of, and the columns of its attributes."""

    def __init__(self, event_type: EventType, columns: Mapping[str, str | None]) -> None:
        self._rows = Rows(event_type), Rows(event_type)
        """Of events without ids of their own, and with."""
        self.comes_in_lots = not event_type.has_optional and bool(event_type.declared)
        self.columns = [
            (attribute.name, attribute.kind, column)
            for attribute in event_type.declared
            if (column := columns[attribute.name]) is not None
        ]

    def values(self, members: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[Value, ...]:
        """The values of the attributes that are there. A text of a topic or a header becomes a
        value of the attribute's kind. Raises BadEvent if they do not fit the type.
        """
        data = {}
        for name, kind, column in self.columns:
            if column in members:
                data[name] = members[column]
            elif column in texts and (texts[column] or kind is Kind.STRING):
                data[name] = value_of(kind, texts[column])
        return self._rows[0].check(unquoted(self._rows[0].type, data))

    def stamped(self, rows: Sequence[tuple[Value, ...]], ids: Sequence[str]) -> list[Checked]:
        """The events of these values, with ids, that are to be stamped."""
        own = self._rows[True]
        return [(own, NO_TIME, values, own_id) for values, own_id in zip(rows, ids, strict=True)]

    def event(self, values: tuple[Value, ...], time: int | None, own_id: str | None) -> Checked:
        """The event of these values. Raises BadEvent if its time is none."""
        if time is None:
            time = NO_TIME
        elif not RFC_3339_MIN <= time <= RFC_3339_MAX:
            raise BadEvent(f"time {time} us is none of the years 1 to 9999")
        return self._rows[own_id is not None], time, values, own_id and checked_id(own_id)


class Reading:
    """Reads messages whose ``body`` is ``json``, ``csv``, ``cloudevents`` or ``text``.

    ``types``: those that events may be of; ``type_name``: of messages that name none. ``pattern``:
    of a text, whose named groups are attributes; without one the text is ``value``. ``decode``:
    reads bodies that are neither.
    """

    def __init__(
        self,
        topic: Template,
        body: str,
        types: Mapping[str, EventType],
        type_name: str | None,
        layout: Layout,
        pattern: str = "",
        decode: Decode | None = None,
    ) -> None:
        self._decode = decode or _object
        self._topic, self._body = topic, body
        self._type_name, self._layout = type_name, layout
        self._pattern = re.compile(pattern or "(?P<value>.*)", re.DOTALL)
        roles = layout.role_columns(None)
        self._type_column, self._id_column = roles.get(TYPE, ""), roles.get(ID, "")
        self._levels: tuple[str, Mapping[str, str] | None] = ("", topic.found(""))
        """The topic of the last message, and the attributes in it."""
        self._heading = "", ",", list[str]()
        """The last heading of CSV, the sign between its columns, and their names."""
        self._types = {
            name: _Type(event_type, self._columns(event_type)) for name, event_type in types.items()
        }
        own = self._types[type_name] if type_name is not None and body == "json" else None
        self._lot_type = own if own is not None and own.comes_in_lots else None
        """The type of messages that are read together; None if they are of several."""
        columns = [] if own is None else [column for _, _, column in own.columns]
        self._is_deep = any("." in one for one in (*columns, layout.time_column, self._id_column))

    def event(self, message: Message) -> Checked:
        """The event of a message; without a time it is to be stamped. Raises BadEvent. The
        attributes are the members of the message's body, its headers, and those in its topic; of
        several of one name the first of these. An event without an id of its own has that of its
        message, so that what comes again is known.
        """
        if message.topic != self._levels[0]:
            self._levels = message.topic, self._topic.found(message.topic)
        levels = self._levels[1]
        if levels is None:
            raise BadEvent(f"topic: expected {self._topic.text}, found {message.topic}")
        texts = {**levels, **message.headers} if message.headers else levels
        if self._body == "cloudevents":
            return self._cloud_event(message, texts)
        if self._body in ("text", "csv"):
            own = self._texts(message.body) if self._body == "text" else self._fields(message)
            return self._laid_out({}, {**texts, **own}, message)
        return self._laid_out(_flat(self._decode(message.body)), texts, message)

    def events(self, messages: Sequence[Message]) -> Sequence[Checked | EventError]:
        """The event of each of some messages, or why it has none."""
        if self._lot_type is not None and len(messages) > 1:
            with suppress(EventError, LookupError):
                if events := self._together(self._lot_type, messages):
                    return events
        return [*map(self._event_or_fault, messages)]

    def _event_or_fault(self, message: Message) -> Checked | EventError:
        try:
            return self.event(message)
        except EventError as error:
            return error

    def _together(self, event_type: _Type, messages: Sequence[Message]) -> Sequence[Checked] | None:
        """The events of messages; None, or an error, if they are to be read one by one."""
        found = {topic: self._topic.found(topic) for topic in {one.topic for one in messages}}
        levels = {topic: texts for topic, texts in found.items() if texts is not None}
        texts = [
            {**levels[one.topic], **one.headers} if one.headers else levels[one.topic]
            for one in messages
        ]
        members = [_object(one.body) for one in messages]
        if self._is_deep:
            members = [*map(_flat, members)]
        rows = rows_of(event_type.columns, members, texts)
        if rows is None:
            return None
        times, ids = (
            held(column, members, texts) for column in (self._layout.time_column, self._id_column)
        )
        if self._layout.named(TIME) is None and {*map(type, times)} <= _NOTHING:
            known: list[Any] = ids
            if {*map(type, ids)} <= _NOTHING:
                known = [one.id for one in messages]
            if {*map(type, known)} == {str} and max(map(len, known)) <= ID_MAX:
                return event_type.stamped(rows, known)
        return [
            self._event(event_type, one, values, _known(time), _known(own_id))
            for one, values, time, own_id in zip(messages, rows, times, ids, strict=True)
        ]

    def _columns(self, event_type: EventType) -> Mapping[str, str | None]:
        """The column of each attribute; None where there can be none."""
        names = [attribute.name for attribute in event_type.declared]
        if self._body == "cloudevents":
            return {name: self._layout.renamed.get(name, name) for name in names}
        members = Members.of(self._layout, event_type.name)
        return {name: members.holding(name) for name in names}

    def _laid_out(
        self, members: Mapping[str, Any], texts: Mapping[str, str], message: Message
    ) -> Checked:
        def found(column: str) -> Any:
            return members[column] if column in members else texts.get(column) or None

        name = found(self._type_column) if self._type_name is None else self._type_name
        event_type = self._known(name)
        roles = found(self._layout.time_column), found(self._id_column)
        return self._event(event_type, message, event_type.values(members, texts), *roles)

    def _event(
        self, event_type: _Type, message: Message, values: tuple[Value, ...], at: Any, own_id: Any
    ) -> Checked:
        """The event of a message, of whose time and id these are its columns' values."""
        time = self._time(at, message)
        if own_id is None:
            own_id = message.id
        if own_id is None and time is not None:  # the same message again is the same event
            text = message.topic.encode() + b"\0" + message.body
            own_id = hashlib.blake2b(text, digest_size=16).hexdigest()
        return event_type.event(values, time, None if own_id is None else str(own_id))

    def _time(self, value: Any, message: Message) -> int | None:
        layout = self._layout
        if value is not None:
            return layout.times.time_of(value).time
        if layout.time_column == SENT_AT and message.time is not None:
            return message.time
        if layout.named(TIME) is not None:
            raise BadEvent(f"no time: no member {layout.time_column!r}")
        return None

    def _cloud_event(self, message: Message, texts: Mapping[str, str]) -> Checked:
        try:
            (event,) = events_of(_http_headers(message.headers), message.body)
        except Unsupported as error:
            raise BadEvent(str(error)) from None
        event_type = self._known(event.type)
        values = event_type.values(event.data, texts)
        return event_type.event(values, event.time, f"{event.source}#{event.id}")

    def _known(self, name: object) -> _Type:
        event_type = self._types.get(name) if isinstance(name, str) else None
        if event_type is None:
            expected = ", ".join(sorted(self._types))
            raise BadEvent(f"type: expected one of {expected}, found {name!r}")
        return event_type

    def _fields(self, message: Message) -> dict[str, str]:
        """The fields of a row of CSV, by the names in its table's heading."""
        heading = message.headers.get(HEADING, "")
        if heading != self._heading[0]:
            self._heading = heading, *csvfiles.heading(io.BytesIO(heading.encode()), Layout(), "")
        _, delimiter, names = self._heading
        try:
            (fields,) = csv.reader([_decoded(message.body)], delimiter=delimiter, strict=True)
        except csv.Error as error:
            raise BadEvent(f"expected a row of CSV in one line: {error}") from None
        if len(fields) != len(names):
            raise BadEvent(f"expected {len(names)} fields, found {len(fields)}")
        return dict(zip(names, fields, strict=True))

    def _texts(self, body: bytes) -> dict[str, str]:
        text = _decoded(body)
        match = self._pattern.fullmatch(text)
        if match is None:
            raise BadEvent(f"expected a text of {self._pattern.pattern!r}, found {text[:100]!r}")
        return {name: part for name, part in match.groupdict().items() if part is not None}


def _http_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as HTTP has them, of a CloudEvent in binary mode or in structured mode."""
    for prefix in PREFIXES:
        if f"{prefix}specversion" in headers:
            named = {
                f"ce-{name.removeprefix(prefix)}": text if prefix == "ce-" else quote(text)
                for name, text in headers.items()
                if name.startswith(prefix)
            }
            return {"content-type": headers.get("content-type", ""), **named}
    return {"content-type": STRUCTURED}


def _known(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


_decode = msgspec.json.Decoder(dict[str, Any]).decode
"""Made once: that takes longer than a message."""


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BadEvent("expected a text in UTF-8") from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        return _decode(body)
    except REFUSED as error:
        raise BadEvent(f"expected an object of JSON: {error}") from None


def _flat(members: dict[str, Any]) -> dict[str, Any]:
    """Members, those of members being called ``outer.inner``; BadEvent if nested too deep."""
    try:
        return dict(_leaves(members)) if dict in map(type, members.values()) else members
    except RecursionError:
        raise BadEvent("members of members of members, nested too deep") from None


def _leaves(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name, value
