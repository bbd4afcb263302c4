"""What a connector to MQTT may be told, with a real server: quality of service, passwords and TLS,
shared subscriptions, CloudEvents in user properties, retained messages."""

import json
import shutil
import ssl
import subprocess
from contextlib import suppress

import pytest
from connectors import connected
from mosquitto import client, mosquitto, needs_mosquitto
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from secured import broker

from broker import Subscriber

pytestmark = needs_mosquitto
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="there is no openssl: apt-get install it"
)
SOURCE = """
[[source]]
name = "{name}"
topic = "{topic}"
events = ["Temp(area: string, value: float)"]
dead_letter = "{name}.dead"
mqtt.url = "{url}"
"""
SINK = """
[[sink]]
name = "{name}"
filters = ["Temp()"]
topic = "{topic}"
dead_letter = "{name}.dead"
mqtt.url = "{url}"
"""


@pytest.fixture
def server(tmp_path):
    with mosquitto(tmp_path) as port:
        yield port


def written(folder, endpoint, *tables):
    file = folder / "plant.toml"
    file.write_text(f'[broker]\nendpoint = "{endpoint}"\n' + "\n".join(tables))
    return file


def of(form, url, name="plant", topic="sensors/{area}", **said):
    lines = [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    return form.format(name=name, topic=topic, url=url) + "\n".join(lines).replace("__", ".") + "\n"


@pytest.mark.parametrize("qos", [0, 2])
def test_messages_of_every_quality_go_in_and_out(tmp_path, server, qos):
    url = f"mqtt://127.0.0.1:{server}"
    with (
        broker("--data", str(tmp_path / "b1")) as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
        client(server, "out/#", 2) as (publisher, wait_for),
    ):
        own = of(SINK, url, "alerts", "out/{area}", body="{value}", mqtt__qos=qos)
        with connected(written(tmp_path, endpoint, of(SOURCE, url, mqtt__qos=qos), own)):
            publisher.publish("sensors/a0", '{"value": 0.5}', 1, retain=True)
            sink.receive(timeout_s=60)  # it is subscribed
            for number in range(1, 50):
                publisher.publish("sensors/a1", json.dumps({"value": number + 0.5}), qos)
            had = sorted(sink.receive(timeout_s=60).data["value"] for _ in range(49))
            assert had == [number + 0.5 for number in range(1, 50)]
            wait_for(lambda sent: {float(body) for _, body in sent} >= {*had})


def test_a_source_reads_on_when_there_is_room_again(tmp_path, server):
    url, numbers = f"mqtt://127.0.0.1:{server}", [*range(300)]
    own = of(SOURCE, url, window=2, mqtt__qos=0, mqtt__version="3.1.1")
    with (
        broker() as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
        client(server, "none") as (publisher, _),
        connected(written(tmp_path, endpoint, own)),
    ):
        publisher.publish("sensors/a0", '{"value": -1}', 1, retain=True)
        sink.receive(timeout_s=60)  # it is subscribed
        for number in numbers:
            publisher.publish("sensors/a1", json.dumps({"value": number}), 0)
        assert [sink.receive(timeout_s=60).data["value"] for _ in numbers] == numbers


def test_two_sources_share_a_subscription(tmp_path, server):
    url = f"mqtt://127.0.0.1:{server}"
    tables = [of(SOURCE, url, name, mqtt__share="pair") for name in ("first", "second")]
    seen, numbers = set(), [*map(float, range(1, 41))]
    with (
        broker() as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
        client(server) as (publisher, _),
        connected(written(tmp_path, endpoint, *tables)),
    ):
        while seen != {"first", "second"}:  # until both are subscribed
            publisher.publish("sensors/a0", '{"value": 0}', 1)
            with suppress(TimeoutError):
                seen.add(sink.receive(timeout_s=0.1).source)
        for number in numbers:
            publisher.publish("sensors/a1", json.dumps({"value": number}), 1)
        had = []
        while len(had) < len(numbers):
            event = sink.receive(timeout_s=60)
            had += [event] if event.data["value"] else []
    assert sorted(event.data["value"] for event in had) == numbers
    assert {event.source for event in had} == {"first", "second"}


def test_cloud_events_are_in_user_properties_and_a_message_is_retained(tmp_path, server):
    url = f"mqtt://127.0.0.1:{server}"
    own = {"body": "cloudevents-binary", "mqtt__retain": True}
    with (
        broker("--data", str(tmp_path / "b1")) as (_, endpoint),
        client(server, version=5) as (publisher, _),
        connected(
            written(
                tmp_path,
                endpoint,
                of(SOURCE, url, body="cloudevents"),
                of(SINK, url, "alerts", "out/{area}", **own),
            )
        ),
    ):
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [
            ("specversion", "1.0"),
            ("type", "Temp"),
            ("source", "fridge/7"),
            ("id", "1 %41"),
        ]
        properties.ContentType = "application/json"
        publisher.publish("sensors/a1", '{"value": 1.5}', 1, retain=True, properties=properties)
        with client(server, "out/#", version=5) as (_, wait_for):
            wait_for(lambda had: had)
        with client(server, "out/#", version=5) as (late, wait_for):
            wait_for(lambda had: had)
            (message,) = late.messages
    assert message.retain
    headers = dict(message.properties.UserProperty)
    assert (headers["type"], headers["source"], headers["id"]) == (
        "Temp",
        "plant",
        "fridge/7#1 %41",
    )
    assert message.properties.ContentType == "application/json"
    assert json.loads(message.payload) == {"area": "a1", "value": 1.5}


@needs_openssl
def test_passwords_and_certificates(tmp_path):
    certificate(tmp_path)
    subprocess.run(
        ["mosquitto_passwd", "-b", "-c", tmp_path / "users", "plant", "secret"], check=True
    )
    lines = [
        f"password_file {tmp_path / 'users'}",
        f"certfile {tmp_path / 'server.pem'}",
        f"keyfile {tmp_path / 'server.key'}",
        "allow_anonymous false",
    ]
    (tmp_path / "password").write_text("secret\n")
    access = {"mqtt__username": "plant", "mqtt__password_file": "password"}
    trust = {"mqtt__ca_file": "server.pem"}
    with (
        mosquitto(tmp_path, *lines) as port,
        broker() as (_, endpoint),
        Subscriber(endpoint, "Temp()") as sink,
    ):
        url = f"mqtts://localhost:{port}"
        for said, reason in (
            (trust, "Not authorized"),
            (access, "certificate is not verified by the system"),
            (access | trust, None),
        ):
            with connected(written(tmp_path, endpoint, of(SOURCE, url, **said))) as process:
                if reason is not None:
                    assert reason in process.communicate(timeout=60)[1]
                    continue
                publish(port, tmp_path / "server.pem")
                assert sink.receive(timeout_s=60).data == {"area": "a1", "value": 1.5}


def certificate(folder):
    """A certificate for localhost, by its own key."""
    words = "openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048"
    names = "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"
    files = "-keyout", folder / "server.key", "-out", folder / "server.pem"
    subprocess.run([*words, *names, *files], check=True, capture_output=True)


def publish(port, trusted):
    """A message of somebody with the password, over TLS; it is retained."""
    import paho.mqtt.publish

    paho.mqtt.publish.single(
        "sensors/a1",
        '{"value": 1.5}',
        1,
        retain=True,
        hostname="localhost",
        port=port,
        auth={"username": "plant", "password": "secret"},
        tls={"ca_certs": str(trusted), "tls_version": ssl.PROTOCOL_TLS_CLIENT},
    )
