"""Back-pressure across a network: sinks that block, and links that are slow (back_pressure)."""

import itertools

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of
from pairs import some_of

from routing.messages import ANY_TYPE, Hold, WhenFull
from routing.partition import rule_states
from routing.session import Session

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
CREDIT = 20
FULL = "what Temp feeds is full, or waits for others, in the network"


STRATEGIES = some_of(["centralized", "distributed-st", "push-pull-mt"], 1, 2)


@pytest.fixture(autouse=True, params=STRATEGIES)
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


class Slow(Network):
    """A sink takes what it is told to take."""

    taken = 0

    def subscriber(self, broker: str, *texts: str, limit: int = 10) -> Session:
        session = self.connect("k", broker, delivery_credit=CREDIT)
        session.consume = lambda events: None  # type: ignore[method-assign]
        for text in texts:
            session.subscribe(text, WhenFull.BLOCK, limit)
            self.run(0.5)
        self.take_lines()
        return session

    def take(self) -> None:
        """Let the sink take what it has got since."""
        events = len(self.lines) - self.taken
        self.taken = len(self.lines)
        Session.consume(self.clients["k"], events)
        self.run(1)

    def source(self, name: str, broker: str, *types: str, increasing: bool = False) -> Session:
        session = self.connect(name, broker, increasing=increasing)
        session.advertise([SCHEMAS[one] for one in types])
        self.run(0.5)
        return session

    def make_slow(self, one: str, other: str) -> None:
        for wire in self.both_ways(one, other):
            wire.delay_s = 0.1

    def withheld(self, name: str) -> str | None:
        for broker in self.brokers.values():
            for one in broker.context.sources:
                if one.name == name and not one.home:
                    return one.withheld
        raise AssertionError(name)

    def publish_many(
        self, name: str, count: int, form: str = "Temp", after: int = 0
    ) -> set[str | None]:
        """One event every 2 ms; gives why the source got no credit meanwhile."""
        withheld = set()
        data = {"Temp": '("a", 1)', "Smoke": '("a")'}[form]
        for number in range(after + 1, after + count + 1):
            batches = batches_of(f"{form}@{number}{data}", SCHEMAS)
            self.clients[name].publish(batches, self.mesh.now)
            self.run(0.002)
            withheld.add(self.withheld(name))
        self.run(1)
        return withheld


@pytest.mark.parametrize("broker", ["b1", "b2", "b3"])
def test_a_sink_that_blocks_holds_up_sources_at_other_brokers(broker: str) -> None:
    network = Slow(3, publish_credit=CREDIT)
    network.source("t", "b1", "Temp")
    network.source("s", "b1", "Smoke")
    network.subscriber(broker, "Temp()")
    network.publish_many("t", 200)
    (sink,) = network.brokers[broker].context.sinks
    assert sink.limit <= sink.queued <= sink.limit + 2 * CREDIT
    assert len(network.lines) == CREDIT
    assert network.withheld("t") == ("sink k is full" if broker == "b1" else FULL)
    network.publish_many("s", 3 * CREDIT, form="Smoke")
    assert network.clients["s"].outgoing.unacknowledged == 0, "nobody waits for it"
    while len(network.lines) > network.taken:
        network.take()
    assert network.lines == [f'k: t#{n} Temp@{n}("a", 1.0)' for n in range(1, 201)]
    assert network.withheld("t") is None
    assert not any(one.back_pressure.told for one in network.brokers.values())


def test_a_sink_that_goes_holds_up_nobody() -> None:
    network = Slow(3, publish_credit=CREDIT)
    network.source("t", "b1", "Temp")
    sink = network.subscriber("b3", "Temp()")
    network.publish_many("t", 100)
    assert network.withheld("t") == FULL
    sink.close(network.mesh.now)
    network.run(1)
    assert network.withheld("t") is None
    assert network.clients["t"].outgoing.unacknowledged == 0


def test_whose_marks_are_waited_for_gets_credit() -> None:
    """Held-back composite events fill the queue: only sources beyond the mark are held up."""
    network = Slow(3, publish_credit=CREDIT)
    network.source("t", "b1", "Temp", increasing=True)
    network.source("s", "b3", "Smoke")
    hot = "rule hot: define Hot(room: string) from Temp() as t where room = t.room"
    smoky = "rule smoky: define Smoky(room: string) from Smoke() as s where room = s.room"
    network.connect("m", "b2").deploy(f"{hot}\n{smoky}")
    network.run(0.5)
    network.subscriber("b2", "Hot()", "Smoky()")
    network.publish_many("t", 100)
    (sink,) = network.brokers["b2"].context.sinks
    assert sink.queued == 0
    assert sink.held.events >= sink.limit
    assert network.withheld("t") == FULL
    for number in itertools.count():
        if network.withheld("t") is None:
            break
        assert number < 100, "the source whose marks are waited for is held up"
        network.publish("s", f'Smoke@{number * 3}("a")', number * 3)
        network.run(0.5)
        network.take()
    assert network.lines


WINDOW = {"window_max": 8, "buffer_max": 128}


