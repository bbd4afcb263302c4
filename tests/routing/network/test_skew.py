"""How far sources run ahead of those of other brokers (evaluation.skew, brokers.back_pressure)."""

from dataclasses import replace

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of, schema_of

from routing.config import Ordering
from routing.messages import Remove
from routing.network.strategy import names

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
FIRE = """
event Smoke(room: string)
rule fire: define Fire(room: string, value: float)
  from Smoke() as s and last Temp(room = s.room) as t within 20 s from s
  where room = s.room, value = t.value
"""
HOT = """
event Smoke(room: string)
rule hot: define Hot(room: string) from Temp() as t where room = t.room
"""
LEAD_S, CREDIT = 10, 4
FAR = "what Temp feeds is full, or waits for others, in the network"


@pytest.fixture(autouse=True, params=names())
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def slack() -> int:
    """Who keeps events for masters hears how far these are twice as late as the rule reaches."""
    return 2 * 20 if Network.strategy.startswith("push-pull") else 0


class Uneven(Network):
    """Temp and Smoke come at different brokers, and need not keep step."""

    def __init__(self, count: int = 3, rule: str = FIRE, **options: object) -> None:
        super().__init__(count, lead_max_s=float(LEAD_S), publish_credit=CREDIT, **options)
        self.connect("t", "b1", increasing=True).advertise([TEMP])
        self.run(0.2)
        self.connect("m", "b2").deploy(rule)
        self.run(0.2)

    def smoke(self) -> None:
        self.connect("s", f"b{len(self.brokers)}").advertise([SMOKE])
        self.run(0.2)

    def sink(self) -> None:
        self.connect("k", "b2").subscribe("Fire()")
        self.run(0.5)
        self.take_lines()

    def temps(self, first: int, last: int) -> None:
        """One event each second of event time, every 50 ms."""
        for second in range(first, last):
            batches = batches_of(f'Temp@{second}("a", {second})', SCHEMAS)
            self.clients["t"].publish(batches, self.mesh.now)
            self.run(0.05)
        self.run(3)

    def slow(self) -> None:
        """Smoke comes too, and has come to 2 s."""
        self.smoke()
        self.sink()
        self.publish("s", 'Smoke@1("b")', 2)

    def run_ahead(self, last: int) -> None:
        """Temp comes up to then, and is held up for Smoke."""
        self.slow()
        self.temps(1, last)
        assert self.withheld == FAR

    @property
    def withheld(self) -> str | None:
        (source,) = (one for one in self.brokers["b1"].context.sources if one.name == "t")
        return source.withheld

    @property
    def waiting(self) -> int:
        """Events of t that its broker has not taken."""
        return self.clients["t"].outgoing.unacknowledged


def test_who_runs_far_ahead_of_a_silent_source_elsewhere_waits_for_it() -> None:
    network = Uneven()
    network.run_ahead(101)
    taken = 100 - network.waiting
    assert LEAD_S <= taken <= 2 + LEAD_S + 2 * CREDIT + slack()
    network.publish("s", 'Smoke@50("a")', 51)
    network.run(3)
    assert network.withheld == FAR
    assert 50 <= 100 - network.waiting <= 51 + LEAD_S + 2 * CREDIT + slack()
    network.publish("s", 'Smoke@100("a")', 101)
    network.run(3)
    assert network.withheld is None
    assert network.waiting == 0
    assert network.take_lines() == [
        'k: Fire@50("a", 50.0) <- s#2 t#50',
        'k: Fire@100("a", 100.0) <- s#3 t#100',
    ]


def test_a_source_that_closes_lets_others_go_on() -> None:
    network = Uneven()
    network.run_ahead(61)
    network.clients["s"].close(network.mesh.now)
    network.run(3)
    assert network.waiting == 0


def test_who_has_said_nothing_yet_holds_others_up_from_where_they_began() -> None:
    network = Uneven()
    network.smoke()
    network.sink()
    network.temps(1_000, 1_100)
    assert network.withheld == FAR
    assert LEAD_S <= 100 - network.waiting <= LEAD_S + 2 * CREDIT + slack()


def test_a_type_that_nobody_publishes_holds_nobody_up() -> None:
    network = Uneven()
    network.sink()
    network.temps(1, 101)
    assert network.waiting == 0


def test_nobody_waits_for_what_no_rule_needs_together() -> None:
    network = Uneven(rule=HOT)
    network.smoke()
    network.publish("s", 'Smoke@1("b")', 2)
    network.temps(1, 101)
    assert network.waiting == 0


def test_who_waits_for_a_source_out_of_reach_goes_on_when_that_is_back() -> None:
    network = Uneven(4)
    network.run_ahead(201)
    for wire in network.both_ways("b3", "b4"):
        wire.cut = True
    network.run(10)
    assert network.withheld == FAR
    network.clients["s"].close(network.mesh.now)
    for wire in network.both_ways("b3", "b4"):
        wire.cut = False
    network.run(10)
    assert network.waiting == 0


