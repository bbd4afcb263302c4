"""A broker, a publisher and a subscriber on one machine, beside a bare relay of the same bytes.

The broker, the relay and the subscribers are processes of their own; the publisher is this one.
The baseline is pyzmq alone: DEALER to ROUTER to DEALER, one message of two frames an event (or a
batch), as plain ``send`` and ``recv``: no types, filters, acknowledgements, credit or rules.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import zmq

from benchmarks.report import Row
from broker import Publisher, RuleManager, Subscriber
from broker.client.endpoint import KEY_VARIABLE, SERVER_KEY_VARIABLE
from broker.process import BrokerProcess
from broker.security.keys import create
from matcher.model import EventBatch, EventIds, EventType, StringColumn

READING = EventType.of("Reading", area="string", value="float", floor="int")
ECHO_SIZE, BATCH_SIZE = 150, 256
"""Bytes of the relay's small message, and events in an explicit batch."""
PACE_S = 0.001
TOKEN = "a-token-of-the-pages"
RULE = f"event {READING} define Hot(floor: int) from Reading(value > 45) as r where floor = r.floor"
RIGHTS = (
    'publish = ["Reading"]\nsubscribe = ["Reading"]\n'
    "events_per_second_max = 1_000_000_000\nmessage_bytes_max = 100_000_000\n"
)
"""Lines of the access file that allow what is measured, with limits that nobody reaches."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    singles: int
    batched: int
    round_trips: int


def run(quick: bool = False) -> list[Row]:
    """Rates one by one and in batches, and the latencies of events and of composite events."""
    sizes = Sizes(20_000, 200_000, 300) if quick else Sizes(300_000, 3_000_000, 3_000)
    relay_single, relay_batch, relay_trip = _relay_figures(sizes)
    batch = batch_of_readings()
    with BrokerProcess("--log-level", "warning") as broker:
        single, batched = _rates(broker.endpoint, sizes, batch)
        trip = _latencies(broker.endpoint, "Reading()", sizes.round_trips)
        with RuleManager(broker.endpoint) as manager:
            manager.add(RULE)
            fired = _latencies(broker.endpoint, "Hot()", sizes.round_trips)
            manager.remove("Hot")
    relay, plain, with_keys = "bare pyzmq relay", "without", "with keys alone"
    with secured() as flags, BrokerProcess("--log-level", "warning", *flags) as broker:
        keyed = _rates(broker.endpoint, sizes, batch)
    with secured(RIGHTS) as flags, BrokerProcess("--log-level", "warning", *flags) as broker:
        authorised = _rates(broker.endpoint, sizes, batch)
    with scraped() as flags, BrokerProcess("--log-level", "warning", *flags) as broker:
        seen = _rates(broker.endpoint, sizes, batch)
    with (
        secured(RIGHTS) as own,
        scraped(page=True) as flags,
        BrokerProcess("--log-level", "warning", *own, *flags) as broker,
    ):
        watched = _rates(broker.endpoint, sizes, batch)
    stored = _with_stores(sizes, batch, single, batched)
    return [
        Row("publish one by one, one sink", single, "events/s", relay, relay_single),
        Row(f"publish batches of {BATCH_SIZE}", batched, "events/s", relay, relay_batch),
        *_percentiles("event delivered, 1,000/s", trip, relay, relay_trip),
        *_percentiles("rule fired, 1,000/s", fired, "event delivered", trip),
        Row("with keys, one by one", keyed[0], "events/s", plain, single),
        Row(f"with keys, batches of {BATCH_SIZE}", keyed[1], "events/s", plain, batched),
        Row("authorised, one by one", authorised[0], "events/s", with_keys, keyed[0]),
        Row(f"authorised, batches of {BATCH_SIZE}", authorised[1], "events/s", with_keys, keyed[1]),
        Row("scraped each second, one by one", seen[0], "events/s", plain, single),
        Row(f"scraped each second, batches of {BATCH_SIZE}", seen[1], "events/s", plain, batched),
        Row(
            "authorised, scraped, page open, one by one",
            watched[0],
            "events/s",
            with_keys,
            keyed[0],
        ),
        Row(
            f"authorised, scraped, page open, batches of {BATCH_SIZE}",
            *(watched[1], "events/s", with_keys, keyed[1]),
        ),
        *stored,
    ]


def _with_stores(sizes: Sizes, batch: EventBatch, single: float, batched: float) -> Iterator[Row]:
    """A broker with a store beside one without (``single``, ``batched``: its rates), with the sync
    of its disk; a durable sink, that is there, and that was away; and the past, from the log.
    """
    plain = "without a store"
    with TemporaryDirectory(prefix="rexmq-brokers-") as folder:
        data = ("--data", str(Path(folder) / "b1"), "--queue-events-max", str(10 * sizes.batched))
        with BrokerProcess("--log-level", "warning", *data) as broker:
            rates = _rates(broker.endpoint, sizes, batch)
            acknowledged = _acknowledgements(broker.endpoint, sizes.round_trips // 3)
            durable = _durable_rates(broker.endpoint, sizes.batched, batch)
        data = ("--data", str(Path(folder) / "b2"))
        with BrokerProcess("--log-level", "warning", *data) as broker:
            past = _past_rate(broker.endpoint, sizes.batched, batch)
        synced = _syncs(Path(folder) / "plain", sizes.round_trips // 3)
    yield Row("with a store, one by one", rates[0], "events/s", plain, single)
    name = f"with a store, batches of {BATCH_SIZE}"
    yield Row(name, rates[1], "events/s", plain, batched, "goal: 200,000, half of it")
    yield from _percentiles("acknowledged by a store", acknowledged, "fsync", synced)
    goal = "goal: 100,000"
    yield Row("a durable sink that is there", durable[0], "events/s", plain, batched, goal)
    yield Row("a durable sink that was away", durable[1], "events/s", plain, batched, goal)
    goal = "goal: 1,000,000"
    yield Row("the past of a subscription", past, "events/s", plain, batched, goal)


def _acknowledgements(endpoint: str, count: int) -> list[float]:
    """Seconds from ``publish`` of an event alone to its acknowledgement."""
    taken = []
    with Publisher(endpoint, name="acknowledged", types=[READING]) as publisher:
        for number in range(count):
            begun = time.perf_counter()
            publisher.publish("Reading", area="a1", value=46.5, floor=number)
            publisher.wait()
            taken.append(time.perf_counter() - begun)
    return taken


def _syncs(file: Path, count: int) -> list[float]:
    """Seconds that a small write takes with its sync."""
    taken = []
    with file.open("wb", buffering=0) as plain:
        for _ in range(count):
            begun = time.perf_counter()
            plain.write(bytes(8_192))
            os.fsync(plain.fileno())
            taken.append(time.perf_counter() - begun)
    return taken


def _durable_rates(endpoint: str, count: int, batch: EventBatch) -> tuple[float, float]:
    """Events a second from publisher to a durable sink that is there, and of one that was away and
    takes what has waited.
    """
    count = count // BATCH_SIZE * BATCH_SIZE
    with Publisher(endpoint, name="durable", types=[READING], timeout_s=300.0) as publisher:
        with child(_count_durable, endpoint, count) as sink:
            sink.recv()
            started_at = time.time()
            _publish_batches(publisher, count, batch)
            there = count / (sink.recv() - started_at)
        _publish_batches(publisher, count, batch)
        publisher.wait(timeout_s=300.0)
        with child(_count_durable, endpoint, count) as sink:
            started_at = sink.recv()
            away = count / (sink.recv() - started_at)
    return there, away


def _past_rate(endpoint: str, count: int, batch: EventBatch) -> float:
    """Events a second that a subscription from the beginning on takes of a broker's log, whose
    times rise.
    """
    count = count // BATCH_SIZE * BATCH_SIZE
    with Publisher(endpoint, name="past", types=[READING], timeout_s=300.0) as publisher:
        for begin in range(0, count, BATCH_SIZE):
            publisher.publish_batch(replace(batch, time=batch.time + begin))
        publisher.wait(timeout_s=300.0)
        with child(_count_past, endpoint, count) as sink:
            started_at = sink.recv()
            rate: float = count / (sink.recv() - started_at)
    return rate


def _count_past(pipe: Connection, endpoint: str, count: int) -> None:
    begun = time.time()
    with Subscriber(endpoint, "Reading()", start="earliest") as subscriber:
        pipe.send(begun)
        while count > 0:
            count -= len(subscriber.receive_delivery())
        pipe.send(time.time())
        pipe.recv()


def _count_durable(pipe: Connection, endpoint: str, count: int) -> None:
    bounds: dict[str, Any] = {"queue": 2 * count, "credit": 65_536}
    with Subscriber(endpoint, "Reading()", name="durable", durable=True, **bounds) as subscriber:
        pipe.send(time.time())
        while count > 0:
            count -= len(subscriber.receive_delivery())
        pipe.send(time.time())
        pipe.recv()


@contextmanager
def secured(rights: str = "") -> Iterator[list[str]]:
    """The flags of a broker with keys; all clients have some by their environment meanwhile, and
    are a user who has these ``rights``.
    """
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        for owner in ("broker", "client"):
            create(owner, folder)
        access = folder / "access.toml"
        access.write_text(f'[user.client]\nkey = "client.key"\n{rights}')
        variables = {KEY_VARIABLE: "client.key_secret", SERVER_KEY_VARIABLE: "broker.key"}
        for variable, file in variables.items():
            os.environ[variable] = str(folder / file)
            stack.callback(os.environ.pop, variable)
        yield ["--secret-key", str(folder / "broker.key_secret"), "--access", str(access)]


@contextmanager
def scraped(page: bool = False) -> Iterator[list[str]]:
    """The flags of a broker whose metrics a process of its own asks for each second meanwhile; and
    where a ``page`` is open, with events as they come, another one is fed what that is.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with TemporaryDirectory() as folder, ExitStack() as stack:
        token = Path(folder) / "token"
        token.touch(0o600)
        token.write_text(TOKEN)
        stack.enter_context(child(_scrape, f"http://{address}/metrics"))
        if page:
            stack.enter_context(child(_look, f"http://{address}/api/stream?events=1"))
        yield ["--http", address, "--http-token", str(token)]


