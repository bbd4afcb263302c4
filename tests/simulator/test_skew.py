"""Clocks of sources that go wrong: what comes when, and that results are those of the oracle."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from networks import apart, run, sharp, write
from pairs import some_of_each
from simulator_text import RULES, SMALL, TWO, events

from matcher.model import MICROSECONDS
from routing.network import strategy
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.fuzzing.case import Fault
from simulator.fuzzing.making import random_case
from simulator.fuzzing.shrinking import smaller_cases
from simulator.oracle import delivered
from simulator.scenario import ScenarioError


def skew(value: float, at_s: float = -10.0, for_s: float | None = None, *sources: str) -> str:
    lasts = "" if for_s is None else f"for_s = {for_s}\n"
    names = f"sources = {json.dumps(sources)}\n" if sources else ""
    return f'[[fault]]\nkind = "skew"\nat_s = {at_s}\n{lasts}{names}value = {value}\n'


def came(outcome: Outcome, sink: str = "k1") -> list[tuple[str, float, float]]:
    """The types of what was delivered, the times that it bears, and the moments when it came."""
    return [
        (event.type, event.time / MICROSECONDS, round(one.moment, 6))
        for one in outcome.experiment.sinks[sink].arrivals
        for event in delivered([one]).composite + delivered([one]).published
    ]


@pytest.mark.parametrize(("name", "seed"), some_of_each(strategy.names(), range(1, 5)))
def test_results_are_those_of_the_oracle_whatever_clocks_show(
    tmp_path: Path, seed: int, name: str
) -> None:
    found = sharp(seed)
    assert found is not None, f"seed {seed}"
    text, published = found[0], apart(seed, found[1])
    path, random = write(tmp_path, seed, text, published, name), Random(f"skew {seed}")
    first, last = (pick(one.time for one in published) / 1e6 for pick in (min, max))
    faults = ""
    for source in sorted({one.source for one in published}):
        at_s = random.uniform(-10.0, last - first)
        for_s = random.choice((None, 1.0, 10.0))
        faults += skew(random.choice((-20.0, -0.3, 0.02, 3.0, 20.0)), at_s, for_s, source)
    path.write_text(path.read_text() + faults)
    outcome = run(path)
    assert outcome.settled, f"seed {seed}\n{path.read_text()}"
    assert check(outcome) == [], f"seed {seed}\n{path.read_text()}\n{text}"


@pytest.mark.parametrize("value", [-7200.0, -5.0, 0.0, 3.0, 400.0])
def test_events_come_as_much_later_as_a_clock_is_behind_and_earlier_as_it_is_ahead(
    written, value: float
) -> None:
    """However far: a run waits for the last, and begins before the first."""
    times = (10.0, 11.0, 11.5)
    text = TWO.replace('"Fire(temp > 45)", ', "") + skew(value, -500.0, None, "s1")
    path = written(text, **{"s1.jsonl": events("Temp", *times), "s2.jsonl": events("Smoke", 12.0)})
    outcome = run(path)
    assert outcome.settled
    assert check(outcome) == []
    assert came(outcome) == [("Temp", time, time - value) for time in times]


@pytest.mark.parametrize(
    ("value", "moments"),
    [
        (2.0, [1, 2, 3, 4, 5, 5.5, 5.5, 6, 7, 8, 11]),
        (-2.0, [1, 2, 3, 4, 5, 8, 8.5, 8.5, 9, 10, 11]),
    ],
)
def test_a_clock_that_is_turned_in_mid_stream_keeps_the_order(
    written, value: float, moments: list[float]
) -> None:
    """From 5.5 s to 8.5 s it is wrong. What has become due goes out at once, the rest later."""
    times = [float(time) for time in range(1, 12)]
    text = SMALL.replace('"Fire(temp > 45)", ', "") + skew(value, 4.5, 3.0)
    outcome = run(written(text, **{"s1.jsonl": events("Temp", *times)}))
    assert check(outcome) == []
    assert [time for _, time, _ in came(outcome)] == times
    assert [moment for *_, moment in came(outcome)] == moments


@pytest.mark.parametrize(("ahead", "due"), [(0.0, 10.0), (7.0, 3.0)])
def test_what_came_before_a_subscription_was_in_force_is_not_missing(
    written, ahead: float, due: float
) -> None:
    """Fuzz seed 268: lost messages kept it from being so before a clock ahead was shown."""
    text = SMALL.replace('"Fire(temp > 45)", ', "") + skew(ahead)
    outcome = run(written(text, **{"s1.jsonl": events("Temp", 10.0, 20.0)}))
    sink = outcome.experiment.sinks["k1"]
    assert sink.confirmed_at is not None
    assert sink.confirmed_at < due  # all was in force in time
    assert check(outcome) == []
    del sink.arrivals[0]
    assert any("missing: Temp" in line for line in check(outcome))
    sink.confirmed_at = due + 0.5
    assert check(outcome) == []
    del sink.arrivals[0]
    assert any("missing: Temp" in line for line in check(outcome))


def test_what_needs_both_waits_for_the_source_that_is_behind(written) -> None:
    text = TWO + skew(-4.0, -10.0, None, "s1")
    temps, smokes = events("Temp", 10.0, 30.0), events("Smoke", 12.0)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert check(outcome) == []
    ((_, time, moment),) = (one for one in came(outcome) if one[0] == "Fire")
    assert time == 12.0
    assert moment >= 14.0  # only then s1 says that nothing earlier than its next event comes


def test_a_source_that_lives_is_waited_for_however_long_it_says_nothing(written) -> None:
    text = TWO + "[protocol]\nsource_silence_max_s = 5.0\nheartbeat_s = 1.0\n"
    temps, smokes = events("Temp", 10.0, 13.5), events("Smoke", 12.0, 14.0)
    path = written(text + skew(-20.0, 2.0, 30.0, "s1"), **{"s1.jsonl": temps, "s2.jsonl": smokes})
    outcome = run(path)
    fires = [(time, moment) for name, time, moment in came(outcome) if name == "Fire"]
    assert [time for time, _ in fires] == [12.0, 14.0]
    assert fires[1][1] > 33.0
    assert check(outcome) == []


def test_nothing_waits_for_a_source_that_is_lost_for_long(written) -> None:
    """What it says afterwards is too late, and results are those without it."""
    text = TWO + "[protocol]\nsource_silence_max_s = 15.0\nheartbeat_s = 1.0\n"
    temps, smokes = events("Temp", 10.0, 13.5), events("Smoke", 12.0, 14.0)
    text += '[[fault]]\nkind = "lost"\nat_s = 2.0\nfor_s = 21.0\nsources = ["s1"]\n'
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    fires = [(time, moment) for name, time, moment in came(outcome) if name == "Fire"]
    assert [time for time, _ in fires] == [12.0, 14.0]
    assert fires[1][1] < 33.0, "s1 is back at 33 s"
    assert [one.code.value for one in outcome.experiment.sources[0].refusals] == ["late"]
    assert check(outcome) == []
    del outcome.experiment.brokers["b1"].warnings[:]
    assert any("late" in line for line in check(outcome)), "nobody has said so"


@pytest.mark.parametrize(("value", "fires"), [(0.0, 1), (-0.5, 1), (-1.5, 0), (0.5, 1)])
def test_by_arrival_it_counts_when_events_come(written, value: float, fires: int) -> None:
    """The Temp is a second before the Smoke, by their own times."""
    text = 'ordering = "arrival"\n' + TWO + skew(value, -10.0, None, "s1")
    files = {"s1.jsonl": events("Temp", 11.0), "s2.jsonl": events("Smoke", 12.0)}
    outcome = run(written(text, **files))
    assert check(outcome) == []
    assert sum(name == "Fire" for name, *_ in came(outcome)) == fires


def test_by_arrival_what_a_clock_ahead_brings_is_no_error(written) -> None:
    """A composite event bears the brokers' time, before that of what it consists of."""
    text = 'ordering = "arrival"\n' + TWO + skew(30.0)
    files = {"s1.jsonl": events("Temp", 11.0), "s2.jsonl": events("Smoke", 12.0)}
    outcome = run(written(text, **files))
    assert check(outcome) == []
    ((_, time, _),) = (one for one in came(outcome) if one[0] == "Fire")
    assert time < 11.0


