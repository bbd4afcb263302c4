"""Connectors to NATS, Redis, Kafka and AMQP, with real servers: nothing is lost, nothing twice."""

import json
import time
from contextlib import suppress

import pytest
from connectors import connected
from secured import broker
from servers import needs

from benchmarks import systems
from broker import Subscriber

FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
events = ["Temp(area: string, value: float)"]
dead_letter = "plant.dead"
{source}

[[sink]]
name = "alerts"
filters = ["Temp(value >= 0)"]
dead_letter = "alerts.dead"
headers = {{ origin = "{{area}}" }}
{sink}
"""
SYSTEMS = [
    pytest.param(system, id=name, marks=needs(system.program, system.package))
    if system.program
    else pytest.param(system, id=name)
    for name, system in systems.SYSTEMS.items()
    if name != "mqtt"
]


@pytest.fixture(params=SYSTEMS, scope="module")
def system(request, tmp_path_factory):
    made = request.param(tmp_path_factory.mktemp("server"))
    with made.server:
        made.prepare()
        yield made


def test_messages_become_events_once_and_events_messages(tmp_path, system):
    """Connectors are killed, and the server once if it can be, under one that goes on."""
    parts, count = 2, 60
    numbers = [float(n) for n in range((parts + system.can_restart) * count)]
    with broker("--data", str(tmp_path / "b1")) as (_, endpoint):
        file = written(tmp_path, system, endpoint)
        had = []
        with Subscriber(endpoint, "Temp()") as sink:
            for part in range(parts):
                own = numbers[part * count : (part + 1) * count]
                system.publish([("a1", reading(n)) for n in own])
                system.publish([("a1", b"hot")] if part == 1 else [])
                with connected(file):
                    had += [sink.receive(timeout_s=60) for _ in range(count // 2)]
            with connected(file) as process:
                if system.can_restart:
                    system.publish([("a1", reading(n)) for n in numbers[-count:-10]])
                    while len(had) < len(numbers) - 10:
                        had.append(sink.receive(timeout_s=60))
                    system.server.kill()
                    system.server.start()
                    publish_again(system, [("a1", reading(n)) for n in numbers[-10:]])
                while len(had) < len(numbers):
                    had.append(sink.receive(timeout_s=60))
                sent = all_of(system, len(numbers))
                wait_until((tmp_path / "plant.dead").exists)
                process.terminate()
                said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert sorted(event.data["value"] for event in had) == numbers, said
    assert {event.data["area"] for event in had} == {"a1"}
    assert {json.loads(body)["data"]["value"] for _, body, _ in sent} == {*numbers}
    assert {"origin", "id"} <= {name.replace("Nats-Msg-Id", "id") for name in sent[0][2]}
    (letter,) = (tmp_path / "plant.dead").read_text().splitlines()[:1]
    assert json.loads(letter)["body"] == "hot"


def written(folder, system, endpoint):
    file = folder / "plant.toml"
    own = {"source": system.source, "sink": system.sink}
    text = FILE.format(endpoint=endpoint, **own).replace("URL", system.url)
    file.write_text(text)
    return file


def reading(number):
    return json.dumps({"value": number}).encode()


def publish_again(system, messages):
    """Publish to a server that has just been started, and may refuse at first."""

    def is_published():
        with suppress(Exception):  # whatever a client raises
            system.publish(messages)
            return True

    wait_until(is_published)


def wait_until(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def all_of(system, count):
    """What has gone out, once it is of so many events."""
    sent = []

    def is_all():
        sent.extend(system.sent())
        return len({body for _, body, _ in sent}) >= count

    wait_until(is_all)
    return sent
