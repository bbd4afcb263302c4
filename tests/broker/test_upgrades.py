"""Peers of another version of the protocol: refused by name, with both versions."""

from pathlib import Path

import pytest
import zmq

from broker.process import BrokerProcess
from routing import wire
from routing.messages import VERSION, Code, Goodbye, Hello, LinkHello, Message

OLD_OR_NEW = (0, 1, 255)
SAID = "protocol version {}, but this side speaks version 2"


@pytest.mark.parametrize(
    "message", [Hello(VERSION, "t", 1.0), LinkHello(VERSION, "b2", 1, 0, 0, 0, 1.0)]
)
def test_another_version_is_refused_with_both(tmp_path: Path, message: Message) -> None:
    log = tmp_path / "log"
    with (
        log.open("w") as opened,
        BrokerProcess("--engine", "naive", "--strategy", "centralized", log=opened) as broker,
        zmq.Context() as context,
    ):
        for version in OLD_OR_NEW:
            with context.socket(zmq.DEALER) as peer:
                peer.set(zmq.LINGER, 0)
                peer.set(zmq.RCVTIMEO, 10_000)
                peer.connect(broker.endpoint)
                (frame,) = wire.encode(message)
                peer.send(frame[:2] + bytes([version]) + frame[3:])
                answer = wire.decode(peer.recv_multipart())
                assert answer == Goodbye(SAID.format(version), Code.VERSION)
    lines = log.read_text()
    assert all(SAID.format(version) in lines for version in OLD_OR_NEW)
