"""Schemas as status shows them are read again, whatever their names are."""

import pytest

import rules
from broker.schemas import type_of
from matcher.errors import SchemaError
from matcher.model import Attribute, EventType, Kind, with_presences
from rules.errors import RuleErrors


@pytest.mark.parametrize(
    "type_",
    [
        EventType.of("Temp", area="string", value="float?"),
        EventType.of("Empty"),
        EventType.of("A b`(", **{"x, y: int": "int?", "z": "string", "`": "bool?", "a?": "int"}),
    ],
    ids=str,
)
def test_the_text_of_a_type_is_read_again(type_: EventType):
    assert type_of(str(type_)) == type_


def test_no_attribute_is_called_as_the_presence_of_another():
    with pytest.raises(SchemaError, match="beside ok"):
        with_presences([Attribute("ok", Kind.STRING), Attribute("ok?", Kind.BOOL)])
    with pytest.raises(RuleErrors, match="tells whether ok is there"):
        rules.load("event A(ok: string, `ok?`: bool)")


@pytest.mark.parametrize(
    "name", ["T", "from", "Sea Temp (C)", "a: int, b", "a`b", "``", "é", "x\ny"]
)
def test_a_shown_schema_is_the_schema(name: str) -> None:
    attributes = (Attribute(name, Kind.INT), Attribute(f"{name}2", Kind.STRING))
    for schema in (EventType(name), EventType(name, attributes)):
        assert type_of(str(schema)) == schema
