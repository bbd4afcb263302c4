"""One event that many sinks get: the broker's processor time for a delivery.

A source publishes 200 events a second, one by one, to a broker with 100 sinks and with 500, each
of which has a filter of its own that every event matches. The baseline is a bare relay (pyzmq, one
ROUTER) that sends the same frames to as many peers, at the same pace. Figures are microseconds of
processor time, of all threads of the process, for each event and sink.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

import zmq

from benchmarks.brokers import READING, child
from benchmarks.processes import processor_s
from benchmarks.report import Row
from broker import Publisher
from broker.process import BrokerProcess
from routing import wire
from routing.messages import VERSION, Confirmed, Credit, Delivery, Hello, Subscribe, Welcome
from routing.serving.service import CREDIT_MAX

PACE = 200.0
SINKS = (100, 500)
AHEAD_S = 0.5
"""So long events flow before it is measured."""
SETTLED_S = 60.0
"""So long sinks may take to get everything."""


def run(quick: bool = False) -> Iterator[Row]:
    """Processor time for a delivery to one of 100 sinks, and of 500."""
    seconds = 3.0 if quick else 15.0
    for sinks in SINKS:
        relay = _relayed(sinks, seconds)
        name = f"a delivery to one of {sinks} sinks"
        yield Row(name, _delivered(sinks, seconds), "us", "bare relay", relay)


# --- through the broker ---


def _delivered(sinks: int, seconds: float) -> float:
    filters = [[f"Reading(floor > -{place + 1})"] for place in range(sinks)]
    with (
        BrokerProcess("--log-level", "warning") as broker,
        Publisher(broker.endpoint, name="a", types=[READING]) as publisher,
        child(listen, broker.endpoint, filters) as far,
    ):
        far.recv()

        def publish(number: int) -> None:
            publisher.publish("Reading", area="a1", value=46.5, floor=number)

        return _measured(broker.child.pid, far, sinks, seconds, publish)


def listen(pipe: Connection, endpoint: str, filters: Sequence[Sequence[str]]) -> None:
    """A client for each row of filters, all in one process, that reads and forgets."""
    context, poller = zmq.Context(), zmq.Poller()
    for place, own in enumerate(filters):
        dealer = context.socket(zmq.DEALER)
        dealer.connect(endpoint)
        dealer.send_multipart(wire.encode(Hello(VERSION, f"s{place}", 3600.0)))
        assert isinstance(wire.decode(dealer.recv_multipart()), Welcome)
        for number, text in enumerate(own, 1):
            dealer.send_multipart(wire.encode(Subscribe(number, number, text)))
            assert isinstance(wire.decode(dealer.recv_multipart()), Confirmed)
        dealer.send_multipart(wire.encode(Credit(CREDIT_MAX)))
        poller.register(dealer, zmq.POLLIN)
    count_frames(pipe, poller, _delivered_in)
    context.destroy(linger=0)


def _delivered_in(frames: list[bytes]) -> int:
    message = wire.decode(frames)
    return sum(map(len, message.batches)) if isinstance(message, Delivery) else 0


def count_frames(
    pipe: Connection, poller: zmq.Poller, events: Callable[[list[bytes]], int]
) -> None:
    """Count what comes, and say how much it was whenever the other side asks."""
    pipe.send("ready")
    poller.register(pipe.fileno(), zmq.POLLIN)
    count = 0
    while True:
        for socket, _ in poller.poll():
            if socket == pipe.fileno():
                if pipe.recv() == "done":
                    return
                pipe.send(count)
            else:
                count += events(socket.recv_multipart())  # type: ignore[union-attr]


# --- the bare relay ---


def _relayed(sinks: int, seconds: float) -> float:
    context = zmq.Context()
    with child(_relay) as relay:
        endpoint, pid = relay.recv()
        with child(_listen_barely, endpoint, sinks) as far:
            far.recv()
            dealer = context.socket(zmq.DEALER)
            dealer.connect(endpoint)
            frames = [bytes(60), bytes(50)]
            figure = _measured(pid, far, sinks, seconds, lambda _: dealer.send_multipart(frames))
            dealer.close(linger=0)
    context.term()
    return figure


def _relay(pipe: Connection) -> None:
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.bind_to_random_port("tcp://127.0.0.1")
    pipe.send((router.last_endpoint.rstrip(b"\0").decode(), os.getpid()))
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    peers: list[bytes] = []
    while all(descriptor == router for descriptor, _ in poller.poll()):
        peer, *frames = router.recv_multipart()
        if len(frames) == 1:
            peers.append(peer)
            router.send_multipart([peer, b"welcome"])
            continue
        for sink in peers:
            router.send(sink, zmq.SNDMORE)
            router.send(frames[0], zmq.SNDMORE)
            router.send(frames[1])
    context.destroy(linger=0)


def _listen_barely(pipe: Connection, endpoint: str, sinks: int) -> None:
    context, poller = zmq.Context(), zmq.Poller()
    for _ in range(sinks):
        dealer = context.socket(zmq.DEALER)
        dealer.connect(endpoint)
        dealer.send(b"sink")
        dealer.recv()
        poller.register(dealer, zmq.POLLIN)
    count_frames(pipe, poller, lambda frames: 1)
    context.destroy(linger=0)


# --- both ---


def _measured(
    pid: int, far: Connection, sinks: int, seconds: float, publish: Callable[[int], None]
) -> float:
    """Microseconds of processor time of a process for each event that each of the sinks gets."""
    ahead, count = round(AHEAD_S * PACE), round(seconds * PACE)
    _publish(range(ahead), publish)
    _await(far, ahead * sinks)
    before = processor_s(pid)
    _publish(range(ahead, ahead + count), publish)
    _await(far, (ahead + count) * sinks)
    return (processor_s(pid) - before) * 1e6 / (count * sinks)


def _publish(numbers: range, publish: Callable[[int], None]) -> None:
    begun = time.monotonic()
    for place, number in enumerate(numbers):
        time.sleep(max(0.0, begun + place / PACE - time.monotonic()))
        publish(number)


def _await(far: Connection, events: int) -> None:
    until = time.monotonic() + SETTLED_S
    while time.monotonic() < until:
        far.send("how many")
        if far.recv() >= events:
            return
        time.sleep(0.05)
    raise TimeoutError(f"the sinks have not got {events} events in {SETTLED_S:g} s")
