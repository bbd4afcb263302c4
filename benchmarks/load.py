"""A broker with a store, a thousand clients, and a durable sink that is away: is memory flat?

    python -m benchmarks.campaign load [--minutes 10] [--clients 1000] [--share 0.8] [--rate 5000]

A tenth of the clients are sources, each of which publishes a batch of BATCH now and then; the
others are sinks, and each event goes to one of them. What all of it together can carry is measured
first, then events flow at a share of that, or so many a second. A rule finds something in some
AWAY_EVENTS of them, which a durable subscription waits for that nobody is attached to; at the end
somebody is.

Printed: the broker's memory and its store, REPORTS times. Faults: memory grows from the third
quarter of the time to the last, or an event is lost or comes twice.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated

import numpy as np
import zmq
from typer import Option

from benchmarks.brokers import child
from benchmarks.campaign import Outcome, Worker, faults_of
from benchmarks.processes import processor_s, resident_mib
from benchmarks.soak import Sample, growth
from broker import AsyncPublisher, AsyncSubscriber, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventBatch, EventIds, EventType, StringColumn

READING = EventType.of("Reading", source="int", number="int", place="int")
RULE = """
event {schema}
rule seen: define Seen(source: int, number: int)
  from Reading(number % {every} = 0) as r where source = r.source, number = r.number
"""
BATCH = 32
AWAY_EVENTS = 20_000
NAME = "away"
CAPACITY_S, REPORTS, SAMPLE_S, WAIT_S = 10.0, 20, 1.0, 120.0
RETAIN = "100MB"
SOCKETS_MAX = 16_384
"""ZeroMQ's own limit for a process is a third of a thousand clients."""


# --- sources: a process of their own ---


def publish(pipe: Connection, endpoint: str, sources: int, sinks: int) -> None:
    """Publish for so many seconds at a rate, or as fast as can be for None, when told to; say how
    many events each source has published.
    """
    zmq.Context.instance().set(zmq.MAX_SOCKETS, SOCKETS_MAX)
    asyncio.run(_publish(pipe, endpoint, sources, sinks))


