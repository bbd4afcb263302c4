"""Five linked brokers, two sources and a sink on one machine, under each strategy.

Each broker, source and sink is a process. The sources ``A`` and ``B`` publish at ``b1`` and ``b3``,
the sink at ``b5`` gets what three rules find: a join, a count, and a rule over the join with a
negation. Under each strategy: events a second that all together carry, published one by one and in
batches of 256, until the last is acknowledged; the processor time of the five brokers for an event
when each source publishes 300 a second; and how long after ``publish`` the sink has a composite
event then.

The baseline of rates is a chain of three bare relays (pyzmq, PULL to PUSH) for messages of as many
bytes, in the same run; that of processor time and latency is the goal.

Brokers that do not take what was published cost a row that says how much of it was left.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
import zmq

from benchmarks.brokers import BATCH_SIZE, ECHO_SIZE, child
from benchmarks.five import HOMES, KEYS, SINK, TYPES, WANTED, cpu_s, network
from benchmarks.report import Row, attempted
from broker import PublishBlocked, Publisher, Subscriber
from broker.keys import STRATEGIES
from matcher.model import EventBatch, EventIds, EventType, StringColumn

PACE = 300.0
GOAL_US, GOAL_P50_MS = 800.0, 5.0
"""Of processor time of all brokers for an event, and of latency, at PACE events a second each."""
SETTLED_S, QUIET_S = 60.0, 3.0


def run(quick: bool = False) -> Iterator[Row]:
    """Rates, processor time and latencies under each strategy."""
    seconds = 4.0 if quick else 15.0
    single = _relayed(20_000 if quick else 200_000, ECHO_SIZE)
    batched = BATCH_SIZE * _relayed(2_000 if quick else 10_000, BATCH_SIZE * 28)
    for strategy in STRATEGIES:
        yield from _rows(strategy, seconds, single, batched)


def _rows(strategy: str, seconds: float, single: float, batched: float) -> Iterator[Row]:
    for name, size, relayed in (
        (f"{strategy}: one by one", 1, single),
        (f"{strategy}: batches of {BATCH_SIZE}", BATCH_SIZE, batched),
    ):
        yield from attempted(name, partial(_rate, name, strategy, seconds, size, relayed))
    name = f"{strategy}: CPU an event, {PACE:.0f}/s a source"
    yield from attempted(name, partial(_costs, name, strategy, seconds))


def _rate(name: str, strategy: str, seconds: float, size: int, relayed: float) -> Iterator[Row]:
    found = _trial(strategy, seconds, 0.0, size)
    yield Row(name, found.rate, "events/s", "three bare relays", relayed, found.note)


def _costs(name: str, strategy: str, seconds: float) -> Iterator[Row]:
    found = _trial(strategy, seconds, PACE, 1)
    yield Row(name, found.cpu_us, "us", "goal", GOAL_US, found.note)
    for rank, goal in ((50, GOAL_P50_MS), (99, None)):
        late = f"{strategy}: latency there, p{rank}"
        yield Row(late, found.percentile_ms(rank), "ms", "goal" if goal else "", goal)


@dataclass(frozen=True, slots=True)
class Trial:
    """Events a second, microseconds of all brokers' CPU time an event, and seconds from ``publish``
    to each composite event in the sink's hands.
    """

    rate: float
    cpu_us: float
    latencies_s: list[float]
    note: str

    def percentile_ms(self, rank: int) -> float | None:
        """That percentile of the latencies; None of none."""
        if len(self.latencies_s) < 2:
            return None
        return statistics.quantiles(self.latencies_s, n=100)[rank - 1] * 1e3


def _trial(strategy: str, seconds: float, pace: float, size: int) -> Trial:
    """TimeoutError where the brokers do not take all that was published."""
    with network(strategy) as brokers, ExitStack() as stack:
        sink = stack.enter_context(child(_sink, brokers[SINK].endpoint))
        sink.recv()
        before = sum(map(cpu_s, brokers.values()))
        sources = [
            stack.enter_context(child(_source, brokers[home].endpoint, name, pace, seconds, size))
            for name, home in HOMES.items()
        ]
        ended = [source.recv() for source in sources]
        unacknowledged = sum(left for _, _, left in ended)
        if unacknowledged:
            text = f"not settled in {SETTLED_S:g} s: {unacknowledged:,} events unacknowledged"
            raise TimeoutError(text)
        events = sum(count for count, _, _ in ended)
        took = max(seconds for _, seconds, _ in ended)
        sink.send("stop when nothing comes any more")
        latencies: list[float] = sink.recv()
        used = sum(map(cpu_s, brokers.values())) - before
    note = f"{events} events, {len(latencies)} composite ones"
    return Trial(events / took, used / events * 1e6, latencies, note)


def _source(
    pipe: Connection, endpoint: str, name: str, pace: float, seconds: float, size: int
) -> None:
    """Publish in batches of ``size``, ``pace`` events a second or, at 0, as fast as it goes; tell
    how many, after how many seconds they were acknowledged, and how many were not.
    """
    draw, kind, last, count, left = random.Random(name), TYPES[name], 0, 0, 0
    with Publisher(
        endpoint, name=name, types=[kind], increasing=True, timeout_s=SETTLED_S
    ) as publisher:
        begun = time.monotonic()
        try:
            while (now := time.monotonic() - begun) < seconds:
                if pace:
                    time.sleep(max(0.0, count / pace - now))
                first = max(int(time.time() * 1e6), last + 1)
                if size == 1:
                    publisher.publish(name, k=draw.randrange(KEYS), n=count, at=first)
                else:
                    publisher.publish_batch(_batch(kind, first, count, size))
                last, count = first + size - 1, count + size
            publisher.wait(SETTLED_S)
        except PublishBlocked:
            left = publisher.unacknowledged
        pipe.send((count, time.monotonic() - begun, left))
        pipe.recv()


def _batch(kind: EventType, first: int, number: int, size: int) -> EventBatch:
    numbers = np.arange(number, number + size)
    ids = EventIds(StringColumn.constant("", size), np.zeros(size, np.int64))
    return EventBatch(kind, first + np.arange(size), ids, (numbers % KEYS, numbers))


def _sink(pipe: Connection, endpoint: str) -> None:
    """Take what comes, and tell how late each event came once nothing comes any more."""
    late: list[float] = []
    with Subscriber(endpoint, *WANTED, credit=65_536) as subscriber:
        pipe.send("ready")
        is_ending = False
        while True:
            try:
                delivery = subscriber.receive_delivery(QUIET_S)
            except TimeoutError:
                if is_ending:
                    break
            else:
                now = time.time()
                for batch in delivery.batches:
                    late += (now - batch.time / 1e6).tolist()
            is_ending = is_ending or pipe.poll()
        pipe.recv()
        pipe.send(late)
        pipe.recv()


# --- the bare relays ---------------------------------------------------------------------------


def _relayed(count: int, size: int) -> float:
    """Messages of ``size`` bytes a second through three relays, each a process."""
    context = zmq.Context()
    sink = context.socket(zmq.PULL)
    sink.rcvhwm = 0
    port = sink.bind_to_random_port("tcp://127.0.0.1")
    endpoint = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        for _ in range(3):
            relay = stack.enter_context(child(_relay, endpoint))
            endpoint = relay.recv()
        push = context.socket(zmq.PUSH)
        push.sndhwm = 0
        push.connect(endpoint)
        body, begun = bytes(size), time.monotonic()
        for _ in range(count):
            push.send(body)
        for _ in range(count):
            sink.recv()
        took = time.monotonic() - begun
    context.destroy(linger=0)
    return count / took


def _relay(pipe: Connection, endpoint: str) -> None:
    context = zmq.Context()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.rcvhwm = push.sndhwm = 0
    push.connect(endpoint)
    pipe.send(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(pipe.fileno(), zmq.POLLIN)
    while all(one is pull for one, _ in poller.poll()):
        push.send(pull.recv())
    context.destroy(linger=0)
