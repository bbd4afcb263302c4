"""Masters follow what is published, and nothing is lost or doubled by it (7.3.8).

Brokers stand in a line, sources at its ends. One type comes ten times a second, the other once in
ten seconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from networks import run, sharp, write
from rule_texts import SCHEMAS
from timeline import batches

from matcher.formats.printing import json_lines
from matcher.model import Event, Kind, Value
from routing.network.brokers import measurements
from routing.network.ways.division import divided, divided_for_sinks
from routing.partition.master_choice import Weights
from routing.partition.masters import masters_of
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.oracle import delivered

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


def masters_of_all(experiment: Experiment) -> set[str]:
    """What each broker that keeps something is asked for around."""
    told = [host.broker.status(experiment.simulation.now) for host in experiment.brokers.values()]
    forwards = [one for facts in told for one in (facts["forwards"], *_for_trees(facts))]
    lines = [line for one in forwards for line in one.get("r", ())]
    return {line.rsplit(" after ", 1)[1] for line in lines if " asked for" in line}


def _for_trees(facts: Mapping[str, Any]) -> Iterable[Mapping[str, Sequence[str]]]:
    return facts.get("forwards_for", {}).values()


@pytest.mark.parametrize(
    ("pushed", "pulled", "a", "b"),
    [
        ("distributed-st", "push-pull-st", OFTEN, SELDOM),
        ("distributed-st", "push-pull-st", SELDOM, OFTEN),
        ("distributed-mt", "push-pull-mt", SELDOM, OFTEN),
    ],
)
def test_the_rarer_event_becomes_the_master_in_mid_stream(
    tmp_path: Path, pushed: str, pulled: str, a: range, b: range
) -> None:
    sent = {}
    for strategy in (pushed, pulled):
        outcome = run(written(tmp_path, strategy, a, b))
        assert outcome.settled
        assert check(outcome) == []
        assert outcome.experiment.sinks["k"].arrivals
        lanes = [lane for pair in outcome.experiment.lanes.values() for lane in pair]
        sent[strategy] = sum(lane.bytes for lane in lanes)
    assert masters_of_all(outcome.experiment) == {"A()" if len(a) < len(b) else "B()"}
    assert sent[pulled] < 0.8 * sent[pushed], sent


@pytest.mark.parametrize("pulled", ["push-pull-st", "push-pull-mt"])
def test_by_arrival_what_is_asked_for_counts_when_it_came(tmp_path: Path, pulled: str) -> None:
    """Delays are short beside the distances of events from the ends of windows."""
    sent, found = {}, {}
    for strategy in ("distributed-st", pulled):
        path = written(tmp_path, strategy, SELDOM, OFTEN)
        path.write_text(f'ordering = "arrival"\n{path.read_text()}')
        outcome = run(path)
        assert check(outcome) == []
        lanes = [lane for pair in outcome.experiment.lanes.values() for lane in pair]
        sent[strategy] = sum(lane.bytes for lane in lanes)
        got = delivered(outcome.experiment.sinks["k"].arrivals).composite
        found[strategy] = sorted(str(one.cause_full) for one in got)
    assert found[pulled] == found["distributed-st"]
    assert len(found[pulled]) == len(SELDOM)
    assert sent[pulled] < 0.8 * sent["distributed-st"], sent


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Masters become others, chosen by chance, with every checkpoint; what they were."""
    chosen: set[str] = set()

    def choose(weights: Weights) -> dict[str, int]:
        rules = ", ".join(sorted(rule.text for rule in weights.rules))
        random = Random(f"{rules} {sorted(weights.rates.items())}")
        defined = {rule.defines.name for rule in weights.rules}
        found = {
            rule.name: random.choice(numbers)
            for rule in weights.rules
            if (numbers := masters_of(rule, defined)) and random.random() < 0.8
        }
        chosen.add(str(found))
        return found

    monkeypatch.setattr(Weights, "choose", choose)
    monkeypatch.setattr(measurements, "ADAPT_AFTER_S", 1.0)
    monkeypatch.setattr(measurements, "ADAPT_EVERY_S", 2.0)
    monkeypatch.setattr(measurements, "preferred", lambda costs, now: list(costs)[-1])
    for one in (divided, divided_for_sinks):  # what is divided here is like nothing elsewhere
        one.cache_clear()
    yield chosen
    for one in (divided, divided_for_sinks):
        one.cache_clear()


