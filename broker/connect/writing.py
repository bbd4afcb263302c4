"""Writings: the messages that events become."""

from __future__ import annotations

from collections.abc import Iterator

from broker.client.sink import rows
from broker.connect.systems import Outgoing
from broker.connect.templates import Template
from matcher.errors import BadEvent
from matcher.formats.printing import json_lines
from matcher.model import Event, Value
from matcher.times import time_text
from routing.delivery.remainder import positions_of
from routing.messages import Delivery


class Writing:
    """Writes events to a ``topic``; their bodies are CloudEvents, or a template's texts.

    Templates have the event's attributes, and ``$type``, ``$time``, ``$source`` and ``$id``.
    """

    def __init__(self, topic: Template, body: Template | None = None) -> None:
        self._topic, self._body = topic, body

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
        body = line if self._body is None else self._body.filled(values).encode()
        return Outgoing(self._topic.filled(values), body, f"{event.source}#{event.id}")
