"""The host's laws, on a real transport."""

import threading
import time
from collections.abc import Sequence

from lone import lone

from broker.client.publisher import Publisher
from broker.clock import Clock
from broker.frames import Frame
from broker.host import Host
from broker.transport import Transport
from matcher.model import EventType
from routing import wire
from routing.config import NodeConfig
from routing.effects import Effect, Send
from routing.messages import Acknowledged, Code, Goodbye, Heartbeat, Message

TEMP = EventType.of("Temp", value="float")
HEARTBEAT_S = 0.05


def test_a_goodbye_is_heard_although_its_sender_has_hung_up() -> None:
    """Law 2: here the broker sends a heartbeat to a peer whose Goodbye it has not read yet."""
    transport, clock = Transport(), Clock()
    endpoint = transport.listen("tcp://127.0.0.1:*")
    node = lone(NodeConfig(heartbeat_s=HEARTBEAT_S), now=clock.now())
    host = Host(node, transport, clock)
    busy, hung_up = threading.Event(), threading.Event()

    def be_busy_then_send() -> None:
        busy.set()
        assert hung_up.wait(10)
        node.handle_timer(clock.now())

    host.when_woken = be_busy_then_send
    thread = threading.Thread(target=host.run)
    thread.start()
    publisher = Publisher(endpoint, name="sensor", types=[TEMP])
    publisher.publish("Temp", value=1.0)
    publisher.wait()
    host.wake()
    assert busy.wait(10)
    publisher.close()
    time.sleep(4 * HEARTBEAT_S)  # a heartbeat becomes due, and the hang-up arrives
    hung_up.set()
    standing = None
    for _ in range(100):
        standing = node.status(clock.now())["sources"][0]["standing"]
        if standing != "live":
            break
        time.sleep(0.05)
    host.when_woken = lambda: None
    host.stop()
    thread.join()
    host.close("the test ends")
    assert standing == "closed"


def test_messages_that_are_there_at_once_are_settled_once() -> None:
    """Law 1: of what came while the host was busy each source hears once that it has come."""
    transport, clock = Transport(), Clock()
    endpoint = transport.listen("tcp://127.0.0.1:*")
    node = lone(now=clock.now())
    host = Host(node, transport, clock)
    carry_out, sent = node.outlet.emit, list[object]()

    def carry_out_and_note(effect: Effect) -> None:
        if isinstance(effect, Send):
            sent.append(type(effect.message))
        carry_out(effect)

    node.outlet.emit = carry_out_and_note
    busy, has_come = threading.Event(), threading.Event()

    def be_busy() -> None:
        busy.set()
        assert has_come.wait(10)

    thread = threading.Thread(target=host.run)
    thread.start()
    with (
        Publisher(endpoint, name="one", types=[TEMP], delay_s=0.0) as one,
        Publisher(endpoint, name="two", types=[TEMP], delay_s=0.0) as two,
    ):
        host.when_woken = be_busy
        host.wake()
        assert busy.wait(10)
        sent.clear()
        for number in range(50):
            for publisher in (one, two):
                publisher.publish("Temp", value=float(number))
                publisher.flush()  # so that each is a message
        time.sleep(0.2)
        has_come.set()
        one.wait()
        two.wait()
    host.stop()
    thread.join()
    acknowledged = sent.count(Acknowledged)
    events = [source["events"] for source in node.status(clock.now())["sources"]]
    host.close("the test ends")
    assert events == [50, 50]
    assert acknowledged < 20, "of a hundred messages"


class WritingTransport(Transport):
    """A transport that writes down what it is to send."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[bytes, Message]] = []

    def send(self, peer: bytes, frames: Sequence[Frame]) -> bool:
        """Note the message."""
        self.sent.append((peer, wire.decode(frames)))
        return True


def test_acknowledgements_go_last_but_before_what_follows_to_the_same_source() -> None:
    """Law 4: s1 hears up to where it is acknowledged before Goodbye, s2 when all else has gone."""
    transport = WritingTransport()
    node = lone()
    host = Host(node, transport, Clock())
    goodbye = Goodbye("leaves", Code.LEAVING)
    for peer, message in (
        (b"s1", Acknowledged(6)),
        (b"s1", Acknowledged(7)),
        (b"s2", Acknowledged(1)),
        (b"s1", goodbye),
        (b"sink", Heartbeat()),
    ):
        node.outlet.emit(Send(peer, message))
    host.close("the test ends")
    assert transport.sent == [
        (b"s1", Acknowledged(7)),
        (b"s1", goodbye),
        (b"sink", Heartbeat()),
        (b"s2", Acknowledged(1)),
    ]
