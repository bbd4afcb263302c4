"""The main law in a network: what sinks get is what one engine finds in the whole input.

Random rules and events (tests/cases.py), without Timer, whose ticks end with a recording; random
overlays of 2 to 12 brokers, cycles included, with random delays; sources, sinks and the rule
manager wherever. Every sink gets the composite events that it asked for, in order, and every
published one.
"""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from cases import Deploy, Push, random_case
from rule_texts import SCHEMAS
from timeline import batches

from matcher.model import Event
from matcher.printing import json_lines
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome

CASES = int(os.environ.get("REXMQ_NETWORKS", "25"))
FILTERS = ("A", "A(v > 1)", "B", "B(p = 1, f)", "C()", "D(q > 0)", "X", "X(n > 1)", "Y()", "Z")


def usable(seed: int) -> tuple[str, list[Event]] | None:
    """Rules and events of a case; None for one that needs Timer or deploys a rule twice.

    Nor for one whose rules use a type that nobody publishes or defines: they wait for it.
    """
    case = random_case(seed)
    texts = [str(text) for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    if len(set(texts)) < len(texts) or any("Timer" in text for text in texts):
        return None
    events = {
        (event.source, event.sequence): event
        for step in case.steps
        if isinstance(step, Push)
        for event in step.events
    }
    rules = "\n\n".join(texts)
    known = {event.type for event in events.values()} | set(re.findall(r"define (\w+)\(", rules))
    if any(f"{name}(" in rules for name in SCHEMAS.keys() - known):
        return None
    return rules, list(events.values())


def write(
    folder: Path, seed: int, rules: str, events: list[Event], strategy: str = "centralized"
) -> Path:
    """A scenario of a random network with these rules and events."""
    random = Random(f"network {seed}")
    declared = "\n".join(f"event {schema}" for schema in SCHEMAS.values())
    (folder / "rules.tesla").write_text(f"{declared}\n{rules}")
    brokers = [f"n{number}" for number in range(random.randint(2, 12))]
    text = f'seed = {seed}\nstrategy = "{strategy}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += "".join(f'[[broker]]\nname = "{name}"\n' for name in brokers)
    links = {frozenset((brokers[random.randrange(n)], brokers[n])) for n in range(1, len(brokers))}
    for _ in range(random.randint(0, len(brokers))):
        links.add(frozenset(random.sample(brokers, 2)))
    for one, other in sorted(map(sorted, links)):
        delay_ms = random.choice([0.5, 5.0, 40.0, 400.0])
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay_ms = {delay_ms}\n'
    homes = brokers
    if strategy != "centralized" and random.random() < 0.7:  # near each other, mostly
        homes = random.sample(brokers, min(2, len(brokers)))
    for source in sorted({event.source for event in events}):
        own = [event for event in events if event.source == source]
        lines = json_lines(batches(own, SCHEMAS.values()))
        (folder / f"{source}.jsonl").write_bytes(lines)
        broker = random.choice(homes)
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\nevents = "{source}.jsonl"\n'
    for number in range(random.randint(1, 4)):
        chosen = random.sample(FILTERS, random.randint(1, len(FILTERS)))
        filters = ", ".join(f'"{one}"' for one in chosen)
        text += f'[[sink]]\nname = "k{number}"\nbroker = "{random.choice(brokers)}"\n'
        text += f"subscribe = [{filters}]\n"
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def apart(seed: int, events: list[Event]) -> list[Event]:
    """The events as if each type came from a source of its own, or from two."""
    random = Random(f"apart {seed}")
    homes = {name: [f"{name}{n}" for n in range(random.choice((1, 1, 2)))] for name in SCHEMAS}
    counts: dict[str, int] = {}
    found = []
    for event in events:
        home = random.choice(homes[event.type])
        number = counts[home] = counts.get(home, 0) + 1
        name = f"n{number}" if event.id.startswith("n") else str(number)
        found.append(replace(event, source=home, sequence=number, id=name))
    return found


def run(path: Path) -> Outcome:
    return Experiment(scenario.read(path)).run()


SEEDS = list(itertools.islice(filter(usable, itertools.count()), CASES))


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st"])
@pytest.mark.parametrize("seed", SEEDS)
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
    found = usable(15)
    assert found is not None
    path = write(tmp_path, 15, *found)
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
