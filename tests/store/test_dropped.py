"""How many events a durable subscription has dropped is known after the broker is killed."""

import time
from pathlib import Path

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher import EventType

TEMP = EventType.of("Temp", n="int")
WAIT_S = 60.0


def asked(endpoint: str) -> Subscriber:
    return Subscriber(
        endpoint, "Temp()", name="billing", durable=True, queue=4, when_full="drop-oldest"
    )


def await_dropped(endpoint: str, events: int) -> None:
    with RuleManager(endpoint) as manager:
        end = time.monotonic() + WAIT_S
        while (found := manager.status()["durable"][0]["dropped"]) != events:
            assert time.monotonic() < end, found
            time.sleep(0.05)


def test_what_was_dropped_is_counted_and_told_after_the_broker_was_killed(tmp_path: Path) -> None:
    options = "--engine", "naive", "--data", str(tmp_path / "store")
    with BrokerProcess(*options) as broker:
        asked(broker.endpoint).close()
        with Publisher(broker.endpoint, name="s", types=[TEMP]) as source:
            for n in range(10):
                source.publish("Temp", n=n)
                source.wait(WAIT_S)
        await_dropped(broker.endpoint, 6)
        broker.kill()
    with BrokerProcess(*options) as broker:
        await_dropped(broker.endpoint, 6)
        with asked(broker.endpoint) as billing:
            found = [billing.receive(WAIT_S).data["n"] for _ in range(4)]
            assert (found, billing.dropped) == ([6, 7, 8, 9], 6)
            billing.acknowledge()
