"""IPv6, and names of hosts: where a broker listens, and how clients and brokers find it."""

import asyncio
import re
import socket
import time
from pathlib import Path

import command
import pytest
from pages import get

from broker import AsyncRuleManager, Publisher, RuleManager, Subscriber, names
from broker.errors import BrokerUnreachable, ConfigurationError
from broker.process import BrokerProcess
from broker.transport import Transport
from matcher.model import EventType

TEMP = EventType.of("Temp", n="int")
NOBODY = "nobody.invalid"


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")


@needs_ipv6
def test_brokers_clients_and_pages_speak_ipv6(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = "--engine", "naive", "--strategy", "centralized", "--name", "b1"
    with log.open("w") as lines:
        first = BrokerProcess(*options, "--http", "[::1]:0", listen=["tcp://[::1]:*"], log=lines)
        options = "--engine", "naive", "--name", "b2", "--link", first.endpoint
        with first, BrokerProcess(*options, listen=["tcp://[::1]:*"]) as second:
            assert re.fullmatch(r"tcp://\[::1\]:\d+", first.endpoint)
            with (
                Publisher(first.endpoint, name="p", types=[TEMP]) as publisher,
                Subscriber(second.endpoint, "Temp") as subscriber,
            ):
                publisher.publish("Temp", n=1)
                assert subscriber.receive(timeout_s=10).data == {"n": 1}
            assert asyncio.run(name_of_broker(second.endpoint)) == "b2"
            done = command.run("status", "--broker", first.endpoint)
            assert done.stdout.startswith("broker b1: up")
            (url,) = re.findall(r"http://\[::1\]:\d+", log.read_text())
            assert get(f"{url}/healthz")[0] == 200


async def name_of_broker(endpoint: str) -> str:
    async with AsyncRuleManager(endpoint) as manager:
        name: str = (await manager.status())["broker"]
        return name


@needs_ipv6
@pytest.mark.parametrize("listen", ["tcp://[::]:*", "tcp://[::1]:*", "tcp://127.0.0.1:*"])
def test_a_name_with_addresses_of_both_kinds_finds_a_broker_at_either(
    listen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = frozenset({socket.AF_INET, socket.AF_INET6})
    if listen == "tcp://[::1]:*" and socket.AF_INET6 not in names.families("tcp://localhost:1"):
        pytest.skip("localhost has no address of IPv6 here")
    monkeypatch.setattr(names, "_lookups", {})
    monkeypatch.setattr(names, "_families", lambda name: both)
    with BrokerProcess("--engine", "naive", "--insecure", "true", listen=[listen]) as broker:
        port = broker.endpoint.rpartition(":")[2]
        with RuleManager(f"tcp://localhost:{port}", connect_timeout_s=10) as manager:
            assert manager.status()["broker"] == "broker"


# --- names without an address ---


def test_an_unknown_name_is_said_by_name_to_clients() -> None:
    endpoint = f"tcp://{NOBODY}:7461"
    with pytest.raises(BrokerUnreachable, match=f"within 0.5 s: no address is known for {NOBODY}"):
        RuleManager(endpoint, connect_timeout_s=0.5)


def test_so_it_is_to_who_would_listen_there() -> None:
    transport = Transport()
    said = f"cannot listen there: no address is known for {NOBODY}"
    with pytest.raises(ConfigurationError, match=said):
        transport.listen(f"tcp://{NOBODY}:7461")
    transport.close(0)


def test_a_broker_says_it_of_a_link_once_and_serves_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = "--engine", "naive", "--link", f"tcp://{NOBODY}:7461"
    with log.open("w") as lines, BrokerProcess(*options, log=lines) as b1:
        with RuleManager(b1.endpoint) as manager:
            assert manager.status()["broker"] == "broker"
        ends_at = time.monotonic() + 10
        while "cannot link" not in log.read_text() and time.monotonic() < ends_at:
            time.sleep(0.05)
    assert log.read_text().count(f'reason="no address is known for {NOBODY}"') == 1


def test_a_slow_name_server_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(name: str) -> frozenset[int]:
        time.sleep(3)
        return frozenset()

    monkeypatch.setattr(names, "_lookups", {})
    monkeypatch.setattr(names, "_families", slow)
    begun = time.monotonic()
    for _ in range(100):
        assert not names.uses_ipv6("tcp://slow.example:7461")
        assert names.problem("tcp://slow.example:7461") == ""
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("tcp://b1:7461", "b1"),
        ("tcp://[fe80::1%eth0]:7461", "fe80::1%eth0"),
        ("tcp://127.0.0.1:*", "127.0.0.1"),
        ("tcp://127.0.0.1:0;[::1]:7461", "::1"),
        ("ipc:///run/rexmq.sock", ""),
    ],
)
def test_hosts_of_endpoints(endpoint: str, host: str) -> None:
    assert names.host_of(endpoint) == host
