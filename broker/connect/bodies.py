"""Bodies whose schema stands in a file: Avro (by fastavro) and Protobuf.

A body becomes the members that the same message has in JSON, so that a layout means the same:
records in records are members of members, fields that are not there are left out.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Mapping
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from broker.documents import content_of, text_of
from broker.errors import ConfigurationError
from matcher.errors import BadEvent

Decode: TypeAlias = Callable[[bytes], dict[str, Any]]
PACKAGES = {"avro": "fastavro", "protobuf": "google.protobuf"}
"""The package that reads each kind, from the extra of its name."""
TIMESTAMP = "google.protobuf.Timestamp"


def decoder_of(kind: str, schema: Path, message: str = "", skipped: int = 0) -> Decode:
    """A function that reads bodies of a kind, behind so many bytes; of Protobuf those of a message,
    by its full name. Raises ConfigurationError.
    """
    try:
        is_there = importlib.util.find_spec(PACKAGES[kind]) is not None
    except ModuleNotFoundError:  # google, which holds others too
        is_there = False
    if not is_there:
        raise ConfigurationError(f"body: {kind} needs pip install 'rexmq[{kind}]'")
    read = _avro(schema) if kind == "avro" else _protobuf(schema, message)

    def decode(body: bytes) -> dict[str, Any]:
        try:
            return read(body[skipped:])
        except Exception as error:  # whatever a library raises of bytes that are no message
            raise BadEvent(f"expected a message of {schema.name}: {error!r:.200}") from None

    return decode


def _avro(file: Path) -> Decode:
    import fastavro

    try:
        schema = fastavro.parse_schema(msgspec.json.decode(text_of(file, "schema")))
    except (msgspec.MsgspecError, fastavro.schema.SchemaParseException, ValueError) as error:
        raise ConfigurationError(f"schema: {file}: expected one of Avro: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigurationError(f"schema: {file}: expected a record")

    def read(body: bytes) -> dict[str, Any]:
        stream = io.BytesIO(body)
        record: Any = fastavro.schemaless_reader(stream, schema, None)
        if stream.tell() < len(body):
            raise ValueError(f"{len(body) - stream.tell()} bytes are left")
        return _plain(record)

    return read


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the kinds of values that JSON has, and times."""
    return {name: _value(value) for name, value in record.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, Decimal):
        return float(value)
    return str(value) if isinstance(value, UUID) else value


def _protobuf(file: Path, name: str) -> Decode:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    files, pool = descriptor_pb2.FileDescriptorSet(), descriptor_pool.DescriptorPool()
    try:
        files.ParseFromString(content_of(file, "schema"))
        for one in files.file:
            pool.Add(one)
        names = [
            ".".join(filter(None, (one.package, kind.name)))
            for one in files.file
            if one.package != "google.protobuf"
            for kind in one.message_type
        ]
        if not name and len(names) == 1:
            (name,) = names
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        known = ", ".join(names) or "none"
        raise ConfigurationError(f"message: expected one of {known}, found {name!r}") from None
    except (message.DecodeError, TypeError) as error:
        reason = f"expected a descriptor set (protoc --include_imports): {error}"
        raise ConfigurationError(f"schema: {file}: {reason}") from None
    return lambda body: _members(made.FromString(body))


def _members(message: Any) -> dict[str, Any]:
    """The fields of a message: those with presence if they are there."""
    return {
        field.name: _field(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _field(field: Any, value: Any) -> Any:
    if field.is_repeated:
        return value  # no attribute has more than one value
    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return value.ToDatetime(tzinfo=UTC)
        return _members(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return value
