"""The demo's run: brokers as processes, three publishers at once, and a subscriber.

Each publisher works in a thread of its own, through its log in order of time, a stretch after
another, and with each stretch it promises that nothing earlier follows. How far one may run ahead
of the others is the broker's to say (protocol.md section 4): it withholds credit. When all
have closed, every instant is complete, and the broker says that no more can come.

Several brokers form a ring with a chord (cycles, that is); publishers, subscriber and rule manager
are at different ones.

Brokers with stores may be killed meanwhile: the publishers wait until they are back, and send again
what was not acknowledged; the subscription is durable, and its events have numbers, by which what
comes again is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from broker.client.address import Address
from broker.client.manager import RuleManager
from broker.client.publisher import Publisher
from broker.client.subscriber import Subscriber
from broker.demo.account import Handovers
from broker.demo.flights import Log
from broker.errors import BrokerError
from broker.network import BrokerNetwork, Member, members
from matcher.model import MICROSECONDS, Int64s
from routing.messages import Delivery
from routing.network.strategy import Centralized
from routing.serving.sources import SourceState

RULES = Path(__file__).with_name("flights.tesla")
"""The rules: examples/flights.tesla of a checkout, which the distribution brings along here."""
SUBSCRIBER = "demo"
DEFAULT_STRATEGY = Centralized.name
FORMED_S = 60.0
"""How long brokers that can be reached have to find one another."""
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

    ``handovers`` tells when they handed over what; ``halfway`` is called when all of them are in
    the middle of their logs. Left by an exception, it stops them where they are.
    """

    def __init__(
        self,
        addresses: Sequence[str | Address],
        logs: Sequence[Log],
        halfway: Callable[[], None] = lambda: None,
    ) -> None:
        self._logs = logs
        self._halfway = threading.Barrier(len(logs), halfway)
        self._published = [0] * len(logs)
        self._failures: list[Exception] = []
        self.handovers = Handovers.of(edges_of(logs), len(logs))
        with ExitStack() as opened:
            self._publishers = [
                opened.enter_context(
                    Publisher(
                        addresses[place % len(addresses)],
                        name=log.source,
                        types=[batch.type for batch in log.batches],
                        live=False,
                        unacknowledged_max=UNACKNOWLEDGED_MAX,
                        timeout_s=BLOCKED_S,
                        close_timeout_s=BLOCKED_S,
                    )
                )
                for place, log in enumerate(logs)
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
                publisher.pause()
            self._halfway.abort()
        for thread in self._threads:
            thread.join()

    def _work(self, place: int) -> None:
        """Publish one log, then close."""
        handovers, log = self.handovers, self._logs[place]
        try:
            with self._publishers[place] as publisher:
                for stretch, (start, end) in enumerate(pairwise(handovers.edges.tolist())):
                    if stretch == (len(handovers.edges) - 1) // 2:
                        self._halfway.wait()
                    part = log.between(start, end)
                    handovers.seconds[place, stretch] = time.perf_counter()
                    publisher.publish_batch(part.batches, promise=end, numbered=True)
                    self._published[place] += len(part)
        except Exception as failure:  # raised in the thread that asks
            self._failures.append(failure)
            self._halfway.abort()


class Network(Protocol):
    """Running brokers; a context manager that stops them."""

    def await_ready(self) -> Iterable[tuple[str, str]]:
        """The names and endpoints of the brokers, as soon as they can be reached."""
        ...

    def address(self, name: str) -> str | Address:
        """The address of a broker that can be reached."""
        ...

    def restart(self, name: str) -> None:
        """Kill one of them, and start it again."""
        ...

    def kill(self) -> None:
        """End them at once."""
        ...

    def __enter__(self) -> Network: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Demo:
    """Brokers with the demo's rules, and a subscriber to all that they define.

    A context manager, that leaves no process behind. ``types`` are the names of the composite
    events; ``durable``: the brokers have stores, and the subscription is durable. Raises
    BrokerError when a broker does not come up, RefusedError when the rules are refused.
    """

    def __init__(self, network: Network, *, durable: bool = False) -> None:
        self._durable = durable
        with ExitStack() as opened:
            self._network = opened.enter_context(network)
            self.names = [name for name, _ in self._network.await_ready()]
            self._addresses = [self._network.address(name) for name in self.names]
            self._managers = [
                opened.enter_context(RuleManager(address)) for address in self._addresses
            ]
            self._await_tree()
            manager = self._managers[len(self._managers) // 2]
            manager.add(RULES.read_text("utf-8"), file=RULES.name)
            self.types = tuple(dict.fromkeys(rule["type"] for rule in manager.list()))
            self._subscriber = opened.enter_context(
                Subscriber(self._addresses[-1], *self.types, name=SUBSCRIBER, durable=durable)
            )
            self._opened = opened.pop_all()

    def publish(self, logs: Sequence[Log], halfway: Callable[[], None]) -> Publishing:
        """Publishers for these logs, ready to start."""
        return Publishing(self._addresses, logs, halfway)

    def deliveries(self, publishing: Publishing) -> Iterator[tuple[Delivery, int] | None]:
        """Deliveries of the subscriber, to the last, each with how many of its events, the last,
        have not come before; None now and then, while nothing comes.
        """
        taken, expected = 0, None
        while expected is None or taken < expected:
            try:
                delivery = self._subscriber.receive_delivery(PAUSE_S)
            except TimeoutError:
                yield None
            else:
                new = (
                    min(delivery.number - taken, len(delivery)) if self._durable else len(delivery)
                )
                if new > 0:
                    taken += new
                    yield delivery, new
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
            self._network.kill()
        self._opened.__exit__(kind, error, traceback)

    def _await_tree(self) -> None:
        """Wait until all brokers are in one tree: rules do not move with the centre."""
        if len(self._managers) == 1:
            return
        deadline = time.monotonic() + FORMED_S
        while time.monotonic() < deadline:
            networks = [manager.status()["network"] for manager in self._managers]
            if _are_formed(networks):
                return
            time.sleep(PAUSE_S)
        raise BrokerError(f"the brokers are not in one tree after {FORMED_S:g} s")

    def _delivered(self) -> int | None:
        """How many events the subscriber is to get in all; None before that is certain."""
        states = [manager.status() for manager in self._managers]
        sources = [source for status in states for source in status["sources"]]
        lost = sorted(one["name"] for one in sources if one["standing"] == SourceState.LOST.value)
        if lost:  # its publisher has closed, so it will not come back
            raise BrokerError(f"the broker has lost the publisher {lost[0]}")
        (sink,) = (one for one in states[-1]["sinks"] if one["name"] == SUBSCRIBER)
        if not sink["ended"]:
            return None
        if self._durable:
            [own] = self._managers[-1].durables()
            return int(own["last"])
        left: int = sink["queued"] + sink["held"]
        return int(sink["delivered"]) + left


def processes(
    engine: str,
    brokers: int = 1,
    strategy: str = DEFAULT_STRATEGY,
    *,
    secure: bool = False,
    data: Path | None = None,
) -> BrokerNetwork:
    """Brokers as processes that show their errors, and may take their time; ``secure``: with keys
    that go with them; ``data``: with stores, each in a folder there that has its broker's name.
    BrokerError where one of these is there already.
    """
    arguments = ["--engine", engine]
    if brokers > 1:
        arguments += ["--strategy", strategy]
    patience = ("--log-level", "error", "--heartbeat-s", f"{HEARTBEAT_S:g}")
    network = ring(brokers)
    if data is not None:
        network = tuple(_with_store(member, data / member.name) for member in network)
    return BrokerNetwork(network, *arguments, *patience, log=None, secure=secure)


def _with_store(member: Member, folder: Path) -> Member:
    if folder.exists():
        raise BrokerError(f"{folder} is there already: the demo begins with empty stores")
    return replace(member, flags=("--data", str(folder)))


def ring(brokers: int) -> tuple[Member, ...]:
    """Brokers b1, b2, ... in a ring; from four on the first and the third are linked, too."""
    names = [f"b{number}" for number in range(1, brokers + 1)]
    links = list(pairwise(names))
    if brokers > 2:
        links.append((names[-1], names[0]))
    if brokers > 3:
        links.append((names[0], names[2]))
    return members([(name, None) for name in names], links)


def _are_formed(networks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all brokers see one another, and nothing more follows from that."""
    seen = {(one["root"], one["centre"]) for one in networks}
    return len(seen) == 1 and all(_is_formed(one, len(networks)) for one in networks)


def _is_formed(network: Mapping[str, Any], brokers: int) -> bool:
    has_tree = any(tree["root"] == network["centre"] for tree in network["trees"])
    reachable = sum(one["reachable"] for one in network["brokers"])
    return bool(network["settled"]) and reachable == brokers and has_tree


def edges_of(logs: Sequence[Log]) -> Int64s:
    """The bounds of the stretches that the logs are published in."""
    times = [batch.time for log in logs for batch in log.batches if len(batch)]
    start = min((int(one[0]) for one in times), default=0)
    end = max((int(one[-1]) for one in times), default=0)
    return start + np.arange((end - start) // STRETCH + 2) * STRETCH