@pytest.mark.parametrize("strategy", ["push-pull-st", "push-pull-mt"])
@pytest.mark.parametrize("seed", [2, 3])
def test_masters_may_change_at_every_checkpoint(
    tmp_path: Path, seed: int, strategy: str, restless: set[str]
) -> None:
    found = sharp(seed)
    assert found is not None
    path = write(tmp_path, seed, *found, strategy)
    outcome = run(path)
    assert outcome.settled
    # With a plan at every checkpoint, one every other second, the network need never come to rest.
    told = [line for line in check(outcome) if not line.endswith("it does not come to rest")]
    assert told == [], f"seed {seed}\n{path.read_text()}\n{found[0]}"
    assert len(restless) > 1


Links = Iterable[tuple[str, str, float]]
"""Brokers, and the delay between them in ms."""
Published = Mapping[tuple[str, str], Iterable[int]]
"""By source, which is called as its type and a number, and broker: the seconds of its events."""

ZEROS: Mapping[Kind, Value] = {Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False, Kind.STRING: ""}


def placed(folder: Path, rules: str, links: Links, published: Published) -> Path:
    """A scenario of brokers in a tree, with a sink for all Z at n0."""
    declared = "".join(f"event {SCHEMAS[name]}\n" for name in "ABCD")
    (folder / "rules.tesla").write_text(declared + rules)
    text = 'strategy = "push-pull-st"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += "protocol = { heartbeat_s = 20.0, lead_s = 60.0 }\n"
    names = dict.fromkeys(name for one, other, _ in links for name in (one, other))
    text += "".join(f'[[broker]]\nname = "{name}"\n' for name in sorted(names))
    for one, other, delay_ms in links:
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay_ms = {delay_ms}\n'
    for (name, broker), seconds in published.items():
        schema = SCHEMAS[name[0]]
        data = {one.name: ZEROS[one.kind] for one in schema.attributes}
        events = [
            Event(schema.name, second * 1_000_000, name, str(n), data, n)
            for n, second in enumerate(seconds, start=1)
        ]
        (folder / f"{name}.jsonl").write_bytes(json_lines(batches(events, [schema])))
        text += f'[[source]]\nname = "{name}"\nbroker = "{broker}"\nevents = "{name}.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "n0"\nsubscribe = ["Z()"]\n'
    file = folder / "scenario.toml"
    file.write_text(text)
    return file


def test_what_others_publish_is_waited_for_once_a_type_is_pulled_no_more(tmp_path: Path) -> None:
    """A is pulled, and at n3 its mark is that of the source there; the plan by which it is sent as
    it comes is made at 61 s, while n4 says nothing yet (fuzzed seed 9009)."""
    rule = "rule r: define Z() from B() as b and each A() within 4 s from b"
    links = (("n0", "n3", 400.0), ("n3", "n4", 400.0), ("n0", "n5", 5.0))
    published = {("A0", "n3"): (43, 69), ("A1", "n4"): (67,), ("B0", "n0"): (50, 67)}
    outcome = run(placed(tmp_path, rule, links, published))
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["k"].arrivals) == 1


def test_what_one_rule_has_asked_for_is_not_all_that_another_wants(tmp_path: Path) -> None:
    """By the B at 14 s n1 has of A all that r0 needs before 16 s, and says so. Then nothing is
    pulled any more, and the D at 15 s, when it comes, waits for the A of n2 (fuzzed seed 12086)."""
    rules = """
rule r0: define X() from B() as b
and each A() as a within 4 s from b and last C() as c within 3 s from a
rule r1: define Z() from D() as d and last A() as a within 6 s from d"""
    links = (("n0", "n3", 5.0), ("n0", "n1", 5.0), ("n1", "n2", 40.0))
    published = {
        ("A0", "n2"): (2, 15),
        ("B0", "n1"): (14, 16),
        ("C0", "n0"): (14,),
        ("D0", "n0"): (15,),
    }
    outcome = run(placed(tmp_path, rules, links, published))
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["k"].arrivals) == 1
