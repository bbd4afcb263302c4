"""Connectors to MQTT, with a real server: nothing is lost, whoever is killed."""

import json
import socket
from contextlib import ExitStack

import pytest
from connectors import connected
from live_hosts import await_durables
from mosquitto import client, mosquitto, needs_mosquitto
from secured import broker

from broker import Publisher, Subscriber
from matcher import EventType

pytestmark = needs_mosquitto
FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
topic = "sensors/{{area}}/temp"
events = ["Temp(area: string, value: float, serial: int)"]
columns = {{ value = "reading.celsius" }}
id_column = "n"
dead_letter = "plant.dead"
mqtt = {{ url = "mqtt://127.0.0.1:{port}", version = "{version}" }}

[[sink]]
name = "alerts"
filters = ["Temp(value > 45)"]
topic = "alerts/{{area}}"
body = "{body}"
dead_letter = "alerts.dead"
mqtt = {{ url = "mqtt://127.0.0.1:{port}", version = "{version}" }}
"""


@pytest.fixture
def server(tmp_path):
    with mosquitto(tmp_path) as port:
        yield port


def reading(n, value=50.0):
    return json.dumps({"n": n, "serial": n, "reading": {"celsius": value}})


def written(folder, **said):
    file = folder / "plant.toml"
    file.write_text(FILE.format(**said))
    return file


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_become_events_and_events_messages(tmp_path, server, version):
    body = "{value} at {$time} of {area}"
    with (
        broker("--data", str(tmp_path / "b1")) as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
        client(server, "alerts/#") as (publisher, wait_for),
        connected(
            written(tmp_path, endpoint=endpoint, port=server, version=version, body=body)
        ) as process,
    ):
        publisher.publish("sensors/a1/temp", reading(1), 1, retain=True)  # before it subscribes
        event = sink.receive(timeout_s=60)
        assert (event.source, event.id, event.type) == ("plant", "1", "Temp")
        assert event.data == {"area": "a1", "value": 50.0, "serial": 1}
        ((topic, text),) = wait_for(lambda had: len(had) == 1)
        assert topic == "alerts/a1"
        assert text.startswith(b"50.0 at 20")
        publisher.publish("sensors/a1/temp", '{"serial": "x"}', 1)
        publisher.publish("sensors/a1/temp", "hot", 1)
        publisher.publish("sensors/a2/temp", reading(2, 20.0), 1)
        assert sink.receive(timeout_s=60).id == "2"
        process.terminate()
        assert process.communicate(timeout=60)[1].splitlines()[-2:] == [
            "source plant: 2 messages, 2 dead letters",
            "sink alerts: 1 messages, 0 dead letters",
        ]
    letters = [json.loads(line) for line in (tmp_path / "plant.dead").read_text().splitlines()]
    assert [(one["body"], one["topic"]) for one in letters] == [
        ('{"serial": "x"}', "sensors/a1/temp"),
        ("hot", "sensors/a1/temp"),
    ]
    assert "expected an object of JSON" in letters[1]["reason"]


def test_an_event_that_cannot_be_written_is_a_dead_letter_and_the_others_leave(tmp_path, server):
    """Neither does it come again first at each start."""
    temp = EventType.of("Temp", area="string", value="float", serial="int")
    with (
        broker("--data", str(tmp_path / "b1")) as (_, endpoint),
        client(server, "alerts/#") as (_, wait_for),
    ):
        file = written(tmp_path, endpoint=endpoint, port=server, version="5", body="cloudevents")
        with connected(file) as process:
            await_durables(endpoint, bool)
            with Publisher(endpoint, name="p", types=[temp]) as source:
                for area in ("a" * 70_000, "a\1", "a\uffff", "a\0", "a1"):
                    source.publish("Temp", area=area, value=50.0, serial=1)
            ((topic, _),) = wait_for(lambda had: len(had) == 1)
            assert topic == "alerts/a1"
            process.terminate()
            said = process.communicate(timeout=60)[1].splitlines()[-1]
            assert said == "sink alerts: 1 messages, 4 dead letters"
    letters = map(json.loads, (tmp_path / "alerts.dead").read_text().splitlines())
    refused, *others = sorted(letter["reason"] for letter in letters)
    assert "the other system's client refuses it" in refused
    assert others == [
        "topic: MQTT has no texts with U+0001",
        "topic: MQTT has no texts with U+FFFF",
        "topic: expected one without + and #, found 'alerts/a\\x00'",
    ]


def test_nothing_is_lost_when_the_connector_is_killed(tmp_path, server):
    count, kills = 600, 3
    numbers = set(range(count))
    with (
        broker("--data", str(tmp_path / "b1")) as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
        client(server, "alerts/#") as (publisher, wait_for),
    ):
        file = written(tmp_path, endpoint=endpoint, port=server, version="5", body="cloudevents")
        with connected(file):  # which makes its session at the server, and its subscription
            publisher.publish("sensors/a1/temp", reading(0), 1, retain=True)
            had = [sink.receive(timeout_s=60).data["serial"]]
            wait_for(lambda had: len(had) == 1)
        for part in range(kills):
            for n in range(1 + part * count // kills, (part + 1) * count // kills):
                publisher.publish("sensors/a1/temp", reading(n), 1)
            publisher.publish("sensors/a1/temp", reading((part + 1) * count // kills % count), 1)
            with connected(file):
                had += [sink.receive(timeout_s=60).data["serial"] for _ in range(50)]
        with connected(file):
            while len(had) < count:
                had.append(sink.receive(timeout_s=60).data["serial"])
            alerts = wait_for(lambda had: len({serial(body) for _, body in had}) == count)
    assert sorted(had) == sorted(numbers), "each event once: its id is that of its message"
    assert not (tmp_path / "plant.dead").exists(), "what comes again is no dead letter"
    assert {serial(body) for _, body in alerts} == numbers


def test_nothing_is_lost_when_the_broker_is_killed(tmp_path, server):
    count, kills = 300, 2
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    file = written(tmp_path, endpoint=endpoint, port=server, version="5", body="cloudevents")
    store = "--data", str(tmp_path / "b1")

    with client(server, "alerts/#") as (publisher, wait_for), ExitStack() as stack:
        process, _ = stack.enter_context(broker(*store, listen=endpoint))
        stack.enter_context(connected(file))
        publisher.publish("sensors/a1/temp", reading(0), 1, retain=True)
        wait_for(lambda had: len(had) == 1)
        for part in range(kills):
            for n in range(1 + part * count // kills, (part + 1) * count // kills + 1):
                publisher.publish("sensors/a1/temp", reading(n), 1)
            process.kill()
            process.wait()
            process, _ = stack.enter_context(broker(*store, listen=endpoint))
        wait_for(lambda had: len({serial(body) for _, body in had}) == count + 1)


def serial(body):
    return json.loads(body)["data"]["serial"]
