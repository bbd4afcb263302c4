"""A durable sink that goes from a broker that drains to another one, either of them being killed
at any moment of it: each event comes once.
"""

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of
from kept_networks import Kept
from pairs import seeds

from broker.drain import Draining
from routing.delivery.durable import QueueBounds
from routing.errors import ProtocolError, Refusal
from routing.messages import EVERYTHING, HandOver, HandOverStep, Subscribe, WhenFull
from routing.network.strategy import names

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
FIRE = (
    "rule fire: define Fire(room: string, t: float) from Smoke(room = $r) and "
    "last Temp(room = $r and value > 45) within 5 min from Smoke where room = $r, t = Temp.value"
)


class Story:
    """Sources s and t at ``sources``, billing at ``leaves``, which drains after a while."""

    def __init__(self, network: Kept, leaves: str, sources: str, **options: Any) -> None:
        """``options``: of the subscriptions."""
        self.network, self.leaves, self.n, self.options = network, leaves, 0, options
        self.is_silent = False
        """Whether s publishes nothing, and promises nothing."""
        self._unsaid: list[tuple[str, int]] = []
        for name, schema in (("t", TEMP), ("s", SMOKE)):
            network.connect(name, sources).advertise([schema])
        network.connect("m", sources).deploy(FIRE)
        self.attach(leaves)
        network.run(1.0)
        network.take_lines()

    def attach(self, broker: str, **options: Any) -> None:
        client = self.network.connect("k", broker)
        for text in ("Temp()", "Fire()"):
            client.subscribe(text, durable="billing", **{**self.options, **options})
        self.network.run(0.5)

    def publish(self, count: int, lasts_s: float = 0.01) -> None:
        network = self.network
        for _ in range(count):
            self.n += 1
            at = self.n
            for name, text in (("t", f'Temp@{at}("a", {50 + at})'), ("s", f'Smoke@{at}("a")')):
                mark = round((at + 0.5) * 1e6)
                if name == "s" and self.is_silent:
                    self._unsaid.append((text, mark))
                else:
                    self._say(name, text, mark)
            network.run(lasts_s)

    def _say(self, name: str, text: str, mark: int) -> None:
        now = self.network.mesh.now
        self.network.clients[name].publish(batches_of(text, SCHEMAS), now, mark)

    def speak(self) -> None:
        """End the silence of s, and publish what it has not."""
        self.is_silent, unsaid, self._unsaid = False, self._unsaid, []
        for text, mark in unsaid:
            self._say("s", text, mark)

    def await_stage(self, stage: str) -> None:
        """Let time pass until the giver is so far."""
        giver = self.network.brokers[self.leaves].giver
        for _ in range(400):
            if giver._gift is not None and giver._gift.stage.value == stage:
                return
            self.network.run(0.005)
        pytest.fail(f"it never comes to {stage}")

    def drain(self) -> None:
        self.network.brokers[self.leaves].drain(self.network.mesh.now)
        self.network.mesh.settle()

    def check(self) -> None:
        got = Counter(name for name, _ in self.network.got)
        temps = [f"Temp@{n * 1000000}['a', {50.0 + n}]" for n in range(1, self.n + 1)]
        fires = [f"Fire@{n * 1000000}['a', {50.0 + n}]" for n in range(1, self.n + 1)]
        assert sorted(got) == sorted([*temps, *fires]), (len(got), 2 * self.n)
        self.check_repeats()

    def check_repeats(self) -> None:
        got = Counter(name for name, _ in self.network.got)
        twice = {name for name, count in got.items() if count > 1}
        again = {name for name, is_again in self.network.got if is_again}
        assert twice <= again


@pytest.fixture(autouse=True, params=names())
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize(
    ("leaves", "to", "sources"), [("b3", "b1", "b1"), ("b1", "b3", "b2"), ("b2", "b1", "b3")]
)
def test_a_durable_sink_goes_to_another_broker_while_events_flow(
    leaves: str, to: str, sources: str, away: bool
) -> None:
    network = Kept(3, f"{leaves} {to}")
    story = Story(network, leaves, sources)
    story.publish(10)
    if away:
        network.lose("k", leaves)
    story.publish(10)
    story.drain()
    story.publish(60)
    network.run(2.0)
    assert network.home() == to
    assert "billing" not in network.brokers[leaves].service.durables
    if away:
        network.take_lines()
    story.attach(to)
    story.publish(10)
    network.run(2.0)
    story.check()


@pytest.mark.parametrize("writes", [2, 9, 16, 25, 36])
@pytest.mark.parametrize("killed", ["b1", "b3"])
def test_either_broker_is_killed_in_the_middle(killed: str, writes: int) -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    story.publish(12)
    network.lose("k", "b3")
    story.publish(4)
    network.doomed[killed] = network.writes[killed] + writes
    story.drain()
    story.publish(20, 0.02)
    network.run(20.0)
    network.doomed.clear()
    home = network.home()
    story.attach(home)
    story.publish(10, 0.05)
    network.run(5.0)
    story.check()


