"""Masters follow what is published, and nothing is lost or doubled by it (7.3.8).

Brokers stand in a line, sources at its ends. One type comes ten times a second, the other once in
ten seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from networks import run
from rule_texts import SCHEMAS
from timeline import batches

from matcher.model import Event
from matcher.printing import json_lines
from simulator.checkers import check
from simulator.experiment import Experiment

RULE = "define W(p: int) from A() as a and last B(p = a.p) within 2 s from a where p = a.p"
DATA = {"A": {"v": 0.0, "s": ""}, "B": {"q": 0, "f": True}}
OFTEN, SELDOM = range(0, 60_000, 100), range(50, 60_000, 10_000)  # in ms


def written(folder: Path, strategy: str, a: range, b: range) -> Path:
    declared = "".join(f"event {SCHEMAS[name]}\n" for name in "AB")
    (folder / "rules.tesla").write_text(f"{declared}rule r: {RULE}")
    text = f'strategy = "{strategy}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += "".join(f'[[broker]]\nname = "n{number}"\n' for number in range(5))
    text += "".join(f'[[link]]\nbetween = ["n{n}", "n{n + 1}"]\n' for n in range(4))
    for name, broker, times in (("A", "n0", a), ("B", "n4", b)):
        events = [
            Event(name, time * 1_000, name, str(n), {"p": n % 2, **DATA[name]}, n)
            for n, time in enumerate(times, start=1)
        ]
        (folder / f"{name}.jsonl").write_bytes(json_lines(batches(events, SCHEMAS.values())))
        text += f'[[source]]\nname = "{name}"\nbroker = "{broker}"\nevents = "{name}.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "n2"\nsubscribe = ["W()"]\n'
    file = folder / f"{strategy}.toml"
    file.write_text(text)
    return file


def masters(experiment: Experiment) -> set[str]:
    """What each broker that keeps something is asked for around."""
    told = [host.broker.status(experiment.simulation.now) for host in experiment.brokers.values()]
    forwards = [one for facts in told for one in (facts["forwards"], *_for_trees(facts))]
    lines = [line for one in forwards for line in one.get("r", ())]
    return {line.rsplit(" after ", 1)[1] for line in lines if " asked for" in line}


def _for_trees(facts: Mapping[str, Any]) -> Iterable[Mapping[str, Sequence[str]]]:
    return facts.get("forwards_for", {}).values()


@pytest.mark.parametrize(
    ("pushed", "pulled"), [("distributed-st", "push-pull-st"), ("distributed-mt", "push-pull-mt")]
)
@pytest.mark.parametrize(("a", "b"), [(OFTEN, SELDOM), (SELDOM, OFTEN)])
def test_the_rarer_event_becomes_the_master_in_mid_stream(
    tmp_path: Path, a: range, b: range, pushed: str, pulled: str
) -> None:
    sent = {}
    for strategy in (pushed, pulled):
        outcome = run(written(tmp_path, strategy, a, b))
        assert outcome.settled
        assert check(outcome) == []
        assert outcome.experiment.sinks["k"].arrivals
        lanes = [lane for pair in outcome.experiment.lanes.values() for lane in pair]
        sent[strategy] = sum(lane.bytes for lane in lanes)
    assert masters(outcome.experiment) == {"A()" if len(a) < len(b) else "B()"}
    assert sent[pulled] < 0.8 * sent[pushed], sent
