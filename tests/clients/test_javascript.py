"""The client in JavaScript, run by node against real brokers."""

import json
import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from secured import broker, keys, make_keys, secured

from broker import Publisher, RuleManager, Subscriber
from broker.security.keys import load_pair
from matcher.model import EventType

CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
TALK = Path(__file__).with_name("talk.mjs")
INSTALL_S = 120
ALL = EventType.of("All", n="int", x="float", ok="bool", s="string", maybe="float?")
KINDS = {"All": {"n": "int", "x": "float", "ok": "bool", "s": "string", "maybe": "float?"}}


@pytest.fixture(scope="module", autouse=True)
def _packages():
    """What the client needs of npm, beside it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node with npm: apt-get install nodejs npm")
    if (CLIENT / "node_modules" / "zeromq").exists():
        return
    words = "npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"
    done = subprocess.run(words, cwd=CLIENT, capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode:
        pytest.skip(f"packages of npm could not be installed: {done.stderr.splitlines()[-1:]}")


@contextmanager
def talking(*words, keys=None, **sharing):
    """A client of JavaScript, once it is ready."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    own = os.environ | ({"KEYS": json.dumps(keys)} if keys else {})
    own |= {"SHARING": json.dumps(sharing)} if sharing else {}
    with subprocess.Popen(["node", TALK, *map(str, words)], text=True, env=own, **pipes) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def told(process, events):
    """What a publisher says that is given these events."""
    lines = "".join(json.dumps(event) + "\n" for event in events)
    return process.communicate(lines, timeout=60)[0].split()


def test_events_of_javascript_are_those_of_python(tmp_path):
    data = [
        {"n": n * 2**40, "x": n / 4, "ok": n % 2 == 0, "s": "küche" * (n % 3), "maybe": None}
        for n in range(300)
    ]
    data[7]["maybe"] = 2.5
    events = [{"type": "All", "data": own, "id": f"e{n}"} for n, own in enumerate(data)]
    with broker() as (_, endpoint), Subscriber(endpoint, "All") as sink:
        with talking("publish", endpoint, "node", json.dumps(KINDS)) as process:
            late = {"type": "All", "data": data[0], "time": "2020-01-01T00:00:00Z"}
            wrong = {"type": "All", "data": {**data[0], "n": 1.5}}
            said = told(process, [*events, late, wrong])
        had = [sink.receive(timeout_s=60) for _ in data]
    assert [event.data for event in had] == data
    assert [event.id for event in had] == [event["id"] for event in events]
    assert {event.source for event in had} == {"node"}
    assert "late" in said
    assert said[-1] == "300"
    assert "expected" in said


def test_events_of_python_and_of_rules_come_to_javascript():
    rule = "rule pair: define Pair(n, s) from All(x > 1) as A and last All(ok = true) as B "
    rule += "within 1 h from A where n = A.n, s = B.s"
    declared = "event All(n: int, x: float, ok: bool, s: string, maybe: float?)\n"
    with broker() as (_, endpoint):
        with RuleManager(endpoint) as manager:
            manager.add(declared + rule)
        with (
            talking("subscribe", endpoint, 82, "", "All(n >= 20)", "Pair") as process,
            Publisher(endpoint, name="python", types=[ALL]) as publisher,
        ):
            for n in range(101):
                given = {"n": n, "x": float(n == 100) * 2, "ok": n == 3, "s": f"{n}", "maybe": None}
                publisher.publish("All", given)
            publisher.wait()
            publisher.close()
            lines = [json.loads(process.stdout.readline()) for _ in range(82)]
    primitive = [line for line in lines if line["type"] == "All"]
    (pair,) = [line for line in lines if line["type"] == "Pair"]
    assert [line["data"]["n"] for line in primitive] == [*range(20, 101)]
    assert primitive[0]["data"] == {"n": 20, "x": 0, "ok": False, "s": "20", "maybe": None}
    assert pair["data"] == {"n": 100, "s": "3"}
    assert [cause["source"] for cause in pair["cause"]] == ["python", "python"]
    assert len(pair["id"]) == 32


def test_clients_of_both_languages_share_a_group():
    sharing = {"group": "workers", "by": "s"}
    own = {"x": 0.5, "ok": True, "maybe": None}
    with (
        broker() as (_, endpoint),
        talking("subscribe", endpoint, 1, "", "All", **sharing) as one,
        talking("subscribe", endpoint, 1, "", "All", **sharing) as two,
        Subscriber(endpoint, "All", when_full="drop-oldest", **sharing) as three,
        Publisher(endpoint, name="python", types=[ALL]) as publisher,
    ):
        for n in range(30):
            publisher.publish("All", {"n": n, "s": f"{n}", **own}).wait()
        first = [json.loads(each.stdout.readline())["data"] for each in (one, two)]
        first.append(three.receive(timeout_s=60).data)
    assert len({data["s"] for data in first}) == 3


def test_a_client_with_keys_comes_in_as_its_user(tmp_path):
    make_keys(tmp_path)
    pair, server = (load_pair(tmp_path / f"{name}.key_secret") for name in ("alice", "b1"))
    own = {"publicKey": pair.public, "secretKey": pair.secret, "serverKey": server.public}
    event = {"type": "All", "data": {"n": 1, "x": 0.5, "ok": True, "s": "safe"}}
    with (
        broker(*secured(tmp_path, "b1")) as (_, endpoint),
        talking("subscribe", endpoint, 2, "", "All", keys=own) as sink,
        Publisher(endpoint, name="bobs", types=[ALL], **keys(tmp_path, "bob")) as publisher,
    ):
        with talking("publish", endpoint, "alices", json.dumps(KINDS), keys=own) as source:
            assert told(source, [event]) == ["1"]
        publisher.publish("All", {**event["data"], "maybe": None}).wait()
        had = [json.loads(sink.stdout.readline()) for _ in range(2)]
    assert [(one["source"], one["data"]["s"]) for one in had] == [
        ("alices", "safe"),
        ("bobs", "safe"),
    ]


def test_a_client_goes_on_when_its_broker_was_killed(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    store = "--data", str(tmp_path / "b1")
    events = [{"type": "All", "data": {"n": n, "x": 0.5, "ok": True, "s": ""}} for n in range(400)]
    endpoints = f"tcp://127.0.0.1:1,{endpoint}"  # nobody is at the first
    with (
        broker(*store, listen=endpoint) as (process, _),
        talking("subscribe", endpoints, 10_000, "sink", "All") as sink,
        talking("publish", endpoints, "node", json.dumps(KINDS)) as source,
    ):
        lines = [json.dumps(event) + "\n" for event in events]
        source.stdin.write("".join(lines[:200]))
        source.stdin.flush()
        had = {}
        while len(had) < 100:
            take(sink, had)
        process.kill()
        process.wait()
        with broker(*store, listen=endpoint):
            assert told(source, events[200:])[-1] == "400"
            while len(had) < 400:
                take(sink, had)
    assert sorted(had.values()) == [*range(400)]


def take(process, had):
    """The next event of a durable sink; by its number, for it may come again."""
    event = json.loads(process.stdout.readline())
    assert had.setdefault(event["number"], event["data"]["n"]) == event["data"]["n"]
