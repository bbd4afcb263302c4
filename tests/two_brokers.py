"""Two live brokers, linked, of which a test may kill the first."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from broker import RuleManager
from broker.process import BrokerProcess


@contextmanager
def two_brokers() -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    """The first is linked to the second; both know it."""
    common = ("--heartbeat-s", "0.5", "--engine", "naive")
    with (
        BrokerProcess("--name", "second", *common, "--strategy", "centralized") as second,
        BrokerProcess("--name", "first", *common, "--link", second.endpoint) as first,
    ):
        for one in (first, second):
            _await_link(one.endpoint)
        yield first, second


def _await_link(endpoint: str) -> None:
    """Return when a broker knows the other, and where rules are to run."""
    with RuleManager(endpoint) as manager:
        while True:
            network = manager.status()["network"]
            if network["settled"] and len(network["brokers"]) == 2:
                return
            time.sleep(0.05)
