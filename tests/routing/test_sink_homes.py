"""Homes of durable sinks, as others tell them and as the store has them."""

from types import SimpleNamespace

from routing.durability.records import homes_in, homes_record
from routing.durability.sink_homes import SinkHomes
from routing.messages import LinkState

KEPT = {"billing": "b3", "audit": "b4"}
FORGET_S = 300.0


def overlay(*states: LinkState) -> SimpleNamespace:
    """An overlay that has heard of these brokers."""
    durables = {name: one.origin for one in states for name in one.durables}
    config = SimpleNamespace(forget_s=FORGET_S)
    database = SimpleNamespace(changes=len(states))
    topology = SimpleNamespace(states=states, database=database)
    return SimpleNamespace(topology=topology, durables=durables, config=config)


def test_what_the_store_has_counts_until_its_broker_is_heard_of_or_would_be_forgotten() -> None:
    network = overlay()
    homes = SinkHomes(network)
    homes.recall(KEPT, now=1_000.0)
    assert homes.by_name(1_001.0) == KEPT
    vars(network).update(vars(overlay(LinkState("b4", 7), LinkState("b5", 7, durables=("till",)))))
    assert homes.by_name(1_002.0) == {"billing": "b3", "till": "b5"}, "b4 has audit no more"
    vars(network).update(vars(overlay()))
    assert homes.by_name(1_003.0) == {"billing": "b3"}, "what b4 has said stays said"
    assert homes.by_name(1_000.0 + FORGET_S) == {}


def test_what_is_told_supersedes_what_the_store_has() -> None:
    network = overlay(LinkState("b5", 7, durables=("billing",)))
    homes = SinkHomes(network)
    homes.recall(KEPT, now=0.0)
    assert homes.by_name(1.0) == {"billing": "b5", "audit": "b4"}


def test_the_store_is_asked_once_for_what_has_changed() -> None:
    network = overlay()
    homes = SinkHomes(network)
    assert [*homes.take_changes(0.0)] == []
    vars(network).update(vars(overlay(LinkState("b3", 7, durables=("billing",)))))
    (record,) = homes.take_changes(1.0)
    assert homes_in({record.kind: {record.key: record.value}}) == {"billing": "b3"}
    assert record == homes_record({"billing": "b3"})
    assert [*homes.take_changes(2.0)] == []
    network.topology.database.changes += 1
    assert [*homes.take_changes(3.0)] == [], "something else was told"
    vars(network).update(vars(overlay()))
    (record,) = homes.take_changes(4.0)
    assert homes_in({record.kind: {record.key: record.value}}) == {}


def test_an_older_store_names_no_homes() -> None:
    assert homes_in({}) == {}
