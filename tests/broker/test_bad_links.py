"""Links to what is no broker: tried again and again, said once, and nobody else is bothered."""

import logging
import socket
import threading

import pytest
import zmq
from live_hosts import Hosts

from broker import Publisher, Subscriber
from broker.log import LOGGER
from broker.network import Member
from matcher.model import EventType
from routing import wire
from routing.messages import VERSION, LinkHello

TEMP = EventType.of("Temp", value="float")


@pytest.fixture
def warnings(caplog, monkeypatch):
    """What brokers warn of: text and fields."""
    monkeypatch.setattr(LOGGER, "propagate", True)
    caplog.set_level(logging.WARNING, LOGGER.name)
    return lambda: [(one.message, one.fields) for one in caplog.records]


def web_server(listening: socket.socket) -> None:
    """Answers whatever comes as a web server would."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(64)
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def test_a_broker_serves_while_its_links_lead_nowhere(tmp_path, warnings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, zmq.Context() as context:
        threading.Thread(target=web_server, args=(listening,), daemon=True).start()
        other = context.socket(zmq.REP)  # ZeroMQ, but no broker
        other.bind(f"ipc://{tmp_path}/rep")
        nowhere = [
            f"tcp://127.0.0.1:{listening.getsockname()[1]}",
            f"ipc://{tmp_path}/nobody",
            f"ipc://{tmp_path}/rep",
        ]
        with Hosts(tmp_path, (), engine="naive") as hosts:
            hosts.add(Member("b1"), link=nowhere)
            endpoint = hosts.endpoint("b1")
            with (
                Publisher(endpoint, name="t", types=[TEMP]) as publisher,
                Subscriber(endpoint, "Temp") as subscriber,
            ):
                publisher.publish("Temp", value=1.0)
                assert subscriber.receive(10).data == {"value": 1.0}
                for _ in range(100):
                    if len(warnings()) >= 3:
                        break
                    threading.Event().wait(0.1)
                threading.Event().wait(0.6)  # it goes on trying
                publisher.publish("Temp", value=2.0)
                assert subscriber.receive(10).data == {"value": 2.0}
        other.close(linger=0)
        said = [(text, fields["link"]) for text, fields in warnings() if "link" in fields]
        assert sorted(said) == sorted(("no broker answers yet", link) for link in nowhere)


def test_garbage_and_namesakes_cost_their_own_link_alone(tmp_path, warnings) -> None:
    network = (Member("b1"), Member("b2", ("b1",)))
    with Hosts(tmp_path, network, engine="naive", strategy="centralized") as hosts:
        hosts.add(Member("twin", ("b1",)), name="b2")
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.connect(hosts.endpoint("b1"))
            hello = LinkHello(VERSION, "stranger", 1, 0, 0, 0, 1.0, "centralized, watermark")
            stranger.send_multipart(wire.encode(hello))
            stranger.send_multipart([b"RX\x02\x31garbage", b"more"])
            stranger.send_multipart([b"RX\x09\x30a version to come"])
            with (
                Subscriber(hosts.endpoint("b1"), "Temp") as subscriber,
                Publisher(hosts.endpoint("b2"), name="t", types=[TEMP]) as publisher,
            ):
                publisher.publish("Temp", value=1.0)
                assert subscriber.receive(10).data == {"value": 1.0}
            stranger.close(linger=0)
        taken = "a broker named 'b2' is linked already"

        def said() -> int:
            return sum(fields.get("reason") == taken for _, fields in warnings())

        for _ in range(100):
            if said() == 2:
                break
            threading.Event().wait(0.05)
        threading.Event().wait(0.6)  # it goes on trying
        assert said() == 2, "both sides say it, once"
