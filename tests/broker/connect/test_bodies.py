"""Bodies of Avro and Protobuf become the events that the same messages in JSON become."""

import importlib.util
import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from broker.connect.configuration import connectors_of
from broker.connect.systems import Message
from broker.errors import ConfigurationError
from matcher.errors import EventError

AT = datetime(2026, 11, 29, 8, tzinfo=UTC)
AVRO = {
    "type": "record",
    "name": "Temp",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "reading",
            "type": {
                "type": "record",
                "name": "Reading",
                "fields": [{"name": "celsius", "type": "float"}],
            },
        },
        {"name": "floor", "type": ["null", "int"], "default": None},
        {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["ON", "OFF"]}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
    ],
}
SOURCE = """[[source]]
name = "plant"
topic = "sensors/{{area}}"
events = ["Temp(area: string, value: float, floor: int?, mode: string, price: float)"]
columns = {{ value = "reading.celsius" }}
time_column = "at"
dead_letter = "plant.dead"
body = "{body}"
mqtt = {{}}
"""
FIELD = descriptor_pb2.FieldDescriptorProto


@pytest.fixture
def files(tmp_path):
    (tmp_path / "temp.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "temp.pb").write_bytes(descriptors().SerializeToString())
    return tmp_path


def descriptors():
    """What protoc makes of plant.Temp, in proto3, whose floor is optional."""
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    file = files.file.add(name="temp.proto", package="plant", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    kind = file.message_type.add(name="Temp")
    inner = kind.nested_type.add(name="Reading")
    inner.field.add(name="celsius", number=1, type=FIELD.TYPE_FLOAT, label=1)
    mode = kind.enum_type.add(name="Mode")
    for number, name in enumerate(("ON", "OFF")):
        mode.value.add(name=name, number=number)
    for number, (name, type_, of) in enumerate(
        [
            ("at", FIELD.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
            ("reading", FIELD.TYPE_MESSAGE, ".plant.Temp.Reading"),
            ("floor", FIELD.TYPE_INT64, ""),
            ("mode", FIELD.TYPE_ENUM, ".plant.Temp.Mode"),
            ("price", FIELD.TYPE_DOUBLE, ""),
            ("tags", FIELD.TYPE_STRING, ""),
        ],
        1,
    ):
        field = kind.field.add(name=name, number=number, type=type_, label=1, type_name=of or None)
        if name == "tags":
            field.label = FIELD.LABEL_REPEATED
        if name == "floor":
            kind.oneof_decl.add(name="_floor")
            field.oneof_index, field.proto3_optional = 0, True
    return files


def of_avro(floor):
    stream = io.BytesIO()
    record = {"at": AT, "reading": {"celsius": 46.5}, "floor": floor, "mode": "OFF"}
    fastavro.schemaless_writer(stream, AVRO, {**record, "price": Decimal("1.25")})
    return stream.getvalue()


def of_protobuf(floor):
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors().file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("plant.Temp"))
    message = made(mode=1, price=1.25, tags=["x"])
    message.at.FromDatetime(AT)
    message.reading.celsius = 46.5
    if floor is not None:
        message.floor = floor
    return message.SerializeToString()


BODIES = [("avro", "temp.avsc", of_avro), ("protobuf", "temp.pb", of_protobuf)]


def read(files, kind, schema, body, more=""):
    file = files / "plant.toml"
    text = SOURCE.format(body=kind) + (f'schema = "{schema}"\n' if schema else "") + more
    file.write_text(text.replace("mqtt = {}\n", "") + "mqtt = {}\n")
    (pump,) = connectors_of(file).sources
    (event,) = pump._reading.events([Message("sensors/a1", body)])
    return event


@pytest.mark.parametrize(("kind", "schema", "made"), BODIES, ids=["avro", "protobuf"])
@pytest.mark.parametrize("floor", [3, None])
def test_a_body_becomes_the_event_of_the_same_message_in_json(files, kind, schema, made, floor):
    rows, time, values, _ = read(files, kind, schema, made(floor))
    members = {"at": AT.isoformat(), "reading": {"celsius": 46.5}, "mode": "OFF", "price": 1.25}
    members |= {} if floor is None else {"floor": floor}
    same = read(files, "json", "", json.dumps(members).encode())
    assert (rows.type.name, time, values) == (same[0].type.name, same[1], same[2])
    assert time == round(AT.timestamp() * 1e6)
    framed = read(files, kind, schema, b"\0\0\0\0\7" + made(floor), "skip_bytes = 5\n")
    assert framed[1:3] == (time, values)


@pytest.mark.parametrize(("kind", "schema", "made"), BODIES, ids=["avro", "protobuf"])
def test_a_body_that_is_none_is_refused_with_its_schema(files, kind, schema, made):
    for body in (b"\xff\xff\xff", made(3)[:-1]):
        fault = read(files, kind, schema, body)
        assert isinstance(fault, EventError)
        assert f"expected a message of {schema}: " in str(fault)


@pytest.mark.parametrize(
    ("kind", "schema", "more", "reason"),
    [
        ("avro", "", "", "schema: expected the file of a schema, with body avro"),
        ("avro", "none.avsc", "", "schema: .*none.avsc: No such file"),
        ("avro", "temp.pb", "", "schema: .*temp.pb: "),
        ("avro", "odd.avsc", "", "schema: .*odd.avsc: expected one of Avro"),
        ("avro", "int.avsc", "", "schema: .*int.avsc: expected a record"),
        ("protobuf", "temp.avsc", "", "schema: .*temp.avsc: expected a descriptor set"),
        ("protobuf", "temp.pb", 'message = "Temp"\n', "message: expected one of plant.Temp, found"),
        ("json", "temp.avsc", "", "schema: expected with body avro or protobuf alone"),
    ],
)
def test_a_schema_that_is_none_is_refused_by_its_place(files, kind, schema, more, reason):
    (files / "odd.avsc").write_text('{"type": "record", "name": "Temp", "fields": [{"name": 1}]}')
    (files / "int.avsc").write_text('"int"')
    with pytest.raises(ConfigurationError, match=reason):
        read(files, kind, schema, b"", more)


@pytest.mark.parametrize(("kind", "schema", "made"), BODIES, ids=["avro", "protobuf"])
def test_what_has_to_be_installed_is_said(files, monkeypatch, kind, schema, made):
    found = importlib.util.find_spec
    missing = {"fastavro", "google.protobuf"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else found(name)
    )
    with pytest.raises(ConfigurationError, match=rf"{kind} needs pip install 'rexmq\[{kind}\]'"):
        read(files, kind, schema, made(3))
