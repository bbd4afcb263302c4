"""Readings: the events that messages become, by a layout as files have it (docs/files.md).

Law 1: a message's attributes are the members of its body, its headers, and those in its topic; of
several of one name the first of these. What holds the time, the id and the type is said as of a
flat JSON file; members of members are called ``outer.inner``.

Law 2: an event without an id of its own has that of its message, so that what comes again is known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from broker.client.outbox import Rows
from broker.cloudevents import STRUCTURED, Unsupported, events_of
from broker.connect.systems import Message
from broker.connect.templates import Template
from matcher.errors import BadEvent
from matcher.formats.jsondata import Members
from matcher.formats.layout import ID, TIME, TYPE, Layout
from matcher.model import EventType, Kind

SENT_AT = "$time"
"""The ``time_column`` that is the time when the other system got the message."""
PREFIXES = ("ce-", "ce_", "cloudEvents:", "cloudEvents_", "")
"""Texts before the attributes of a CloudEvent in headers: of HTTP and NATS, Kafka, AMQP, MQTT."""
_WORDS = {"true": True, "false": False}


class Event(msgspec.Struct, frozen=True):
    """An event that a message has become; ``time`` in microseconds, None: stamped as it comes."""

    type: str
    data: dict[str, Any]
    time: int | None
    id: str | None


class _Type:
    """A type that messages may be of, and the columns of its attributes."""

    def __init__(self, event_type: EventType, columns: Mapping[str, str | None]) -> None:
        self.name, self._rows = event_type.name, Rows(event_type)
        self._columns = [
            (attribute.name, attribute.kind, column)
            for attribute in event_type.declared
            if (column := columns[attribute.name]) is not None
        ]

    def data(self, members: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
        """The attributes that are there. A text of a topic or a header becomes a value of the
        attribute's kind. Raises BadEvent if they do not fit the type.
        """
        data = {}
        for name, kind, column in self._columns:
            if column in members:
                data[name] = members[column]
            elif column in texts:
                data[name] = _value(kind, texts[column])
        self._rows.check(data)
        return data


class Reading:
    """Reads messages whose ``body`` is ``json``, ``cloudevents`` or ``text``.

    ``types``: those that events may be of; ``type_name``: of messages that name none. ``pattern``:
    of a text, whose named groups are attributes; without one the text is ``value``.
    """

    def __init__(
        self,
        topic: Template,
        body: str,
        types: Mapping[str, EventType],
        type_name: str | None,
        layout: Layout,
        pattern: str = "",
    ) -> None:
        self._topic, self._body = topic, body
        self._type_name, self._layout = type_name, layout
        self._pattern = re.compile(pattern or "(?P<value>.*)", re.DOTALL)
        roles = layout.role_columns(None)
        self._type_column, self._id_column = roles.get(TYPE, ""), roles.get(ID, "")
        self._levels: tuple[str, Mapping[str, str] | None] = ("", topic.found(""))
        """The topic of the last message, and the attributes in it."""
        self._types = {
            name: _Type(event_type, self._columns(event_type)) for name, event_type in types.items()
        }

    def event(self, message: Message) -> Event:
        """The event of a message. Raises BadEvent."""
        if message.topic != self._levels[0]:
            self._levels = message.topic, self._topic.found(message.topic)
        levels = self._levels[1]
        if levels is None:
            raise BadEvent(f"topic: expected {self._topic.text}, found {message.topic}")
        texts = {**levels, **message.headers} if message.headers else levels
        if self._body == "cloudevents":
            return self._cloud_event(message, texts)
        if self._body == "text":
            return self._laid_out({}, {**texts, **self._texts(message.body)}, message)
        return self._laid_out(_flat(_object(message.body)), texts, message)

    def _columns(self, event_type: EventType) -> Mapping[str, str | None]:
        """The column of each attribute; None where there can be none."""
        names = [attribute.name for attribute in event_type.declared]
        if self._body == "cloudevents":
            return {name: self._layout.renamed.get(name, name) for name in names}
        members = Members.of(self._layout, event_type.name)
        return {name: members.holding(name) for name in names}

    def _laid_out(
        self, members: Mapping[str, Any], texts: Mapping[str, str], message: Message
    ) -> Event:
        def found(column: str, default: object = None) -> Any:
            return members[column] if column in members else texts.get(column, default)

        name = found(self._type_column) if self._type_name is None else self._type_name
        event_type, time = self._known(name), self._time(found, message)
        own_id = found(self._id_column, message.id)
        if own_id is None and time is not None:  # the same message again is the same event
            text = message.topic.encode() + b"\0" + message.body
            own_id = hashlib.blake2b(text, digest_size=16).hexdigest()
        data = event_type.data(members, texts)
        return Event(event_type.name, data, time, None if own_id is None else str(own_id))

    def _time(self, found: Callable[[str], Any], message: Message) -> int | None:
        layout = self._layout
        column = layout.time_column
        value = found(column)
        if value is not None:
            return layout.times.time_of(value)[0]
        if column == SENT_AT and message.time is not None:
            return message.time
        if layout.named(TIME) is not None:
            raise BadEvent(f"no time: no member {column!r}")
        return None

    def _cloud_event(self, message: Message, texts: Mapping[str, str]) -> Event:
        try:
            (event,) = events_of(_http_headers(message.headers), message.body)
        except Unsupported as error:
            raise BadEvent(str(error)) from None
        data = self._known(event.type).data(event.data, texts)
        return Event(event.type, data, event.time, f"{event.source}#{event.id}")

    def _known(self, name: object) -> _Type:
        event_type = self._types.get(name) if isinstance(name, str) else None
        if event_type is None:
            expected = ", ".join(sorted(self._types))
            raise BadEvent(f"type: expected one of {expected}, found {name!r}")
        return event_type

    def _texts(self, body: bytes) -> dict[str, str]:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise BadEvent("expected a text in UTF-8") from None
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


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"expected an object of JSON: {error}") from None


def _flat(members: dict[str, Any]) -> dict[str, Any]:
    """Members, those of members being called ``outer.inner``."""
    return dict(_leaves(members)) if dict in map(type, members.values()) else members


def _leaves(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def _value(kind: Kind, text: str) -> object:
    """A text as a value of this kind; as it is if it is none."""
    if kind is Kind.BOOL:
        return _WORDS.get(text, text)
    if kind is Kind.STRING:
        return text
    try:
        return int(text) if kind is Kind.INT else float(text)
    except ValueError:
        return text
