"""What others post over HTTP, answered once the broker has it."""

import asyncio
import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from connectors import connected
from secured import broker

from broker import Subscriber
from broker.connect.http import Settings, Source
from broker.connect.systems import SystemLost
from broker.connect.templates import Template

ALERTS = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "prometheus"
topic = "alerts/{{site}}"
events = ["Alert(site: string, name: string, status: string, severity: string?)"]
columns = {{ name = "labels.alertname", severity = "labels.severity" }}
time_column = "startsAt"
dead_letter = "alerts.dead"
http = {{ listen = "127.0.0.1:{port}", items = "alerts", password_env = "TOKEN" }}
"""
FIRING = {
    "version": "4",
    "status": "firing",
    "receiver": "rexmq",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "DiskFull", "severity": "page"},
            "annotations": {"summary": "no room"},
            "startsAt": "2026-11-30T06:00:00Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "fingerprint": "c2a1",
        },
        {"status": "resolved", "labels": {"alertname": "Slow"}, "startsAt": "2026-11-30T06:00:01Z"},
        {"status": "firing", "labels": {}, "startsAt": "2026-11-30T06:00:02Z"},
    ],
}


def post(port, path, body, timeout_s=30, **headers):
    """The status of the answer, and its text."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"http://127.0.0.1:{port}/{path}"
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    request = urllib.request.Request(url, content, {"Content-Type": "application/json", **named})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def free_port():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def await_listening(port):
    until = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_alerts_of_prometheus(tmp_path, monkeypatch):
    """Each is an event; one without a name is a dead letter, and the request is answered."""
    monkeypatch.setenv("TOKEN", "t" * 32)
    allowed = {"Authorization": f"Bearer {'t' * 32}"}
    file = tmp_path / "alerts.toml"
    with broker("--name", "b1", "--data", str(tmp_path / "data")) as (_, endpoint):
        port = free_port()
        file.write_text(ALERTS.format(endpoint=endpoint, port=port))
        with connected(file) as process, Subscriber(endpoint, "Alert()") as some:
            await_listening(port)
            assert post(port, "alerts/rome", FIRING, **allowed) == (204, "")
            found = [some.receive(timeout_s=20).data for _ in range(2)]
            assert found == [
                {"site": "rome", "name": "DiskFull", "status": "firing", "severity": "page"},
                {"site": "rome", "name": "Slow", "status": "resolved", "severity": None},
            ]
            (letter,) = (tmp_path / "alerts.dead").read_text().splitlines()
            assert "labels.alertname" in letter or "name" in json.loads(letter)["reason"]
            assert post(port, "alerts/rome", FIRING)[0] == 401
            assert post(port, "alerts/rome", FIRING, Authorization="Bearer x")[0] == 401
            assert post(port, "alerts", FIRING, **allowed)[0] == 404
            assert post(port, "alerts/rome", b"[" * 5_000, **allowed)[0] == 400
            deep = b'{"alerts": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
            assert post(port, "alerts/rome", deep, **allowed)[0] == 400
            assert post(port, "alerts/rome", FIRING, Origin="http://a.b", **allowed)[0] == 403
            assert post(port, "alerts/rome", {"alerts": 5}, **allowed)[0] == 400
            assert post(port, "alerts/rome", {"alerts": [{}] * 1_001}, **allowed)[0] == 413
            assert post(port, "alerts/rome", b" " * (2**20 + 1), **allowed)[0] == 413
            assert post(port, "alerts/rome", {"alerts": []}, **allowed) == (204, "")
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_a_request_waits_for_a_broker_that_was_killed(tmp_path):
    """What was answered is there; an id that is posted again makes one event."""
    file = tmp_path / "temps.toml"
    data = "--data", str(tmp_path / "data")
    port = free_port()
    with broker("--name", "b1", *data) as (process, endpoint):
        file.write_text(
            f'[broker]\nendpoint = "{endpoint}"\n[[source]]\nname = "plant"\ntopic = "temps"\n'
            'events = ["Temp(value: float)"]\ndead_letter = "plant.dead"\n'
            f'http = {{ listen = "127.0.0.1:{port}" }}\n'
        )
        with connected(file):
            await_listening(port)
            assert post(port, "temps", {"value": 1.0}, Idempotency_Key="one") == (204, "")
            process.kill()
            process.wait()
            answers = []
            asked = threading.Thread(
                target=lambda: answers.append(post(port, "temps", {"value": 2.0}, 60))
            )
            asked.start()
            with broker("--name", "b1", *data, listen=endpoint):
                asked.join(60)
                assert answers == [(204, "")]
                assert post(port, "temps", {"value": 1.0}, Idempotency_Key="one") == (204, "")
                assert post(port, "temps", {"value": 3.0}) == (204, "")
                with Subscriber(endpoint, "Temp()", start="earliest") as past:
                    values = [past.receive(timeout_s=20).data["value"] for _ in range(3)]
                assert sorted(values) == [1.0, 2.0, 3.0]


def test_more_than_the_window_is_refused_until_the_broker_has_what_waits():
    async def run():
        source = Source("s", Settings(listen="127.0.0.1:0"), None, Template("t"), 2)
        await source.open()
        posts = [asyncio.create_task(asyncio.to_thread(post, source.port, "t", {}))]
        received = list(await source.receive())
        posts.append(asyncio.create_task(asyncio.to_thread(post, source.port, "t", {})))
        received += await source.receive()
        assert await asyncio.to_thread(post, source.port, "t", {}) == (
            429,
            "too many messages wait for the broker\n",
        )
        await source.acknowledge(received[:1])
        assert await posts[0] == (204, "")
        await source.acknowledge(received[1:])
        assert await posts[1] == (204, "")
        await source.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"listen": "localhost:1"}, "expected an address such as 127.0.0.1:9470"),
        ({"listen": "127.0.0.1:65536"}, "expected an address such as 127.0.0.1:9470"),
        ({"listen": "300.0.0.1:1"}, "expected an address such as 127.0.0.1:9470"),
        ({"listen": "0.0.0.0:9470"}, "expected a password, since other machines may reach it"),
        ({"ca_file": "x"}, "ca_file: expected with cert_file"),
    ],
)
def test_what_it_does_not_listen_on(tmp_path, said, reason):
    with pytest.raises(ValueError, match=reason):
        Source("s", Settings(**said), tmp_path, Template("t"), 2)


def test_an_address_that_is_taken():
    async def run():
        first = Source("s", Settings(listen="127.0.0.1:0"), None, Template("t"), 2)
        await first.open()
        taken = Settings(listen=f"127.0.0.1:{first.port}")
        with pytest.raises(SystemLost, match="in use"):
            await Source("s", taken, None, Template("t"), 2).open()
        await first.close()

    asyncio.run(run())
