"""Frames in, frames out, over real sockets."""

import socket
import subprocess
import sys

import pytest
import zmq

from broker.errors import AddressTaken, ConfigurationError
from broker.frames import FRAMES_MAX
from broker.links import LinkedTransport, peer_of
from broker.transport import DROPPED_MAX, STRAY_MAX, Transport
from routing import wire
from routing.messages import Goodbye


@pytest.fixture
def transport():
    transport = Transport()
    yield transport
    transport.close(0)


@pytest.fixture
def dealer():
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    yield socket
    socket.close(linger=0)
    context.term()


def receive(transport):
    while True:
        transport.wait(5)
        message = transport.receive()
        if message is not None:
            return message


def test_carries_frames_both_ways_on_every_endpoint(transport, dealer, tmp_path):
    endpoints = [transport.listen("tcp://127.0.0.1:*"), transport.listen(f"ipc://{tmp_path}/b")]
    assert endpoints[0] != "tcp://127.0.0.1:*"
    for endpoint in endpoints:
        dealer.connect(endpoint)
        dealer.send_multipart([b"one", b"", b"three"])
        peer, frames = receive(transport)
        assert frames == [b"one", b"", b"three"]
        assert transport.send(peer, [b"four", memoryview(b"five")])
        assert dealer.recv_multipart() == [b"four", b"five"]
        dealer.disconnect(endpoint)


@pytest.mark.parametrize(
    "identity",
    [
        b"durable/billing",  # as sinks of several clients are called
        b"group\0alice\0g\0Temp()",
        b"arriving/billing",
        b"\0elsewhere",  # as sources at other brokers are
        peer_of("tcp://127.0.0.1:1"),  # as links are
        b"a",
        b"five5",
    ],
)
@pytest.mark.parametrize("kind", ["tcp", "ipc"])
def test_a_peer_that_chose_its_identity_is_refused(tmp_path, kind, identity):
    transport = LinkedTransport(["tcp://127.0.0.1:1"])
    at = "tcp://127.0.0.1:*" if kind == "tcp" else f"ipc://{tmp_path}/b"
    with zmq.Context() as context, context.socket(zmq.DEALER) as chosen:
        chosen.linger = 0
        chosen.setsockopt(zmq.IDENTITY, identity)
        chosen.connect(transport.listen(at))
        for _ in range(2):
            chosen.send(b"one")
            transport.wait(5)
            assert transport.receive() is None
            assert chosen.poll(5_000)
            said = wire.decode(chosen.recv_multipart())
            assert isinstance(said, Goodbye)
            assert "chosen a ZeroMQ identity" in said.reason
        assert not transport.take_ended()
    transport.close(0)


def test_a_closed_peer_is_read_no_more(transport, dealer, tmp_path):
    dealer.connect(transport.listen(f"ipc://{tmp_path}/b"))
    dealer.send(b"one")
    peer, _ = receive(transport)
    transport.close_peer(peer)
    dealer.send(b"two")
    transport.wait(0.1)
    assert transport.receive() is None


@pytest.mark.parametrize(("count", "length"), [(STRAY_MAX, 1), (2, 50_000)])
def test_a_closed_peer_that_goes_on_is_hung_up_on(transport, dealer, count, length):
    """So is one whose messages are too long to be any, at once."""
    ended = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    dealer.reconnect_ivl = -1
    dealer.sndhwm = 0
    dealer.connect(transport.listen("tcp://127.0.0.1:*"))
    dealer.send_multipart([b"one"] * length)
    peer, frames = receive(transport)
    assert len(frames) == min(length, FRAMES_MAX - 1)
    transport.close_peer(peer)
    for _ in range(count):
        assert not ended.poll(0)
        dealer.send_multipart([b"more"] * length)
    for _ in range(20):
        transport.wait(0.1)
        assert transport.receive() is None
    assert ended.poll(5_000)
    ended.close(0)