def _scrape(pipe: Connection, url: str) -> None:
    while not pipe.poll(1):
        with suppress(OSError):  # it does not listen yet, or any more
            urllib.request.urlopen(_shown(url), timeout=5).read()


def _look(pipe: Connection, url: str) -> None:
    while not pipe.poll(0.2):
        with suppress(OSError), urllib.request.urlopen(_shown(url), timeout=5) as stream:
            while not pipe.poll(0) and stream.readline():
                pass


def _shown(url: str) -> urllib.request.Request:
    return urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})


def _rates(endpoint: str, sizes: Sizes, batch: EventBatch) -> tuple[float, float]:
    """Events a second, one by one and in batches."""
    return (
        _rate(endpoint, sizes.singles, _publish_singles),
        _rate(endpoint, sizes.batched, lambda p, n: _publish_batches(p, n, batch)),
    )


# --- through the broker ------------------------------------------------------------------------


def _publish_singles(publisher: Publisher, count: int) -> None:
    publish = publisher.publish
    for number in range(count):
        publish("Reading", area="a1", value=46.5, floor=number)


def _publish_batches(publisher: Publisher, count: int, batch: EventBatch) -> None:
    for _ in range(count // len(batch)):
        publisher.publish_batch(batch)


def batch_of_readings(size: int = BATCH_SIZE) -> EventBatch:
    """A batch of readings."""
    ids = EventIds(StringColumn.constant("", size), np.arange(size))
    areas = StringColumn.from_strings([f"a{number % 10}" for number in range(size)])
    values = np.linspace(0, 100, size)
    return EventBatch(READING, np.arange(size), ids, (areas, values, np.arange(size)))


def _rate(endpoint: str, count: int, publish: Callable[[Publisher, int], None]) -> float:
    """Events a second from the first call of ``publish`` to the last delivery."""
    count = count // BATCH_SIZE * BATCH_SIZE
    with (
        child(_count_events, endpoint, count) as sink,
        Publisher(endpoint, name=f"rate {count}", types=[READING]) as publisher,
    ):
        sink.recv()
        started_at = time.time()
        publish(publisher, count)
        publisher.flush()
        ended_at: float = sink.recv()
    return count / (ended_at - started_at)


def _latencies(endpoint: str, subscription: str, count: int) -> list[float]:
    """Seconds from ``publish`` to the event in the subscriber's hands, at a steady pace."""
    with (
        child(_stamp_events, endpoint, subscription, count) as sink,
        Publisher(endpoint, name=subscription, types=[READING], increasing=True) as publisher,
    ):
        sink.recv()
        sent = []
        for number in _paced(count):
            sent.append(time.time())
            publisher.publish("Reading", area="a1", value=46.5, floor=number)
        received: list[float] = sink.recv()
    return [there - here for here, there in zip(sent, received, strict=True)]


def _paced(count: int) -> Iterator[int]:
    """Numbers, one each PACE_S seconds; a late one is not made up for."""
    for number in range(count):
        yield number
        time.sleep(PACE_S)


def _count_events(pipe: Connection, endpoint: str, count: int) -> None:
    with Subscriber(endpoint, "Reading()", credit=65_536) as subscriber:
        pipe.send("ready")
        while count > 0:
            count -= len(subscriber.receive_delivery())
        pipe.send(time.time())
        pipe.recv()


def _stamp_events(pipe: Connection, endpoint: str, subscription: str, count: int) -> None:
    with Subscriber(endpoint, subscription) as subscriber:
        pipe.send("ready")
        stamps = []
        for _ in range(count):
            subscriber.receive()
            stamps.append(time.time())
        pipe.send(stamps)
        pipe.recv()


@contextmanager
def child(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """A process of its own and a pipe to it; it ends when it is told to."""
    pipe, far = _SPAWN.Pipe()
    process = _SPAWN.Process(target=target, args=(far, *arguments))
    process.start()
    try:
        yield pipe
        pipe.send("done")
        process.join()
    finally:
        if process.is_alive():
            process.kill()


# --- the bare relay ----------------------------------------------------------------------------


def _relay_figures(sizes: Sizes) -> tuple[float, float, list[float]]:
    """Messages a second, events a second in batches' bytes, and latencies in seconds."""
    with child(_relay) as pipe:
        endpoint = pipe.recv()
        single = _relay_rate(endpoint, sizes.singles, bytes(ECHO_SIZE))
        batch_bytes = bytes(BATCH_SIZE * 28)  # a time, a code and two numbers an event
        batched = BATCH_SIZE * _relay_rate(endpoint, sizes.batched // BATCH_SIZE, batch_bytes)
        trips = _relay_latencies(endpoint, sizes.round_trips)
    return single, batched, trips


def _relay(pipe: Connection) -> None:
    """Send whatever comes from a dealer to the one that last said ``sink``."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.sndhwm = router.rcvhwm = 0
    router.bind_to_random_port("tcp://127.0.0.1")
    pipe.send(router.last_endpoint.rstrip(b"\0").decode())
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    sink = b""
    while all(descriptor == router for descriptor, _ in poller.poll()):
        peer, kind, body = router.recv(), router.recv(), router.recv()
        if kind == b"sink":
            sink = peer
            continue
        router.send(sink, zmq.SNDMORE)
        router.send(kind, zmq.SNDMORE)
        router.send(body)
    context.destroy(linger=0)


def _relay_rate(endpoint: str, count: int, body: bytes) -> float:
    with child(_relay_sink, endpoint, count) as sink, _dealer(endpoint) as dealer:
        sink.recv()
        started_at = time.time()
        for _ in range(count):
            dealer.send(b"head", zmq.SNDMORE)
            dealer.send(body)
        stamps: list[float] = sink.recv()
    return count / (stamps[-1] - started_at)


def _relay_latencies(endpoint: str, count: int) -> list[float]:
    with child(_relay_sink, endpoint, count) as sink, _dealer(endpoint) as dealer:
        sink.recv()
        sent = []
        for _ in _paced(count):
            sent.append(time.time())
            dealer.send(b"head", zmq.SNDMORE)
            dealer.send(bytes(ECHO_SIZE))
        received: list[float] = sink.recv()
    return [there - here for here, there in zip(sent, received, strict=True)]


def _relay_sink(pipe: Connection, endpoint: str, count: int) -> None:
    with _dealer(endpoint) as dealer:
        dealer.send(b"sink", zmq.SNDMORE)
        dealer.send(b"")
        time.sleep(0.2)  # the relay has no answer to wait for
        pipe.send("ready")
        stamps = []
        for _ in range(count):
            dealer.recv()
            dealer.recv()
            stamps.append(time.time())
        pipe.send(stamps)
        pipe.recv()


@contextmanager
def _dealer(endpoint: str) -> Iterator[zmq.Socket[bytes]]:
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.sndhwm = dealer.rcvhwm = 0
    dealer.connect(endpoint)
    try:
        yield dealer
    finally:
        context.destroy(linger=0)


def _percentiles(
    name: str, seconds: list[float], baseline_name: str, baseline: list[float]
) -> list[Row]:
    quantiles = statistics.quantiles(seconds, n=100), statistics.quantiles(baseline, n=100)
    return [
        Row(f"{name}, p{rank}", own[rank - 1] * 1e6, "us", baseline_name, other[rank - 1] * 1e6)
        for own, other in (quantiles,)
        for rank in (50, 99)
    ]