def test_what_was_acknowledged_one_by_one_does_not_come_again() -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    network.deals = lambda number: number % 3 > 0
    story.publish(12)
    network.lose("k", "b3")
    story.drain()
    network.run(3.0)
    assert network.home() == "b1"
    had, network.got = network.got, []
    network.deals = lambda number: True
    story.attach("b1")
    assert [(name, True) for name, _ in had[2::3]] == network.got


def test_two_brokers_that_drain_give_one_another_nothing() -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    network.brokers["b1"].drain(network.mesh.now)
    story.drain()
    story.publish(5)
    network.run(5.0)
    assert network.home() == "b3"
    assert "drains" in network.brokers["b3"].giver.problem
    story.check()


def test_a_sink_of_a_name_that_another_broker_has_stays() -> None:
    network = Kept(3, "b1 b2 b3")
    story = Story(network, "b3", "b2")
    keeper = network.brokers["b1"]._journal
    assert keeper is not None
    keeper.durables.recall("billing", QueueBounds(WhenFull.BLOCK, 10), (), EVERYTHING, {})
    network.brokers["b2"].drain(network.mesh.now)
    story.drain()
    network.run(5.0)
    assert "billing" in network.brokers["b3"].service.durables
    assert "has a durable sink 'billing'" in network.brokers["b3"].giver.problem


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_sink_that_is_removed_on_its_way_is_nobodys(after_s: float) -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    story.publish(5)
    network.lose("k", "b3")
    story.drain()
    network.run(after_s)
    durables = [network.brokers[name].service.durables for name in ("b1", "b3")]
    left = None
    for one in durables:
        with suppress(Refusal):
            one.remove("billing")
            left = one
    network.run(3.0)
    assert sum("billing" in one for one in durables) == (left is None)


def test_a_hand_over_begins_again_when_the_tree_changes_while_it_waits() -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    story.publish(5)
    giver = network.brokers["b3"].giver
    story.drain()
    story.await_stage("wait")
    assert giver._gift is not None
    giver._gift.epoch = ("", 0)  # as after another plan
    network.run(5.0)
    assert network.home() == "b1"


