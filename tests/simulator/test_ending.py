"""Rules that end in mid-stream: what they find before their end, every sink gets (S15)."""

from dataclasses import replace
from pathlib import Path

import pytest
from pairs import every_pair

from matcher.identity import RULE_SOURCE
from routing.network import strategy
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.oracle import delivered

SECOND = 1_000_000
TYPES = "event Temp(area: string, value: int)\nevent Smoke(area: string)\n"
RULES = f"""{TYPES}
rule fire:
define Fire(area: string, temp: int)
from Smoke(area=$a) and last Temp(area=$a and value>45) within 5 s from Smoke
where area=Smoke.area, temp=Temp.value
rule alarm:
define Alarm(temp: int)
from Smoke(area=$a) and each Fire(area=$a) within 15 s from Smoke
where temp=Fire.temp
"""
LATER = f"""{TYPES}
rule fire:
define Fire(area: string, temp: int)
from Smoke(area=$a) and last Temp(area=$a and value>1000) within 5 s from Smoke
where area=Smoke.area, temp=Temp.value
"""
NETWORK = """
seed = 7
engine = "naive"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
lead_s = 20.0
[[broker]]
name = "b1"
[[broker]]
name = "b2"
[[broker]]
name = "b3"
[[broker]]
name = "b4"
[[link]]
between = ["b1", "b2"]
[[link]]
between = ["b1", "b3"]
[[link]]
between = ["b2", "b3"]
[[link]]
between = ["b2", "b4"]
[[source]]
name = "temps"
broker = "b3"
events = "temps.jsonl"
[[source]]
name = "smokes"
broker = "b3"
events = "smokes.jsonl"
[[sink]]
name = "near"
broker = "b3"
subscribe = ["Fire", "Alarm"]
[[sink]]
name = "far"
broker = "b2"
subscribe = ["Fire", "Alarm"]
[[change]]
at_s = 10.2
broker = "b1"
rules = "later.tesla"
"""
SLOW = '[[fault]]\nkind = "delay"\nat_s = 9.5\nfor_s = 4.0\nvalue = 0.9\nlinks = [["b2", "b3"]]\n'
CUT = '[[fault]]\nkind = "cut"\nat_s = 15.0\nlinks = [["b2", "b3"]]\n'


def run(
    folder: Path, name: str, more: str = "", network: str = NETWORK, rules: str = RULES
) -> Outcome:
    """Temperatures and smoke at one broker, each second from 10 s to 29 s."""
    for source, kind, data in (("temps", "Temp", ', "value": {}'), ("smokes", "Smoke", "")):
        lines = (
            f'{{"type": "{kind}", "time": {at}, "data": {{"area": "a"{data.format(at + 40)}}}}}\n'
            for at in range(10, 30)
        )
        (folder / f"{source}.jsonl").write_text("".join(lines))
    (folder / "rules.tesla").write_text(rules)
    (folder / "later.tesla").write_text(LATER)
    (folder / "scenario.toml").write_text(network + more)
    return Experiment(replace(scenario.read(folder / "scenario.toml"), strategy=name)).run()


def got(outcome: Outcome, sink: str) -> list[tuple[str, int]]:
    """Types and times in seconds of the composite events that a sink got, each once."""
    answer = delivered(outcome.experiment.sinks[sink].arrivals)
    return sorted({(one.type, one.time // SECOND) for one in answer.composite})


FAULTS = {"": "", "slow": SLOW, "cut": CUT, "both": SLOW + CUT}


@pytest.mark.parametrize(
    ("engine", "name", "faults"),
    every_pair(["naive", "auto"], strategy.names(), FAULTS),
)
def test_what_a_rule_found_before_its_end_comes_to_all(
    tmp_path, name: str, faults: str, engine: str
) -> None:
    """A way that is slow when it ends lags behind where it has ended; and the rule above it reaches
    back to what it found, though it begins anew in another tree when it is long gone.
    """
    outcome = run(tmp_path, name, FAULTS[faults], NETWORK.replace("naive", engine))
    assert outcome.settled
    assert check(outcome) == []
    for sink in ("near", "far"):
        times = got(outcome, sink)
        assert 18 <= [at for kind, at in times if kind == "Fire"][-1] <= 22
        assert ("Alarm", 29) in times


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_that_ends_is_seen_by_nobody(tmp_path, name: str) -> None:
    """Composite events bear its name, and its version in their ids; lists have what is in force."""
    outcome = run(tmp_path, name, SLOW)
    experiment = outcome.experiment
    for sink in experiment.sinks.values():
        for one in delivered(sink.arrivals).composite:
            rules = {one.source, *(cause for cause in one.cause_full if RULE_SOURCE in cause)}
            assert not [name for name in rules if "@" in name]
    for host in experiment.brokers.values():
        facts = host.broker.status(experiment.simulation.now)
        assert [one["name"] for one in facts["rules"]] == ["alarm", "fire"]
        assert {one["version"] for one in facts["rules"]} == {0, 1}


HEEDED = """
rule fire:
define Fire(area: string, temp: int)
from Smoke(area=$a) and last Temp(area=$a and value>45) within 5 s from Smoke
 and not Hum(n=1) within 5 s from Smoke
where area=Smoke.area, temp=Temp.value
"""
HUMS = """
[[source]]
name = "hums"
broker = "b4"
events = "hums.jsonl"
[[fault]]
kind = "delay"
at_s = 9.5
value = 0.4
links = [["b2", "b4"]]
"""


@pytest.mark.parametrize("name", strategy.names())
def test_nothing_waits_for_what_only_a_rule_needs_that_has_been_dropped(
    tmp_path, name: str
) -> None:
    """Its events come late; what takes its place is told at once, when it has got to its end."""
    hums = (f'{{"type": "Hum", "time": {at}, "data": {{"n": 0}}}}\n' for at in range(10, 30))
    (tmp_path / "hums.jsonl").write_text("".join(hums))
    first = RULES.index("rule fire"), RULES.index("rule alarm")
    text = RULES.replace(RULES[slice(*first)], HEEDED)
    outcome = run(tmp_path, name, HUMS, rules=f"event Hum(n: int)\n{text}")
    assert check(outcome) == []
    after_s = [
        one.moment - event.time / SECOND
        for one in outcome.experiment.sinks["near"].arrivals
        for batch in one.delivery.batches
        for event in batch.events()
        if event.time >= 28 * SECOND
    ]
    assert len(after_s) > 0
    assert max(after_s) < 0.4


TALLY = f"""{TYPES}
rule tally:
define Tally(n: int)
from Smoke(area=$a) as s and each Fire(area=$a) as f within 15 s from s
where n=f.temp
consuming s
"""


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_ends_where_it_has_just_begun_anew(tmp_path, name: str) -> None:
    """It moves, because of a rule above it, and is replaced before its events have come again."""
    (tmp_path / "tally.tesla").write_text(TALLY)
    first = '[[change]]\nat_s = 9.8\nbroker = "b2"\nrules = "tally.tesla"\n'
    network = NETWORK.replace('"Fire", "Alarm"', '"Fire", "Alarm", "Tally"')
    outcome = run(tmp_path, name, SLOW + first, network.replace("10.2", "10.6"))
    assert check(outcome) == []
    assert ("Tally", 29) in got(outcome, "far")
