"""A broker seen over HTTP: real processes, real sockets, and Prometheus's own parser."""

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from forked import started
from lone import lone
from pages import get
from prometheus_client.parser import text_string_to_metric_families

from broker import Publisher, RuleManager, Subscriber
from broker.client.address import Address
from broker.configuration import load
from broker.errors import AddressTaken, BrokerUnreachable, ConfigurationError
from broker.monitoring import metrics
from broker.monitoring.looks import Looks
from broker.monitoring.monitor import Monitor, reachable
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")

EVENTS = 5
RULES = """
event Temp(area: string, value: float)
rule hot: define Hot(area: string) from Temp(value > 45) as t where area = t.area
rule dry: define Dry(area: string) from Rain(area = "x") as r where area = r.area
event Rain(area: string)
"""


@contextmanager
def watched(*flags, errors=subprocess.DEVNULL):
    """A broker with pages: its process, its endpoint, and the address of the pages."""
    words = ["broker", "--engine", "naive", "--name", "b1", *flags]
    listen = ["--listen", "tcp://127.0.0.1:*", "--http", "127.0.0.1:0"]
    with started(*words, *listen, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            endpoint = process.stdout.readline().split()[-1]
            url = process.stdout.readline().split()[-1].removesuffix("/metrics")
            yield process, endpoint, url
        finally:
            if process.poll() is None:
                process.kill()


def samples(text):
    """Values of a scrape by metric and labels, as the official parser reads it."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def busy():
    """A broker with two rules, a source of ``EVENTS`` hot events and a sink, and its pages."""
    with watched() as (process, endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add(RULES)
        with (
            Subscriber(endpoint, name="s1") as sink,
            Publisher(endpoint, name="p1") as source,
        ):
            sink.subscribe("Hot")
            source.advertise(TEMP)
            for number in range(EVENTS):
                source.publish("Temp", area="x", value=50.0, at=1_000_000 * (number + 1))
            source.promise(10_000_000)
            for _ in range(EVENTS):
                sink.receive(timeout_s=10)
            yield process, endpoint, url


def test_metrics_tell_of_clients_events_types_rules_and_sinks(busy):
    process, _, url = busy
    status, kind, text = get(f"{url}/metrics")
    assert status == 200
    assert kind.startswith("text/plain")
    found = samples(text)
    assert found[("rexmq_broker_info", ("broker", "b1"), ("strategy", "none"))] == 1
    assert found[("rexmq_events_received_total",)] == EVENTS
    assert found[("rexmq_events_detected_total",)] == EVENTS
    assert found[("rexmq_sink_events_delivered_total", ("sink", "s1"))] == EVENTS
    assert found[("rexmq_type_events_total", ("type", "Temp"))] == EVENTS
    assert found[("rexmq_rule_watermark_timestamp_seconds", ("rule", "hot"))] == 10
    assert found[("rexmq_rule_waiting", ("rule", "dry"))] == 1
    assert found[("rexmq_rules", ("state", "waiting"))] == 1
    assert found[("rexmq_sources", ("standing", "live"))] == 1
    with open(f"/proc/{process.pid}/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert found[("process_resident_memory_bytes",)] == pytest.approx(resident, rel=0.2)


def test_rules_have_memory_and_cost_and_are_stalled_by_somebody():
    held = [{"source": None, "broker": "b2", "standing": "linked"}]
    facts = {"mark": None, "state": "stalled", "held_by": held}
    hot = {**facts, "name": "hot", "memory": 4096, "cost": 7}
    dry = {**facts, "name": "dry", "state": "running", "memory": None, "cost": None}
    status = {**lone().status(1.0), "rules": [hot, dry]}
    found = {family.name: family.samples for family in metrics.families(status)}
    for name, labels, value in (
        ("rexmq_rule_memory_bytes", {"rule": "hot"}, 4096),
        ("rexmq_rule_cost", {"rule": "hot"}, 7),
        ("rexmq_rule_stalled_by", {"rule": "hot", "holder": "b2"}, 1),
    ):
        assert [(one.labels, one.value) for one in found[name]] == [(labels, value)]


def test_openmetrics_where_it_is_asked_for(busy):
    _, kind, text = get(f"{busy[2]}/metrics", Accept="application/openmetrics-text")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_the_status_is_that_of_the_command(busy):
    _, endpoint, url = busy
    shown = json.loads(get(f"{url}/status.json")[2])
    with RuleManager(endpoint) as manager:
        assert shown["rules"] == manager.status()["rules"]


def test_a_broker_alone_is_healthy_and_ready(busy):
    assert get(f"{busy[2]}/healthz")[::2] == (200, "ok\n")
    assert get(f"{busy[2]}/readyz")[::2] == (200, "ok\n")


@pytest.mark.parametrize(("path", "status"), [("/page/x.js", 404), ("/metrics/x", 404)])
def test_no_other_pages(busy, path, status):
    assert get(f"{busy[2]}{path}")[0] == status


def test_nothing_can_be_posted(busy):
    request = urllib.request.Request(f"{busy[2]}/metrics", data=b"x")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=20)


def test_many_scrapes_within_a_second_are_one_look(busy):
    _, endpoint, url = busy
    get(f"{url}/healthz")
    with RuleManager(endpoint) as manager:
        before = len(manager.status()["clients"])
        shown = {json.loads(get(f"{url}/status.json")[2])["uptime_s"] for _ in range(50)}
        assert len(shown) <= 3  # looks; fifty requests take less than two seconds
        assert len(manager.status()["clients"]) == before


@pytest.mark.parametrize("garbage", [b"\0" * 4000, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"])
def test_garbage_costs_its_sender_the_connection(busy, garbage):
    host, port = busy[2].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as stranger:
        stranger.sendall(garbage)
        while stranger.recv(4000):  # at most a word of what is wrong, and the end
            pass
    assert get(f"{busy[2]}/healthz")[0] == 200


def test_a_broker_that_is_stuck_is_not_healthy():
    with watched() as (process, _, url):
        assert get(f"{url}/healthz")[0] == 200
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.1)  # a look is shown for a second
        status, _, text = get(f"{url}/healthz")
        process.send_signal(signal.SIGCONT)
        assert status == 503
        assert "3 s" in text
        time.sleep(0.1)
        assert get(f"{url}/healthz")[0] == 200


def test_a_broker_that_finds_no_root_is_not_ready():
    alone = ("--link", "tcp://127.0.0.1:9", "--strategy", "centralized")
    with watched(*alone) as (_, _, url):
        deadline = time.monotonic() + 20
        while get(f"{url}/readyz")[0] != 200:  # alone it is the root, once it has looked
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_pages_end_with_a_broker_that_is_killed():
    with watched() as (process, _, url):
        get(f"{url}/healthz")
        process.kill()
        process.wait()
        deadline = time.monotonic() + 20
        while is_reachable(url):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_pages_come_again_when_their_process_is_killed():
    with watched(errors=subprocess.PIPE) as (process, _, url):
        get(f"{url}/healthz")
        for server in children(process.pid):
            os.kill(server, signal.SIGKILL)
        time.sleep(0.5)
        assert get(f"{url}/healthz")[0] == 200
        process.terminate()
        errors = process.communicate(timeout=60)[1]
        assert "the process that serves http has ended" in errors
        assert process.returncode == 0


def test_an_address_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AddressTaken, match=f"http: 127.0.0.1:{port}: Address already in use"):
            Monitor(("127.0.0.1", port))


def test_an_address_that_another_broker_has_yet_to_serve():
    first = Monitor(("127.0.0.1", 0))
    port = int(first.url.rpartition(":")[2])
    try:
        with pytest.raises(AddressTaken, match="Address already in use"):
            Monitor(("127.0.0.1", port))
    finally:
        first.end()


def test_a_process_that_cannot_be_started_is_tried_again(monkeypatch):
    tried = threading.Semaphore(0)

    def none_left(*command, **options):
        tried.release()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("broker.monitoring.monitor.subprocess.Popen", none_left)
    monkeypatch.setattr("broker.monitoring.monitor.RESTART_S", 0.01)
    monitor = Monitor(("127.0.0.1", 0))
    monitor.begin("tcp://127.0.0.1:9")
    try:
        assert all(tried.acquire(timeout=20) for _ in range(3))
    finally:
        monitor.end()


def test_looks_that_fail_are_shared(monkeypatch):
    """Six probes of a stuck broker are answered after 3 s, not the last one after 18 s."""
    asked = []

    async def ask(looks):
        asked.append(1)
        await asyncio.sleep(0.01)
        raise BrokerUnreachable("stuck")

    async def look():
        looks = Looks(Address("tcp://127.0.0.1:9"))
        return await asyncio.gather(*(looks.status() for _ in range(6)), return_exceptions=True)

    monkeypatch.setattr(Looks, "_ask", ask)
    assert [str(one) for one in asyncio.run(look())] == ["stuck"] * 6
    assert len(asked) == 1


def test_connections_that_say_nothing_end(busy):
    """A hundred of them keep others out, but not for good; nor does one that has begun to ask."""
    host, port = busy[2].removeprefix("http://").split(":")
    idle = [socket.create_connection((host, int(port)), timeout=20) for _ in range(110)]
    try:
        for one in idle[:50]:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        deadline = time.monotonic() + 30
        while get(f"{busy[2]}/healthz")[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert all(not one.recv(1) for one in idle[50:])
    finally:
        for one in idle:
            one.close()


def test_requests_that_are_none_do_not_fill_the_log():
    with watched(errors=subprocess.PIPE) as (process, _, url):
        host, port = url.removeprefix("http://").split(":")
        for _ in range(100):
            with socket.create_connection((host, int(port)), timeout=20) as stranger:
                stranger.sendall(b"GET\r\n\r\n")
                while stranger.recv(4000):
                    pass
        process.terminate()
        lines = process.communicate(timeout=60)[1].splitlines()
    assert all(line.startswith("time=") for line in lines)
    assert any("part=http" in line for line in lines)
    assert len(lines) < 100


def test_an_address_of_another_machine():
    with pytest.raises(ConfigurationError, match=r"http: 192\.0\.2\.1:9464: Cannot assign"):
        Monitor(("192.0.2.1", 9464))


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr("broker.monitoring.monitor.NEEDED", ("starlette", "absent_package"))
    with pytest.raises(ConfigurationError, match=r"absent_package not installed; pip install"):
        Monitor(("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:80", ("localhost", 80)),
        ("none", None),
    ],
)
def test_addresses(text, address):
    configuration = load(None, {}, {"http": text})
    assert configuration.http == address
    assert f'http = "{text}"' in configuration.toml()


@pytest.mark.parametrize("text", ["9464", "127.0.0.1:", "127.0.0.1:70000", ":9464"])
def test_an_address_that_is_none(text):
    message = "--http: expected a host and a port such as 127.0.0.1:9464, or none, found"
    with pytest.raises(ConfigurationError, match=message):
        load(None, {}, {"http": text})


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        ("tcp://0.0.0.0:7461", "tcp://127.0.0.1:7461"),
        ("tcp://[::]:7461", "tcp://[::1]:7461"),
        ("ipc:///run/b1", "ipc:///run/b1"),
    ],
)
def test_endpoints_as_they_are_reached(endpoint, found):
    assert reachable(endpoint) == found


def test_series_are_bounded(busy):
    _, endpoint, _ = busy
    with RuleManager(endpoint) as manager:
        status = dict(manager.status())
    types = metrics.SERIES_MAX + 7
    status["types"] = [{**status["types"][0], "name": f"T{number}"} for number in range(types)]
    found = {family.name: family.samples for family in metrics.families(status)}
    assert len(found["rexmq_type_events"]) == metrics.SERIES_MAX
    omitted = {sample.labels["kind"]: sample.value for sample in found["rexmq_series_omitted"]}
    assert omitted == {"user": 0, "type": 7, "rule": 0, "sink": 0, "neighbour": 0}


def is_reachable(url):
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        found = file.read().split()
    threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            found += file.read().split()
    return {int(child) for child in found}


def test_who_hangs_up_in_the_midst_of_a_body_leaves_no_traceback(tmp_path):
    """Anybody can; each would write forty lines."""
    words = [
        "broker",
        "--engine",
        "naive",
        "--listen",
        "tcp://127.0.0.1:*",
        "--http",
        "127.0.0.1:0",
    ]
    errors = tmp_path / "errors"
    with (
        errors.open("w") as log,
        started(*words, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        process.stdout.readline()
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        host, port = url.removeprefix("http://").split(":")
        for path, kind in (
            ("/api/check", "application/json"),
            ("/events", "application/cloudevents+json"),
        ):
            head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n"
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(f'{head}Content-Length: 1000\r\n\r\n{{"a":'.encode())
                time.sleep(0.1)
        assert get(f"{url}/healthz")[0] == 200
        time.sleep(0.2)
        process.terminate()
        process.wait(20)
    assert "Traceback" not in errors.read_text()