@pytest.mark.parametrize("waits_for", ["checkpoint", "mark"])
def test_what_is_gathered_for_a_sink_that_does_not_come_has_a_bound(
    waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checkpoint tells the taker that it has all, or the giver waits for a rule's mark."""
    network = Kept(3, "b1 b3", queue_events_max=60)
    story = Story(network, "b3", "b2", limit=60)
    story.publish(5)
    giver, taker = network.brokers["b3"].giver, network.brokers["b1"]._parts.taker
    with monkeypatch.context() as patch:
        if waits_for == "mark":
            patch.setattr(giver, "_may_commit", lambda gift: False)
        else:
            patch.setattr(taker._checkpoints, "once_passed", lambda go_on: None)
        story.drain()
        story.await_stage("begin" if waits_for == "checkpoint" else "wait")
        network.run(0.1)
        (arriving,) = taker._coming.values()
        story.publish(40)
        network.run(0.2)
        assert arriving is not taker._coming.get("billing")
    network.run(5.0)
    assert network.home() == "b1"
    story.attach("b1")
    story.publish(5)
    network.run(2.0)
    story.check()


def test_a_name_is_free_at_the_taker_once_the_sink_is_removed_at_the_giver() -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    story.publish(5)
    network.lose("k", "b3")
    story.drain()
    story.await_stage("begin")
    network.run(0.05)
    assert "billing" in network.brokers["b1"].service.durables.coming
    network.brokers["b3"].service.durables.remove("billing")
    network.run(1.0)
    network.got.clear()
    story.attach("b1")
    story.publish(3)
    network.run(2.0)
    assert len(network.got) == 6


def test_a_sink_that_is_made_where_another_was_coming_has_nothing_of_it() -> None:
    """The taker is killed when it has records of the queue, and then the sink is removed."""
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    network.deals = lambda number: False
    story.publish(20)
    network.lose("k", "b3")
    story.drain()
    story.await_stage("begin")
    network.kill("b1")
    network.brokers["b3"].service.durables.remove("billing")
    network.run(3.0)
    store = network.stores["b1"]
    assert store.read().following("queue/billing", "")
    story.attach("b1")
    assert not store.read().following("queue/billing", "")
    network.got.clear()
    story.publish(3)
    network.run(1.0)
    assert len(network.got) == 6


def test_the_taker_hears_of_own_events_that_the_giver_keeps_no_more() -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b3")
    story.publish(5)
    for source in "ts":
        network.clients[source].promise(round(10_000 * 1e6))
    kept = network.brokers["b3"].context.detection.replay_buffer
    for _ in range(4):
        kept.look_soon()
        network.run(1.0)
    assert not any(kept)
    giver, said = network.brokers["b3"].giver, list[HandOver]()
    send = giver._send
    giver._send = lambda step: (said.append(step), send(step))[1]
    story.drain()
    network.run(5.0)
    (commit,) = (step for step in said if step.step is HandOverStep.COMMIT)
    assert {"t": 5, "s": 5}.items() <= dict(commit.numbers).items()
    story.attach("b1")
    story.check()


def test_what_is_dropped_while_a_sink_goes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2", limit=4, when_full=WhenFull.DROP_OLDEST)
    network.lose("k", "b3")
    story.publish(5)
    given = network.brokers["b3"].service.durables.get("billing")
    assert given is not None
    story.drain()
    story.await_stage("begin")
    story.publish(2)
    story.await_stage("wait")
    monkeypatch.setitem(globals(), "SYNC_S", 0.1)
    story.await_stage("rest")
    assert given.dropped > 0
    story.publish(15, 0.002)
    network.run(3.0)
    story.attach("b1")
    taken = network.brokers["b1"].service.durables.get("billing")
    assert taken is not None
    assert taken.dropped + len(network.got) == 2 * story.n, "the giver's are among them"
    assert taken.untold == 0


def test_a_broker_that_drains_waits_for_those_whom_its_store_names() -> None:
    """It was started again, has heard of nobody yet, and is to be linked to by others."""
    network = Kept(2, "b1 b2")
    story = Story(network, "b2", "b1")
    story.publish(5)
    network.lose("k", "b2")
    network.kill("b2")
    broker = network.brokers["b2"]
    broker.overlay._connections._told.clear()
    story.drain()
    draining = Draining(broker)
    assert not draining.is_over(network.mesh.now)
    others = "until they are removed or another broker answers (b1)"
    assert f"durable subscriptions, {others}: billing" in (broker.node.draining or ())
    for _ in range(50):
        network.run(0.2)
        draining.is_over(network.mesh.now)
    assert network.home() == "b1"
    assert "billing" not in broker.service.durables


def test_a_sink_whose_taker_never_comes_back_is_kept_by_hand() -> None:
    """b1 is gone for good when b3 has sent COMMIT; b3 is started again, and cannot ask."""
    network = Kept(3, "b1 b3")
    story = Story(network, "b3", "b2")
    story.publish(8)
    network.lose("k", "b3")
    story.publish(2)
    story.drain()
    story.await_stage("rest")
    durables = network.brokers["b3"].service.durables
    with pytest.raises(Refusal, match="is on its way to broker 'b1', which is asked"):
        durables.keep("billing")
    for wire in network.both_ways("b1", "b2"):
        wire.cut = True
    network.kill("b3")
    network.run(20.0)
    durables = network.brokers["b3"].service.durables
    with pytest.raises(ProtocolError, match="is on its way to another broker"):
        durables.subscribe(b"k", Subscribe(1, 1, "Temp()", durable="billing"), SCHEMAS)
    assert [one["heir"] for one in durables.facts] == ["b1"]
    story.publish(3)
    durables.keep("billing")
    with pytest.raises(Refusal, match="is not on its way"):
        durables.keep("billing")
    network.run(1.0)
    story.attach("b3")
    story.publish(3)
    network.run(2.0)
    story.check()


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_hand_overs_at_random(seed: int) -> None:
    """Either broker may be killed at any write; s may be silent; queues may be short, and drop."""
    random = Random(seed)
    when_full = random.choice([WhenFull.BLOCK, WhenFull.BLOCK, WhenFull.DROP_OLDEST])
    most = random.choice([60, 1_000_000])
    network = Kept(3, "b1 b3", queue_events_max=most)
    story = Story(network, "b3", "b2", when_full=when_full, limit=random.choice([20, 60]))
    story.publish(random.randint(2, 12))
    if random.random() < 0.7:
        network.lose("k", "b3")
    if killed := random.choice(["", "b1", "b3"]):
        network.doomed[killed] = network.writes[killed] + random.randint(1, 40)
    story.is_silent = random.random() < 0.5
    story.drain()
    story.publish(random.randint(10, 40), random.choice([0.005, 0.02]))
    network.run(random.choice([0.1, 2.0]))
    story.speak()
    network.run(20.0)
    network.doomed.clear()
    story.attach(network.home())
    story.publish(5, 0.05)
    network.run(5.0)
    if when_full is WhenFull.BLOCK:
        story.check()
    else:
        story.check_repeats()
        assert network.got[-1][0].startswith(f"Fire@{story.n}000000")
