"""The main law in a network: what sinks get is what one engine finds in the whole input.

Random rules and events (tests/cases.py), without Timer, whose ticks end with a recording; random
overlays of 2 to 12 brokers, cycles included, with random delays; sources, sinks and the rule
manager wherever. Every sink gets the composite events that it asked for, in order, and every
published one.
"""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from networks import apart, local, run, sharp, usable, write

from simulator.checkers import check

CASES = int(os.environ.get("REXMQ_NETWORKS", "25"))


SEEDS = list(itertools.islice(filter(usable, itertools.count()), CASES))


FEW = SEEDS[: max(6, CASES // 4)]


@pytest.mark.parametrize(
    ("seed", "strategy"),
    [
        *itertools.product(SEEDS, ("centralized", "distributed-st")),
        *itertools.product(FEW, ("distributed-mt", "push-pull-st", "push-pull-mt")),
    ],
)
def test_a_network_detects_what_one_engine_does(tmp_path: Path, seed: int, strategy: str) -> None:
    found = usable(seed)
    assert found is not None
    text, events = found
    if strategy != "centralized":
        events = apart(seed, events)  # so that rules have places of their own
    path = write(tmp_path, seed, text, events, strategy)
    outcome = run(path)
    assert outcome.settled, path.read_text()
    assert check(outcome) == [], f"seed {seed}\n{path.read_text()}\n{text}"


@pytest.mark.parametrize(
    ("seed", "strategy"),
    [
        *((seed, "distributed-st") for seed in range(20)),
        *((seed, "push-pull-st") for seed in range(8, 16)),
        *((seed, "push-pull-mt") for seed in range(16, 20)),
    ],
)
def test_divided_rules_detect_what_one_engine_does(
    tmp_path: Path, seed: int, strategy: str
) -> None:
    found = sharp(seed)
    if found is None:
        return
    path = write(tmp_path, seed, *found, strategy)
    outcome = run(path)
    assert outcome.settled, path.read_text()
    assert check(outcome) == [], f"seed {seed}\n{path.read_text()}\n{found[0]}"


def test_divided_rules_are_evaluated_away_from_the_root(tmp_path: Path) -> None:
    """The law above is not kept by networks in which all rules are at the root."""
    elsewhere = detected = 0
    for seed in range(20):
        if (found := sharp(seed)) is None:
            continue
        experiment = run(write(tmp_path, seed, *found, "distributed-st")).experiment
        for host in experiment.brokers.values():
            facts = host.broker.status(experiment.simulation.now)
            if facts["evaluates"] and facts["father"] is not None:
                elsewhere += 1
        detected += sum(
            len(batch)
            for sink in experiment.sinks.values()
            for one in sink.arrivals
            for batch in one.delivery.batches
            if batch.is_composite
        )
    assert elsewhere >= 5
    assert detected > 50


def test_what_is_local_stays_there(tmp_path: Path) -> None:
    sent = {}
    for strategy in ("centralized", "distributed-st"):
        outcome = run(local(tmp_path, strategy))
        assert check(outcome) == []
        lanes = [lane for pair in outcome.experiment.lanes.values() for lane in pair]
        sent[strategy] = sum(lane.bytes for lane in lanes)
        assert outcome.experiment.sinks["k"].arrivals
    assert sent["distributed-st"] < 0.6 * sent["centralized"]


def test_the_cases_detect_something_far_away(tmp_path: Path) -> None:
    """The law above is not kept by networks in which nothing happens."""
    composite = far = 0
    for seed in range(30):
        if (found := usable(seed)) is None:
            continue
        experiment = run(write(tmp_path, seed, *found)).experiment
        (centre,) = {host.broker.overlay.part.centre for host in experiment.brokers.values()}
        for sink in experiment.sinks.values():
            count = sum(
                len(batch)
                for one in sink.arrivals
                for batch in one.delivery.batches
                if batch.is_composite
            )
            composite += count
            far += count if sink.broker.name != centre else 0
    assert composite > 100
    assert far > composite / 3


def test_a_trace_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    """The same run in processes whose texts hash differently."""
    seed, found = next((seed, found) for seed in range(15, 99) if (found := usable(seed)))
    path = write(tmp_path, seed, *found)
    script = f"""
from pathlib import Path
from simulator import scenario
from simulator.experiment import Experiment
print(Experiment(scenario.read(Path({str(path)!r}))).run().digest)
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {f"{run(path).digest}\n"}
