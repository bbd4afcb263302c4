"""Runs: exact, the same for a seed, and whole again after faults (docs/scenarios.md)."""

import gc
import io
from pathlib import Path
from random import Random

import pytest
from cases import Deploy, Push, random_case
from pairs import seeds
from rule_texts import SCHEMAS
from simulator_text import SMALL
from timeline import batches

from matcher.errors import EventError
from matcher.formats.printing import json_lines
from routing.network.brokers.broker import Broker
from routing.network.strategy import names
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.faults import FAILURES
from simulator.oracle import in_order
from simulator.scenario import ScenarioError
from simulator.simulation import Trace


def run(path: Path, seed: int | None = None, trace: Trace | None = None) -> Outcome:
    return Experiment(scenario.read(path, seed), trace).run()


def test_a_small_run_gives_what_the_oracle_gives(written) -> None:
    outcome = run(written())
    assert outcome.settled
    assert check(outcome) == []
    sink = outcome.experiment.sinks["k1"]
    assert sum(len(one.delivery) for one in sink.arrivals) == 3


def test_one_seed_gives_one_trace_byte_for_byte(written) -> None:
    faults = '[topology]\nkind = "waxman"\nbrokers = 6\n'
    faults += '[[fault]]\nkind = "loss"\nat_s = 0.0\nvalue = 0.2\n'
    path = written(
        SMALL.replace('[[broker]]\nname = "b1"\n[[broker]]\nname = "b2"\n', "").replace(
            '[[link]]\nbetween = ["b1", "b2"]\n', ""
        )
        + faults
    )
    traces = []
    for seed in (1, 1, 2):
        output = io.StringIO()
        outcome = run(path, seed, Trace(output))
        traces.append((output.getvalue(), outcome.digest))
    assert traces[0] == traces[1]
    assert traces[0][1] != traces[2][1]
    assert traces[0][0].count("\n") > 100


