"""CloudEvents in requests: the HTTP binding of CloudEvents 1.0.2, in its three content modes.

A request is read whole or refused whole, with the place of what is wrong and what was expected:
``event 3: no source: expected a text``. Attributes of events are checked where their schemas are
known (``broker.monitoring.posts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from matcher.errors import BadEvent
from matcher.formats.jsondata import REFUSED
from matcher.formats.timeform import RFC_3339
from matcher.traces import is_context
from routing.names import name_fault

STRUCTURED, BATCHED = "application/cloudevents+json", "application/cloudevents-batch+json"
EVENTS_MAX = 10_000
"""Events of one request."""
_PREFIX = "ce-"
_TEXTS = ("specversion", "type", "source", "id", "time", "traceparent")
"""Attributes that headers of the binary mode may bear."""
_Text: TypeAlias = Annotated[str, Meta(min_length=1)]


class Unsupported(Exception):
    """A content type that no event is read from; says what was expected."""


class CloudEvent(msgspec.Struct, frozen=True):
    """An event as it was posted, without regard to its schema. ``time`` in microseconds, None for
    an event that bears none; ``place`` names it in messages, "" if it is alone.
    """

    type: str
    source: str
    id: str
    time: int | None
    data: Mapping[str, Any]
    traceparent: str | None
    place: str

    def fault(self, reason: str) -> BadEvent:
        """The error that this event is bad."""
        return BadEvent(reason, self.place or None)


class _Envelope(msgspec.Struct):
    specversion: _Text
    type: _Text
    source: _Text
    id: _Text
    time: _Text | None = None
    datacontenttype: str | None = None
    data: Raw = Raw(b"null")
    data_base64: Raw | UnsetType = UNSET
    traceparent: str | None = None


def events_of(headers: Mapping[str, str], body: bytes) -> list[CloudEvent]:
    """The events of a request. Raises BadEvent, and Unsupported for a content type that is none of
    these.
    """
    kind = _media_type(headers.get("content-type", ""))
    if kind == BATCHED:
        return [_decoded(raw, f"event {n}") for n, raw in enumerate(_array(body), 1)]
    if kind == STRUCTURED:
        return [_decoded(body, "")]
    if f"{_PREFIX}specversion" not in headers:
        found = repr(kind) if kind else "none"
        raise Unsupported(
            f"Content-Type: expected {STRUCTURED} or {BATCHED}, or {_PREFIX}specversion and other "
            f"headers beside application/json; found {found}"
        )
    return [_binary(headers, kind, body)]


def _array(body: bytes) -> list[Raw]:
    try:
        raws = msgspec.json.decode(body, type=list[Raw])
    except REFUSED as error:
        raise BadEvent(f"expected an array of events: {error}") from None
    if not 0 < len(raws) <= EVENTS_MAX:
        raise BadEvent(f"expected 1 to {EVENTS_MAX:,} events, found {len(raws):,}")
    return raws


def _binary(headers: Mapping[str, str], kind: str, body: bytes) -> CloudEvent:
    """The event whose attributes are headers, and whose data is the body."""
    names = {name: headers.get(f"{_PREFIX}{name}") for name in _TEXTS}
    said = {name: unquote(value) for name, value in names.items() if value is not None}
    try:
        envelope = msgspec.convert(said, _Envelope)
    except msgspec.MsgspecError as error:
        raise BadEvent(f"headers {_PREFIX}*: {error}") from None
    envelope.datacontenttype = kind or None
    envelope.data = Raw(body or b"null")
    return _event(envelope, "")


def _decoded(text: bytes | Raw, place: str) -> CloudEvent:
    try:
        return _event(msgspec.json.decode(text, type=_Envelope), place)
    except REFUSED as error:
        raise BadEvent(f"expected a CloudEvent: {error}", place or None) from None


def _event(envelope: _Envelope, place: str) -> CloudEvent:
    try:
        _verify(envelope)
        time = None if envelope.time is None else RFC_3339.time_of(envelope.time).time
        data = _attributes(envelope.data)
    except BadEvent as error:
        raise BadEvent(error.reason, place or None) from None
    own = envelope.type, envelope.source, envelope.id, time, data, envelope.traceparent, place
    return CloudEvent(*own)


def _verify(envelope: _Envelope) -> None:
    """Refuse an event that is no CloudEvent 1.0, or none of JSON. Raises BadEvent, Unsupported."""
    if envelope.specversion != "1.0":
        raise BadEvent(f"specversion: expected '1.0', found {envelope.specversion!r}")
    if fault := name_fault(envelope.source):
        raise BadEvent(f"source: {fault}")
    kind = _media_type(envelope.datacontenttype or "application/json")
    if not (kind == "application/json" or kind.endswith("+json")):
        raise Unsupported(f"data: expected application/json, found {kind!r}")
    if envelope.data_base64 is not UNSET:
        raise Unsupported("data_base64: expected data, an object of JSON")
    if envelope.traceparent is not None and not is_context(envelope.traceparent):
        found = envelope.traceparent
        raise BadEvent(f"traceparent: expected 00-TRACE-SPAN-01 (W3C), found {found!r}")


def _attributes(data: Raw) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any] | None) or {}
    except REFUSED as error:
        raise BadEvent(f"data: expected an object of JSON: {error}") from None


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()
