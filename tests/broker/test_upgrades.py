"""Peers of another version of the protocol: refused by name, with both versions."""

from pathlib import Path

import pytest
import zmq

from broker.process import BrokerProcess
from routing import wire
from routing.messages import LINK_VERSION, VERSION, Code, Goodbye, Hello, LinkHello

SAID = "protocol version {}, but this side speaks version {}"


@pytest.mark.parametrize(
    "message", [Hello(VERSION, "t", 1.0), LinkHello(LINK_VERSION, "b2", 1, 0, 0, 0, 1.0)]
)
def test_another_version_is_refused_with_both(tmp_path: Path, message: Hello | LinkHello) -> None:
    log = tmp_path / "log"
    with (
        log.open("w") as opened,
        BrokerProcess("--engine", "naive", "--strategy", "centralized", log=opened) as broker,
        zmq.Context() as context,
    ):
        spoken = message.version
        others = 0, spoken - 1, spoken + 1, 255
        for version in others:
            with context.socket(zmq.DEALER) as peer:
                peer.set(zmq.LINGER, 0)
                peer.set(zmq.RCVTIMEO, 10_000)
                peer.connect(broker.endpoint)
                (frame,) = wire.encode(message)
                peer.send(frame[:2] + bytes([version]) + frame[3:])
                answer = wire.decode(peer.recv_multipart())
                assert answer == Goodbye(SAID.format(version, spoken), Code.VERSION)
    lines = log.read_text()
    assert all(SAID.format(version, spoken) in lines for version in others)
