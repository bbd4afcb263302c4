"""Sources that live and lag: rules wait for them no longer than is said for their types."""

import time
from collections.abc import Iterator

import pytest

from broker import Publisher, RuleManager, Subscriber
from broker.configuration import load
from broker.errors import ConfigurationError
from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", site="string")
RULE = (
    "event Temp(site: string) rule seen: define Seen(site: string) from Temp() as t "
    "where site = t.site"
)
LIMIT_S, WAIT_S = 2.0, 20.0


@pytest.fixture(params=[(), ("--strategy", "distributed-st")], ids=["alone", "network"])
def endpoints(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """One broker, or two; sources go to the last, which has the limit."""
    options, brokers = request.param, list[BrokerProcess]()
    for name in ("b1", "b2") if options else ("b1",):
        links = [word for one in brokers for word in ("--link", one.endpoint)]
        brokers.append(
            BrokerProcess(
                *("--name", name, "--engine", "naive", "--wait-at-most", f"Temp={LIMIT_S:g}"),
                *(*options, *links),
            )
        )
    try:
        yield [one.endpoint for one in brokers]
    finally:
        for broker in brokers:
            broker.stop()


def source(endpoint: str, name: str) -> Publisher:
    return Publisher(endpoint, name=name, types=[TEMP], increasing=True, on_refusal="keep")


def test_a_rule_fires_without_a_source_that_stands_still(endpoints: list[str]) -> None:
    home = endpoints[-1]
    with (
        RuleManager(endpoints[0]) as manager,
        source(home, "goes") as goes,
        source(home, "stands") as stands,
        Subscriber(endpoints[0], "Seen()") as subscriber,
    ):
        manager.add(RULE)
        begun = time.time()
        stands.publish("Temp", time=begun, site="stands")
        goes.publish("Temp", time=begun + 0.1, site="goes")
        goes.publish("Temp", time=begun + 0.2, site="goes")
        sites = [subscriber.receive(timeout_s=WAIT_S).data["site"] for _ in range(3)]
        assert sites == ["stands", "goes", "goes"]
        assert time.time() - begun > LIMIT_S, "until then it is waited for"
        stands.publish("Temp", time=begun + 0.15, site="late")
        stands.publish("Temp", time=time.time(), site="again")
        stands.wait(WAIT_S)
        (refusal,) = stands.take_refusals()
        assert "wait_at_most" in str(refusal)
        assert subscriber.receive(timeout_s=WAIT_S).data["site"] == "again"
    with RuleManager(home) as manager:
        (temp,) = (one for one in manager.status()["types"] if one["name"] == "Temp")
    assert temp["late"] == 1


def test_a_limit_of_a_type_is_read_in_every_form() -> None:
    said = {"wait_at_most": "Temp=30, Smoke=1.5"}
    assert load(None, {}, said).node.wait_at_most == (("Smoke", 1.5), ("Temp", 30.0))
    assert load(None, {"REXMQ_WAIT_AT_MOST": "Temp=30"}, {}).node.waits_us == {"Temp": 30_000_000}
    assert load(None, {}, {}).node.wait_at_most == ()


@pytest.mark.parametrize("text", ["Temp", "Temp=0", "Temp=1,Temp=2", "Temp=soon", "=3"])
def test_what_is_no_limit_of_a_type_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--wait-at-most: expected types with seconds"):
        load(None, {}, {"wait_at_most": text})
