"""The protocol of clients over WebSockets at a broker's page, by a program that speaks it."""

import itertools
import socket as socket_module
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from paged import TEMP, TOKEN, hot, paged
from secured import FAST, keys, make_keys, secured

from broker import Publisher, RuleManager
from broker.monitoring import unread, web_sockets
from broker.monitoring.entry import digest
from broker.monitoring.web_sockets import frames_of, message_of
from routing.messages import (
    VERSION,
    Advertise,
    Confirmed,
    Credit,
    Delivery,
    Goodbye,
    Heartbeat,
    Hello,
    Refused,
    Subscribe,
    Welcome,
    WhenFull,
)
from routing.wire import decode, encode

client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
exceptions = pytest.importorskip("websockets.exceptions")
ALICE = "the-token-of-alice-is-long"
WAIT_S = 60.0


@contextmanager
def connected(url, **options):
    """A WebSocket at a page."""
    where = url.replace("http", "ws", 1) + web_sockets.PATH
    with client.connect(where, max_size=None, proxy=None, **options) as socket:
        yield socket


def say(socket, *messages):
    for one in messages:
        socket.send(message_of(encode(one)))


def heard(socket, kind):
    """The next message of a kind; heartbeats and credit are left out."""
    while True:
        found = decode(frames_of(socket.recv(timeout=WAIT_S)))
        if isinstance(found, kind):
            return found
        assert isinstance(found, Heartbeat | Credit), found


def read_on(socket):
    while True:
        socket.recv(timeout=WAIT_S)


def answer_to(socket, said):
    socket.send(said)
    return socket.recv(timeout=WAIT_S)


@pytest.fixture(scope="module")
def served():
    with paged() as found:
        yield found


def test_a_client_subscribes_and_leaves(served):
    endpoint, url = served
    with hot(endpoint), connected(url) as socket:
        say(socket, Hello(VERSION, "", 2.0), Subscribe(1, 7, "Temp(value > 45)"))
        assert heard(socket, Welcome).broker == "b1"
        assert heard(socket, Confirmed).request == 1
        say(socket, Credit(3))
        had = [heard(socket, Delivery) for _ in range(3)]
        assert [one.subscriptions for one in had] == [((7,),)] * 3
        say(socket, Goodbye())
        assert heard(socket, Goodbye)
        with pytest.raises(exceptions.ConnectionClosedOK):
            socket.recv(timeout=WAIT_S)


def test_the_end_of_a_web_socket_is_that_of_the_link(served):
    _, url = served
    hello = Hello(VERSION, "station", 2.0, 1)
    with connected(url) as socket:
        say(socket, hello)
        heard(socket, Welcome)
    with connected(url) as socket:  # the name is free, as soon as the broker knows
        say(socket, Hello(VERSION, "station", 2.0, 1))
        heard(socket, Welcome)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("a text", 1003),
        (b"", 1003),
        (b"\x05\x00\x00\x00RX", 1003),
        (b"\x01\x00\x00\x00R" * 3, 1003),
        (b"\x00" * (web_sockets.MESSAGE_BYTES_MAX + 1), 1009),
    ],
)
def test_what_is_no_message_ends_its_own_web_socket(served, said, code):
    _, url = served
    with connected(url) as other, connected(url) as socket:
        say(other, Hello(VERSION, "", 2.0))
        heard(other, Welcome)
        with pytest.raises(exceptions.ConnectionClosedError) as end:
            answer_to(socket, said)
        # What is too long may be refused while it is still being sent.
        assert end.value.rcvd is None or end.value.rcvd.code == code
        say(other, Subscribe(1, 1, "Temp"))
        heard(other, Confirmed)


def test_bytes_that_are_no_message_of_the_protocol_are_the_brokers_to_refuse(served):
    _, url = served
    with connected(url) as socket:
        say(socket, Hello(VERSION, "", 2.0))
        heard(socket, Welcome)
        socket.send(message_of([b"RX\x01\x06\xff"]))
        assert heard(socket, Goodbye).code.value == "protocol"
        with pytest.raises(exceptions.ConnectionClosed):
            socket.recv(timeout=WAIT_S)


def refusal(url, **options):
    with pytest.raises(exceptions.InvalidStatus) as refused, connected(url, **options):
        pass
    return refused.value.response.status_code


def test_other_sites_and_other_names_do_not_come_in(served):
    _, url = served
    assert refusal(url, origin="https://evil.example") == 403
    assert refusal(url, additional_headers={"Sec-Fetch-Site": "cross-site"}) == 403
    host = url.removeprefix("http://")
    with connected(url, origin=f"http://{host}"):
        pass
    port = int(url.rpartition(":")[2])
    where = f"ws://evil.example:{port}{web_sockets.PATH}"
    own = socket_module.create_connection(("127.0.0.1", port))
    with pytest.raises(exceptions.InvalidStatus) as refused:
        client.connect(where, sock=own, proxy=None)
    assert refused.value.response.status_code == 403


