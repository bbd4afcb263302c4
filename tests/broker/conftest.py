"""A real broker, in a process of its own, for the tests of clients and commands."""

import itertools
from collections.abc import Iterator

import pytest
from forked import forked_brokers

from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")


@pytest.fixture(scope="package", autouse=True)
def forks() -> Iterator[None]:
    """Brokers need not import everything anew."""
    with forked_brokers():
        yield


@pytest.fixture(scope="module")
def broker():
    """One broker a module; its tests keep apart by the names that they use. Its engine is the one
    that loads nothing: which one it is makes no difference to clients.
    """
    with BrokerProcess("--heartbeat-s", "0.5", "--engine", "naive") as process:
        yield process


@pytest.fixture(scope="module")
def endpoint(broker):
    return broker.endpoint


_numbers = itertools.count()


@pytest.fixture
def temp():
    """An event type that no other test uses: ``Temp7(area: string, value: float)``."""
    return EventType(f"Temp{next(_numbers)}", TEMP.attributes)
