"""Five linked brokers on one machine, each a process: how they are linked, and what they detect."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import processor_s
from broker import RuleManager
from broker.process import BrokerProcess
from matcher.model import EventType

STAR: Mapping[str, tuple[str, ...]] = {
    "b2": (),
    "b1": ("b2",),
    "b3": ("b2", "b1"),
    "b4": ("b2", "b3"),
    "b5": ("b2", "b4"),
}
"""The brokers that each is linked to, of those that have been started before it."""
LINE: Mapping[str, tuple[str, ...]] = {
    "b1": (),
    "b2": ("b1",),
    "b3": ("b2",),
    "b4": ("b3",),
    "b5": ("b4",),
}
LINKS = {"star": STAR, "line": LINE}
HOMES = {"A": "b1", "B": "b3"}
"""The broker where the source of each type publishes."""
SINK = "b5"
"""The broker of the sink."""
TYPES = {name: EventType.of(name, k="int", n="int") for name in HOMES}
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
KEYS = 20
AGREED_S = 120.0


@contextmanager
def network(
    strategy: str,
    links: Mapping[str, tuple[str, ...]] = STAR,
    logs: Path | None = None,
    level: str = "error",
    before: Callable[[str], str] = str,
    data: Path | None = None,
) -> Iterator[dict[str, BrokerProcess]]:
    """Brokers that have agreed on their network and have the rules; those that are in the
    dictionary at the end are stopped. ``logs``: the folder for what they say, a file each.
    ``before`` gives the endpoint by which brokers link to one; ``data``: the folder for their
    stores, None for brokers without.
    """
    brokers: dict[str, BrokerProcess] = {}
    with ExitStack() as stack:
        stack.callback(lambda: _stop(brokers))
        for name in links:
            brokers[name] = started(name, strategy, links, brokers, logs, level, before, data)
        with RuleManager(brokers[SINK].endpoint, connect_timeout_s=AGREED_S) as manager:
            await_network(manager, len(links))
            manager.add(RULES)
        yield brokers


def started(
    name: str,
    strategy: str,
    links: Mapping[str, tuple[str, ...]],
    brokers: Mapping[str, BrokerProcess],
    logs: Path | None = None,
    level: str = "error",
    before: Callable[[str], str] = str,
    data: Path | None = None,
) -> BrokerProcess:
    """One of the brokers; where it has run before, it listens where it did."""
    former = brokers.get(name)
    listen = ("tcp://127.0.0.1:*",) if former is None else (former.endpoint,)
    words = [word for other in links[name] for word in ("--link", before(brokers[other].endpoint))]
    store = () if data is None else ("--data", str(data / name))
    options = ("--name", name, "--strategy", strategy, "--log-level", level, *store, *words)
    if logs is None:
        return BrokerProcess(*options, listen=listen)
    with (logs / f"{name}.log").open("a") as log:
        return BrokerProcess(*options, listen=listen, log=log)


def _stop(brokers: Mapping[str, BrokerProcess]) -> None:
    for broker in brokers.values():
        broker.child.terminate()
    for broker in brokers.values():
        broker.stop()


def await_network(manager: RuleManager, brokers: int) -> None:
    """Wait until so many brokers have agreed on their network; TimeoutError after AGREED_S."""
    network: dict[str, Any] = {}
    for _ in range(int(AGREED_S / 0.2)):
        network = manager.status()["network"]
        reached = [one for one in network["brokers"] if one["reachable"]]
        if network["settled"] and network["root"] and len(reached) == brokers:
            return
        time.sleep(0.2)
    raise TimeoutError(f"the network is not agreed on: {json.dumps(network)}")


def cpu_s(broker: BrokerProcess) -> float:
    """Seconds of CPU time that a broker has used (Linux); 0 once it has ended."""
    try:
        return processor_s(broker.child.pid)
    except OSError:
        return 0.0
