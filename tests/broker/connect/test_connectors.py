"""What a message becomes and an event, and what is wrong with a file of connectors."""

import json
import re
from pathlib import Path

import pytest

from broker.connect import mqtt, webhook
from broker.connect.configuration import SinkTable, SourceTable, connectors_of
from broker.connect.dead_letters import DeadLetters
from broker.connect.reading import Reading
from broker.connect.systems import Message
from broker.connect.templates import Template
from broker.errors import ConfigurationError
from matcher.errors import BadEvent
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import EventType

PAGE = (Path(__file__).parents[3] / "docs" / "connect.md").read_text()
TEMP = EventType.of("Temp", area="string", value="float", floor="int?")
SOURCE = """[[source]]
name = "plant"
topic = "sensors/{area}"
events = ["Temp(area: string, value: float)"]
dead_letter = "plant.dead"
mqtt = {}
"""
SINK = """[[sink]]
name = "alerts"
filters = ["Fire()"]
topic = ""
dead_letter = "alerts.dead"
"""


def read(topic, body, template="sensors/{area}/temp", kind="json", pattern="", **layout):
    types = {"Temp": TEMP}
    type_name = None if kind == "cloudevents" or "type" in layout else "Temp"
    own = Layout(**layout, flat=True)
    reading = Reading(Template(template), kind, types, type_name, own, pattern)
    return reading.event(Message(topic, body.encode(), lambda: None))


def test_a_template_is_filled_and_found_again():
    template = Template("a{{{x}}}/{y}")
    assert template.filled({"x": 1, "y": "b"}) == "a{1}/b"
    assert template.found("a{1}/b") == {"x": "1", "y": "b"}
    assert template.found("a{1}/b/c") is None
    with pytest.raises(BadEvent, match="needs y"):
        template.filled({"x": 1, "y": None})
    for text in ("a/{", "a/{}", "}a"):
        with pytest.raises(ValueError, match="attributes in braces"):
            Template(text)


def test_attributes_are_those_of_the_topic_and_of_the_body():
    event = read("sensors/a1/temp", '{"r": {"c": 46}, "hue": 1}', columns=(("value", "r.c"),))
    assert (event.data, event.time, event.id) == ({"area": "a1", "value": 46}, None, None)
    event = read("3/a1", "46.5 C", "{floor}/{area}", "text", r"(?P<value>[0-9.]+) C")
    assert event.data == {"area": "a1", "value": 46.5, "floor": 3}


def test_a_message_with_a_time_is_known_by_its_content_and_one_with_an_id_by_that():
    body = '{"at": 1500, "value": 46.5}'
    said = {"time": "at", "times": TimeForm("ms")}
    one, other = (read(f"sensors/{area}/temp", body, **said) for area in ("a1", "a2"))
    assert (one.time, one.id != other.id) == (1_500_000, True)
    assert read("sensors/a1/temp", body, **said) == one
    assert read("sensors/a1/temp", '{"n": 7, "value": 1.5}', id="n").id == "7"


def test_a_cloud_event_keeps_its_name():
    text = json.dumps(
        {"specversion": "1.0", "type": "Temp", "source": "s", "id": "1", "data": {"value": 1.5}}
    )
    event = read("sensors/a1/temp", text, kind="cloudevents")
    assert (event.id, event.data) == ("s#1", {"area": "a1", "value": 1.5})


@pytest.mark.parametrize(
    ("topic", "body", "kind", "reason"),
    [
        ("sensors/a1", "{}", "json", "expected sensors/{area}/temp, found sensors/a1"),
        ("sensors/a1/temp", "{", "json", "expected an object of JSON"),
        ("sensors/a1/temp", "{}", "json", "attribute value is missing"),
        ("sensors/a1/temp", '{"value": "hot"}', "json", "expected float, found string"),
        ("sensors/a1/temp", "warm", "text", "expected float, found string"),
        ("sensors/a1/temp", "{}", "cloudevents", "expected a CloudEvent"),
    ],
)
def test_a_message_that_does_not_fit_is_refused_in_words(topic, body, kind, reason):
    with pytest.raises(BadEvent, match=re.escape(reason)):
        read(topic, body, kind=kind)


def test_a_message_names_its_type():
    assert read("sensors/a1/temp", '{"kind": "Temp", "value": 1.5}', type="kind").type == "Temp"
    with pytest.raises(BadEvent, match="type: expected one of Temp, found 'Smoke'"):
        read("sensors/a1/temp", '{"kind": "Smoke"}', type="kind")


def test_a_dead_letter_is_a_line_with_its_reason(tmp_path):
    letters = DeadLetters(tmp_path / "dead", "plant")
    letters.keep("t", b"text", "one")
    letters.keep("t", b"\xff", "two")
    letters.close()
    one, two = (json.loads(line) for line in (tmp_path / "dead").read_text().splitlines())
    assert (one["body"], one["reason"], one["connector"]) == ("text", "one", "plant")
    assert (two["body_base64"], letters.count) == ("/w==", 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a [[source]] or a [[sink]]"),
        ("[sauce]", "expected [broker], [[source]] and [[sink]], found 'sauce'"),
        ("[source]", "expected [[source]], found [source]"),
        ("[broker]\nport = 1", "[broker]: Object contains unknown field `port`"),
        (SOURCE.replace('name = "plant"\n', ""), "[[source]] 1: Object missing required field"),
        (SOURCE + "window = 0", "[[source]] 1: window: Expected `int` >= 1"),
        (SOURCE + 'body = "avro"', "[[source]] 1: body: Invalid enum value 'avro'"),
        (SOURCE + 'type = "Smoke"', "[[source]] 1: type: expected one of Temp, found 'Smoke'"),
        (SOURCE + 'pattern = "("', "[[source]] 1: pattern: "),
        (SOURCE + 'time_unit = "h"', "[[source]] 1: time_unit: expected s or ms"),
        (SOURCE.replace("float)", "flat)"), "[[source]] 1: events: "),
        (SOURCE.replace("{area}", "{"), "[[source]] 1: topic: expected attributes in braces"),
        (SOURCE.replace("{}", "{ qos = 3 }"), "[[source]] 1: mqtt: qos: "),
        (SOURCE.replace("{}", '{ url = "x" }'), "[[source]] 1: mqtt: url: expected mqtt://HOST"),
        (SINK, "[[sink]] 1: expected one of mqtt and webhook"),
        (SINK + 'webhook.url = "x"', "[[sink]] 1: webhook: url: expected http://HOST"),
        (SOURCE + SOURCE, "name: 'plant' is given twice"),
    ],
)
def test_a_file_is_refused_by_its_place(tmp_path, text, reason):
    file = tmp_path / "plant.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        connectors_of(file)
    assert str(error.value).startswith(f"{file}: {reason}"), error.value


def test_the_page_has_a_file_that_is_right_and_every_key(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "plant.toml"
    file.write_text(text)
    found = connectors_of(file)
    assert ([one.name for one in found.sources], [one.name for one in found.sinks]) == (
        ["plant"],
        ["alerts"],
    )
    for table in (SourceTable, SinkTable, mqtt.Settings, webhook.Settings):
        for key in table.__struct_fields__:
            assert f"`{key}`" in PAGE, key
