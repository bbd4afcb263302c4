"""Links that a broker makes to others, over real sockets."""

import time

import pytest

from broker.links import LinkedTransport, peer_of
from broker.transport import Transport


@pytest.fixture
def endpoint(tmp_path):
    return f"ipc://{tmp_path}/b"


@pytest.fixture
def linked(endpoint):
    transport = LinkedTransport([endpoint])
    yield transport
    transport.close(0)


def receive(transport):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        transport.wait(0.1)
        message = transport.receive()
        if message is not None:
            return message
    raise AssertionError("nothing came")


def ended(transport):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        transport.wait(0.1)
        assert transport.receive() is None
        found = transport.take_ended()
        if found:
            return found
    raise AssertionError("nothing ended")


def test_a_link_is_made_when_something_is_sent(linked, endpoint):
    other = Transport()
    other.listen(endpoint)
    link = peer_of(endpoint)
    assert linked.send(link, [b"one", b"two"])
    peer, frames = receive(other)
    assert frames == [b"one", b"two"]
    assert other.send(peer, [b"three"])
    assert receive(linked) == (link, [b"three"])
    other.close(0)


def test_its_end_is_told_and_it_is_made_anew(linked, endpoint):
    link, peers = peer_of(endpoint), []
    for _ in range(2):
        other = Transport()
        other.listen(endpoint)
        assert linked.send(link, [b"one"])
        peers.append(receive(other)[0])
        other.close(0)
        assert ended(linked) == [link]
        assert not linked.take_ended()
    assert linked.send(link, [b"nobody hears this"])
    assert ended(linked) == [link]


def test_a_message_that_goes_with_its_connection_is_not_waited_for(linked, endpoint):
    """libzmq looks for what has ended at every hundredth reception, whatever was there."""
    other = Transport()
    other.listen(endpoint)
    link = peer_of(endpoint)
    linked.send(link, [b"hello"])
    peer, _ = receive(other)
    for number in range(100):
        assert other.send(peer, [b"%d" % number])
    for number in range(99):
        assert receive(linked) == (link, [b"%d" % number])
    other.close(0)
    time.sleep(0.2)  # for libzmq's own thread to notice
    while (message := linked.receive()) is not None:  # at the longest the one that is left
        assert message == (link, [b"99"])
    assert linked.take_ended() == [link] or ended(linked) == [link]


def test_a_link_that_is_closed_is_another_peer_when_it_is_made_anew(linked, endpoint):
    other = Transport()
    other.listen(endpoint)
    link, peers = peer_of(endpoint), set()
    for _ in range(3):
        assert linked.send(link, [b"one"])
        peer, _ = receive(other)
        other.close_peer(peer)
        peers.add(peer)
        linked.close_peer(link)
    assert len(peers) == 3
    other.close(0)


def test_clients_and_links_are_read_in_turns(linked, endpoint, tmp_path):
    other = Transport()
    other.listen(endpoint)
    link = peer_of(endpoint)
    linked.send(link, [b"hello"])
    peer, _ = receive(other)
    client = LinkedTransport([linked.listen(f"ipc://{tmp_path}/clients")])
    (to_linked,) = client._endpoints
    for _ in range(10):
        other.send(peer, [b"from the link"])
        client.send(to_linked, [b"from the client"])
    time.sleep(0.1)
    first = [receive(linked)[1][0] for _ in range(6)]
    assert first.count(b"from the link") == 3
    client.close(0)
    other.close(0)


def test_what_clients_send_reaches_them_as_ever(linked, endpoint, tmp_path):
    client = LinkedTransport([linked.listen(f"ipc://{tmp_path}/clients")])
    (to_linked,) = client._endpoints
    client.send(to_linked, [b"one"])
    peer, frames = receive(linked)
    assert frames == [b"one"]
    assert linked.send(peer, [b"two"])
    assert receive(client) == (to_linked, [b"two"])
    linked.close_peer(peer)
    client.send(to_linked, [b"unread"])
    time.sleep(0.05)
    assert linked.receive() is None
    client.close(0)
