"""Attributes as they are typed: by the table of docs/cli.md."""

import pytest

from broker.cli.literals import event_of
from broker.cli.outcome import UsageError
from broker.schemas import type_of
from matcher.errors import BadEvent
from matcher.model import EventType
from matcher.spelling import spelled
from rules.subscription import parse_subscription

HEAT = EventType.of("Heat", area="string", value="float")


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [
        ("v=7", "int", 7),
        ("v=-7", "int", -7),
        ("v=0.5", "float", 0.5),
        ("v=.5", "float", 0.5),
        ("v=-.5e1", "float", -5.0),
        ("v=1.", "float", 1.0),
        ("v=1e3", "float", 1000.0),
        ("v=true", "bool", True),
        ("v=True", "bool", True),
        ("v=FALSE", "bool", False),
        ('v="7"', "string", "7"),
        (r'v="a \"b\" \u00e9"', "string", 'a "b" é'),
        ("v='7'", "string", "'7'"),
        ("v= 7", "string", " 7"),
        ("v=007", "string", "007"),
        ("v=+7", "string", "+7"),
        ("v=", "string", ""),
        ("v=a=b", "string", "a=b"),
        ("v=1,500,000", "string", "1,500,000"),
        ("v=information", "string", "information"),
        ("v:string=7", "string", "7"),
        ("v:string=nan", "string", "nan"),
        ("v:string=null", "string", "null"),
        ("v:string=1,5", "string", "1,5"),
        ('v:string="7"', "string", "7"),
        ("v:float=1", "float", 1.0),
        ("v:float=+1", "float", 1.0),
        ("v:int=007", "int", 7),
        ("v:bool=TRUE", "bool", True),
        ("count=1", "int", 1),
        ("_x=1", "int", 1),
    ],
)
def test_a_value_is_what_it_looks_like_or_is_said_to_be(word, kind, value):
    name = word.partition("=")[0].partition(":")[0]
    schema, data = event_of("Heat", [word], None)
    assert (schema, data) == (EventType.of("Heat", **{name: kind}), {name: value})
    assert type(data[name]) is type(value)


def test_an_attribute_that_is_optional_may_be_null_or_left_out():
    known = EventType.of("Heat", room="string", v="float?")
    assert event_of("Heat", ["room=a", "v=null"], known) == (known, {"room": "a", "v": None})
    assert event_of("Heat", ["room=a"], known) == (known, {"room": "a"})
    assert event_of("Heat", ["room=null"], known)[1] == {"room": "null"}
    with pytest.raises(BadEvent, match=r"room is missing; the broker knows .*v: float\?\)"):
        event_of("Heat", ["v=1"], known)
    made = EventType.of("Heat", v="int?")
    assert event_of("Heat", ["v:int?=NULL"], None) == (made, {"v": None})
    assert event_of("Heat", ["v:int?=7"], None) == (made, {"v": 7})
    assert type_of(str(known)) == known


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-Inf", "Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("known", [None, EventType.of("Heat", v="float")], ids=["new", "known"])
def test_a_number_that_is_not_finite_is_refused_by_name(text, known):
    with pytest.raises(BadEvent, match=f"attribute v: {text} is not finite"):
        event_of("Heat", [f"v={text}"], known)
    assert event_of("Heat", [f"v={text}"], EventType.of("Heat", v="string"))[1] == {"v": text}


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("v=null", "has no null unless it is optional: v:float\\?=null .* say v:string=null"),
        ("v=1,5", "1,5 as a number is 1.5; as a text say v:string=1,5"),
        ('v="7', "expected a text in double quotes"),
        ('v="a" b', "expected a text in double quotes"),
        ("v:int=1.5", "attribute v: expected int, found string"),
        ("v:bool=1", "attribute v: expected bool, found string"),
        (f"v={'9' * 19}", "an int beyond 64 bits"),
        (f"v={'9' * 100}", "an int beyond 64 bits"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_not_guessed(word, reason):
    with pytest.raises(BadEvent, match=reason):
        event_of("Heat", [word], None)


@pytest.mark.parametrize("name", ["and", "TRUE", "a b", "a-b", "9a", "a.b", "Sea Temp (C)", "a`b"])
def test_a_name_that_is_no_plain_word_is_written_in_backquotes_where_filters_name_it(name):
    schema, data = event_of(name, [f"{name}=7"], None)
    assert data == {name: 7}
    found = parse_subscription(f"{spelled(name)}({spelled(name)} = 7)", {name: schema})
    assert parse_subscription(found.text, {name: schema}) == found


def test_a_name_in_backquotes_may_have_any_sign():
    schema, data = event_of("T", ["`a=b:c`:string=7", "```x``=`=1"], None)
    assert data == {"a=b:c": "7", "`x`=": 1}
    assert str(schema) == "T(`a=b:c`: string, ```x``=`: int)"


@pytest.mark.parametrize("name", ["a\nb", "\0", "x" * 300])
def test_names_that_no_filter_can_say_are_refused(name):
    with pytest.raises(BadEvent, match="no filter could name it"):
        event_of("Heat", [f"{name}=1"], None)
    with pytest.raises(BadEvent, match="no filter could name it"):
        event_of(name, ["v=1"], None)
    known = EventType.of("Heat", **{name: "int"})  # a program may have made it
    assert event_of("Heat", [f"{name}=1"], known) == (known, {name: 1})


@pytest.mark.parametrize("word", ["v", "=3", ":int=3", "v:real=1", "a:b=1"])
def test_a_word_that_is_none_is_wrong_usage(word):
    with pytest.raises(UsageError, match="pub: "):
        event_of("Heat", [word], None)


def test_values_are_read_by_the_type_that_is_known():
    assert event_of("Heat", ["area=7", "value=1"], HEAT) == (HEAT, {"area": "7", "value": 1.0})
    assert event_of("Heat", ["area:string=7", "value=1"], HEAT)[0] == HEAT
    for words, reason in (
        (["area=x"], "attribute value is missing"),
        (["area=x", "value=hot"], "attribute value: expected float, found string"),
        (["area=x", "value=1", "valeu=1"], "attribute valeu: the type has none of that name"),
    ):
        with pytest.raises(BadEvent, match=f"{reason}; the broker knows Heat"):
            event_of("Heat", words, HEAT)


def test_what_the_words_say_goes_before_what_is_known():
    schema, data = event_of("Heat", ["value=1", "area:int=7"], HEAT)
    assert (schema, data) == (
        EventType.of("Heat", area="int", value="float"),
        {"area": 7, "value": 1.0},
    )
    schema, _ = event_of("Heat", ["room:string=7", "value=1"], HEAT)
    assert schema == EventType.of("Heat", value="float", room="string")
