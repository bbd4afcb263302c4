"""Sources of a network that come under names of others, close early, or publish something else."""

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of, schema_of

from routing.config import SessionConfig
from routing.conversation import Lost
from routing.effects import BROKER
from routing.messages import Code, WhenFull
from routing.session import Session

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
HOT = "rule hot: define Hot(room: string) from Temp(value > 45) as t where room = t.room"
TAKEN = "other: refused (name-taken): a live client of broker b1 is named 't'"


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "push-pull-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def cut(network: Network, one: str, other: str, *, is_cut: bool = True) -> None:
    for wire in network.both_ways(one, other):
        wire.cut = is_cut


@pytest.mark.parametrize("broker", ["b2", "b3"], ids=["the root", "another"])
def test_who_was_refused_a_name_does_not_close_its_owner(broker: str) -> None:
    """By its Goodbye it did, and the root let its own clients have the names of remote sources."""
    network = Network(3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("k", "b3").subscribe("Temp()")
    network.run(0.5)
    network.take_lines()
    other = network.connect("t", broker, "other")
    other.advertise([TEMP])
    network.run(0.5)
    assert network.take_lines() == [TAKEN]
    other.close(network.mesh.now)
    network.run(0.5)
    network.publish("t", 'Temp@3("a", 51)', 4)
    assert network.take_lines() == ['k: t#1 Temp@3("a", 51.0)']
    network.connect("t", "b3", "other").advertise([TEMP])
    network.run(0.5)
    assert network.take_lines() == [TAKEN]


@pytest.mark.parametrize("how", ["closes", "is lost"])
def test_a_source_that_goes_before_it_is_answered_is_no_ghost(how: str) -> None:
    """The root took it in, and nobody ever said anything for it: rules over its types waited."""
    network = Network(3)
    network.connect("o", "b3").advertise([TEMP])
    network.run(0.3)
    network.connect("m", "b2").deploy(HOT)
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    ghost = network.connect("t", "b1")
    ghost.advertise([TEMP])
    ghost.close(network.mesh.now, returns=how == "is lost")
    network.run(1)
    network.take_lines()
    network.publish("o", 'Temp@1("a", 50)', 5)
    network.run(1)
    found = ['k: Hot@1("a") <- o#1']
    if how == "is lost":  # it waits for that to come back, as for any other
        assert network.take_lines() == []
        del network.clients["t"]
        network.connect("t", "b1").advertise([TEMP])
        network.run(0.5)
        network.clients["t"].promise(5_000_000)
        network.run(0.5)
        found.insert(0, "t: confirmed")
    assert network.take_lines() == found


def test_what_a_source_came_to_publish_apart_is_known_when_it_is_back() -> None:
    """The root knew the source already, and did not look at what it publishes."""
    network = Network(4)
    source = network.connect("x", "b4")
    source.advertise([TEMP])
    network.connect("k", "b1").subscribe("Smoke()")
    network.run(0.5)
    cut(network, "b3", "b4")
    network.run(10)
    source.advertise([SMOKE])
    network.run(1)
    cut(network, "b3", "b4", is_cut=False)
    network.run(10)
    network.connect("y", "b1").advertise([schema_of("Other(a: int)")])
    network.run(1)
    network.take_lines()
    network.publish("x", 'Smoke@3("b")', 4)
    assert network.take_lines() == ['k: x#1 Smoke@3("b")']


def test_what_is_kept_of_a_type_with_another_schema_takes_nothing_with_it() -> None:
    """It was sent again when all began anew, and voided all that was in the message with it."""
    anew = schema_of("Temp(room: string, value: string)")
    gas = schema_of("Gas(room: string)")
    network = Network(3)
    former = network.connect("t", "b1")
    former.advertise([TEMP])
    network.connect("s", "b1").advertise([SMOKE])
    network.connect("g", "b3").advertise([gas])
    network.run(0.3)
    network.connect("m", "b2").deploy(
        "rule f: define F(room: string) from Smoke(room = $r) and"
        " last Gas(room = $r) within 5 min from Smoke where room = Smoke.room"
    )
    network.connect("f", "b3").subscribe("F()")
    network.connect("k", "b3").subscribe("Temp()")
    network.run(0.5)
    network.publish("t", 'Temp@1("x", 50)', 2)
    former.close(network.mesh.now)
    network.run(0.5)
    del network.clients["t"]
    network.connect("t2", "b1").advertise([anew])
    network.run(0.5)
    network.publish("t2", 'Temp@4("x", "fifty")', 5, {"Temp": anew})
    network.publish("g", 'Gas@5("a")', 20, {"Gas": gas})
    network.publish("s", 'Smoke@6("a")', 6)
    cut(network, "b2", "b3")
    network.run(8)
    cut(network, "b2", "b3", is_cut=False)
    network.run(8)
    network.publish("s", 'Smoke@15("z")', 20)
    network.run(1)
    assert 'f: F@6("a") <- s#1 g#1' in network.take_lines()
    assert not [one for one in network.mesh.log if getattr(one, "level", "") == "error"]


def test_a_source_that_is_back_at_once_is_not_taken_for_gone() -> None:
    """While the tree pauses nobody is told who has closed. The root heard it only after it had let
    the source in once more, and took that for closed.
    """
    for milliseconds in range(0, 90, 5):
        network = Network(3)
        for wire in network.both_ways("b2", "b3"):  # for whom the others wait, paused
            wire.delay_s = 0.03
        network.connect("t", "b1").advertise([TEMP])
        network.run(0.5)
        network.connect("o", "b2").advertise([SMOKE])  # for which the tree pauses
        network.run(milliseconds / 1000)
        network.clients.pop("t").close(network.mesh.now)
        network.mesh.settle()
        network.connect("t", "b1", lasts_s=0.0).advertise([TEMP])
        network.run(0.5)
        (source,) = (one for one in network.brokers["b2"].context.remote_sources if one.name == "t")
        assert list(source.floors) == ["Temp"], f"after {milliseconds} ms"
        network.take_lines()
        network.connect("k", "b3").subscribe("Temp()")
        network.run(0.5)
        network.publish("t", 'Temp@4("x", 50)', 5)
        assert network.take_lines() == ["k: confirmed", 'k: t#1 Temp@4("x", 50.0)']


@pytest.mark.parametrize("home", ["b1", "b2"], ids=["another", "the root"])
def test_a_source_goes_on_with_its_numbers_at_another_broker(home: str) -> None:
    """It began again from 1, and its events were taken, acknowledged and dropped as repeats."""
    network = Network(3)
    former = network.connect("t", home)
    former.advertise([TEMP])
    network.run(0.3)
    network.connect("m", "b2").deploy(HOT)
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("t", 'Temp@1("x", 50) Temp@2("x", 51) Temp@3("x", 52)', 4)
    former.close(network.mesh.now)
    network.run(0.5)
    del network.clients["t"]
    later = network.connect("t", "b3")
    later.advertise([TEMP])
    network.run(0.5)
    network.take_lines()
    assert later.outgoing.last_sequence == 3
    later.publish(batches_of('Temp@10("a", 70)', SCHEMAS), network.mesh.now, numbered=False)
    later.promise(20_000_000)
    network.run(0.5)
    assert network.take_lines() == ['k: Hot@10("a") <- t#4']


@pytest.mark.parametrize(("home", "to"), [("b1", "b3"), ("b3", "b2"), ("b2", "b1"), ("b4", "b1")])
def test_a_source_whose_link_is_lost_goes_on_elsewhere(home: str, to: str) -> None:
    """Its name stayed taken until it had been refused once, but for the root's own."""
    network = Network(4)
    network.connect("t", home).advertise([TEMP])
    network.run(0.3)
    network.connect("m", "b2").deploy(HOT)
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("t", 'Temp@1("x", 50) Temp@2("x", 51)', 3)
    del network.clients["t"], network.mesh.parties["t"]
    network.brokers[home].lose(b"client t", network.mesh.now)
    network.take_lines()
    later = network.connect("t", to, "later")
    later.advertise([TEMP])
    network.run(0.5)
    assert network.take_lines() == ["later: confirmed"]
    assert later.outgoing.last_sequence == 2
    later.publish(batches_of('Temp@10("a", 70)', SCHEMAS), network.mesh.now, numbered=False)
    later.promise(20_000_000)
    network.run(0.5)
    assert network.take_lines() == ['k: Hot@10("a") <- t#3']


def test_who_goes_before_it_is_answered_may_do_so_twice() -> None:
    """The second time its Goodbye ended the broker: it was said to publish what nobody had
    advertised.
    """
    network = Network(3)
    network.connect("o", "b3").advertise([TEMP])
    network.run(0.5)
    for party in ("first", "second"):
        ghost = network.connect("t", "b1", party, lasts_s=0.01)
        ghost.advertise([TEMP])
        network.mesh.settle()
        ghost.close(network.mesh.now)
        network.run(1)
        source = network.brokers["b1"].context.sources.find("t")
        assert source is not None
        assert not source.floors
    network.connect("k", "b1").subscribe("Temp()")
    network.run(0.5)
    network.take_lines()
    network.publish("o", 'Temp@1("a", 50)', 5)
    assert network.take_lines() == ['k: o#1 Temp@1("a", 50.0)']


def test_a_lost_source_that_went_on_in_another_part_holds_nothing_up() -> None:
    """When the parts met, its first broker still waited for it, and rules with it, for ever."""
    network = Network(4)
    network.connect("t", "b4").advertise([TEMP])
    network.run(0.5)
    network.connect("m", "b1").deploy(HOT)
    network.connect("k", "b1").subscribe("Hot()")
    network.run(1)
    cut(network, "b2", "b3")
    network.run(10)
    del network.clients["t"], network.mesh.parties["t"]
    network.brokers["b4"].lose(b"client t", network.mesh.now)
    network.connect("t", "b1", "later").advertise([TEMP])
    network.run(2)
    cut(network, "b2", "b3", is_cut=False)
    network.run(15)
    network.take_lines()
    network.publish("later", 'Temp@10("a", 50)', 20)
    network.run(2)
    assert network.take_lines() == ['k: Hot@10("a") <- t#1']


def test_a_sink_that_blocks_is_sent_away_before_it_fills_the_memory() -> None:
    """What sources at other brokers still have credit for had no bound in its queue."""
    network = Network(3, queue_events_max=100)
    network.connect("t", "b1").advertise([TEMP])
    sink = Session(SessionConfig("k", delivery_credit=1))
    network.mesh.parties["k"] = sink  # type: ignore[assignment]
    network._wire("k", BROKER, "b3", b"client k", 0.0)
    network._wire("b3", b"client k", "k", BROKER, 0.0)
    sink.connect(network.mesh.now)
    network.run(0.1)
    sink.subscribe("Temp()", WhenFull.BLOCK, 10)
    network.run(0.5)
    sink.take_results()
    for second in range(1, 9):
        events = " ".join(f'Temp@{second}.{place:02}("a", 1)' for place in range(20))
        network.publish("t", events)
        found = [one for one in sink.take_results() if isinstance(one, Lost)]
        assert (second < 6) == (not found)
        if found:
            assert found[0].code is Code.QUEUE_FULL
            break
    assert not list(network.brokers["b3"].context.sinks)
    assert network.clients["t"].outgoing.unacknowledged == 0
