"""Brokers with stores that are drained and started again one after another, while events flow."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pairs import WHOLE

from broker import Publisher, RuleManager, Subscriber
from broker.monitoring.health import reasons_unready
from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", site="string", n="int")
RULE = (
    "event Temp(site: string, n: int) "
    "rule high: define High(site: string, n: int) from Temp(n > 0) as t "
    "where site = t.site, n = t.n"
)
RATE = 150
"""Events a second of each of two sources."""
WAIT_S = 60
SILENT_S, LOADED_S = 3.0, 10.0
"""The longest silence of the best restart, and of any: mostly each is less than one second, but
other tests have the processor, too."""
COUNTS = (3, 6) if WHOLE else (3,)


class Rolling:
    """A network in a ring, its two sources and a durable sink, which know all addresses."""

    def __init__(self, folder: Path, count: int, strategy: str) -> None:
        self.names = [f"b{number}" for number in range(1, count + 1)]
        self._folder, self._strategy = folder, strategy
        self.brokers: dict[str, BrokerProcess] = {}
        self.endpoints: dict[str, str] = {}
        for name in self.names:
            self.start(name)
        self.came: Counter[tuple[str, int]] = Counter()
        self.published: dict[str, int] = {}
        self.refused: list[str] = []
        self.silent_s = 0.0
        """The longest silence since the last restart began."""
        self.silences: list[float] = []
        self._over, self._ended = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    def start(self, name: str) -> None:
        others = [link for one, link in self.endpoints.items() if one != name]
        links = [word for link in others for word in ("--link", link)]
        self.brokers[name] = broker = BrokerProcess(
            *("--name", name, "--engine", "naive", "--strategy", self._strategy),
            *("--data", str(self._folder / name), *links),
            listen=(self.endpoints.get(name, "tcp://127.0.0.1:*"),),
        )
        self.endpoints[name] = broker.endpoint

    def addresses(self, first: int) -> str:
        names = self.names[first:] + self.names[:first]
        return ",".join(self.endpoints[name] for name in names)

    def flow(self) -> None:
        """Have events published and taken from now on."""
        with RuleManager(self.addresses(0)) as manager:
            manager.add(RULE)
        with Subscriber(self.addresses(2), "High()", name="pager", durable=True):
            pass  # it is there before anything is published
        work = [(self._take,), (self._publish, "x", 0), (self._publish, "y", 1)]
        self.threads = [threading.Thread(target=one[0], args=one[1:], daemon=True) for one in work]
        for thread in self.threads:
            thread.start()
        self._until(lambda: len(self.came) > RATE)

    def end(self) -> None:
        """Have no more published, and all of it taken."""
        self._over.set()
        for thread in self.threads[1:]:
            thread.join(WAIT_S)
        self._until(lambda: len(self.came) >= sum(self.published.values()))
        self._ended.set()
        self.threads[0].join(WAIT_S)

    def restart(self, name: str) -> None:
        """Drain a broker, start it again, and wait until it is ready."""
        self.silent_s = 0.0
        with RuleManager(self.endpoints[name]) as manager:
            manager.drain()
        assert self.brokers[name].child.wait(WAIT_S) == 0
        self.start(name)
        with RuleManager(self.endpoints[name]) as manager:
            self._until(lambda: not reasons_unready(manager.status()))
        came = len(self.came)
        self._until(lambda: len(self.came) > came)
        self.silences.append(round(self.silent_s, 2))

    def _until(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < until, (len(self.came), self.published)
            time.sleep(0.05)

    def _publish(self, site: str, first: int) -> None:
        with Publisher(
            self.addresses(first),
            name=site,
            types=[TEMP],
            increasing=True,
            on_refusal="keep",
            timeout_s=WAIT_S,
        ) as publisher:
            number, begun = 0, time.monotonic()
            while not self._over.is_set():
                number += 1
                publisher.publish("Temp", site=site, n=number)
                self.published[site] = number
                time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
            publisher.wait(WAIT_S)
            self.refused += map(str, publisher.take_refusals())

    def _take(self) -> None:
        with Subscriber(self.addresses(2), "High()", name="pager", durable=True) as subscriber:
            last = time.monotonic()
            while not self._ended.is_set():
                try:
                    event = subscriber.receive(timeout_s=0.5)
                except TimeoutError:
                    continue
                now = time.monotonic()
                self.silent_s, last = max(self.silent_s, now - last), now
                self.came[event.data["site"], event.data["n"]] += 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("strategy", ["distributed-st"])
def test_a_rolling_restart_loses_repeats_and_refuses_nothing(
    tmp_path: Path, strategy: str, count: int
) -> None:
    """A broker that was drained and started again waited for its sources, which had gone on
    elsewhere, and had all rules over their types wait for an hour; what a source that moved
    published was late if another one of its type was ahead.
    """
    network = Rolling(tmp_path, count, strategy)
    try:
        network.flow()
        for name in network.names:
            network.restart(name)
        network.end()
    finally:
        for broker in network.brokers.values():
            broker.stop()
    wanted = {(site, n) for site, last in network.published.items() for n in range(1, last + 1)}
    twice = sum(network.came.values()) - len(network.came)
    print(
        f"{count} brokers, {len(wanted)} events: {len(wanted - network.came.keys())} lost, "
        f"{twice} twice, {len(network.refused)} refused, silences {network.silences} s"
    )
    assert network.refused == []
    assert network.came == Counter(dict.fromkeys(wanted, 1))
    assert min(network.silences) < SILENT_S
    assert max(network.silences) < LOADED_S
