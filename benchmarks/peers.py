"""RexMQ beside brokers that people take otherwise: NATS, Mosquitto and Redis, in turns.

Each publishes and subscribes as its users write it in Python: RexMQ's own clients, nats-py, paho
and redis-py; bodies are JSON but for RexMQ, whose events are typed. A broker, a publisher and a
subscriber are processes of their own. Figures are medians of the rounds; all systems are measured
in each round, one after another. A server that is not installed is left out, by name.

They do not promise the same. RexMQ acknowledges each event, gives what matches a filter over its
values, in the order of time, and holds a publisher back when a subscriber is slow. Core NATS and
Mosquitto by QoS 0 acknowledge nothing, filter by subjects and topics, and drop what a slow
subscriber does not take. Of what is acknowledged and synced there is a row of its own.

A bare relay stands beside them: a loop of pyzmq that takes a message and sends it to whom it is
for, by a number in it, and reads nothing else. So much a broker in Python takes at least.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import zmq

from benchmarks import servers
from benchmarks.brokers import child
from benchmarks.fanout import count_frames, listen as listen_to_rexmq
from benchmarks.processes import processor_s
from benchmarks.report import Row, attempted
from broker import Publisher, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

READING = EventType.of("Reading", area="string", value="float", floor="int", sent="int")
REXMQ, NATS, MOSQUITTO, REDIS = "RexMQ", "NATS", "Mosquitto", "Redis"
RELAY = "a bare relay of pyzmq"
PACE, FANOUT_PACE = 1_000.0, 200.0
SINKS, FILTERS, MATCHING = 100, 1_000, 10
"""Sinks, filters of all of them together, and how many of these match an event."""
SETTLED_S = 60.0
Handle: TypeAlias = Callable[[int], None]
"""Takes when a message was sent, in nanoseconds of the monotonic clock."""


class Place(NamedTuple):
    """A server that runs: its process, and where clients find it."""

    pid: int
    url: str


class Flow(NamedTuple):
    """One measured flow: microseconds of processor time for an event, of all three processes."""

    rate: float
    broker: float
    publisher: float
    subscriber: float
    p50: float
    p99: float


def run(quick: bool = False, rounds: int | None = None) -> Iterator[Row]:
    """Every row for every system that is installed."""
    rounds = rounds or (1 if quick else 3)
    systems = [REXMQ]
    for name, program in ((NATS, "nats-server"), (MOSQUITTO, "mosquitto"), (REDIS, "redis-server")):
        if servers.program_of(program) is None:
            print(f"rexmq: peers: {name} is left out: no {program} is installed", file=sys.stderr)
        else:
            systems.append(name)
    scale = 10 if quick else 1
    flowing = [*(name for name in systems if name != REDIS), RELAY]
    synced = [name for name in systems if name != MOSQUITTO]
    yield from attempted("peers/1,000 events/s", lambda: _paced(flowing, 20_000 // scale, rounds))
    yield from attempted("peers/full speed", lambda: _fast(flowing, 200_000 // scale, rounds))
    for title, is_filtered in (("1 to 100 sinks", False), ("1,000 filters of 100 sinks", True)):
        yield from attempted(
            f"peers/{title}",
            lambda title=title, is_filtered=is_filtered: _fanned(
                title, flowing, 10.0 / scale, rounds, is_filtered=is_filtered
            ),
        )
    yield from attempted("peers/synced", lambda: _synced(synced, 5_000 // scale, rounds))


# --- rows ---


def _paced(systems: Sequence[str], count: int, rounds: int) -> Iterator[Row]:
    yield from _flows("1,000 events/s, one sink", systems, count, PACE, rounds, has_rate=False)


def _fast(systems: Sequence[str], count: int, rounds: int) -> Iterator[Row]:
    yield from _flows("full speed, one by one", systems, count, 0.0, rounds, has_rate=True)


def _flows(
    title: str, systems: Sequence[str], count: int, pace: float, rounds: int, *, has_rate: bool
) -> Iterator[Row]:
    flows: dict[str, list[Flow]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name in systems:
            flows[name].append(_flow(name, count, pace))
    median = {
        name: Flow(*(statistics.median(column) for column in zip(*of, strict=True)))
        for name, of in flows.items()
    }
    fields = ["broker", "publisher", "subscriber"]
    fields = ["rate", *fields] if has_rate else [*fields, "p50", "p99"]
    for field in fields:
        unit = "events/s" if field == "rate" else "us"
        for name in systems:
            yield _beside(f"{title}, {field}", name, unit, _each(median, field))


def _each(median: dict[str, Flow], field: str) -> dict[str, float]:
    return {name: getattr(flow, field) for name, flow in median.items()}


def _beside(title: str, name: str, unit: str, values: dict[str, float]) -> Row:
    """The row of a system; RexMQ's is beside that of NATS."""
    beside = NATS if name == REXMQ and NATS in values else ""
    return Row(f"peers/{title}: {name}", values[name], unit, beside, values.get(beside))


