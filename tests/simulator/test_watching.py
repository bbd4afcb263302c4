"""A watch changes nothing, and finds what is put wrong by hand, each thing by its name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from networks import run
from simulator_text import TWO, events, overlay

from matcher.model import TIME_MIN, Attribute, EventType, Kind
from routing.messages import WhenFull
from routing.network import strategy
from routing.network.brokers.broker import Broker
from simulator import scenario
from simulator.agreement import Part, check_tables, check_trees, parts_of
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.fuzzing.making import random_case
from simulator.scenario import CHECKS
from simulator.watch import Watch

LINE = TWO.replace(
    '["b1", "b2"]\n',
    '["b1", "b2"]\n[[broker]]\nname = "b3"\n[[link]]\nbetween = ["b2", "b3"]\n',
).replace('name = "k1"\nbroker = "b1"', 'name = "k1"\nbroker = "b3"')
"""Three brokers in a line: Temp comes from the first, Smoke from the second, both go to the last;
the second is the centre."""
FILES = {
    f"{source}.jsonl": events(kind, *times).replace('{"type"', f'{{"source": "{source}", "type"')
    for source, kind, times in (("s1", "Temp", (10.0, 11.0, 60.0)), ("s2", "Smoke", (12.0, 61.0)))
}
Tamper = Callable[[Experiment], None]


def midway(written, name: str = "distributed-mt") -> Experiment:
    """A run that is interrupted while its sources are there and nothing is under way."""
    text = f'strategy = "{name}"\nduration_s = 30.0\n{LINE}'
    return run(written(text, **FILES)).experiment


def broker_of(experiment: Experiment, name: str) -> Broker:
    return experiment.brokers[name].broker


def part_of(experiment: Experiment) -> Part:
    (part,) = parts_of(experiment)
    return part


def watch_of(experiment: Experiment) -> Watch:
    assert experiment.watch is not None
    return experiment.watch


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("seed", [4, 7])
def test_a_run_that_is_watched_is_the_same_run(tmp_path: Path, seed: int, name: str) -> None:
    path = random_case(seed, name).write(tmp_path)
    digests = {
        Experiment(scenario.read(path), is_watched=watched).run().digest
        for watched in (False, True)
    }
    assert len(digests) == 1, f"seed {seed}, {name}"


@pytest.mark.parametrize("name", strategy.names())
def test_what_is_right_is_found_to_be_so_at_rest(written, name: str) -> None:
    experiment = midway(written, name)
    part, watch = part_of(experiment), watch_of(experiment)
    assert part.is_at_rest
    assert [*check_tables(part), *check_trees(part)] == []
    assert {len(one.context.advertisements.schemas) for one in part.brokers.values()} == {3}
    assert watch.looks > 0
    assert watch.rests > 2
    watch.look()
    assert watch.found == {}


# --- marks -------------------------------------------------------------------------------------


def lower_a_type(experiment: Experiment) -> None:
    standings = broker_of(experiment, "b2").context.detection.evaluator.progress._type_records
    standings["Smoke"].given -= 1


def lower_what_went_up(experiment: Experiment) -> None:
    evaluator = broker_of(experiment, "b1").context.detection.evaluator
    evaluator.forwarder._marks._forwarded[0].up -= 1


def lower_an_outlook(experiment: Experiment) -> None:
    evaluator = broker_of(experiment, "b2").context.detection.evaluator
    lower = evaluator.output_watermark("fire") - 1
    evaluator.progress.output_watermarks = lambda rules: dict.fromkeys(rules, lower)


def lower_what_a_sink_has(experiment: Experiment) -> None:
    broker_of(experiment, "b3").context.router.marks["fire"] -= 1


def lower_a_mark_at_the_root(experiment: Experiment) -> None:
    broker_of(experiment, "b2").context.detection.type_marks["Smoke"] = -1


def lower_what_was_committed(experiment: Experiment) -> None:
    broker_of(experiment, "b2").context.detection.committed["fire"] -= 1


def lower_a_promise(experiment: Experiment) -> None:
    (source,) = [one for one in broker_of(experiment, "b1").context.sources if one.is_open]
    source.promise -= 1


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (lower_a_type, "broker b2: the mark in the single tree of type Smoke went back"),
        (lower_what_went_up, "broker b1: what has gone up in the single tree of type Temp went"),
        (
            lower_an_outlook,
            "broker b2: the output watermark in the single tree of rule fire went back",
        ),
        (lower_what_a_sink_has, "broker b3: what sink k1/1 has of rule fire, version 0 since None"),
        (lower_a_mark_at_the_root, "broker b2: the mark in the network of type Smoke went back"),
        (lower_what_was_committed, "broker b2: what was committed of rule fire went back"),
        (lower_a_promise, "broker b1: the promise of source s1 went back"),
    ],
)
def test_a_mark_that_goes_back_is_found(written, tamper: Tamper, told: str) -> None:
    experiment = midway(written, "distributed-st")
    detection = broker_of(experiment, "b2").context.detection
    detection.type_marks["Smoke"] = detection.committed["fire"] = 5
    watch = watch_of(experiment)
    watch.look()
    assert watch.found == {}
    tamper(experiment)
    watch.look()
    (line,) = watch.found["marks"]
    assert line.startswith(told)


def test_a_mark_of_a_tree_for_sinks_that_goes_back_is_found(written) -> None:
    experiment = midway(written)
    watch, tree = watch_of(experiment), tree_of(experiment, "b2")
    watch.look()
    tree.evaluator.progress._type_records["Temp"].given -= 1
    watch.look()
    told = "broker b2: the mark in the tree of b3 of type Temp went back"
    assert told in watch.found["marks"]


def test_marks_that_go_back_during_a_run_are_told_by_check(written) -> None:
    """Once they are as they were, nothing but the watch can know."""
    experiment = Experiment(scenario.read(written(f'strategy = "distributed-st"\n{LINE}', **FILES)))
    standing: list[int] = []

    def lower() -> None:
        marks = broker_of(experiment, "b2").context.detection.evaluator.progress._type_records
        standing.append(marks["Smoke"].given)
        marks["Smoke"].given -= 5
        watch_of(experiment).look()
        marks["Smoke"].given += 5

    experiment.simulation.at(30.0, watch_of(experiment).look)
    experiment.simulation.at(30.1, lower)
    outcome = experiment.run()
    assert standing
    told = ["broker b2: the mark in the single tree of type Smoke went back"]
    assert check(outcome) == told


def test_what_begins_anew_may_be_less(written) -> None:
    """Brokers that start again, and sources that come back on another link."""
    crash = '[[fault]]\nkind = "crash"\nat_s = 20.0\nfor_s = 5.0\nbrokers = ["b1", "b2"]\n'
    experiment = run(written(LINE + crash, **FILES)).experiment
    assert watch_of(experiment).found.get("marks") is None


# --- buffers -----------------------------------------------------------------------------------


def crowd_a_link(experiment: Experiment) -> None:
    (channel,) = broker_of(experiment, "b1").overlay.neighbours.values()
    channel._waiting.extend([None] * 16_385)


def crowd_what_is_ahead(experiment: Experiment) -> None:
    (channel,) = broker_of(experiment, "b1").overlay.neighbours.values()
    channel._ahead.update(dict.fromkeys(range(10_000, 11_025)))


def crowd_a_sink_that_drops(experiment: Experiment) -> None:
    (sink,) = broker_of(experiment, "b3").context.sinks
    sink.when_full = WhenFull.DROP_OLDEST
    sink.queued = sink.limit + 1


def crowd_a_sink_that_blocks(experiment: Experiment) -> None:
    (sink,) = broker_of(experiment, "b3").context.sinks
    sink.rules = ()
    sink.queued = sink.limit + 2 * 16_384 + 1


def remember_too_much(experiment: Experiment) -> None:
    broker_of(experiment, "b3")._parts.single_traffic.deduplicator._ids._count = 3_000_000


def keep_too_many_events(experiment: Experiment) -> None:
    replay_buffer = broker_of(experiment, "b1").context.detection.replay_buffer
    replay_buffer.events_max = 1


def give_too_much_credit(experiment: Experiment) -> None:
    (source,) = [one for one in broker_of(experiment, "b1").context.sources if one.is_open]
    source.outstanding = 16_385


def wait_too_long(experiment: Experiment) -> None:
    missing = broker_of(experiment, "b2").context.detection.evaluator.missing
    missing.absent, missing.waiting = frozenset({"Fog"}), {"Smoke": 1_000_001}


def keep_what_is_not_acknowledged(experiment: Experiment) -> None:
    experiment.sources[0].session.outgoing.unacknowledged = 65_537


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (crowd_a_link, "broker b1: more messages for b2 than the 16384 that are allowed"),
        (crowd_what_is_ahead, "broker b1: more packets of b2 before their turn than the 1024"),
        (crowd_a_sink_that_drops, "broker b3: the queue of sink  is longer than its limit"),
        (crowd_a_sink_that_blocks, "broker b3: the queue of sink  is longer than its limit"),
        (remember_too_much, "broker b3: more ids of events remembered than the 2032768"),
        (keep_too_many_events, "broker b1: more events of own sources are kept than may be"),
        (give_too_much_credit, "broker b1: more credit of source s1 than the 16384"),
        (wait_too_long, "broker b2: more events waiting for a type than the 1000000"),
        (keep_what_is_not_acknowledged, "source s1: more is not acknowledged than its session"),
    ],
)
def test_what_outgrows_its_bound_is_found(written, tamper: Tamper, told: str) -> None:
    experiment = midway(written)
    watch = watch_of(experiment)
    tamper(experiment)
    watch.look()
    (line,) = watch.found["buffers"]
    assert line.startswith(told)


def test_what_still_waits_in_the_end_is_found(written) -> None:
    outcome = run(written(LINE, **FILES))
    assert check(outcome) == []
    (sink,) = broker_of(outcome.experiment, "b3").context.sinks
    sink.queued = 2
    outcome.experiment.sources[0].session.outgoing.unacknowledged = 1
    assert check(outcome) == [
        "broker b3: 2 events still wait for sink ",
        "source s1: 1 events are not acknowledged",
    ]


# --- trees -------------------------------------------------------------------------------------


def test_a_second_father_is_found(written) -> None:
    experiment = midway(written)
    watch = watch_of(experiment)
    watch.look()
    tree = broker_of(experiment, "b1").overlay.topology.single_tree
    assert tree is not None
    tree.father = "b3"
    watch.look()
    assert list(watch.found["trees"]) == ["broker b1: its father in the tree of b2 was b2, is b3"]


def test_a_cycle_is_found(written) -> None:
    experiment = midway(written)
    watch = watch_of(experiment)
    for name, father in (("b1", "b3"), ("b3", "b1")):
        tree = broker_of(experiment, name).overlay.topology.single_tree
        assert tree is not None
        tree.father = father
    watch._seen.clear()
    watch.look()
    (line,) = watch.found["trees"]
    assert line.startswith("the tree of b2: b")
    assert line.endswith("is above itself")


def tree_of(experiment: Experiment, name: str):  # type: ignore[no-untyped-def]
    detection = broker_of(experiment, name).context.detection
    return detection.trees["b3"]


def have_a_child_that_is_nobodys(experiment: Experiment) -> None:
    tree_of(experiment, "b1").children = frozenset({"b9"})


def have_no_father(experiment: Experiment) -> None:
    tree_of(experiment, "b1").father = None
    tree_of(experiment, "b2").children = frozenset()
    tree_of(experiment, "b3").father = "b1"
    tree_of(experiment, "b1").children = frozenset({"b3"})


def forget_that_it_is_open(experiment: Experiment) -> None:
    tree_of(experiment, "b2").met.discard("b3")


def want_something_else(experiment: Experiment) -> None:
    for name in ("b1", "b2", "b3"):
        tree_of(experiment, name).filters = ("Fog()",)


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (have_a_child_that_is_nobodys, "fathers and children of the tree for the sinks of b3"),
        (have_no_father, "the tree for the sinks of b3 is no tree"),
        (forget_that_it_is_open, "the tree for the sinks of b3 is not open between b3 and b2"),
        (
            want_something_else,
            "the tree for the sinks of b3 brings Fog(), which none of them",
        ),
    ],
)
def test_a_tree_for_sinks_that_is_none_is_found(written, tamper: Tamper, told: str) -> None:
    experiment = midway(written)
    tamper(experiment)
    (line,) = check_trees(part_of(experiment))
    assert line.startswith(told)


def test_a_tree_that_only_some_know_is_found(written) -> None:
    experiment = midway(written)
    detection = broker_of(experiment, "b3").context.detection
    detection.tree_table.trees = {}
    (line,) = check_trees(part_of(experiment))
    assert line == "the tree for the sinks of b3 is not the same for all its brokers"


# --- tables ------------------------------------------------------------------------------------

FOG = EventType("Fog", (Attribute("area", Kind.STRING),))


def know_a_type(experiment: Experiment, name: str) -> None:
    broker_of(experiment, name).context.advertisements.exchange((), [FOG])


def forget_a_rule(experiment: Experiment, name: str) -> None:
    deployments = broker_of(experiment, name).context.deployments
    deployments.end("fire", TIME_MIN)
    deployments.drop("fire")


def advertise_more(experiment: Experiment, name: str) -> None:
    context = broker_of(experiment, name).context
    (source,) = [one for one in context.sources if one.name == "s1"]
    source.floors["Fog"] = 0


def publish_more(experiment: Experiment, name: str) -> None:
    context = broker_of(experiment, name).context
    (source,) = [one for one in context.sources if one.name == "s1"]
    context.detection.publishers.add(source, ["Fog"])


def want_less(experiment: Experiment, name: str) -> None:
    broker_of(experiment, name).context.router.branches["b3"]._want("Temp", ())


def lose_a_subscription(experiment: Experiment, name: str) -> None:
    context = broker_of(experiment, name).context
    (sink,) = context.sinks
    sink.interests.remove(2)


@pytest.mark.parametrize(
    ("tamper", "name", "told"),
    [
        (know_a_type, "b2", "broker b2: type Fog is known, and nobody advertises or uses it"),
        (know_a_type, "b1", "broker b1: type Fog is Fog(area: string), at the root None"),
        (forget_a_rule, "b3", "broker b3: rule fire, version 0, is not known as at the root"),
        (forget_a_rule, "b2", "broker b2: rule fire, version 0, is deployed, and not known"),
        (advertise_more, "b1", "broker b1: source s1 advertises [Temp], by what is known [Fog, T"),
        (advertise_more, "b2", "broker b2: source s1 advertises [Temp], by what is known [Fog, T"),
        (publish_more, "b1", "broker b1: Fog, Temp is published here, by what is known Temp"),
        (want_less, "b2", "broker b2: whoever is beyond b3 wants ['Temp()'] of Temp, and is known"),
        (lose_a_subscription, "b3", "broker b3: 0 of 1 subscriptions to Temp() are known"),
    ],
)
def test_a_table_that_says_something_else_is_found(written, tamper, name: str, told: str) -> None:
    experiment = midway(written)
    tamper(experiment, name)
    lines = list(check_tables(part_of(experiment)))
    assert any(line.startswith(told) for line in lines), lines


def test_tables_are_looked_at_while_the_run_goes_on(written) -> None:
    """What a broker forgets to forget, or to tell, shows as soon as the network is at rest."""
    experiment = Experiment(scenario.read(written(LINE, **FILES)))
    experiment.simulation.at(5.0, lambda: know_a_type(experiment, "b1"))
    told = check(experiment.run())
    assert "broker b1: type Fog is Fog(area: string), at the root None" in told


def test_a_network_that_does_not_come_to_rest_is_told(
    written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "is_at_rest", property(lambda self: self.overlay.name != "b2"))
    outcome = run(written(LINE, **FILES))
    assert check(outcome) == ["broker b2: it does not come to rest"]


# --- the checks that a scenario names ------------------------------------------------------------


def spoilt(written, checks: str) -> Outcome:
    outcome = run(written(f"{checks}\n{LINE}", **FILES))
    know_a_type(outcome.experiment, "b1")
    outcome.experiment.sinks["k1"].arrivals.clear()
    return outcome


def test_a_scenario_names_its_checks(written) -> None:
    told = check(spoilt(written, ""))
    assert any("type Fog" in line for line in told)
    assert any("missing" in line for line in told)
    told = check(spoilt(written, 'checks = ["tables", "network"]'))
    assert told == ["broker b1: type Fog is Fog(area: string), at the root None"]
    told = check(spoilt(written, 'checks = ["results", "marks", "buffers", "trees"]'))
    assert told
    assert not any("Fog" in line for line in told)


def test_all_are_asked_unless_it_does(written) -> None:
    assert scenario.read(written()).checks == CHECKS
    assert scenario.read(written(f'checks = ["marks"]\n{LINE}')).checks == ("marks",)


def test_no_rest_is_asked_for_where_a_clock_ticks(written) -> None:
    """On a slow link every tick's marks are under way until the next (found by a fuzz)."""
    rules = """
event C(n: int)
event D(n: int)
rule r0: define X() from Timer() as e0 and last C() as e1 within 2 s from e0
rule r1: define Z() from D() as e0 consuming e0
"""
    text = """
strategy = "distributed-mt"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
lead_s = 60.0
[[source]]
name = "s1"
broker = "n1"
events = "s1.jsonl"
[[source]]
name = "s2"
broker = "n1"
events = "s2.jsonl"
[[sink]]
name = "k0"
broker = "n4"
subscribe = ["X", "Z"]
"""
    text += overlay({"n1 n4": 400.0, "n1 n6": 40.0, "n3 n6": 5.0, "n1 n3": 5.0})
    files = {
        f"{name}.jsonl": f'{{"type": "{one}", "time": {time}, "data": {{"n": 1}}}}\n'
        for name, one, time in (("s1", "C", 38.0), ("s2", "D", 40.0))
    }
    outcome = run(written(text, rules, **files))
    outcome.experiment.simulation.run(outcome.ended_at + 60)
    assert check(outcome) == []