def test_a_token_is_asked_for_where_the_page_has_one(tmp_path):
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    with paged("--http-token", str(file)) as (_, url):
        assert refusal(url) == 401
        assert refusal(url, additional_headers={"Authorization": "Bearer no"}) == 401
        with connected(url, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as socket:
            say(socket, Hello(VERSION, "", 2.0))
            heard(socket, Welcome)


def test_a_client_has_the_rights_of_its_user(tmp_path):
    make_keys(tmp_path)
    (tmp_path / "access.toml").write_text(
        f'[user.alice]\nkey = "alice.key"\ntoken_sha256 = "{digest(ALICE)}"\n'
        'subscribe = ["Temp(value > 45)"]\n[broker.b1]\nkey = "b1.key"\n'
        '[user.bob]\nkey = ["bob.key"]\npublish = ["Temp"]\n'
    )
    bearing = {"Authorization": f"Bearer {ALICE}"}
    with (
        paged(*FAST[2:], *secured(tmp_path, "b1")) as (endpoint, url),
        connected(url, additional_headers=bearing) as socket,
    ):
        say(socket, Hello(VERSION, "mine", 2.0), Subscribe(1, 1, "Temp"))
        heard(socket, Welcome)
        heard(socket, Confirmed)
        say(socket, Credit(10), Advertise(2, (TEMP,)))
        assert heard(socket, Refused).code.value == "not-allowed"
        own = keys(tmp_path, "bob")
        with Publisher(endpoint, name="p", types=[TEMP], **own) as source:
            for value in (20.0, 50.0):
                source.publish("Temp", area="hall", value=value)
            source.wait()
            delivery = heard(socket, Delivery)
        values = [batch.column("value").tolist() for batch in delivery.batches]
        assert list(itertools.chain(*values)) == [50.0]


def test_a_broker_that_ends_ends_its_web_sockets():
    with ExitStack() as stack:
        page = ExitStack()
        _, url = page.enter_context(paged())
        socket = stack.enter_context(connected(url))
        say(socket, Hello(VERSION, "", 2.0))
        heard(socket, Welcome)
        page.close()
        with pytest.raises(exceptions.ConnectionClosed):
            read_on(socket)


def test_who_reads_nothing_is_cut_off_and_holds_up_nobody(served):
    endpoint, url = served
    slow = Hello(VERSION, "slow", 86_400.0)
    subscribed = Subscribe(1, 1, "Temp()", WhenFull.DROP_OLDEST, 1_000)
    with reading_nothing(url) as socket:
        for one in (slow, subscribed, Credit(2**31 - 1)):
            socket.sendall(masked(message_of(encode(one))))
        with Publisher(endpoint, name="p2", types=[TEMP], increasing=True) as source:
            rows = [{"area": "x" * 4_000, "value": 1.0}] * 250
            for _ in range(40):  # MB, beyond what sockets and the page hold
                source.publish_batch(rows, type="Temp")
            source.flush()
            until = time.monotonic() + web_sockets.TAKEN_S + WAIT_S
            while is_there(endpoint, "slow"):
                assert time.monotonic() < until
                source.publish("Temp", area="x", value=1.0)
                time.sleep(0.5)


def is_there(endpoint, name):
    with RuleManager(endpoint) as manager:
        return any(one["name"] == name for one in manager.status()["clients"])


@contextmanager
def reading_nothing(url):
    """A WebSocket from which nothing is read any more, once it is there."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket_module.create_connection((host, int(port))) as socket:
        socket.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 4_096)
        fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        request = f"GET {web_sockets.PATH} HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}\r\n{key}"
        socket.sendall(f"{request}\r\n\r\n".encode())
        assert socket.recv(4_096).startswith(b"HTTP/1.1 101")
        yield socket


def masked(content):
    """A short message of a client as a frame of RFC 6455, masked with zeros."""
    assert len(content) < 126
    return bytes((0x82, 0x80 | len(content), 0, 0, 0, 0)) + content


def is_cut(socket):
    try:
        socket.recv(timeout=2)
    except exceptions.ConnectionClosedError:
        return True
    except TimeoutError:
        return False


def test_unfinished_messages_are_bounded_together(served):
    _, url = served
    sockets = [connected(url) for _ in range(unread.BYTES_MAX // web_sockets.MESSAGE_BYTES_MAX + 2)]
    with ExitStack() as opened, connected(url) as other:
        say(other, Hello(VERSION, "", 60.0))
        heard(other, Welcome)
        begun = [opened.enter_context(socket) for socket in sockets]
        length = web_sockets.MESSAGE_BYTES_MAX - 1
        head = b"\x82\xff" + length.to_bytes(8, "big") + bytes(4)
        for one in begun:
            with suppress(ConnectionError):
                one.socket.sendall(head + bytes(length - 1))
        assert any(map(is_cut, begun))
        say(other, Subscribe(1, 7, "Temp(value > 45)"))
        assert heard(other, Confirmed).request == 1