def _fanned(
    title: str, systems: Sequence[str], seconds: float, rounds: int, *, is_filtered: bool
) -> Iterator[Row]:
    values: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name in systems:
            values[name].append(_fan(name, seconds, is_filtered=is_filtered))
    medians = {name: statistics.median(of) for name, of in values.items()}
    for name in systems:
        yield _beside(f"{title}, broker, a delivery", name, "us", medians)


def _synced(systems: Sequence[str], count: int, rounds: int) -> Iterator[Row]:
    spent: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name in systems:
            with _running(name, is_synced=True) as place, child(SYNCED[name], place.url) as far:
                far.recv()
                before = processor_s(place.pid)
                far.send(count)
                far.recv()
                spent[name].append((processor_s(place.pid) - before) / count * 1e6)
    medians = {name: statistics.median(of) for name, of in spent.items()}
    for name in systems:
        yield _beside("acknowledged and synced one by one, broker", name, "us", medians)


# --- a flow from one publisher to one subscriber ---


def _flow(name: str, count: int, pace: float) -> Flow:
    with _running(name) as place, ExitStack() as stack:
        taking = stack.enter_context(child(_take, name, place.url))
        taking.recv()
        giving = stack.enter_context(child(_give, name, place.url))
        giving.recv()
        _flown(giving, taking, max(200, count // 20), pace)  # nothing is compiled or begun later
        before, started = processor_s(place.pid), time.monotonic()
        spent, (took, p50, p99, ended) = _flown(giving, taking, count, pace)
        rate = count / (ended / 1e9 - started)
        broker = (processor_s(place.pid) - before) / count * 1e6
        return Flow(rate, broker, spent / count * 1e6, took / count * 1e6, p50, p99)


def _flown(giving: Connection, taking: Connection, count: int, pace: float) -> tuple[float, Any]:
    taking.send(count)
    giving.send((count, pace))
    return giving.recv(), taking.recv()


def _take(pipe: Connection, name: str, url: str) -> None:
    """Say what taking so many events has cost, their latencies in us, and when the last came."""
    sent = list[int]()
    came = list[int]()
    moved = threading.Condition()

    def has(count: int) -> bool:
        return len(sent) >= count

    def handle(when: int) -> None:
        came.append(time.monotonic_ns())
        sent.append(when)
        if len(sent) >= wanted:
            with moved:
                moved.notify()

    wanted = 0
    with TAKING[name](url, handle):
        pipe.send("ready")
        while (count := pipe.recv()) != "done":
            begun, first = time.process_time(), wanted
            wanted += count
            with moved:
                if not moved.wait_for(partial(has, wanted), SETTLED_S):
                    raise TimeoutError(f"{name}: {len(sent) - first} of {count} events came")
            spent = time.process_time() - begun
            trips = (np.array(came[first:wanted]) - np.array(sent[first:wanted])) / 1e3
            p50, p99 = np.percentile(trips, (50, 99)).tolist()
            pipe.send((spent, p50, p99, came[wanted - 1]))


def _give(pipe: Connection, name: str, url: str) -> None:
    """Publish so many events at a pace, 0 for full speed; say what that has cost."""
    if name == NATS:
        asyncio.run(_give_to_nats(pipe, url))
        return
    with GIVING[name](url) as (publish, flush):
        pipe.send("ready")
        while (asked := pipe.recv()) != "done":
            count, pace = asked
            begun, started = time.process_time(), time.monotonic()
            for number in range(count):
                if pace and (ahead := started + number / pace - time.monotonic()) > 0:
                    time.sleep(ahead)
                publish(number)
            flush()
            pipe.send(time.process_time() - begun)


@contextmanager
def _give_to_rexmq(url: str) -> Iterator[tuple[Callable[[int], Any], Callable[[], None]]]:
    with Publisher(url, name="a", types=[READING]) as publisher:

        def publish(number: int) -> None:
            publisher.publish(
                "Reading", area="a1", value=46.5, floor=number, sent=time.monotonic_ns()
            )

        yield publish, publisher.flush


@contextmanager
def _give_to_mosquitto(url: str) -> Iterator[tuple[Callable[[int], Any], Callable[[], None]]]:
    client, last = _paho(url), list[Any]()
    client.loop_start()

    def publish(number: int) -> None:
        last[:] = [client.publish("readings", _body(number))]

    def flush() -> None:
        last[0].wait_for_publish(SETTLED_S)

    yield publish, flush
    client.disconnect()
    client.loop_stop()


async def _give_to_nats(pipe: Connection, url: str) -> None:
    from nats import connect

    client = await connect(url)
    await client.flush()
    pipe.send("ready")
    loop = asyncio.get_running_loop()
    while (asked := await loop.run_in_executor(None, pipe.recv)) != "done":
        count, pace = asked
        begun, started = time.process_time(), time.monotonic()
        for number in range(count):
            if pace and (ahead := started + number / pace - time.monotonic()) > 0:
                await asyncio.sleep(ahead)
            await client.publish("readings", _body(number))
        await client.flush(60)
        pipe.send(time.process_time() - begun)
    await client.close()


def _body(number: int) -> bytes:
    reading = {"area": "a1", "value": 46.5, "floor": number, "sent": time.monotonic_ns()}
    return json.dumps(reading).encode()


@contextmanager
def _take_from_rexmq(url: str, handle: Handle) -> Iterator[None]:
    subscriber = Subscriber(url, "Reading()")

    def take() -> None:
        for event in subscriber:
            handle(event.data["sent"])  # type: ignore[arg-type]

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    yield
    subscriber.close()
    thread.join()


@contextmanager
def _take_from_nats(url: str, handle: Handle) -> Iterator[None]:
    from nats import connect

    loop, ready = asyncio.new_event_loop(), threading.Event()

    async def take() -> None:
        client = await connect(url, pending_size=2**30)

        async def on_message(message: Any) -> None:
            handle(json.loads(message.data)["sent"])

        await client.subscribe(
            "readings", cb=on_message, pending_msgs_limit=10**9, pending_bytes_limit=2**33
        )
        await client.flush()
        ready.set()

    loop.create_task(take())
    threading.Thread(target=loop.run_forever, daemon=True).start()
    ready.wait(SETTLED_S)
    yield
    loop.call_soon_threadsafe(loop.stop)


@contextmanager
def _take_from_mosquitto(url: str, handle: Handle) -> Iterator[None]:
    client, ready = _paho(url), threading.Event()
    client.on_message = lambda _c, _u, message: handle(json.loads(message.payload)["sent"])
    client.on_subscribe = lambda *_: ready.set()
    client.loop_start()
    client.subscribe("readings")
    ready.wait(SETTLED_S)
    yield
    client.disconnect()
    client.loop_stop()


def _paho(url: str) -> Any:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    host, port = url.rsplit(":", 1)
    client.connect(host, int(port))
    return client


@contextmanager
def _give_to_relay(url: str) -> Iterator[tuple[Callable[[int], Any], Callable[[], None]]]:
    with _dealer(url) as dealer:
        yield lambda number: dealer.send_multipart([_ALL, _body(number)]), lambda: None


@contextmanager
def _take_from_relay(url: str, handle: Handle) -> Iterator[None]:
    def take() -> None:
        with _dealer(url) as dealer:
            _want(dealer, [-1])
            ready.set()
            while len(frames := dealer.recv_multipart()) == 2:
                handle(json.loads(frames[1])["sent"])

    ready = threading.Event()
    threading.Thread(target=take, daemon=True).start()
    ready.wait(SETTLED_S)
    yield


GIVING: dict[str, Callable[[str], Any]] = {
    REXMQ: _give_to_rexmq,
    MOSQUITTO: _give_to_mosquitto,
    RELAY: _give_to_relay,
}
TAKING: dict[str, Callable[[str, Handle], Any]] = {
    REXMQ: _take_from_rexmq,
    NATS: _take_from_nats,
    MOSQUITTO: _take_from_mosquitto,
    RELAY: _take_from_relay,
}


# --- one event to many sinks, which read and forget ---


def _fan(name: str, seconds: float, *, is_filtered: bool) -> float:
    """Microseconds of the broker's processor time for a delivery."""
    wanted = [_wants(place, is_filtered=is_filtered) for place in range(SINKS)]
    each = MATCHING if is_filtered else SINKS
    with _running(name) as place, child(LISTENING[name], place.url, wanted) as far:
        far.recv()
        with ExitStack() as stack:
            publish = stack.enter_context(PUBLISHING[name](place.url))
            count = max(1, int(seconds * FANOUT_PACE))
            _spread(far, publish, count // 4 + 1, each)
            before = processor_s(place.pid)
            _spread(far, publish, count, each)
            return (processor_s(place.pid) - before) / (count * each) * 1e6


def _wants(place: int, *, is_filtered: bool) -> list[int]:
    """The numbers that a sink wants: ten of a hundred, each wanted by ten sinks; or -1, all."""
    if not is_filtered:
        return [-1]
    step = FILTERS // SINKS
    return [(place * step + more) % (FILTERS // MATCHING) for more in range(step)]


def _spread(far: Connection, publish: Callable[[int], None], count: int, each: int) -> None:
    far.send("count")
    wanted, started = far.recv() + count * each, time.monotonic()
    for number in range(count):
        if (ahead := started + number / FANOUT_PACE - time.monotonic()) > 0:
            time.sleep(ahead)
        publish(number % (FILTERS // MATCHING))
    until = time.monotonic() + SETTLED_S
    while True:
        far.send("count")
        if (came := far.recv()) >= wanted:
            return
        if time.monotonic() > until:
            raise TimeoutError(f"{came} of {wanted} deliveries came")
        time.sleep(0.05)


def _listen_to_rexmq(pipe: Connection, url: str, wanted: list[list[int]]) -> None:
    """Bare sockets that speak the protocol: a client for each sink in one process."""
    listen_to_rexmq(pipe, url, [[_filter(number) for number in of] for of in wanted])


def _filter(number: int) -> str:
    return "Reading()" if number < 0 else f"Reading(floor = {number})"


def _listen_to_nats(pipe: Connection, url: str, wanted: list[list[int]]) -> None:
    """Bare sockets that speak its protocol, which is lines of text."""
    links = []
    for of in wanted:
        link = _connected(url)
        subscriptions = [
            f"SUB readings.{'*' if one < 0 else one} {place + 1}\r\n"
            for place, one in enumerate(of)
        ]
        link.sendall(('CONNECT {"verbose":false}\r\n' + "".join(subscriptions)).encode())
        link.sendall(b"PING\r\n")
        while not link.recv(65_536).endswith(b"PONG\r\n"):
            pass
        links.append(link)
    _count(pipe, links, re.compile(rb"(?:^|\n)MSG "))


def _listen_to_mosquitto(pipe: Connection, url: str, wanted: list[list[int]]) -> None:
    """Bare sockets that speak MQTT 3.1.1; a body has the word that is counted once."""
    links = []
    for place, of in enumerate(wanted):
        link, name = _connected(url), f"sink{place}".encode()
        body = b"\0\4MQTT\4\2\0\0" + len(name).to_bytes(2, "big") + name
        link.sendall(bytes([0x10, len(body)]) + body)
        assert link.recv(4)[0] == 0x20, "welcomed"
        topics = [f"readings/{'+' if wish < 0 else wish}".encode() for wish in of]
        asked = b"".join(len(topic).to_bytes(2, "big") + topic + b"\0" for topic in topics)
        body = b"\0\1" + asked
        link.sendall(b"\x82" + _length(len(body)) + body)
        assert link.recv(200)[0] == 0x90, "subscribed"
        links.append(link)
    _count(pipe, links, re.compile(rb'"floor"'))


def _length(number: int) -> bytes:
    """The remaining length of MQTT: seven bits a byte, the least first."""
    digits = bytearray()
    while True:
        number, digit = divmod(number, 128)
        digits.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(digits)


def _connected(url: str) -> socket.socket:
    host, port = url.rpartition("/")[2].rsplit(":", 1)
    return socket.create_connection((host, int(port)), 10)


def _count(pipe: Connection, links: list[socket.socket], pattern: re.Pattern[bytes]) -> None:
    """Count what the pattern finds; a word that is cut in two is put together."""
    import select

    poll, rests = select.epoll(), {}
    for link in links:
        link.setblocking(False)
        poll.register(link, select.EPOLLIN)
        rests[link.fileno()] = (link, b"")
    poll.register(pipe.fileno(), select.EPOLLIN)
    pipe.send("ready")
    count = 0
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == pipe.fileno():
                if pipe.recv() == "done":
                    return
                pipe.send(count)
                continue
            link, rest = rests[descriptor]
            data = rest + link.recv(2**20)
            last = 0
            for match in pattern.finditer(data):
                count, last = count + 1, match.end()
            rests[descriptor] = link, data[max(last, len(data) - 8) :]


def _listen_to_relay(pipe: Connection, url: str, wanted: list[list[int]]) -> None:
    poller = zmq.Poller()
    with ExitStack() as stack:
        for numbers in wanted:
            dealer = stack.enter_context(_dealer(url))
            _want(dealer, numbers)
            poller.register(dealer, zmq.POLLIN)
        count_frames(pipe, poller, lambda frames: 1)


LISTENING: dict[str, Callable[..., None]] = {
    REXMQ: _listen_to_rexmq,
    NATS: _listen_to_nats,
    MOSQUITTO: _listen_to_mosquitto,
    RELAY: _listen_to_relay,
}


@contextmanager
def _publish_to_rexmq(url: str) -> Iterator[Callable[[int], None]]:
    with Publisher(url, name="a", types=[READING]) as publisher:
        yield lambda number: publisher.publish(
            "Reading", area="a1", value=46.5, floor=number, sent=0
        )


@contextmanager
def _publish_to_nats(url: str) -> Iterator[Callable[[int], None]]:
    link = _connected(url)
    link.sendall(b'CONNECT {"verbose":false}\r\n')

    def publish(number: int) -> None:
        body = _body(number)
        link.sendall(b"PUB readings.%d %d\r\n%s\r\n" % (number, len(body), body))

    yield publish
    link.close()


@contextmanager
def _publish_to_mosquitto(url: str) -> Iterator[Callable[[int], None]]:
    client = _paho(url)
    client.loop_start()
    yield lambda number: client.publish(f"readings/{number}", _body(number))
    client.disconnect()
    client.loop_stop()


@contextmanager
def _publish_to_relay(url: str) -> Iterator[Callable[[int], None]]:
    with _dealer(url) as dealer:
        yield lambda number: dealer.send_multipart([b"%d" % number, _body(number)])


PUBLISHING: dict[str, Callable[[str], Any]] = {
    REXMQ: _publish_to_rexmq,
    NATS: _publish_to_nats,
    MOSQUITTO: _publish_to_mosquitto,
    RELAY: _publish_to_relay,
}


# --- one by one, each when the one before is acknowledged and on the disk ---


def _sync_rexmq(pipe: Connection, url: str) -> None:
    with Publisher(url, name="a", types=[READING]) as publisher:
        pipe.send("ready")
        while (count := pipe.recv()) != "done":
            for number in range(count):
                publisher.publish("Reading", area="a1", value=46.5, floor=number, sent=0).wait(30)
            pipe.send("done")


def _sync_nats(pipe: Connection, url: str) -> None:
    async def send() -> None:
        from nats import connect

        client = await connect(url)
        context = client.jetstream()
        await context.add_stream(name="readings", subjects=["readings"])
        pipe.send("ready")
        while (count := pipe.recv()) != "done":
            for number in range(count):
                await context.publish("readings", _body(number))
            pipe.send("done")
        await client.close()

    asyncio.run(send())


def _sync_redis(pipe: Connection, url: str) -> None:
    from redis import Redis

    client = Redis.from_url(url)
    pipe.send("ready")
    while (count := pipe.recv()) != "done":
        for number in range(count):
            client.xadd("readings", {"body": _body(number)})
        pipe.send("done")


SYNCED: dict[str, Callable[[Connection, str], None]] = {
    REXMQ: _sync_rexmq,
    NATS: _sync_nats,
    REDIS: _sync_redis,
}


# --- the bare relay ---

_ALL = b"-1"
"""The number of messages that all get."""


@contextmanager
def _dealer(url: str) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.set(zmq.LINGER, 0)
        dealer.connect(url)
        yield dealer


def _want(dealer: zmq.Socket[bytes], numbers: Sequence[int]) -> None:
    """Ask for the messages of some numbers, -1 for all."""
    dealer.send_multipart([b"%d" % number for number in numbers] + [b"", b""])
    dealer.recv_multipart()


def _relay(pipe: Connection) -> None:
    """Send each message of a number and a body to those who have asked for the number."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    pipe.send((os.getpid(), f"tcp://127.0.0.1:{port}"))
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    everybody, asked = list[bytes](), dict[bytes, list[bytes]]()
    while all(descriptor == router for descriptor, _ in poller.poll()):
        peer, *frames = router.recv_multipart()
        if frames[-1]:
            number, body = frames
            for sink in (*everybody, *asked.get(number, ())):
                router.send(sink, zmq.SNDMORE)
                router.send(number, zmq.SNDMORE)
                router.send(body)
            continue
        for number in frames[:-2]:
            (everybody if number == _ALL else asked.setdefault(number, [])).append(peer)
        router.send_multipart([peer, b"welcome"])
    context.destroy(linger=0)


# --- servers ---


@contextmanager
def _running(name: str, *, is_synced: bool = False) -> Iterator[Place]:
    """A server of its own, with an empty folder."""
    if name == RELAY:
        with child(_relay) as relay:
            yield Place(*relay.recv())
        return
    with TemporaryDirectory(prefix="rexmq-peers-") as temporary:
        folder = Path(temporary)
        if name == REXMQ:
            data = ("--data", str(folder / "b")) if is_synced else ()
            with BrokerProcess("--log-level", "warning", *data) as broker:
                yield Place(broker.child.pid, broker.endpoint)
            return
        if name == NATS:
            store = f'jetstream {{ store_dir: "{folder}", sync_interval: always }}'
            server = servers.nats(folder, *([store] if is_synced else []))
            scheme = "nats://"
        elif name == MOSQUITTO:
            server, scheme = servers.mosquitto(folder), ""
        else:
            server, scheme = servers.redis(folder), "redis://"
        with server:
            yield Place(server.pid, f"{scheme}127.0.0.1:{server.port}")


def main() -> None:
    """Print the table, of as many rounds as are asked for: ``python -m benchmarks.peers 3``."""
    from benchmarks.report import line, table

    rows = []
    for row in run(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else None):
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
    print(f"load {os.getloadavg()[0]:.1f}\n{table(rows)}")


if __name__ == "__main__":
    main()
