"""Readings: the events that messages become, by a layout as files have it (docs/files.md).

Law: a message's attributes are those in its topic and the members of its body. What holds the time,
the id and the type is said as of a flat JSON file; members of members are called ``outer.inner``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from broker.client.outbox import Rows
from broker.cloudevents import STRUCTURED, Unsupported, events_of
from broker.connect.systems import Message
from broker.connect.templates import Template
from matcher.errors import BadEvent
from matcher.formats.jsondata import Members
from matcher.formats.layout import ID, TIME, TYPE, Layout
from matcher.model import EventType, Kind

_WORDS = {"true": True, "false": False}


class Event(msgspec.Struct, frozen=True):
    """An event that a message has become; ``time`` in microseconds, None: stamped as it comes."""

    type: str
    data: dict[str, Any]
    time: int | None
    id: str | None


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
        self._topic, self._body, self._types = topic, body, types
        self._type_name, self._layout = type_name, layout
        self._pattern = re.compile(pattern or "(?P<value>.*)", re.DOTALL)
        self._members = {name: Members.of(layout, name) for name in types}
        self._rows = {name: Rows(event_type) for name, event_type in types.items()}

    def event(self, message: Message) -> Event:
        """The event of a message. Raises BadEvent."""
        levels = self._topic.found(message.topic)
        if levels is None:
            raise BadEvent(f"topic: expected {self._topic.text}, found {message.topic}")
        if self._body == "cloudevents":
            return self._cloud_event(message.body, levels)
        texts, members = dict(levels), dict[str, Any]()
        if self._body == "text":
            texts |= self._texts(message.body)
        else:
            members = dict(_flat(_object(message.body)))
        return self._laid_out(texts, members, message)

    def _laid_out(
        self, texts: Mapping[str, str], members: Mapping[str, Any], message: Message
    ) -> Event:
        whole = {**texts, **members}
        columns = self._layout.role_columns(None)
        name = whole.get(columns.get(TYPE, "")) if self._type_name is None else self._type_name
        event_type = self._known(name)
        time, layout = None, self._layout
        if layout.time_column in whole:
            time = layout.times.time_of(whole[layout.time_column])[0]
        elif layout.named(TIME) is not None:
            raise BadEvent(f"no time: no member {layout.time_column!r}")
        own_id = whole.get(columns.get(ID, ""))
        if own_id is None and time is not None:  # the same message again is the same event
            text = message.topic.encode() + b"\0" + message.body
            own_id = hashlib.blake2b(text, digest_size=16).hexdigest()
        attributes = self._members[event_type.name].attributes(whole)
        data = self._checked(event_type, attributes, texts)
        return Event(event_type.name, data, time, None if own_id is None else str(own_id))

    def _cloud_event(self, body: bytes, levels: Mapping[str, str]) -> Event:
        try:
            (event,) = events_of({"content-type": STRUCTURED}, body)
        except Unsupported as error:
            raise BadEvent(str(error)) from None
        data = self._checked(self._known(event.type), {**levels, **event.data}, levels)
        return Event(event.type, data, event.time, f"{event.source}#{event.id}")

    def _checked(
        self, event_type: EventType, attributes: Mapping[str, Any], texts: Mapping[str, str]
    ) -> dict[str, Any]:
        """The attributes that the type has; what comes of a text is of the attribute's kind."""
        data = {}
        for attribute in event_type.declared:
            if attribute.name in attributes:
                value = attributes[attribute.name]
                is_text = texts.get(attribute.name) is value
                data[attribute.name] = _value(attribute.kind, value) if is_text else value
        self._rows[event_type.name].check(data)
        return data

    def _known(self, name: object) -> EventType:
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
        return {name: found for name, found in match.groupdict().items() if found is not None}


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"expected an object of JSON: {error}") from None


def _flat(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
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
