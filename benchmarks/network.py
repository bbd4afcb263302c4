"""Five linked brokers, two sources and a sink on one machine, under each strategy.

Each broker, source and sink is a process. The sources ``A`` and ``B`` publish at ``b1`` and ``b3``,
the sink at ``b5`` gets what three rules find: a join, a count, and a rule over the join with a
negation. Under each strategy: events a second that all together carry, published one by one and in
batches of 256, until the last is acknowledged; the processor time of the five brokers for an event
when each source publishes 300 a second; and how long after ``publish`` the sink has a composite
event then.

The baseline of rates is a chain of three bare relays (pyzmq, PULL to PUSH) for messages of as many
bytes, in the same run; that of processor time and latency is the goal.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import zmq

from benchmarks.brokers import BATCH_SIZE, ECHO_SIZE, child
from benchmarks.report import Row
from broker import Publisher, RuleManager, Subscriber
from broker.keys import STRATEGIES
from broker.process import BrokerProcess
from matcher.model import EventBatch, EventIds, EventType, StringColumn

LINKS: Mapping[str, tuple[str, ...]] = {
    "b2": (),
    "b1": ("b2",),
    "b3": ("b2", "b1"),
    "b4": ("b2", "b3"),
    "b5": ("b2", "b4"),
}
"""Whom each broker is linked to, of those that have been started before it."""
TYPES = {name: EventType.of(name, k="int", n="int") for name in ("A", "B")}
RULES = """
event A(k: int, n: int)
event B(k: int, n: int)
rule ab: define AB(k: int, an: int, bn: int)
  from B(k = $k) as b and last A(k = $k) as a within 5 s from b where k = b.k, an = a.n, bn = b.n
rule cnt: define Cnt(k: int, c: int)
  from B(k = $k, n % 50 = 0) as b where k = b.k, c = Count(A(k = $k) within 3 s from b)
rule up: define Up(k: int, bn: int)
  from AB(k = $k) as x and last AB(k = $k, bn < x.bn) as y within 2 s from x
  and not B(k = $k, n % 7 = 0) between y and x where k = x.k, bn = x.bn
"""
WANTED = ("AB()", "Cnt()", "Up()")
KEYS, PACE = 20, 300.0
GOAL_US, GOAL_P50_MS = 800.0, 5.0
"""Of processor time of all brokers for an event, and of latency, at PACE events a second each."""
SETTLED_S, QUIET_S = 120.0, 3.0
_TICKS = os.sysconf("SC_CLK_TCK")


def run(quick: bool = False) -> Iterator[Row]:
    """Rates, processor time and latencies under each strategy."""
    seconds = 4.0 if quick else 15.0
    single = _relayed(20_000 if quick else 200_000, ECHO_SIZE)
    batched = BATCH_SIZE * _relayed(2_000 if quick else 10_000, BATCH_SIZE * 28)
    for strategy in STRATEGIES:
        yield from _rows(strategy, seconds, single, batched)


def _rows(strategy: str, seconds: float, single: float, batched: float) -> Iterator[Row]:
    paced = _trial(strategy, seconds, PACE, 1)
    alone, together = _trial(strategy, seconds, 0.0, 1), _trial(strategy, seconds, 0.0, BATCH_SIZE)
    chain = "three bare relays"
    yield Row(f"{strategy}: one by one", alone.rate, "events/s", chain, single, alone.note)
    name = f"{strategy}: batches of {BATCH_SIZE}"
    yield Row(name, together.rate, "events/s", chain, batched, together.note)
    name = f"{strategy}: CPU an event, {PACE:.0f}/s a source"
    yield Row(name, paced.cpu_us, "us", "goal", GOAL_US, paced.note)
    for rank, goal in ((50, GOAL_P50_MS), (99, None)):
        name = f"{strategy}: latency there, p{rank}"
        yield Row(name, paced.percentile_ms(rank), "ms", "goal" if goal else "", goal)


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
    with _network(strategy) as brokers:
        at = {name: broker.endpoint for name, broker in brokers.items()}
        with ExitStack() as stack:
            sink = stack.enter_context(child(_sink, at["b5"]))
            sink.recv()
            before = _cpu_s(brokers)
            sources = [
                stack.enter_context(child(_source, at[home], name, pace, seconds, size))
                for name, home in (("A", "b1"), ("B", "b3"))
            ]
            ended = [source.recv() for source in sources]
            events = sum(count for count, _ in ended)
            took = max(seconds for _, seconds in ended)
            sink.send("stop when nothing comes any more")
            latencies: list[float] = sink.recv()
            used = _cpu_s(brokers) - before
        note = f"{events} events, {len(latencies)} composite ones"
        return Trial(events / took, used / events * 1e6, latencies, note)


@contextmanager
def _network(strategy: str) -> Iterator[dict[str, BrokerProcess]]:
    """Five brokers that have agreed on their network and have the rules."""
    with ExitStack() as stack:
        brokers: dict[str, BrokerProcess] = {}
        for name, others in LINKS.items():
            links = [word for other in others for word in ("--link", brokers[other].endpoint)]
            options = ("--name", name, "--strategy", strategy, "--log-level", "error", *links)
            brokers[name] = stack.enter_context(BrokerProcess(*options))
        with RuleManager(brokers["b5"].endpoint, connect_timeout_s=SETTLED_S) as manager:
            _await_network(manager)
            manager.add(RULES)
        yield brokers


def _await_network(manager: RuleManager) -> None:
    for _ in range(int(SETTLED_S / 0.2)):
        network = manager.status()["network"]
        reached = [one for one in network["brokers"] if one["reachable"]]
        if network["settled"] and network["root"] and len(reached) == len(LINKS):
            return
        time.sleep(0.2)
    raise TimeoutError(f"the network is not agreed on: {json.dumps(network)}")


def _cpu_s(brokers: Mapping[str, BrokerProcess]) -> float:
    """Seconds of CPU time that the brokers have used (Linux)."""
    total = 0
    for broker in brokers.values():
        fields = Path(f"/proc/{broker.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def _source(
    pipe: Connection, endpoint: str, name: str, pace: float, seconds: float, size: int
) -> None:
    """Publish in batches of ``size``, ``pace`` events a second or, at 0, as fast as it goes; tell
    how many were acknowledged, and after how many seconds.
    """
    draw, kind, last, count = random.Random(name), TYPES[name], 0, 0
    with Publisher(
        endpoint, name=name, types=[kind], increasing=True, timeout_s=SETTLED_S
    ) as publisher:
        begun = time.monotonic()
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
        pipe.send((count, time.monotonic() - begun))
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
