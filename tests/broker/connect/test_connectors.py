"""What a message becomes and an event, and what is wrong with a file of connectors."""

import json
import re
from pathlib import Path
from random import Random

import pytest
from event_batches import batch_of_events

from broker.connect import amqp, files, http, kafka, mqtt, nats, postgres, redis, webhook
from broker.connect.configuration import SinkTable, SourceTable, connectors_of
from broker.connect.dead_letters import DeadLetters
from broker.connect.reading import Reading
from broker.connect.systems import Message
from broker.connect.templates import Template
from broker.connect.writing import TEXT_TYPE, Writing
from broker.errors import ConfigurationError
from matcher.errors import BadEvent, EventError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import Event, EventType
from routing.messages import Delivery
from routing.session import NO_TIME

PAGE = (Path(__file__).parents[3] / "docs" / "connect.md").read_text()
SETTINGS = [
    module.Settings for module in (amqp, files, http, kafka, mqtt, nats, postgres, redis, webhook)
]
AT = "1970-01-01T00:00:01.500000Z"
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


def of(system, settings):
    return SOURCE.replace("mqtt = {}", f"{system} = {settings}")


def delivered(event_type, data):
    event = Event(event_type.name, 1_500_000, "s", "1", data)
    return Delivery((batch_of_events(event_type, [event]),), ((1,),))


def read(topic, body, template="sensors/{area}/temp", kind="json", pattern="", **said):
    own_id, headers = said.pop("known_as", None), said.pop("headers", {})
    message = Message(topic, body.encode(), None, headers, own_id, 1_500_000)
    type_name = None if kind == "cloudevents" or "type" in said else "Temp"
    layout = Layout(**said, flat=True)
    reading = Reading(Template(template), kind, {"Temp": TEMP}, type_name, layout, pattern)
    rows, time, values, own_id = reading.event(message)
    data = {name: value for name, value in zip(rows.type.names, values, strict=True) if value}
    return Event(rows.type.name, time, "", own_id, data)


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
    assert (event.data, event.time, event.id) == ({"area": "a1", "value": 46}, NO_TIME, None)
    event = read("3/a1", "46.5 C", "{floor}/{area}", "text", r"(?P<value>[0-9.]+) C")
    assert event.data == {"area": "a1", "value": 46.5, "floor": 3, "floor?": True}


def test_a_message_with_a_time_is_known_by_its_content_and_one_with_an_id_by_that():
    body = '{"at": 1500, "value": 46.5}'
    said = {"time": "at", "times": TimeForm("ms")}
    one, other = (read(f"sensors/{area}/temp", body, **said) for area in ("a1", "a2"))
    assert (one.time, one.id != other.id) == (1_500_000, True)
    assert read("sensors/a1/temp", body, **said) == one
    assert read("sensors/a1/temp", '{"n": 7, "value": 1.5}', id="n").id == "7"


def test_numbers_in_quotes_are_numbers_as_in_files():
    event = read("sensors/a1/temp", '{"value": "46.5", "floor": "3"}')
    assert event.data == {"area": "a1", "value": 46.5, "floor": 3, "floor?": True}
    with pytest.raises(BadEvent, match="expected int, found string"):
        read("sensors/a1/temp", '{"value": 1.5, "floor": "3rd"}')


def test_a_cloud_event_keeps_its_name():
    text = json.dumps(
        {"specversion": "1.0", "type": "Temp", "source": "s", "id": "1", "data": {"value": 1.5}}
    )
    event = read("sensors/a1/temp", text, kind="cloudevents")
    assert (event.id, event.data) == ("s#1", {"area": "a1", "value": 1.5})


