"""The demo's run: a broker process, three publishers at once, and a subscriber.

Each publisher works in a thread of its own, through its log in order of time, a stretch after
another, and with each stretch it promises that nothing earlier follows. How far one may run ahead
of the others is the broker's to say (architecture.md 4.2): it withholds credit. When all
have closed, every instant is complete, and what the broker has delivered by then is all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from broker.client.manager import RuleManager
from broker.client.publisher import Publisher
from broker.client.subscriber import Subscriber
from broker.demo.account import Handovers
from broker.demo.flights import Log
from broker.errors import BrokerError
from broker.process import BrokerProcess
from matcher.model import MICROSECONDS, Int64s
from routing.messages import Delivery
from routing.sources import Standing

RULES = Path(__file__).with_name("flights.tesla")
"""The rules: examples/flights.tesla of a checkout, which the distribution brings along here."""
SUBSCRIBER = "demo"
STRETCH = 24 * 3600 * MICROSECONDS
"""Event time that a publisher hands over at once."""
UNACKNOWLEDGED_MAX = 8_192
"""Events of a publisher on their way: some for the wire, some for the broker to work on."""
PAUSE_S = 0.05
"""How often the progress is looked at while no event comes."""
HEARTBEAT_S = 30.0
"""The plain engine is silent while it works, for longer than a broker should be."""
BLOCKED_S = 120.0
"""How long a publisher waits for room: a slow engine is no error."""


class Publishing:
    """Three publishers at work; a context manager, left when they have closed.

    ``handovers`` tells when they handed over what. Left by an exception, it stops them where
    they are.
    """

    def __init__(self, endpoint: str, logs: Sequence[Log]) -> None:
        self._logs = logs
        self._published = [0] * len(logs)
        self._failures: list[Exception] = []
        self.handovers = Handovers.of(edges_of(logs), len(logs))
        with ExitStack() as opened:
            self._publishers = [
                opened.enter_context(
                    Publisher(
                        endpoint,
                        name=log.source,
                        types=[batch.type for batch in log.batches],
                        unacknowledged_max=UNACKNOWLEDGED_MAX,
                        timeout_s=BLOCKED_S,
                    )
                )
                for log in logs
            ]
            opened.pop_all()
        self._threads = [
            threading.Thread(target=self._work, args=(place,), name=log.source)
            for place, log in enumerate(logs)
        ]

    @property
    def published(self) -> int:
        """Events handed over so far."""
        return sum(self._published)

    @property
    def moment(self) -> int:
        """Where the slowest publisher is, in event time."""
        done = (~np.isnan(self.handovers.seconds)).sum(axis=1)
        return int(self.handovers.edges[int(done.min())])

    @property
    def running(self) -> bool:
        """Whether a publisher is still at work. Raises what went wrong with one."""
        if self._failures:
            raise self._failures[0]
        return any(thread.is_alive() for thread in self._threads)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:  # closes their connections, so that no thread waits for anything
            for publisher in self._publishers:
                publisher.__exit__(kind, error, traceback)
        for thread in self._threads:
            thread.join()

    def _work(self, place: int) -> None:
        """Publish one log, then close."""
        handovers, log = self.handovers, self._logs[place]
        try:
            with self._publishers[place] as publisher:
                for stretch, (start, end) in enumerate(pairwise(handovers.edges.tolist())):
                    part = log.between(start, end)
                    handovers.seconds[place, stretch] = time.perf_counter()
                    publisher.publish_batch(part.batches, promise=end, numbered=True)
                    self._published[place] += len(part)
        except Exception as failure:  # raised in the thread that asks
            self._failures.append(failure)


class Demo:
    """A broker with the demo's rules and a subscriber to all that they define.

    A context manager, that leaves no process behind. ``types`` are the names of the composite
    events. Raises BrokerError when the broker does not come up, RefusedError when it refuses
    the rules.
    """

    def __init__(self, engine: str) -> None:
        with ExitStack() as opened:
            self._broker = opened.enter_context(_broker(engine))
            self._endpoint = self._broker.endpoint
            self._manager = opened.enter_context(RuleManager(self._endpoint))
            self._manager.add(RULES.read_text("utf-8"), file=RULES.name)
            self.types = tuple(dict.fromkeys(rule["type"] for rule in self._manager.list()))
            self._subscriber = opened.enter_context(
                Subscriber(self._endpoint, *self.types, name=SUBSCRIBER)
            )
            self._opened = opened.pop_all()

    def publish(self, logs: Sequence[Log]) -> Publishing:
        """Publishers for these logs, ready to start."""
        return Publishing(self._endpoint, logs)

    def deliveries(self, publishing: Publishing) -> Iterator[Delivery | None]:
        """What the subscriber gets, to the last; None now and then, while nothing comes."""
        taken, expected = 0, None
        while expected is None or taken < expected:
            try:
                delivery = self._subscriber.receive_delivery(PAUSE_S)
            except TimeoutError:
                yield None
            else:
                taken += len(delivery)
                yield delivery
            if expected is None and not publishing.running:
                expected = self._delivered()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:  # it need not finish what it is at
            self._broker.kill()
        self._opened.__exit__(kind, error, traceback)

    def _delivered(self) -> int | None:
        """How many events the subscriber is to get in all; None before that is certain."""
        status = self._manager.status()
        standings = {source["name"]: source["standing"] for source in status["sources"]}
        lost = sorted(name for name in standings if standings[name] == Standing.LOST.value)
        if lost:  # its publisher has closed, so it will not come back
            raise BrokerError(f"the broker has lost the publisher {lost[0]}")
        if set(standings.values()) != {Standing.CLOSED.value}:
            return None
        (sink,) = (one for one in status["sinks"] if one["name"] == SUBSCRIBER)
        left: int = sink["queued"] + sink["held"]
        return int(sink["delivered"]) + left


def _broker(engine: str) -> BrokerProcess:
    """A broker that listens where nobody else does, shows its errors, and may take its time."""
    arguments = ("--engine", engine, "--log-level", "error", "--heartbeat-s", f"{HEARTBEAT_S:g}")
    return BrokerProcess(*arguments, log=None)


def edges_of(logs: Sequence[Log]) -> Int64s:
    """The bounds of the stretches that the logs are published in."""
    times = [batch.time for log in logs for batch in log.batches if len(batch)]
    start = min((int(one[0]) for one in times), default=0)
    end = max((int(one[-1]) for one in times), default=0)
    return start + np.arange((end - start) // STRETCH + 2) * STRETCH
