"""Peers that reach the port and speak ZMTP badly: none ends a broker, or keeps it from others.

REXMQ_STRANGERS sets how many conversations of the fuzz are tried and REXMQ_SEED where they begin.
"""

import contextlib
import os
import random
import signal
import time

import pytest
import zmtp

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

COUNT = int(os.environ.get("REXMQ_STRANGERS", "300"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PART = 50
"""Conversations between two looks at how the others are served."""
SERVED = EventType.of("Served", n="int")


def assert_serves_others(broker, name):
    assert broker.child.poll() is None, f"the broker has ended, {broker.child.poll()}"
    with (
        Publisher(broker.endpoint, name=name, types=[SERVED]) as publisher,
        Subscriber(broker.endpoint, "Served()") as subscriber,
    ):
        publisher.publish("Served", n=1)
        assert subscriber.receive(timeout_s=10).data["n"] == 1


def test_a_peer_with_the_name_that_libzmq_gives_next_unless_seeded_ends_no_broker(broker):
    """Its first random number without a seed, and those that follow."""
    contested = [
        zmtp.greeted(broker.endpoint, b"\0" + (0x6B8B4567 + k).to_bytes(4, "big"))
        for k in range(20)
    ]
    time.sleep(0.2)
    for number in range(20):
        assert_serves_others(broker, f"stranger {number}")
    for peer in contested:
        peer.close()


def test_a_name_that_is_taken_harms_none_but_its_second_bearer(broker):
    peers = [zmtp.greeted(broker.endpoint, b"same") for _ in range(5)]
    for peer in peers:
        peer.sendall(zmtp.frame(b"x", zmtp.MORE) + zmtp.frame(b""))
    time.sleep(0.2)
    assert_serves_others(broker, "other")
    for peer in peers:
        zmtp.reset(peer)
    assert_serves_others(broker, "another")


def test_pings_behind_a_flood_that_is_cut_off_end_no_broker(broker):
    """libzmq answers them when there is room in the pipe, but the connection has gone by then."""
    ping = zmtp.command(b"PING", b"\0\0")
    for _ in range(5):
        peer = zmtp.greeted(broker.endpoint)
        peer.settimeout(0.3)
        with contextlib.suppress(OSError):
            for _ in range(100):
                peer.sendall((zmtp.frame(b"x") * 5 + ping) * 2_000)
        zmtp.reset(peer)
    time.sleep(0.5)
    assert_serves_others(broker, "other")


@pytest.mark.parametrize(
    "old", [b"\x01\x00", zmtp.SIGNATURE + b"\x00", zmtp.SIGNATURE + b"\x01\x05"]
)
def test_zmtp_before_3_is_not_spoken(broker, old):
    with zmtp.connect(broker.endpoint) as peer:
        peer.settimeout(5)
        peer.sendall(old + zmtp.frame(b"") + zmtp.frame(b"garbage"))
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):
                pass
    assert_serves_others(broker, "other")


def resident_mib(broker):
    with open(f"/proc/{broker.child.pid}/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.parametrize("size", [2**40, 2**63 - 1, 2**64 - 1, 2**28])
def test_a_frame_that_is_said_to_be_huge_takes_no_memory(broker, size):
    before = resident_mib(broker)
    peers = [zmtp.greeted(broker.endpoint) for _ in range(20)]
    for peer in peers:
        peer.sendall(bytes([zmtp.LARGE]) + size.to_bytes(8, "big") + bytes(1000))
    time.sleep(0.3)
    assert resident_mib(broker) < before + 50
    assert_serves_others(broker, "other")
    for peer in peers:
        peer.close()


def test_a_broker_survives_whatever_strangers_say(broker):
    """Conversations of random peers, by seed; others are served all the while."""
    with RuleManager(broker.endpoint) as manager:
        for part in range(FIRST, FIRST + COUNT, PART):
            print(f"seeds {part} to {part + PART - 1}")
            for seed in range(part, part + PART):
                rng = random.Random(seed)
                zmtp.say(zmtp.connect(broker.endpoint), zmtp.conversation(rng), rng)
            assert_serves_others(broker, f"after {part}")
        assert manager.status()["uptime_s"] > 0


def test_a_broker_that_strangers_are_greeting_stops_as_always():
    """Peers of ZMTP 2.0, which libzmq is at a handshake with while the socket closes."""
    with BrokerProcess("--engine", "naive") as broker:
        peers = [zmtp.connect(broker.endpoint) for _ in range(100)]
        broker.child.send_signal(signal.SIGTERM)
        for peer in peers:
            with contextlib.suppress(OSError), peer:
                peer.sendall(zmtp.SIGNATURE + b"\x01\x05" + zmtp.frame(b""))
        assert broker.stop() == 0