def test_a_closed_peer_that_floods_does_not_keep_timers_waiting(transport, dealer, tmp_path):
    dealer.set(zmq.SNDHWM, 0)
    dealer.connect(transport.listen(f"ipc://{tmp_path}/b"))
    dealer.send(b"one")
    peer, _ = receive(transport)
    transport.close_peer(peer)
    for _ in range(3 * DROPPED_MAX):
        dealer.send(b"more")
    stopped = 0
    while transport.wait(1) or transport.is_readable:
        assert transport.receive() is None
        stopped += transport.gave_up
    assert stopped >= 1
    assert transport.receive() is None  # the last one may have stopped just where all was read
    assert not transport.gave_up


def test_sending_to_a_peer_that_has_gone_says_so(transport):
    assert not transport.send(b"nobody", [b"frame"])


def test_a_peer_that_takes_nothing_fills_its_pipe_and_no_more(transport, dealer, tmp_path):
    dealer.set(zmq.RCVHWM, 1)
    dealer.connect(transport.listen(f"ipc://{tmp_path}/b"))
    dealer.send(b"one")
    peer, _ = receive(transport)
    sent = 0
    while transport.send(peer, [bytes(10_000)]):
        sent += 1
        assert sent < 1_000_000
    assert sent > 0


def test_a_taken_tcp_address_is_refused(transport):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AddressTaken, match=f"tcp://127.0.0.1:{port}"):
            transport.listen(f"tcp://127.0.0.1:{port}")


def test_a_living_ipc_file_is_not_stolen(transport, tmp_path):
    endpoint = transport.listen(f"ipc://{tmp_path}/b")
    second = Transport()
    with pytest.raises(AddressTaken, match="another process listens"):
        second.listen(endpoint)
    second.close(0)


def test_a_stale_ipc_file_is_replaced(transport, dealer, tmp_path):
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(tmp_path / "b"))
    dealer.connect(transport.listen(f"ipc://{tmp_path}/b"))
    dealer.send(b"one")
    assert receive(transport)[1] == [b"one"]


def test_a_file_that_is_no_socket_is_left_alone(transport, tmp_path):
    (tmp_path / "b").write_text("precious")
    with pytest.raises(AddressTaken, match="no socket"):
        transport.listen(f"ipc://{tmp_path}/b")
    assert (tmp_path / "b").read_text() == "precious"


@pytest.mark.parametrize("endpoint", ["7461", "tcp://nowhere.invalid:1", "ipc:///no/such/folder/b"])
def test_an_endpoint_that_cannot_be_listened_on_is_refused(transport, endpoint):
    with pytest.raises(ConfigurationError, match="cannot listen there"):
        transport.listen(endpoint)


def test_a_port_beyond_the_range_is_refused_and_not_taken_modulo(transport):
    with pytest.raises(ConfigurationError, match="at most 65535"):
        transport.listen("tcp://127.0.0.1:70000")


CUT_OFF = """
import sys, time, zmq
from broker import sockets, transport
sockets.PIPE_MESSAGES_MAX = 10
listening = transport.Transport()
endpoint = listening.listen(sys.argv[1])
context = zmq.Context()
flooding = context.socket(zmq.DEALER)
flooding.set(zmq.SNDHWM, 1_000)
flooding.connect(endpoint)
flooding.send(b"first")
listening.wait(5)
try:
    while True:
        flooding.send(b"more" * 1_000, zmq.NOBLOCK)
except zmq.Again:
    time.sleep(0.2)
context.destroy(linger=0)
time.sleep(sockets.KEEPALIVE_S + 0.5)
"""


def test_a_peer_that_fills_its_pipe_and_hangs_up_ends_nothing_else(tmp_path):
    """With libzmq's heartbeats it ended the process, when the next one was due."""
    command = [sys.executable, "-c", CUT_OFF, f"ipc://{tmp_path}/b"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
