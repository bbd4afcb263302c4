"""Acknowledgements of what is committed: all that follows from it has come where it is going."""

from brokers import SCHEMAS, Network
from conversation import batches_of
from lone import lone

from matcher.model import TIME_MIN, EventBatch
from routing.messages import Acks
from routing.session import Session

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
FIRE = """
rule fire: define Fire(room: string) from Smoke() as s
  and last Temp(room = s.room) as t within 5 min from s where room = s.room
"""


def furnished(count: int) -> tuple[Network, Session]:
    """s, at the last broker, wants its Smokes committed; t, at the first, promises Temps."""
    network = Network(count)
    network.connect("t", "b1").advertise([TEMP])
    committed = network.connect("s", f"b{count}", acks=Acks.COMMITTED)
    committed.advertise([SMOKE])
    network.run(1.0)
    network.connect("m", "b1").deploy(FIRE)
    network.connect("k", f"b{(count + 1) // 2}").subscribe("Fire()")
    network.run(1.0)
    network.take_lines()
    return network, committed


def check(count: int) -> None:
    network, committed = furnished(count)
    network.publish("t", 'Temp@1("a", 50)', 2)
    network.publish("s", 'Smoke@3("a")', 4)
    network.run(5.0)
    assert committed.outgoing.unacknowledged == 1, "Temps of 2 s and later may come"
    assert network.take_lines() == []
    network.publish("t", 'Temp@5("b", 50)', 5)
    network.run(1.5)
    assert network.take_lines() == ['k: Fire@3("a") <- s#1 t#1']
    assert committed.outgoing.unacknowledged == 0
    network.publish("s", 'Smoke@4("b")', 4.5)
    assert committed.outgoing.unacknowledged == 0, "at once, since all have come further"


def test_alone_it_is_what_its_rules_have_found() -> None:
    check(1)


def test_in_a_network_it_is_what_has_come_to_all_sinks() -> None:
    check(3)


def test_what_no_rule_takes_is_committed_once_it_has_come_everywhere() -> None:
    network = Network(3)
    committed = network.connect("t", "b1", acks=Acks.COMMITTED)
    committed.advertise([TEMP])
    network.connect("k", "b3").subscribe("Temp()")
    network.run(1.0)
    network.take_lines()
    committed.publish(temps(), network.mesh.now, None)
    network.run(0.015)
    assert committed.outgoing.unacknowledged == 1
    assert network.take_lines() == ['k: t#1 Temp@1("a", 50.0)']
    network.run(0.1)
    assert committed.outgoing.unacknowledged == 0


def temps() -> list[EventBatch]:
    return batches_of('Temp@1("a", 50)', SCHEMAS)


def test_what_was_not_committed_when_the_link_broke_is_sent_again_and_heard_of() -> None:
    network, committed = furnished(3)
    network.publish("s", 'Smoke@3("a")', 4)
    network.run(1.0)
    assert committed.outgoing.unacknowledged == 1
    network.lose("s", "b3")
    network.clients["s"] = network.mesh.parties["s"] = committed  # type: ignore[assignment]
    committed.connect(network.mesh.now)
    network.run(1.0)
    assert committed.outgoing.unacknowledged == 1, "the broker has it, which is not enough"
    network.publish("t", 'Temp@5("b", 50)', 5)
    network.run(3.0)
    assert committed.outgoing.unacknowledged == 0


def test_what_was_committed_stays_so() -> None:
    """A broker that evaluates a rule anew says that it has come to nothing yet; taken for what all
    sinks have, every broker had its whole log to read with the next plan.
    """
    detection = lone().context.detection
    detection.commit({"fire": 40})
    detection.commit({"fire": TIME_MIN, "smoke": 3})
    assert detection.committed == {"fire": 40, "smoke": 3}
