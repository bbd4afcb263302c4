"""Floods of strangers: does a broker serve others as before while they come?

A source publishes batches to a sink as fast as it can. Quiet at first, then beside a flood, in
turns: of *mutated frames*, messages of the protocol with some bytes changed, by FRAMES connections
a second of FRAMES_EACH of them, each of which costs its sender the connection; and of *half-open*
connections, HALF_OPEN a second that say nothing, of which KEPT stand open at a time. For each the
events a second, and the broker's processor time for an event of the source, which counts what the
flood costs as well. The ratio is that to the turn before it without a flood, and is to be 0.9 or
more of the rate. On a machine where the strangers have a core of their own, that is: here they run
beside the broker, so that the processor time tells more.
"""

from __future__ import annotations

import random
import socket
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from multiprocessing.connection import Connection

import zmq

from benchmarks.brokers import BATCH_SIZE, READING, batch_of_readings, child
from benchmarks.processes import processor_s
from benchmarks.report import Row
from broker import Publisher, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventBatch
from routing import wire
from routing.messages import VERSION, Hello, Publish, Subscribe

FRAMES, FRAMES_EACH = 50, 20
HALF_OPEN, KEPT = 100, 500
TURNS = 3
Flood = Callable[[Connection, str], None]


def run(quick: bool = False) -> Iterator[Row]:
    """Rates and processor time beside each flood, and without."""
    batches = (1_000_000 if quick else 3_000_000) // BATCH_SIZE
    turns = 1 if quick else TURNS
    batch = batch_of_readings()
    with BrokerProcess("--log-level", "error") as broker:
        _measured(broker, batches, batch, None)  # what a first run makes is not measured
        for name, flood in (("mutated frames", mutated), ("half-open connections", half_open)):
            pairs = [
                (_measured(broker, batches, batch, None), _measured(broker, batches, batch, flood))
                for _ in range(turns)
            ]
            quiet, flooded = ([pair[place] for pair in pairs] for place in (0, 1))
            for place, unit in ((0, "events/s"), (1, "us")):
                value, baseline = (
                    statistics.median(one[place] for one in some) for some in (flooded, quiet)
                )
                what = "rate" if place == 0 else "the broker's processor time an event"
                yield Row(f"{what}, {name}", value, unit, "no flood", baseline)


def _measured(
    broker: BrokerProcess, batches: int, batch: EventBatch, flood: Flood | None
) -> tuple[float, float]:
    """Events a second, and microseconds of the broker's processor time for each."""
    endpoint = broker.endpoint
    with (
        nullcontext() if flood is None else child(flood, endpoint),
        Subscriber(endpoint, "Reading()", credit=65_536) as sink,
        Publisher(endpoint, name="source", types=[READING]) as source,
    ):
        time.sleep(1)  # the flood has begun
        spent, begun = processor_s(broker.child.pid), time.monotonic()
        left = batches * BATCH_SIZE
        ahead = 64
        for number in range(batches):
            source.publish_batch(batch)
            while number >= ahead and left > (batches - number + ahead) * BATCH_SIZE:
                left -= len(sink.receive_delivery(30))
        while left > 0:
            left -= len(sink.receive_delivery(30))
        seconds = time.monotonic() - begun
        cost = processor_s(broker.child.pid) - spent
    events = batches * BATCH_SIZE
    return events / seconds, cost / events * 1e6


def mutated(pipe: Connection, endpoint: str) -> None:
    """Send mutated messages until the pipe says that it is over."""
    rng, context = random.Random(7), zmq.Context()
    hello = Hello(VERSION, "stranger", 1.0)
    seeds = [
        wire.encode(hello),
        wire.encode(Publish((batch_of_readings(),))),
        wire.encode(Subscribe(1, 1, "Reading(value > 20)")),
    ]
    begun, count = time.monotonic(), 0
    while not pipe.poll(max(0.0, begun + count / FRAMES - time.monotonic())):
        count += 1
        stranger = context.socket(zmq.DEALER)
        stranger.linger = 100
        stranger.connect(endpoint)
        with suppress(zmq.ZMQError):
            stranger.send_multipart(wire.encode(hello), zmq.DONTWAIT)
            for _ in range(FRAMES_EACH):
                frames = [_changed(one, rng) for one in rng.choice(seeds)]
                stranger.send_multipart(frames, zmq.DONTWAIT)
        stranger.close()
    context.destroy(linger=0)


def half_open(pipe: Connection, endpoint: str) -> None:
    """Connect and say nothing until the pipe says that it is over."""
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    kept: deque[socket.socket] = deque()
    begun, count = time.monotonic(), 0
    while not pipe.poll(max(0.0, begun + count / HALF_OPEN - time.monotonic())):
        count += 1
        with suppress(OSError):
            kept.append(socket.create_connection((host, int(port)), 1))
        if len(kept) > KEPT:
            kept.popleft().close()
    for one in kept:
        one.close()


def _changed(frame: bytes, rng: random.Random) -> bytes:
    """A frame with some bytes changed."""
    found = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        if found:
            found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)