@pytest.mark.parametrize("seed", seeds(8, 25))
def test_random_rules_and_events_give_what_the_oracle_gives(tmp_path: Path, seed: int) -> None:
    """Through sessions, bytes and a clock, without Timer, whose ticks end with a recording."""
    case = random_case(seed)
    texts = [str(text) for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    if len(set(texts)) < len(texts) or any("Timer" in text for text in texts):
        return
    events = {
        (event.source, event.sequence): event
        for step in case.steps
        if isinstance(step, Push)
        for event in step.events
    }
    lines = json_lines(batches(events.values(), SCHEMAS.values()))
    declared = "\n".join(f"event {schema}" for schema in SCHEMAS.values())
    (tmp_path / "rules.tesla").write_text(declared + "\n" + "\n\n".join(texts))
    (tmp_path / "s1.jsonl").write_bytes(lines)
    filters = ", ".join(f'"{name}()"' for name in SCHEMAS)
    path = tmp_path / "scenario.toml"
    path.write_text(
        f'seed = {seed}\nengine = "naive"\nrules = "rules.tesla"\n[[broker]]\nname = "b1"\n'
        '[[source]]\nname = "s"\nbroker = "b1"\nevents = "s1.jsonl"\n'
        f'[[sink]]\nname = "k"\nbroker = "b1"\nsubscribe = [{filters}]\n'
    )
    assert check(run(path)) == [], f"seed {seed}"


FAULTS = ("cut", "loss", "repeats", "reordering", "delay", "crash", "slow", "stop")


@pytest.mark.parametrize("seed", seeds(6, 20))
def test_an_overlay_is_whole_again_after_faults(tmp_path: Path, seed: int) -> None:
    """Random networks and faults, all of which end: everybody agrees, and trees are trees."""
    random = Random(f"faults {seed}")
    text = (
        f"seed = {seed}\n[protocol]\nheartbeat_s = 1.0\n"
        f"message_cost_us = {random.choice([0, 50])}\n"
        f'[topology]\nkind = "{random.choice(["waxman", "barabasi-albert", "grid", "ring"])}"\n'
        f"brokers = {random.randint(2, 12)}\n"
    )
    for kind in random.sample(FAULTS, random.randint(1, 4)):  # no two in one place at one time
        value = {"loss": 0.3, "repeats": 0.3, "reordering": 0.1, "delay": 0.5, "slow": 20.0}
        at_s, for_s = random.uniform(-9, 5), random.uniform(0.1, 10)
        text += f'[[fault]]\nkind = "{kind}"\nat_s = {at_s}\nfor_s = {for_s}\n'
        text += f"value = {value[kind]}\n" if kind in value else ""
        if kind in FAILURES:
            text += 'brokers = ["' + random.choice(_names(text)) + '"]\n'
    path = tmp_path / "scenario.toml"
    path.write_text(text + "\n")
    read = scenario.read(path)
    experiment = Experiment(read)
    outcome = experiment.run()
    experiment.simulation.run(outcome.ended_at + 60)
    assert check(outcome) == [], f"seed {seed}\n{text}"


def _names(text: str) -> list[str]:
    count = int(text.split("brokers = ")[1].split("\n")[0])
    return [f"b{number + 1:0{len(str(count))}}" for number in range(count)]


def test_a_crashed_broker_forgets_and_its_clients_come_back(written) -> None:
    fault = '[[fault]]\nkind = "crash"\nat_s = 1.5\nfor_s = 0.1\nbrokers = ["b1"]\n'
    outcome = run(written(SMALL + fault))
    experiment = outcome.experiment
    assert experiment.brokers["b1"].starts == 2
    assert [source.losses for source in experiment.sources] == [1]
    assert all(source.is_done for source in experiment.sources)
    events = [event for one in experiment.sinks["k1"].arrivals for event in in_order(one.delivery)]
    assert all(event.type == "Temp" for event in events), "what would make a Fire was lost with it"
    assert check(outcome) == [], "which is excused"


def test_rules_that_no_broker_remembers_are_missed(written) -> None:
    fault = '[[fault]]\nkind = "crash"\nat_s = 1.5\nfor_s = 0.1\n'
    outcome = run(written(SMALL + fault))
    assert any("rule fire, version 0, is deployed, and not known" in one for one in check(outcome))


def test_the_checkers_see_what_is_missing(written) -> None:
    outcome = run(written())
    sink = outcome.experiment.sinks["k1"]
    sink.arrivals.pop()
    (line, missing) = check(outcome)
    assert line == "sink k1: 0 composite events, expected 1"
    assert missing.startswith("sink k1: missing: Fire of rexmq/rule/fire")


def test_the_checkers_see_a_network_that_does_not_agree(written) -> None:
    outcome = run(written())
    overlay = outcome.experiment.brokers["b2"].broker.overlay
    tree = overlay.topology.single_tree
    assert tree is not None
    overlay.topology.trees.drop(tree.root)
    assert any("do not agree" in line for line in check(outcome))


def test_processing_takes_the_time_that_it_costs(written) -> None:
    costly = SMALL + "[protocol]\nmessage_cost_us = 1000.0\n"
    outcome = run(written(costly))
    assert check(outcome) == []
    moments = [one.moment for one in outcome.experiment.sinks["k1"].arrivals]
    assert moments[0] == pytest.approx(10.001, abs=1e-6)


def test_a_run_of_a_given_duration_ends_there(written) -> None:
    outcome = run(written("duration_s = 1.5\n" + SMALL))
    assert not outcome.settled
    assert outcome.ended_at == pytest.approx(11.5)
    assert sum(len(one.delivery) for one in outcome.experiment.sinks["k1"].arrivals) == 2


@pytest.mark.parametrize("strategy", names())
def test_nothing_of_a_run_stays_behind(written, strategy: str) -> None:
    path = written(f'strategy = "{strategy}"\n' + SMALL)
    gc.collect()
    before = _brokers()
    assert run(path).experiment.brokers
    gc.collect()
    assert _brokers() == before


def _brokers() -> int:
    # By type: to ask a proxy whose object is gone would raise.
    return sum(issubclass(type(one), Broker) for one in gc.get_objects())


def test_one_publisher_of_a_name(written) -> None:
    twice = SMALL + '[[source]]\nname = "s2"\nbroker = "b1"\nevents = "s1.jsonl"\n'
    with pytest.raises(EventError, match="whose events source 's1' publishes"):
        Experiment(scenario.read(written(twice)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", 'strategy = "steam"', "strategy: expected one of centralized, "),
        ('engine = "naive"', 'engine = "steam"', "engine: expected one of auto, "),
    ],
)
def test_what_is_not_there_is_refused(written, old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Experiment(scenario.read(written(SMALL.replace(old, new))))
