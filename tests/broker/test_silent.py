"""Connections that say nothing, under a key that is let in, are hung up on; others are not."""

import os
import time

import pytest
import zmq
from secured import broker, keys, make_keys, secured

from broker import RuleManager
from broker.security.keys import load_pair
from broker.silent import LOOKS_MAX
from routing import wire
from routing.messages import Goodbye, Heartbeat

SILENT = 8


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


@pytest.fixture
def dealers(tmp_path):
    """Makes a connection under the keys of alice that says nothing."""
    context = zmq.Context()
    make_keys(tmp_path)

    def connect(endpoint):
        pair, server = (load_pair(tmp_path / f"{one}.key_secret") for one in ("alice", "b1"))
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.set(zmq.RECONNECT_IVL, -1)
        socket.curve_publickey = pair.public.encode()
        socket.curve_secretkey = pair.secret.encode()
        socket.curve_serverkey = server.public.encode()
        socket.connect(endpoint)
        return socket

    yield connect
    context.destroy(linger=0)


def test_who_says_nothing_goes_and_who_has_greeted_stays(dealers, tmp_path):
    with (
        broker(*secured(tmp_path, "b1")) as (process, endpoint),
        RuleManager(endpoint, **keys(tmp_path, "bob")) as manager,
    ):
        manager.status()
        before = descriptors(process)
        silent = [dealers(endpoint) for _ in range(SILENT)]
        until = time.monotonic() + 30
        while descriptors(process) < before + len(silent):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert len(manager.status()["clients"]) == 1
        until += LOOKS_MAX + 30
        while descriptors(process) > before:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert manager.status()["totals"]


def test_who_was_sent_away_and_does_not_hang_up_is_hung_up_on(dealers, tmp_path):
    with (
        broker(*secured(tmp_path, "b1")) as (process, endpoint),
        RuleManager(endpoint, **keys(tmp_path, "bob")) as manager,
    ):
        manager.status()
        before = descriptors(process)
        stay = [dealers(endpoint) for _ in range(SILENT)]
        for socket in stay:
            socket.send_multipart(wire.encode(Heartbeat()))  # before any Hello
        for socket in stay:
            assert socket.poll(30_000)
            assert isinstance(wire.decode(socket.recv_multipart()), Goodbye)
        assert descriptors(process) >= before + len(stay)
        until = time.monotonic() + LOOKS_MAX + 30
        while descriptors(process) > before:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert manager.status()["totals"]