@pytest.mark.parametrize(("source", "sink"), [("b4", "b1"), ("b1", "b4"), ("b4", "b2")])
def test_a_slow_link_holds_up_who_sends_over_it(
    source: str, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only brokers beside it knew: sources further away made its buffer overflow."""
    monkeypatch.setattr(Network, "overlay", WINDOW)
    network = Slow(4, publish_credit=CREDIT)
    network.make_slow("b2", "b3")
    network.source("t", source, "Temp")
    network.connect("k", sink).subscribe("Temp()")
    network.run(1)
    network.take_lines()
    assert network.publish_many("t", 600) - {None}
    network.run(20)
    assert network.lines == [f'k: t#{n} Temp@{n}("a", 1.0)' for n in range(1, 601)]
    assert "link starts anew" not in str(network.mesh.log)
    assert network.withheld("t") is None


def test_a_slow_link_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "overlay", WINDOW)
    network = Slow(4, publish_credit=CREDIT)
    network.make_slow("b4", "b3")
    network.source("t", "b1", "Temp")
    network.source("s", "b1", "Smoke")
    network.connect("k", "b4").subscribe("Temp()")
    network.connect("o", "b2").subscribe("Smoke()")
    network.run(1)
    network.take_lines()
    network.publish_many("t", 300)
    assert network.withheld("t") == FULL
    network.take_lines()
    for number in range(60):
        network.publish("s", f'Smoke@{number}("a")')
    assert len([one for one in network.take_lines() if one.startswith("o: s#")]) == 60
    assert network.withheld("s") is None


def test_what_is_wanted_once_messages_pile_up_is_held_up_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was looked at only when something began to pile up, or was over."""
    monkeypatch.setattr(Network, "overlay", WINDOW)
    network = Slow(3, publish_credit=CREDIT)
    network.make_slow("b2", "b3")
    network.source("t", "b2", "Temp")
    network.source("s", "b2", "Smoke")
    sink = network.connect("k", "b3")
    sink.subscribe("Temp()")
    network.run(1)
    withheld = set()
    for number in range(1, 1_200):
        events = [("t", f'Temp@{number}("a", 1)')]
        if number == 300:
            sink.subscribe("Smoke()")
        if number > 300:
            events.append(("s", f'Smoke@{number}("a")'))
        for name, text in events:
            network.clients[name].publish(batches_of(text, SCHEMAS), network.mesh.now)
        network.run(0.002)
        withheld.add(network.withheld("s"))
    assert "what Smoke feeds is full, or waits for others, in the network" in withheld
    assert "link starts anew" not in str(network.mesh.log)


def test_what_a_lost_neighbour_said_counts_no_more() -> None:
    network = Slow(3)
    network.source("t", "b1", "Temp")
    broker = network.brokers["b1"]
    broker.back_pressure.hear("b2", Hold(((ANY_TYPE, -(2**63)),)))
    for first in range(0, 9_000, 100):
        text = " ".join(f'Temp@{first + number}("a", 1)' for number in range(1, 101))
        network.clients["t"].publish(batches_of(text, SCHEMAS), network.mesh.now)
        network.run(0.2)
    assert network.withheld("t") == "the way through the network is full"
    for wire in network.both_ways("b1", "b2"):
        wire.cut = True
    network.run(10)
    assert network.withheld("t") is None


USED = """
rule used: define Used(room: string) from Temp() as t and last Temp() as before within 5 s from t
where room = t.room consuming before
"""


def test_what_is_found_while_no_checkpoint_tells_states_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sources of what such rules need wait until the broker that is away is back; others do not."""
    monkeypatch.setattr(rule_states, "NOTED_MANY", 10)
    monkeypatch.setattr(rule_states, "NOTED_MAX", 50)
    network = Slow(3, publish_credit=CREDIT)
    network.source("t", "b1", "Temp", increasing=True)
    network.source("s", "b1", "Smoke", increasing=True)
    network.connect("m", "b2").deploy(USED)
    network.connect("k", "b2").subscribe("Used()")
    network.source("o", "b3", "Smoke", increasing=True)
    network.run(1)
    network.take_lines()
    assert network.publish_many("t", 200) == {None}
    assert len(network.take_lines()) == 199
    assert noted(network) <= 50
    for wire in network.both_ways("b2", "b3"):
        wire.cut = True
    network.run(10)
    assert FULL in network.publish_many("t", 400, after=200)
    assert 50 <= noted(network) <= 50 + 2 * CREDIT
    assert network.publish_many("s", 3 * CREDIT, form="Smoke") == {None}
    assert network.withheld("t") == FULL
    for wire in network.both_ways("b2", "b3"):
        wire.cut = False
    network.run(30)
    assert network.withheld("t") is None
    assert len(network.take_lines()) == 400
    assert network.publish_many("t", 200, after=600) == {None}
    assert noted(network) <= 100, "as much as was under way at a checkpoint, and NOTED_MAX more"


def noted(network: Network) -> int:
    """Composite events of which no state has told yet, wherever the root is."""
    return sum(len(one.context.detection.evaluator.notes) for one in network.brokers.values())