def test_the_sources_of_a_workload_have_names_too(written) -> None:
    workload = "[workload]\ntypes = 4\nrules = 3\nrates = [1.0, 1.0]\nhorizon_s = 10.0\n"
    workload += "subscriptions = 2\nlength = 2\n"
    text = SMALL.replace('rules = "rules.tesla"\n', "")
    text = text[: text.index("[[source]]")] + workload
    path = written(text)
    names = [source.name for source in Experiment(scenario.read(path)).sources]
    path.write_text(text + skew(-3.0, -10.0, None, names[0]))
    outcome = run(path)
    assert outcome.settled
    assert check(outcome) == []
    path.write_text(text + skew(-3.0, -10.0, None, "s-b9"))
    with pytest.raises(ScenarioError, match=r"fault\[1\]\.sources: there is no source 's-b9'"):
        run(path)


def test_a_name_stands_for_all_sources_of_a_file(written) -> None:
    """Also where the events name sources of their own."""
    lines = [
        {"type": "Temp", "time": time, "source": source, "data": {"area": "a", "value": 50.0}}
        for time, source in ((10, "x"), (11, "y"))
    ]
    text = SMALL.replace('"Fire(temp > 45)", ', "") + skew(-2.0, -10.0, None, "s1")
    outcome = run(written(text, RULES, **{"s1.jsonl": "\n".join(map(json.dumps, lines))}))
    assert check(outcome) == []
    assert came(outcome) == [("Temp", 10.0, 12.0), ("Temp", 11.0, 13.0)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("value = 1.0\nsources = ['s9']", "fault[1].sources: there is no source 's9'"),
        ("value = 1.0\nbrokers = ['b1']", "fault[1]: brokers: a fault of kind skew is on sources"),
        ("value = nan", "fault[1].value: expected a finite number"),
        ("for_s = 2.0", "fault[1]: value: for a fault of kind skew expected by how many seconds"),
        ("value = 1.0\nfor_s = 0.0", "fault[1]: for_s must be positive"),
        ("value = 'x'", "fault[1].value: expected `float | null`"),
    ],
)
def test_a_bad_skew_is_refused(written, table: str, message: str) -> None:
    path = written(f'{SMALL}\n[[fault]]\nat_s = 1.0\nkind = "skew"\n{table}\n')
    with pytest.raises(ScenarioError) as caught:
        Experiment(scenario.read(path))
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_smaller_case_has_no_clock_of_a_source_that_is_gone() -> None:
    case = next(
        case for seed in range(99) if len((case := random_case(seed, "centralized")).homes) > 1
    )
    names = tuple(name for name, _ in case.homes)
    firsts = {event.source: event for event in reversed(case.events)}
    case = replace(case, events=tuple(firsts.values()))
    case = replace(case, faults=(Fault("skew", 0.0, 1.0, 1.0, sources=names),))
    lost = 0
    for smaller in smaller_cases(case):
        homes = {name for name, _ in smaller.homes}
        assert all(homes.issuperset(fault.sources) for fault in smaller.faults)
        assert all(fault.sources for fault in smaller.faults), "it would be on all"
        lost += len(homes) < len(names)
    assert lost > 0
