"""What takes long is done slice by slice (routing.evaluation.replay, routing.serving.slices)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from brokers import SCHEMAS, Network, Schemas
from conversation import batches_of, schema_of
from slow_slices import slow_slices

from matcher.model import MICROSECONDS, TIME_MIN, EventBatch
from routing import deployment
from routing.deployment import Deployed
from routing.evaluation import replay, tree_evaluator
from routing.evaluation.replay import Replay
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import Forward, ListRules, Remove
from routing.network.brokers import resending
from routing.partition.rule_states import ResumedRule
from routing.watermarks.ends import CLOSED
from rules.engine.engine import Detections
from rules.engine.order.intervals import Intervals

FIRE = """
rule fire: define Fire(room: string, value: float)
from Smoke(room = $r) and last Temp(room = $r) within 5 s from Smoke
where room = Smoke.room, value = Temp.value
"""
SECONDS = 120
SLICE, UNDER_WAY = 8, 16


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SLICE_EVENTS", SLICE)
    monkeypatch.setattr(resending, "UNDER_WAY_EVENTS", UNDER_WAY)


def temps(first: int, last: int) -> list[EventBatch]:
    return batches_of(" ".join(f'Temp@{n}("a", {n})' for n in range(first, last + 1)), SCHEMAS)


def numbers(parts: Iterable[Iterable[EventBatch]]) -> list[int]:
    times = [time for part in parts for batch in part for time in batch.time.tolist()]
    return [time // MICROSECONDS for time in times]


def test_what_waits_goes_in_its_order_a_slice_at_a_time() -> None:
    waiting = Replay()
    for n in range(1, 21):
        waiting.add(temps(n, n))
    found = []
    while waiting:
        parts, is_fresh = waiting.take()
        assert is_fresh
        found.append(numbers(parts))
    assert found == [list(range(1, 9)), list(range(9, 17)), list(range(17, 21))]


def test_a_message_that_is_longer_is_a_slice() -> None:
    waiting = Replay()
    waiting.add(temps(1, 30))
    waiting.add(temps(31, 31))
    assert [len(numbers(waiting.take()[0])) for _ in range(2)] == [30, 1]
    assert not waiting


def test_no_mark_is_beyond_what_waits_of_its_type() -> None:
    waiting = Replay()
    marks = {"Temp": 50 * MICROSECONDS, "Smoke": CLOSED, "Other": 7}
    assert waiting.bounded(marks) is marks
    for n in (9, 3, 10, 11, 12, 13, 14, 15, 16, 17):
        waiting.add(temps(n, n))
    waiting.add(batches_of('Smoke@40("a")', SCHEMAS))

    def bounds() -> list[int]:
        found = waiting.bounded(marks)
        assert found["Other"] == 7
        return [found["Temp"] // MICROSECONDS, found["Smoke"] // MICROSECONDS]

    assert bounds() == [3, 40]
    waiting.take()
    assert bounds() == [16, 40]
    waiting.add(temps(60, 60))
    assert bounds() == [16, 40], "it stands behind"
    waiting.take()
    assert waiting.bounded(marks) == marks


def test_what_everybody_has_got_who_wanted_it_is_not_fresh() -> None:
    waiting = Replay()
    for n in range(1, 6):
        waiting.add(temps(n, n), fresh=n > 3)
    assert waiting.fresh_messages == 2
    assert [(numbers(parts), is_fresh) for parts, is_fresh in (waiting.take(), waiting.take())] == [
        ([1, 2, 3], False),
        ([4, 5], True),
    ]


class Held:
    """Events that others sent to evaluators, and that are beyond the mark of the rule: the most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = 0
        self._times: dict[TreeEvaluator, list[int]] = {}
        take, advance, anew = TreeEvaluator.take, TreeEvaluator.advance, TreeEvaluator.begin_anew

        def noted_take(one: TreeEvaluator, child: str, message: Forward, now: float) -> None:
            if one.rules:
                times = [time for batch in message.batches for time in batch.time.tolist()]
                self._times.setdefault(one, []).extend(times)
                self._look(one)
            take(one, child, message, now)

        def noted_advance(
            one: TreeEvaluator, own: Mapping[str, int], clock: int | None, now: int
        ) -> Detections | None:
            found = advance(one, own, clock, now)
            self._look(one)
            return found

        def noted_anew(one: TreeEvaluator, resumed: Mapping[str, ResumedRule]) -> None:
            self._times.pop(one, None)
            anew(one, resumed)

        monkeypatch.setattr(TreeEvaluator, "take", noted_take)
        monkeypatch.setattr(TreeEvaluator, "advance", noted_advance)
        monkeypatch.setattr(TreeEvaluator, "begin_anew", noted_anew)

    def _look(self, one: TreeEvaluator) -> None:
        mark = min((one.engine.mark(rule) for rule in one.rules), default=TIME_MIN)
        left = [time for time in self._times.get(one, ()) if time >= mark]
        self._times[one] = left
        self.most = max(self.most, len(left))