async def _publish(pipe: Connection, endpoint: str, sources: int, sinks: int) -> None:
    publishers = [
        await AsyncPublisher(
            endpoint,
            name=f"source{number}",
            types=[READING],
            increasing=True,
            timeout_s=WAIT_S,
            connect_timeout_s=WAIT_S,
        ).open()
        for number in range(sources)
    ]
    numbers, last = [0] * sources, [0] * sources

    async def flow(source: int, until: float, pause_s: float) -> None:
        due = time.monotonic() + pause_s * source / sources
        while due < until and time.monotonic() < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            first, numbers[source] = numbers[source], numbers[source] + BATCH
            begin = max(last[source] + 1, time.time_ns() // 1_000)
            last[source] = begin + BATCH - 1
            await publishers[source].publish_batch(batch_of(source, first, begin, sinks))
            due = max(due + pause_s, time.monotonic() - 1.0)

    pipe.send(numbers)
    while (asked := await asyncio.to_thread(pipe.recv)) != "done":
        seconds, rate = asked
        pause_s = 0.0 if rate is None else BATCH * sources / rate
        until = time.monotonic() + seconds
        await asyncio.gather(*(flow(one, until, pause_s) for one in range(sources)))
        await asyncio.gather(*(one.wait(WAIT_S) for one in publishers))
        pipe.send(numbers)
    await asyncio.gather(*(one.close() for one in publishers))


def batch_of(source: int, first: int, begin: int, sinks: int) -> EventBatch:
    """The events of a source from a number on, one a microsecond."""
    own = np.arange(first, first + BATCH)
    columns = np.full(BATCH, source), own, (own * 7 + source * 13) % sinks
    ids = EventIds(StringColumn.constant("", BATCH), own + 1)
    return EventBatch(READING, np.arange(begin, begin + BATCH), ids, columns)


# --- sinks: another one ---


def listen(pipe: Connection, endpoint: str, sinks: int) -> None:
    """Count what so many sinks get, each the events of its place; say it when asked."""
    zmq.Context.instance().set(zmq.MAX_SOCKETS, SOCKETS_MAX)
    asyncio.run(_listen(pipe, endpoint, sinks))


async def _listen(pipe: Connection, endpoint: str, sinks: int) -> None:
    counts: Counter[int] = Counter()

    async def take(place: int, subscriber: AsyncSubscriber) -> None:
        async for delivery in subscriber.deliveries():
            counts[place] += len(delivery)

    subscribers = [
        await AsyncSubscriber(
            endpoint, f"Reading(place = {place})", connect_timeout_s=WAIT_S, timeout_s=WAIT_S
        ).open()
        for place in range(sinks)
    ]
    tasks = [asyncio.create_task(take(*one)) for one in enumerate(subscribers)]
    pipe.send(counts.total())
    while await asyncio.to_thread(pipe.recv) != "done":
        pipe.send(counts.total())
    for one in subscribers:
        await one.close()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- the run ---


class Watch(Worker):
    """Notes a broker's memory once in SAMPLE_S, and prints it REPORTS times."""

    def __init__(self, broker: BrokerProcess, store: Path, seconds: float) -> None:
        super().__init__()
        self._pid, self._store = broker.child.pid, store
        self._seconds = seconds
        self.samples: list[Sample] = []
        self.start()

    def run(self) -> None:
        """Look until it is told to end."""
        begun, used = time.monotonic(), processor_s(self._pid)
        reports = itertools.count(1)
        due = self._seconds / REPORTS
        while not self.ending.wait(SAMPLE_S):
            self.samples.append(Sample(resident_mib(self._pid), {}))
            now = time.monotonic() - begun
            if now >= due:
                due = self._seconds / REPORTS * (next(reports) + 1)
                size = sum(one.stat().st_size for one in self._store.iterdir()) / 2**20
                print(
                    f"{now:6.0f} s: {self.samples[-1].rss_mib:7.1f} MiB, store {size:6.1f} MiB,"
                    f" processor {(processor_s(self._pid) - used) / now:.0%}",
                    flush=True,
                )


def campaign(
    folder: Path,
    minutes: float = 10.0,
    clients: int = 1_000,
    share: Annotated[float, Option(help="Of what can be carried.")] = 0.8,
    rate: Annotated[float | None, Option(help="Events a second, instead of a share.")] = None,
) -> Iterator[Outcome]:
    """One run; its faults: what grew, was lost or came twice."""
    seconds = 60 * minutes
    sources = max(1, clients // 10)
    sinks = clients - sources - 1
    with ExitStack() as stack:
        store = folder / "b1"
        flags = ("--name", "b1", "--data", str(store), "--retain-bytes", RETAIN)
        with (folder / "log").open("w") as log:
            broker = stack.enter_context(BrokerProcess(*flags, "--log-level", "warning", log=log))
        far_sinks = stack.enter_context(child(listen, broker.endpoint, sinks))
        far_sinks.recv()
        with child(publish, broker.endpoint, sources, sinks) as far_sources:
            far_sources.recv()
            begun = time.monotonic()
            published = sum(_asked(far_sources, CAPACITY_S, None))
            _await(far_sinks, published)
            capacity = published / (time.monotonic() - begun)
            rate = rate or share * capacity
            every = max(1, round(rate * seconds / AWAY_EVENTS))
            print(
                f"{sources} sources, {sinks} sinks and a durable one; together {capacity:,.0f}"
                f" events/s at most; {rate:,.0f} events/s for {seconds:,.0f} s",
                flush=True,
            )
            with RuleManager(broker.endpoint) as manager:
                manager.add(RULE.format(schema=READING, every=every))
            with Subscriber(broker.endpoint, "Seen()", name=NAME, durable=True):
                pass
            before = _asked(far_sources, 0.0, None)
            watch = Watch(broker, store, seconds)
            after = _asked(far_sources, seconds, rate)
            watch.end()
        wanted = {
            (source, number)
            for source, (first, end) in enumerate(zip(before, after, strict=True))
            for number in range(-(-first // every) * every, end, every)
        }
        missing = sum(after) - _await(far_sinks, sum(after))
        came = _taken(broker.endpoint, len(wanted))
    lost, more = wanted - {*came}, Counter(came) - Counter(wanted)
    grown = growth(watch.samples[len(watch.samples) // 2 :])
    counts = {
        "lost at sinks": missing,
        "lost at the durable one": len(lost),
        "twice or wrong there": more.total(),
    }
    yield Outcome(
        f"{sum(after) - sum(before):,} events, all acknowledged; {len(wanted):,} of the durable"
        " sink",
        [*faults_of(counts), *grown],
    )


def _asked(far: Connection, seconds: float, rate: float | None) -> Sequence[int]:
    """How many events each source has published by the end of so many seconds more."""
    far.send((seconds, rate))
    numbers: Sequence[int] = far.recv()
    return numbers


def _await(far: Connection, events: int) -> int:
    """Wait until the sinks have so many; how many they have."""
    until = time.monotonic() + WAIT_S
    while True:
        far.send("how many")
        count: int = far.recv()
        if count >= events or time.monotonic() > until:
            return count
        time.sleep(0.2)


def _taken(endpoint: str, wanted: int) -> list[tuple[int, int]]:
    """The events that have waited, and more than that where there are any."""
    found: list[tuple[int, int]] = []
    with Subscriber(endpoint, "Seen()", name=NAME, durable=True) as subscriber:
        while True:
            try:
                event = subscriber.receive(1.0 if len(found) >= wanted else WAIT_S)
            except TimeoutError:
                return found
            found.append((event.data["source"], event.data["number"]))