@pytest.mark.parametrize("prefix", ["", "ce_", "ce-", "cloudEvents:"])
def test_a_cloud_event_may_be_in_headers(prefix):
    attributes = {"specversion": "1.0", "type": "Temp", "source": "s", "id": "a 1", "time": AT}
    headers = {prefix + name: text for name, text in attributes.items()}
    event = read("sensors/a1/temp", '{"value": 1.5}', kind="cloudevents", headers=headers)
    assert (event.id, event.time) == ("s#a 1", 1_500_000)
    assert event.data == {"area": "a1", "value": 1.5}


def test_headers_are_attributes_behind_members_and_a_message_has_an_id():
    headers = {"floor": "3", "value": "9"}
    event = read("sensors/a1/temp", '{"value": 1.5}', headers=headers, known_as="q/1", time="$time")
    assert event.data == {"area": "a1", "value": 1.5, "floor": 3, "floor?": True}
    assert (event.time, event.id) == (1_500_000, "q/1")


def test_an_event_is_written_with_headers_key_and_in_binary_mode():
    delivery = delivered(TEMP, {"area": "a1", "value": 1.5, "floor": None})
    headers = {"origin": "{$source}"}
    ((_, sent),) = Writing(Template("t"), "cloudevents-binary", headers, "{area}").messages(
        delivery
    )
    assert (sent.key, sent.headers) == ("a1", {"origin": "s"})
    assert (sent.attributes["type"], sent.attributes["time"]) == ("Temp", AT)
    assert json.loads(sent.body)["value"] == 1.5
    ((_, sent),) = Writing(Template("t"), "{value}").messages(delivery)
    assert (sent.body, sent.content_type, sent.attributes) == (b"1.5", TEXT_TYPE, {})


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


@pytest.mark.parametrize("kind", ["json", "text"])
def test_an_id_that_no_broker_takes_is_refused_in_words(kind):
    body, pattern = ('{"value": 1.5}', "") if kind == "json" else ("1.5", "(?P<value>.*)")
    read("sensors/a1/temp", body, "sensors/{area}/temp", kind, pattern, known_as="x" * 1_024)
    with pytest.raises(BadEvent, match="an id of 1025 characters: expected 1024 at most"):
        read("sensors/a1/temp", body, "sensors/{area}/temp", kind, pattern, known_as="x" * 1_025)


def test_members_nested_deep_are_read_or_refused():
    """Whichever of the decoder and the reader comes to its bound first."""
    refused = 0
    for depth in range(300, 1_100, 7):
        body = '{"value": ' * depth + "1" + "}" * depth
        with pytest.raises(BadEvent) as error:
            read("sensors/a1/temp", body)
        refused += "nested too deep" in error.value.reason or "JSON" in error.value.reason
    assert refused


