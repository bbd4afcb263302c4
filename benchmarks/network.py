"""Five linked brokers, two sources and a sink on one machine, under each strategy.

Each broker, source and sink is a process. The sources ``A`` and ``B`` publish at ``b1`` and ``b3``,
the sink at ``b5`` gets what three rules find: a join, a count, and a rule over the join with a
negation. Under each strategy:

- events a second that all together carry, published one by one and in batches of 256, until the
  last is acknowledged, beside a chain of three bare relays (pyzmq, PULL to PUSH) for messages of as
  many bytes;
- how long after ``publish`` the sink has a composite event, at a tenth and at a half of the events
  a second that were carried one by one;
- at 300 events/s of each source: processor time of each broker and bytes on links for an event, and
  these latencies;
- how long the sink gets nothing when the root is killed and started again (``benchmarks.kill``).

Beside the figures at 300 events/s, and the rate one by one, stands what the simulator says of the
same brokers (``benchmarks.predicted``); of clients it is told what they took in that rate's run.

Brokers that do not take what was published cost a row that says how much of it was left.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import zmq

from benchmarks import kill
from benchmarks.brokers import BATCH_SIZE, ECHO_SIZE, child
from benchmarks.counted import Counted
from benchmarks.five import HOMES, KEYS, SINK, TYPES, WANTED, cpu_s, network
from benchmarks.predicted import overloaded, predicted, saturation
from benchmarks.report import Row, attempted
from broker import PublishBlocked, Publisher, Subscriber
from broker.keys import STRATEGIES
from broker.process import BrokerProcess
from matcher.model import EventBatch, EventIds, EventType, StringColumn

PACE = 300.0
GOAL_US, GOAL_P50_MS, GOAL_SILENCE_S = 800.0, 5.0, 3.0
"""Of processor time of all brokers for an event and of latency, at PACE events a second each; and
of silence after a kill.
"""
SHARES = {"a tenth": 0.1, "half": 0.5}
"""Of the rate that is carried one by one."""
KILLED, KILL_RATE = "b2", 500.0
SETTLED_S, QUIET_S, LOOK_S = 60.0, 3.0, 0.25
EARLY_S = 0.001
"""A source that is ahead of its pace by less than that does not sleep, which takes a while."""


def run(quick: bool = False) -> Iterator[Row]:
    """All figures under each strategy; if quick, of what is carried, under the last."""
    seconds = 2.0 if quick else 15.0
    single = 0.0 if quick else _relayed(200_000, ECHO_SIZE)
    batched = BATCH_SIZE * _relayed(2_000 if quick else 10_000, BATCH_SIZE * 28)
    for strategy in STRATEGIES[-1:] if quick else STRATEGIES:
        yield from _rows(strategy, seconds, single, batched)


def _rows(strategy: str, seconds: float, single: float, batched: float) -> Iterator[Row]:
    """``single``: what relays carry one by one; 0 where that is not measured."""
    measures: dict[str, Callable[[], Iterable[Row]]] = {
        f"batches of {BATCH_SIZE}": partial(_batches, strategy, seconds, batched),
        f"{PACE:.0f}/s a source": partial(_calm, strategy, seconds),
    }
    if single:
        measures |= {
            "one by one": partial(_singles, strategy, seconds, single),
            "bytes on links": partial(_traffic, strategy, seconds),
            "a kill": partial(_killed, strategy),
        }
    for what, measure in measures.items():
        yield from attempted(f"{strategy}: {what}", measure)


def _singles(strategy: str, seconds: float, relayed: float) -> Iterator[Row]:
    name = f"{strategy}: one by one"
    with network(strategy) as brokers:
        trial = _trial(brokers, 0.0, seconds, 1)
    yield Row(name, trial.rate, "events/s", "three bare relays", relayed, trial.note)
    told = saturation(strategy, trial.clients_us)
    yield Row(f"{name}, simulated", trial.rate, "events/s", "simulator", told)
    each_us, told_us = sum(trial.cpu_us.values()), overloaded(strategy).total_us
    yield Row(f"{name}, CPU an event, simulated", each_us, "us", "simulator", told_us)
    for share, factor in SHARES.items():
        with network(strategy) as brokers:
            found = _trial(brokers, factor * trial.rate / len(HOMES), seconds, 1)
        yield from _latencies(f"{strategy}: latency at {share} of that", found)


def _batches(strategy: str, seconds: float, relayed: float) -> Iterator[Row]:
    name = f"{strategy}: batches of {BATCH_SIZE}"
    with network(strategy) as brokers:
        trial = _trial(brokers, 0.0, seconds, BATCH_SIZE)
    yield Row(name, trial.rate, "events/s", "three bare relays", relayed, trial.note)


def _calm(strategy: str, seconds: float) -> Iterator[Row]:
    name, told = f"{strategy}: CPU an event, {PACE:.0f}/s a source", predicted(strategy, PACE, 4.0)
    with network(strategy) as brokers:
        trial = _trial(brokers, PACE, seconds, 1)
    each = ", ".join(f"{broker} {us:.0f}" for broker, us in sorted(trial.cpu_us.items()))
    total = sum(trial.cpu_us.values())
    yield Row(name, total, "us", "goal", GOAL_US, f"{each}; {trial.note}")
    yield Row(f"{name}, simulated", total, "us", "simulator", told.total_us)
    yield from _latencies(f"{strategy}: latency there", trial, GOAL_P50_MS)
    p50_ms = trial.percentile_ms(50)
    yield Row(f"{strategy}: p50 there, simulated", p50_ms, "ms", "simulator", told.p50_ms)


def _latencies(name: str, trial: Trial, goal_ms: float | None = None) -> Iterator[Row]:
    for rank, goal in ((50, goal_ms), (99, None)):
        late_ms = trial.percentile_ms(rank)
        yield Row(f"{name}, p{rank}", late_ms, "ms", "goal" if goal else "", goal, trial.note)


def _traffic(strategy: str, seconds: float) -> Iterator[Row]:
    name, told = f"{strategy}: bytes on links, an event", predicted(strategy, PACE, 4.0)
    counted = Counted()
    try:
        with network(strategy, before=counted.before) as brokers:
            before = counted.bytes
            trial = _trial(brokers, PACE, seconds, 1)
            each = (counted.bytes - before) / trial.events
    finally:
        counted.close()
    yield Row(name, each, "B", "simulator", told.link_bytes, trial.note)


def _killed(strategy: str) -> Iterator[Row]:
    name = f"{strategy}: silence after a kill, {KILL_RATE:.0f}/s a source"
    with tempfile.TemporaryDirectory(prefix="kill-") as logs:
        outcome = kill.run(kill.Case(strategy, "star", KILL_RATE, KILLED, False), Path(logs))
    yield Row(name, outcome.silences[0], "s", "goal", GOAL_SILENCE_S, str(outcome))


@dataclass(frozen=True, slots=True)
class Trial:
    """Events, events a second, microseconds of each broker's CPU time an event, seconds from
    ``publish`` to each composite event in the sink's hands, and microseconds of all clients.
    """

    events: int
    rate: float
    cpu_us: Mapping[str, float]
    latencies_s: list[float]
    clients_us: float = 0.0

    @property
    def note(self) -> str:
        """Its size."""
        return f"{self.events} events, {len(self.latencies_s)} composite ones"

    def percentile_ms(self, rank: int) -> float | None:
        """That percentile of the latencies; None of none."""
        if len(self.latencies_s) < 2:
            return None
        return statistics.quantiles(self.latencies_s, n=100)[rank - 1] * 1e3


def _trial(brokers: Mapping[str, BrokerProcess], pace: float, seconds: float, size: int) -> Trial:
    """TimeoutError where the brokers do not take all that was published."""
    before = {name: cpu_s(broker) for name, broker in brokers.items()}
    with clients(brokers) as running:
        load = flow(running, pace, seconds, size)
    used = {name: cpu_s(broker) - before[name] for name, broker in brokers.items()}
    if load.left:
        text = f"not settled in {SETTLED_S:g} s: {load.left:,} events unacknowledged"
        raise TimeoutError(text)
    each_us = {name: spent / load.events * 1e6 for name, spent in used.items()}
    clients_us = load.clients_s / load.events * 1e6
    return Trial(load.events, load.events / load.seconds, each_us, load.latencies_s, clients_us)


@dataclass(frozen=True, slots=True)
class Load:
    """Events published, and not acknowledged; the seconds that took; those from ``publish`` to
    each composite event in the sink's hands; when the sink got something, in seconds since the
    epoch; and the seconds of CPU time that all clients took.
    """

    events: int
    left: int
    seconds: float
    latencies_s: list[float]
    came_at: list[float]
    clients_s: float


@dataclass(frozen=True, slots=True)
class Clients:
    """The sources and the sink, each a process that does its part each time that it is told to."""

    sources: Sequence[Connection]
    sink: Connection


@contextmanager
def clients(brokers: Mapping[str, BrokerProcess]) -> Iterator[Clients]:
    """The clients of these brokers, as ``_source`` and ``_sink`` say."""
    with ExitStack() as stack:
        yield Clients(
            [
                stack.enter_context(child(_source, brokers[home].endpoint, name))
                for name, home in HOMES.items()
            ],
            stack.enter_context(child(_sink, brokers[SINK].endpoint)),
        )


def flow(
    running: Clients,
    pace: float,
    seconds: float,
    size: int,
    watch: Callable[[], None] = lambda: None,
) -> Load:
    """Let sources publish once, as ``_source`` says; ``watch`` is called every LOOK_S meanwhile."""
    sources, sink = running.sources, running.sink
    sink.send("begin")
    sink.recv()
    for source in sources:
        source.send((pace, seconds, size))
    while not all(source.poll() for source in sources):
        time.sleep(LOOK_S)
        watch()
    ended = [source.recv() for source in sources]
    sink.send("stop when nothing comes any more")
    latencies, came_at, clients_s = sink.recv()
    events, left = sum(count for count, *_ in ended), sum(left for _, _, left, _ in ended)
    clients_s += sum(used_s for *_, used_s in ended)
    return Load(events, left, max(took for _, took, *_ in ended), latencies, came_at, clients_s)


def _source(pipe: Connection, endpoint: str, name: str) -> None:
    """Each time that it is told, publish for some seconds in batches of a size, at a pace in events
    a second or, at 0, as fast as it goes; tell how many, after how many seconds they were
    acknowledged, how many were not, and the seconds of CPU time that it took.
    """
    draw, kind, last, count = random.Random(name), TYPES[name], 0, 0
    with Publisher(
        endpoint, name=name, types=[kind], increasing=True, timeout_s=SETTLED_S
    ) as publisher:
        while isinstance(told := pipe.recv(), tuple):
            pace, seconds, size = told
            begun, before, used_s = time.monotonic(), count, time.process_time()
            with suppress(PublishBlocked):
                while (now := time.monotonic() - begun) < seconds:
                    if pace and (early := (count - before) / pace - now) > EARLY_S:
                        time.sleep(early)
                    first = max(int(time.time() * 1e6), last + 1)
                    if size == 1:
                        publisher.publish(name, k=draw.randrange(KEYS), n=count, at=first)
                    else:
                        publisher.publish_batch(_batch(kind, first, count, size))
                    last, count = first + size - 1, count + size
                publisher.wait(SETTLED_S)
            took_s, used_s = time.monotonic() - begun, time.process_time() - used_s
            pipe.send((count - before, took_s, publisher.unacknowledged, used_s))


def _batch(kind: EventType, first: int, number: int, size: int) -> EventBatch:
    numbers = np.arange(number, number + size)
    ids = EventIds(StringColumn.constant("", size), np.zeros(size, np.int64))
    return EventBatch(kind, first + np.arange(size), ids, (numbers % KEYS, numbers))


def _sink(pipe: Connection, endpoint: str) -> None:
    """Each time that it is told, take what comes, and tell how late each event came, when any did,
    and the seconds of CPU time that it took, once nothing comes any more. Composite events of what
    was published before may still come first; they do not count.
    """
    with Subscriber(endpoint, *WANTED, credit=65_536) as subscriber:
        while pipe.recv() == "begin":
            late, came_at = list[float](), list[float]()
            begun, used_s = time.time() * 1e6, time.process_time()
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
                    came_at.append(now)
                    for batch in delivery.batches:
                        late += (now - batch.time[batch.time >= begun] / 1e6).tolist()
                is_ending = is_ending or pipe.poll()
            pipe.recv()
            pipe.send((late, came_at, time.process_time() - used_s))


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