def furnished(strategy: str, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Temps at b1 and Smokes at b3, SECONDS of each, a sink at each broker."""
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3)
    for name, broker in (("Temp", "b1"), ("Smoke", "b3")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.connect("m", "b2").deploy(FIRE)
    for broker in network.brokers:
        network.connect(f"at {broker}", broker).subscribe("Fire()")
    network.run(1)
    for n in range(1, SECONDS + 1):
        network.publish("Temp", f'Temp@{n}("a", {n})', n + 0.7)
        network.publish("Smoke", f'Smoke@{n}.5("a")', n + 0.7)
    network.run(1)
    return network


def cut(network: Network, one: str, other: str, *, is_cut: bool) -> None:
    for wire in network.both_ways(one, other):
        wire.cut = is_cut
    network.run(60)


def fires(lines: Iterable[str], broker: str) -> list[str]:
    start = f"at {broker}: "
    found = [line.removeprefix(start) for line in lines if line.startswith(f"{start}Fire")]
    return [one.partition(" <")[0] for one in found]


EXPECTED = [f'Fire@{n}.5("a", {float(n)})' for n in range(1, SECONDS + 2)]


@pytest.mark.parametrize(
    "strategy", ["centralized", "distributed-st", "distributed-mt", "push-pull-mt"]
)
def test_a_replay_is_never_held_as_a_whole(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link to a source's broker is cut and back: both brokers send again all that they keep."""
    network = furnished(strategy, monkeypatch)
    cut(network, "b1", "b2", is_cut=True)
    held = Held(monkeypatch)
    cut(network, "b1", "b2", is_cut=False)
    assert held.most <= 2 * (SLICE + UNDER_WAY) < SECONDS
    network.publish("Temp", f'Temp@{SECONDS + 1}("a", {SECONDS + 1})', SECONDS + 2)
    network.publish("Smoke", f'Smoke@{SECONDS + 1}.5("a")', SECONDS + 2)
    network.run(2)
    lines = network.take_lines()
    assert all(fires(lines, broker) == EXPECTED for broker in network.brokers)


@pytest.mark.parametrize("strategy", ["centralized", "distributed-mt"])
def test_what_comes_meanwhile_stands_behind_it(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources get no credit while they wait, and what they send on their credit is not passed by
    its own marks; a pause in the middle of it leaves the rest where it is.
    """
    network = furnished(strategy, monkeypatch)
    cut(network, "b1", "b2", is_cut=True)
    for wire in network.both_ways("b1", "b2"):
        wire.cut = False
        wire.delay_s = 0.05
    for n in range(SECONDS + 1, SECONDS + 41):
        network.publish("Temp", f'Temp@{n}("a", {n})', n + 0.7)
        network.publish("Smoke", f'Smoke@{n}.5("a")', n + 0.7)
        if n % 4 == 0:
            text = FIRE.replace("fire", f"r{n}").replace("Fire", f"F{n}")
            network.connect(f"m{n}", "b3").deploy(text)
    network.run(60)
    expected = [f'Fire@{n}.5("a", {float(n)})' for n in range(1, SECONDS + 41)]
    lines = network.take_lines()
    assert all(fires(lines, broker) == expected for broker in network.brokers)


# --- rules (routing.serving.slices) ---

MANY = 12
TEXT = "\n".join(
    FIRE.replace("fire", f"fire{number}").replace("Fire", f"Fire{number}") for number in range(MANY)
)
PAUSE_S = 0.05


def smoking(monkeypatch: pytest.MonkeyPatch, strategy: str) -> Network:
    """Temps at b1 and Smokes at b3, and a sink of two rules to be at b1."""
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3)
    for name, broker in (("Temp", "b1"), ("Smoke", "b3")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.connect("s", "b1").subscribe("Fire3()")
    network.clients["s"].subscribe("Fire11()")
    network.run(1)
    network.publish("Temp", 'Temp@1("a", 1)', 1.9)
    network.publish("Smoke", 'Smoke@1.5("a")', 1.9)
    network.take_lines()
    return network


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st", "push-pull-mt"])
@pytest.mark.parametrize("home", ["b1", "b2"])
def test_a_text_of_many_rules_is_deployed_rule_by_rule(
    strategy: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And holds as a whole from one instant on; what is published meanwhile goes on."""
    prepared = slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, strategy)
    network.connect("m", home).deploy(TEXT)
    for n in range(2, 60):
        network.publish("Temp", f'Temp@{n}("a", {n})', n + 0.9)
        network.publish("Smoke", f'Smoke@{n}.5("a")', n + 0.9)
    network.run(10)
    lines = network.take_lines()
    (confirmed,) = [line for line in lines if line.startswith("m: confirmed")]
    words = confirmed.split()
    begins = set(words[4::3])
    assert len(begins) == 1
    assert confirmed.count("since") == MANY
    begin = float(begins.pop())
    assert 1.5 < begin < 59, "events went on while the text was read"
    for rule in (3, 11):
        found = [line for line in lines if line.startswith(f"s: Fire{rule}@")]
        assert len(found) == sum(n + 0.5 >= begin for n in range(2, 60))
    assert prepared.count("ahead") >= MANY, "each was checked"
    assert prepared.count("prepared") >= 2 * MANY, "each was told to two"


@pytest.mark.parametrize("strategy", ["distributed-mt", "push-pull-mt"])
def test_trees_for_sinks_install_rule_by_rule_too(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that began with a plan installed all of its rules in one step."""
    slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, strategy)
    for number in range(MANY):
        network.clients["s"].subscribe(f"Fire{number}()")
    installed = list[int]()

    def install(engine: Intervals, some: Sequence[Deployed], schemas: Schemas) -> None:
        installed.append(len(some))
        deployment.install(engine, some, schemas)

    monkeypatch.setattr(tree_evaluator, "install", install)
    network.connect("m", "b2").deploy(TEXT)
    network.run(10)
    assert sum(installed) == MANY
    assert max(installed) == 1
    network.publish("Temp", 'Temp@70("a", 70)', 71)
    network.publish("Smoke", 'Smoke@70.5("a")', 71)
    network.run(1)
    assert sum(line.startswith("s: Fire") for line in network.take_lines()) == MANY


def test_a_text_that_replaces_rules_is_read_rule_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read in one step, for the types that it defines."""
    prepared = slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, "centralized")
    client = network.connect("m", "b2")
    client.deploy(TEXT)
    network.run(10)
    prepared.clear()
    client.deploy(TEXT.replace("5 s", "6 s"), replace=True)
    network.run(10)
    assert prepared.count("ahead") >= 2 * MANY, "each was read, and checked"
    assert all(line.startswith("m: confirmed") for line in network.take_lines())


def test_a_text_that_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, "centralized")
    network.connect("m", "b1").deploy(f"{TEXT}\n{FIRE.replace('last Temp', 'last Tmp')}")
    network.run(10)
    (refused,) = network.take_lines()
    assert refused.startswith("m: refused (bad-rules)")
    network.connect("l", "b3").ask(ListRules)
    network.run(1)
    assert network.take_lines() == ["l: confirmed"]