ALL = EventType.of("All", area="string", x="float", n="int", ok="bool")
ODD = [
    ("x", '"hot"'), ("x", "null"), ("x", "1e999"), ("x", f"1{'0' * 400}"), ("x", '{"y": 1}'),
    ("n", "1.5"), ("n", "9223372036854775808"), ("n", "true"), ("ok", "0"), ("area", "7"),
    ("area", '"k\u00fcche"'), ("area", '"\\ud800"'), ("time", '"soon"'), ("time", "null"),
    ("id", "null"), ("id", "7"), ("more", '{"x": 2.5}'),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_messages_that_are_read_together_have_the_events_that_they_have_alone(seed):
    random = Random(seed)
    columns = (("x", "more.x"),) if seed % 3 == 0 else ()
    layout = Layout(time=random.choice([None, "$time"]), columns=columns, flat=True)

    def reading():
        return Reading(Template("s/{area}"), "json", {"All": ALL}, "All", layout)

    def message(number):
        members = {"x": "1.5", "n": str(number), "ok": "true", "more": '{"x": 0.5}'}
        members |= {"id": f'"e{number}"'} if seed % 4 == 0 else {}
        members |= {"time": "1500"} if seed % 5 == 0 else {}
        if random.random() < (seed % 2) / 4:
            members |= [random.choice(ODD)]
        headers = {"n": "3", "ok": "true"} if seed % 7 == 0 else {}
        for name in headers:
            del members[name]
        body = ", ".join(f'"{name}": {value}' for name, value in members.items())
        topic = random.choice(["s/a1", "s/a2", "s/a1/b"] if seed % 6 == 0 else ["s/a1", "s/a2"])
        known_as = None if seed % 8 == 0 else f"q/{number}"
        return Message(topic, f"{{{body}}}".encode(), None, headers, known_as, 1_500_000)

    messages = [message(number) for number in range(20)]
    together = [*map(spelled, reading().events(messages))]
    assert together == [spelled(one) for part in messages for one in reading().events([part])]
    assert seed % 2 or seed % 6 == 0 or not any(isinstance(one, str) for one in together)


def spelled(event):
    if isinstance(event, EventError):
        return str(event)
    rows, *rest = event
    return rows.type.name, *rest, [*map(type, rest[1])]


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
        (SOURCE + 'body = "xml"', "[[source]] 1: body: Invalid enum value 'xml'"),
        (SOURCE + 'body = "csv"', "[[source]] 1: body: csv is expected with files alone"),
        (SOURCE + 'type = "Smoke"', "[[source]] 1: type: expected one of Temp, found 'Smoke'"),
        (SOURCE + 'pattern = "("', "[[source]] 1: pattern: "),
        (SOURCE + 'time_unit = "h"', "[[source]] 1: time_unit: expected s or ms"),
        (SOURCE.replace("float)", "flat)"), "[[source]] 1: events: "),
        (SOURCE.replace("{area}", "{"), "[[source]] 1: topic: expected attributes in braces"),
        (SOURCE.replace("{}", "{ qos = 3 }"), "[[source]] 1: mqtt: qos: "),
        (SOURCE.replace("{}", '{ url = "x" }'), "[[source]] 1: mqtt: url: expected mqtt://HOST"),
        (SINK, "[[sink]] 1: expected one of mqtt, nats, redis, kafka, amqp, webhook, found none"),
        (
            SOURCE + "nats = {}",
            "[[source]] 1: expected one of mqtt, nats, redis, kafka, amqp, files, postgres, http",
        ),
        (SINK + 'key = "{x}"\nnats = {}', "[[sink]] 1: key: expected with kafka alone"),
        (of("redis", "{}"), "[[source]] 1: redis: topic: expected the name of one stream"),
        (of("nats", '{ url = "x" }'), "[[source]] 1: nats: url: expected nats://HOST:PORT or tls"),
        (of("nats", '{ stream = "S", group = "a.b" }'), "[[source]] 1: nats: group: expected the"),
        (of("postgres", "{}"), "[[source]] 1: postgres: topic: expected the name of one channel"),
        (of("kafka", '{ start = "x" }'), "[[source]] 1: kafka: start: Invalid enum value 'x'"),
        (of("kafka", '{ options = { x = "y" } }'), "[[source]] 1: kafka: options: No such config"),
        (of("amqp", '{ url = "http://h" }'), "[[source]] 1: amqp: url: expected amqp://HOST:PORT"),
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


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_the_files_of_the_page_are_right(tmp_path, text):
    file = tmp_path / "plant.toml"
    if not text.startswith("["):  # the lines of a system
        alone = any(f"{name} = {{" in text for name in ("files", "postgres", "http"))
        sink = "" if alone else SINK.replace('topic = ""', text)
        file.write_text(re.sub("topic.*", "", SOURCE).replace("mqtt = {}", text) + sink)
        assert len(connectors_of(file).sources) == 1
        return
    file.write_text(text)
    made = connectors_of(file)
    assert [pump.name for pump in (*made.sources, *made.sinks)] == ["plant", "alerts"]


def test_the_page_has_every_key():
    for table in (SourceTable, SinkTable, *SETTINGS):
        for key in table.__struct_fields__:
            assert f"`{key}`" in PAGE, key
