"""A durable subscription that is at another broker than the first of the client's addresses."""

import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from live_hosts import Hosts

from broker import Publisher, RefusedError, RuleManager, Subscriber
from broker.network import Member
from matcher import EventType

TEMP = EventType.of("Temp", value="int")
PATIENT = {"connect_timeout_s": 30.0, "timeout_s": 30.0}
DURABLE = {"name": "billing", "durable": True, **PATIENT}


def stored(folder: Path, network: Hosts, name: str) -> None:
    network.stop(name)
    network.start(name, data=str(folder / f"{name}-store"))


def test_a_subscriber_goes_through_its_addresses_to_the_broker_that_has_its_subscription(
    tmp_path: Path,
) -> None:
    members = (Member("b1", ()), Member("b2", ("b1",)), Member("b3", ("b1",)))
    options = {"strategy": "centralized", "engine": "naive"}
    with Hosts(tmp_path, members, **options) as network:
        for member in members:
            stored(tmp_path, network, member.name)
        b1, b2, b3 = (network.endpoint(member.name) for member in members)
        with Subscriber(b3, "Temp()", **DURABLE):
            pass
        with RuleManager(b1, **PATIENT) as manager:
            while manager.status()["durable_elsewhere"] != {"billing": "b3"}:
                time.sleep(0.05)
        with Publisher(b1, name="s", types=[TEMP], increasing=True, **PATIENT) as source:
            source.publish("Temp", value=7)
            source.wait(30)
        with Subscriber(f"{b1},{b2},{b3}", "Temp()", **DURABLE) as billing:
            assert billing.receive(timeout_s=30).data["value"] == 7
        with pytest.raises(RefusedError, match="'billing' is at broker b3"):
            Subscriber(f"{b1},{b2}", "Temp()", **DURABLE)


def test_a_broker_that_is_back_first_begins_no_second_subscription_of_a_name(
    tmp_path: Path,
) -> None:
    members = (Member("b1", ()), Member("b2", ("b1",)))
    with Hosts(tmp_path, members, strategy="centralized", engine="naive") as network:
        for member in members:
            stored(tmp_path, network, member.name)
        b1, b2 = (network.endpoint(member.name) for member in members)
        with Subscriber(b2, "Temp()", **DURABLE):
            pass
        with RuleManager(b1, **PATIENT) as manager:
            while manager.status()["durable_elsewhere"] != {"billing": "b2"}:
                time.sleep(0.05)
        network.stop("b2")
        stored(tmp_path, network, "b1")
        with pytest.raises(RefusedError, match="'billing' is at broker b2"):
            Subscriber(b1, "Temp()", **DURABLE)
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(Subscriber, f"{b1},{b2}", "Temp()", **DURABLE)
            assert not wait([waits], 1.0).done, "its broker may be the one that is away"
            network.start("b2", data=str(tmp_path / "b2-store"))
        with waits.result() as billing:
            with Publisher(b2, name="s", types=[TEMP], increasing=True, **PATIENT) as source:
                source.publish("Temp", value=7)
            assert billing.receive(timeout_s=30).data["value"] == 7