def test_the_limit_can_be_changed_while_a_source_is_held_up() -> None:
    network = Uneven()
    network.run_ahead(61)
    for broker in network.brokers.values():
        broker.configure(replace(broker.context.config, lead_max_s=1_000.0), network.mesh.now)
    network.run(3)
    assert network.waiting == 0


def test_what_is_kept_for_masters_that_do_not_come_any_more_is_forgotten() -> None:
    """Whoever publishes them again begins beyond it."""
    network = Uneven()
    network.slow()
    network.clients["s"].close(network.mesh.now)
    network.temps(1, 401)
    assert network.waiting == 0
    kept = (broker.status(network.mesh.now)["kept_below"] for broker in network.brokers.values())
    assert max(kept) <= 150
    del network.clients["s"]
    network.smoke()
    network.take_lines()
    network.publish("s", 'Smoke@402("a")', 403)
    network.temps(410, 411)
    assert network.take_lines() == ['k: Fire@402("a", 400.0) <- s#2 t#400']


def test_who_waits_for_others_in_a_fragment_lags() -> None:
    """Temp and Smoke meet below the broker that evaluates the rule, and only there."""
    rule = """
    event Smoke(room: string)
    event Alarm(room: string)
    rule all: define All(room: string)
      from Alarm() as a and last Smoke(room = a.room) as s within 20 s from a
      and last Temp(room = a.room) as t within 20 s from s
      where room = a.room
    """
    network = Uneven(5, rule=rule)
    network.connect("s", "b2").advertise([SMOKE])
    network.connect("a", "b5").advertise([schema_of("Alarm(room: string)")])
    network.connect("k", "b5").subscribe("All()")
    network.run(0.5)
    network.publish("s", 'Smoke@1("b")', 2)
    network.temps(1, 201)
    assert network.withheld == FAR
    assert LEAD_S <= 200 - network.waiting <= 2 + LEAD_S + 2 * CREDIT + 2 * slack()
    network.clients["s"].close(network.mesh.now)
    network.clients["a"].close(network.mesh.now)
    network.run(3)
    assert network.waiting == 0


@pytest.mark.parametrize("broker", ["b1", "b3"])
def test_by_arrival_nobody_runs_ahead(broker: str) -> None:
    network = Uneven(ordering=Ordering.ARRIVAL)
    network.connect("s", broker).advertise([SMOKE])
    network.sink()
    network.publish("s", 'Smoke@1("b")', 2)
    network.temps(1, 61)
    assert network.waiting == 0


def test_a_slow_source_of_the_same_type_is_waited_for() -> None:
    network = Uneven(rule=HOT)
    network.connect("u", "b3").advertise([TEMP])
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("u", 'Temp@1("b", 1)', 2)
    network.temps(1, 101)
    assert network.withheld == FAR
    assert LEAD_S <= 100 - network.waiting <= 2 + LEAD_S + 2 * CREDIT


def test_another_type_that_is_far_ahead_hides_nothing() -> None:
    rule = f"{FIRE} event Zed(room: string) rule z: define Zeds() from Zed()"
    network = Uneven(rule=rule)
    network.smoke()
    network.sink()
    network.connect("z", "b2").advertise([schema_of("Zed(room: string)")])
    network.run(0.2)
    network.publish("z", 'Zed@1000000("a")', schemas={"Zed": schema_of("Zed(room: string)")})
    network.publish("s", 'Smoke@1("b")', 2)
    network.temps(1, 101)
    assert network.withheld == FAR
    assert LEAD_S <= 100 - network.waiting <= 2 + LEAD_S + 2 * CREDIT + slack()


def test_a_rule_that_waits_through_another_holds_nobody_up() -> None:
    rule = """
    event Smoke(room: string)
    rule below: define Mid(room: string) from Smoke() as s where room = s.room
    rule above: define All(room: string)
      from Temp() as t and last Mid() as m within 5 s from t where room = t.room
    """
    network = Uneven(rule=rule)
    network.connect("k", "b2").subscribe("All()")
    network.temps(1, 101)
    assert network.waiting == 0


def test_a_rule_that_has_ended_holds_nobody_up() -> None:
    """Also while somebody is out of reach, and it is not dropped."""
    network = Uneven(4)
    network.connect("s", "b3").advertise([SMOKE])
    network.sink()
    network.publish("s", 'Smoke@1("b")', 2)
    for wire in network.both_ways("b3", "b4"):
        wire.cut = True
    network.temps(1, 201)
    assert network.withheld == FAR
    network.clients["m"].ask(Remove, "fire")
    network.run(5)
    assert network.waiting == 0
