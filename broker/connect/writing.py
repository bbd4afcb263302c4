"""Writings: the messages that events become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from broker.client.sink import rows
from broker.cloudevents import STRUCTURED as STRUCTURED_TYPE
from broker.connect.systems import Outgoing
from broker.connect.templates import Template
from matcher.errors import BadEvent
from matcher.formats.printing import json_lines
from matcher.model import Event, Value
from matcher.times import time_text
from routing.delivery.remainder import positions_of
from routing.messages import Delivery

STRUCTURED, BINARY = "cloudevents", "cloudevents-binary"
"""Bodies that are no templates."""
TEXT_TYPE = "text/plain; charset=utf-8"


class Writing:
    """Writes events to a ``topic``, with ``headers`` and a ``key``. Their bodies are CloudEvents,
    in ``BINARY`` mode if that is said, or a template's texts.

    Templates have the event's attributes, and ``$type``, ``$time``, ``$source`` and ``$id``.
    """

    def __init__(
        self,
        topic: Template,
        body: str = STRUCTURED,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> None:
        self._topic, self._is_binary = topic, body == BINARY
        self._body = None if body in (STRUCTURED, BINARY) else Template(body)
        self._headers = {name: Template(text) for name, text in (headers or {}).items()}
        self._key = None if key is None else Template(key)

    def messages(self, delivery: Delivery) -> Iterator[tuple[int, Outgoing | BadEvent]]:
        """The messages of a delivery's events, each with the position that acknowledges it."""
        text = json_lines(delivery.batches, delivery.order, full_cause=True, traces=delivery.traces)
        lines = text.splitlines()
        for position, event, line in zip(
            positions_of(delivery), rows(delivery), lines, strict=True
        ):
            marked = line[:-1] + b',"again":true}' if delivery.again else line
            try:
                yield position, self._message(event, marked)
            except BadEvent as error:
                yield position, BadEvent(error.reason, line.decode())

    def _message(self, event: Event, line: bytes) -> Outgoing:
        values: dict[str, Value | None] = {
            **event.data,
            "$type": event.type,
            "$time": time_text(event.time),
            "$source": event.source,
            "$id": event.id,
        }
        kind, body, attributes = STRUCTURED_TYPE, line, dict[str, str]()
        if self._is_binary:
            kind, body, attributes = _binary(line)
        elif self._body is not None:
            kind, body = TEXT_TYPE, self._body.filled(values).encode()
        return Outgoing(
            self._topic.filled(values),
            body,
            f"{event.source}#{event.id}",
            kind,
            {name: template.filled(values) for name, template in self._headers.items()},
            attributes,
            None if self._key is None else self._key.filled(values),
        )


def _binary(line: bytes) -> tuple[str, bytes, dict[str, str]]:
    """Content type, data and attributes of a CloudEvent; attributes that are no texts, numbers or
    truth values are left out, for headers have none of these.
    """
    envelope = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    data = bytes(envelope.pop("data"))
    values = {name: msgspec.json.decode(raw) for name, raw in envelope.items()}
    attributes = {
        name: value if isinstance(value, str) else str(value).lower()
        for name, value in values.items()
        if isinstance(value, str | int | float)
    }
    return "application/json", data, attributes