def test_two_texts_are_deployed_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, "centralized")
    client = network.connect("m", "b2")
    client.deploy(TEXT)
    client.deploy(FIRE.replace("fire", "fire3"), replace=True)
    client.ask(Remove, "fire3")
    network.run(10)
    first, second, third = network.take_lines()
    assert first.count("since") == MANY
    assert second.startswith("m: confirmed fire3 since")
    assert third.startswith("m: confirmed")


@pytest.mark.parametrize("home", ["b1", "b2"])
def test_who_deploys_without_a_pause_holds_up_nobody(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others' requests waited until the last of its texts had been read."""
    slow_slices(monkeypatch, PAUSE_S)
    network = smoking(monkeypatch, "centralized")
    client = network.connect("m", home)
    count = 200
    for number in range(count):
        client.deploy(FIRE.replace("fire", f"fire{number}").replace("Fire", f"Fire{number}"))
    network.run(1)
    network.connect("n", "b3").advertise([schema_of("Gas(room: string)")])
    network.connect("o", home).deploy(FIRE)
    names = list[str]()
    while "o:" not in names:
        network.run(1)
        names += [line.split()[0] for line in network.take_lines() if "confirmed" in line]
    assert names.index("n:") < names.index("o:") < count / 2


def test_a_tree_that_is_another_waits_for_no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is cut while b1 loads what it was told: it takes it in, and goes on alone."""
    slow_slices(monkeypatch, 5.0)
    network = smoking(monkeypatch, "centralized")
    network.connect("m", "b2").deploy(TEXT)
    network.run(5.0 * (2 * MANY + 8))
    told = network.brokers["b1"]
    while not told._parts.slices.is_preparing:
        network.run(1)
    cut(network, "b1", "b2", is_cut=True)
    assert len(told.context.deployments.rules) == MANY
    cut(network, "b1", "b2", is_cut=False)
    network.run(500)
    assert network.brokers["b1"].is_at_rest
    network.publish("Temp", 'Temp@70("a", 70)', 71)
    network.publish("Smoke", 'Smoke@70.5("a")', 71)
    network.run(1)
    found = [line.partition(" <")[0] for line in network.take_lines() if line.startswith("s: Fire")]
    assert sorted(found) == ['s: Fire11@70.5("a", 70.0)', 's: Fire3@70.5("a", 70.0)']
