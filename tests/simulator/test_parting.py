"""Networks that fall apart, and whose parts go on without one another (``forget_s``)."""

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random

import pytest
from networks import run
from pairs import seeds, some_of
from simulator_text import events, overlay

from routing.network import strategy
from routing.network.brokers.plan_follower import REOPENED
from routing.network.brokers.planner import INPUTS_CLOSED
from simulator.checkers import check
from simulator.experiment import Outcome
from simulator.fuzzing.campaign import differences
from simulator.fuzzing.maker import Maker
from simulator.fuzzing.making import made_lost

RULES = """event A(n: int)
event B(n: int)
rule r: define Z(n: int) from B() as b and each A() as a within 3 s from b where n = a.n
rule q: define Y(n: int) from A() as a where n = a.n
"""
CUT_S, HEALED_S = 10.1, 40.1
HOMES = {"sa": "b0", "sb": "b1", "sc": "b3"}
TYPES = {"sa": "A", "sb": "B", "sc": "A"}


def published(type_name: str, source: str, times: Iterable[float]) -> str:
    """The lines of a file of such events."""
    events = (
        {"type": type_name, "source": source, "time": time, "data": {"n": 1}} for time in times
    )
    return "".join(json.dumps(event) + "\n" for event in events)


def parted(
    written, name: str, last: dict[str, int] | None = None, forget_s: float = 10.0
) -> Outcome:
    """b0 and b1 are cut off from b2 and b3 for half a minute. B is published at b1 alone.

    ``last``: by source, the second of its last event.
    """
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += f"[protocol]\nheartbeat_s = 0.5\nlead_s = 20.0\nforget_s = {forget_s}\n"
    text += f'[[fault]]\nkind = "cut"\nat_s = {CUT_S}\nfor_s = {HEALED_S - CUT_S}\n'
    text += 'links = [["b1", "b2"]]\n'
    files = {}
    for place, (source, broker) in enumerate(HOMES.items()):
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\n'
        text += f'events = "{source}.jsonl"\n'
        times = [second + place / 4 for second in range((last or {}).get(source, 60) + 1)]
        files[f"{source}.jsonl"] = published(TYPES[source], source, times)
    for broker in ("b0", "b1", "b2", "b3"):
        text += f'[[sink]]\nname = "k-{broker}"\nbroker = "{broker}"\n'
        text += 'subscribe = ["Z", "Y", "A"]\n'
    text += overlay({"b0 b1": 5.0, "b1 b2": 5.0, "b2 b3": 5.0})
    return run(written(text, RULES, **files))


def came_while_apart(outcome: Outcome, sink: str, type_name: str) -> list[float]:
    """The times of composite events of a type that came before the parts were together again."""
    return [
        event.time / 10**6
        for one in outcome.experiment.sinks[sink].arrivals
        if CUT_S < one.moment < HEALED_S
        for batch in one.delivery.batches
        for event in batch.events()
        if event.type == type_name
    ]


def said(outcome: Outcome, text: str) -> dict[str, list[dict[str, object]]]:
    """What brokers' logs say in these words, by broker."""
    return {
        name: [dict(log.fields) for _, log in host.warnings if log.text == text]
        for name, host in outcome.experiment.brokers.items()
        if any(log.text == text for _, log in host.warnings)
    }


@pytest.mark.parametrize("name", strategy.names())
def test_each_part_goes_on_with_what_it_has_and_says_so(written, name: str) -> None:
    outcome = parted(written, name)
    assert outcome.settled
    assert check(outcome) == []
    assert came_while_apart(outcome, "k-b0", "Z")[-1] > 38
    assert came_while_apart(outcome, "k-b3", "Y")[-1] > 38
    went_on = [fields for lines in said(outcome, INPUTS_CLOSED).values() for fields in lines]
    assert [(one["brokers"], one["types"]) for one in went_on] == [
        (["b2", "b3"], ["A"]),
        (["b0", "b1"], ["A", "B"]),
    ]


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_waits_for_nobody_out_of_reach_whom_another_needs(written, name: str) -> None:
    """Where rules are pulled, nothing was asked of anybody along a tree until the broker was back
    that keeps events for one of them.
    """
    rules = "".join(f"event {kind}(n: int)\n" for kind in "ABC")
    for rule, found, kind in (("r", "Z", "B"), ("q", "Y", "C")):
        rules += f"rule {rule}: define {found}(n: int) from A() as a and each {kind}() as x"
        rules += " within 1 s from a where n = a.n\n"
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 0.5\nlead_s = 60.0\n"
    text += f'[[fault]]\nkind = "cut"\nat_s = {CUT_S}\nfor_s = {HEALED_S - CUT_S}\n'
    text += 'links = [["b1", "b3"]]\n'
    files = {}
    for source, broker, kind, each in (
        ("sa", "b2", "A", 4),
        ("sb", "b3", "B", 1),
        ("sc", "b4", "C", 1),
    ):
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\n'
        text += f'events = "{source}.jsonl"\n'
        times = [step / 4 for step in range(0, 200, each)]
        files[f"{source}.jsonl"] = published(kind, source, times)
    for found in ("Y", "Z"):
        text += f'[[sink]]\nname = "{found}"\nbroker = "b1"\nsubscribe = ["{found}"]\n'
    text += overlay({"b1 b2": 5.0, "b1 b3": 5.0, "b1 b4": 5.0})
    outcome = run(written(text, rules, **files))
    assert check(outcome) == []
    assert came_while_apart(outcome, "Y", "Y")[-1] > 38
    assert not came_while_apart(outcome, "Z", "Z")


def test_unless_it_may_forget_nobody_goes_on(written) -> None:
    outcome = parted(written, "distributed-st", forget_s=3_600.0)
    assert check(outcome) == []
    assert max(came_while_apart(outcome, "k-b0", "Z")) < CUT_S + 1
    assert not said(outcome, INPUTS_CLOSED)


@pytest.mark.parametrize("name", ["centralized", "push-pull-mt"])
def test_a_type_that_is_published_in_the_other_part_alone_is_given_up(written, name: str) -> None:
    """A rule that needs it waited on, as for a type that nobody has published yet; and with it, for
    the sake of order, what other rules had found.
    """
    outcome = parted(written, name)
    assert not [time for time in came_while_apart(outcome, "k-b3", "Z") if time > 12]
    found = came_while_apart(outcome, "k-b3", "Y")
    assert [time for time in found if time > 12] == [12.5 + second for second in range(28)]


def test_what_is_found_when_all_is_well_again_must_come(written) -> None:
    outcome = parted(written, "centralized")
    sink = outcome.experiment.sinks["k-b3"]
    sink.arrivals[:] = [one for one in sink.arrivals if not 57.0 < one.moment < 62.0]
    lines = check(outcome)
    for kind in ("Y of", "A of"):
        assert any(f"missing: {kind}" in line for line in lines), kind


LOST = """event Temp(area: string, value: float)
event Smoke(area: string)
rule fire:
define Fire(area: string)
from Smoke(area = $a) and each Temp(area = $a) within 5 s from Smoke
where area = Smoke.area
"""


@pytest.mark.parametrize("name", strategy.names())
def test_a_source_that_was_lost_for_long_is_waited_for_again(written: Path, name: str) -> None:
    """Trees of sinks had been told that nothing more would come of its type, and went on so."""
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 1.0\nsource_silence_max_s = 8.0\n"
    for source, broker in (("s1", "b1"), ("s2", "b2")):
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\n'
        text += f'events = "{source}.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "b2"\nsubscribe = ["Fire"]\n'
    text += '[[fault]]\nkind = "lost"\nat_s = 2.5\nfor_s = 38.0\nsources = ["s1"]\n'
    text += overlay({"b0 b2": 5.0, "b1 b2": 400.0})
    temps = events("Temp", 1.0, 2.0, 12.0, 40.0, 60.0)
    smokes = events("Smoke", 2.0, 5.0, 13.0, 30.0, 60.0, 61.0)
    outcome = run(written(text, LOST, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert check(outcome) == []
    late, _ = outcome.experiment.sources
    assert [one.code.value for one in late.refusals] == ["late", "late"]
    (sink,) = outcome.experiment.sinks.values()
    times = [
        event.time // 10**6
        for one in sink.arrivals
        for batch in one.delivery.batches
        for event in batch.events()
    ]
    assert times == [2, 2, 5, 5, 60, 61]


@pytest.mark.parametrize("name", ["centralized", "distributed-mt", "push-pull-mt"])
@pytest.mark.parametrize("seed", seeds(2, 6))
def test_sources_that_lose_their_links(seed: int, name: str) -> None:
    case = Maker(Random(f"{seed}/0")).case(seed, name)
    assert differences(made_lost(case, Random(f"{seed}/lost"))) == []


@pytest.mark.parametrize(
    ("name", "for_s"),
    some_of(product(["centralized", "distributed-mt"], [11.5, 11.7, 11.9]), 0, 4, 2),
)
def test_links_that_heal_just_as_others_forget(written, name: str, for_s: float) -> None:
    """A broker dropped the tree that had come anew as it forgot its root, and had two fathers: the
    network stood still for ever. And who goes by a plan before it has seen that others are back did
    not say what these had done without.
    """
    sources = {"sa": ("A", 0), "sb": ("B", 1), "sc": ("A", 3), "sd": ("A", 4), "se": ("B", 2)}
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 0.5\nlead_s = 20.0\nforget_s = 10.0\n"
    text += f'[[fault]]\nkind = "cut"\nat_s = {CUT_S}\nfor_s = {for_s}\n'
    text += 'links = [["b0", "b1"], ["b3", "b4"]]\n'
    files = {}
    for source, (type_name, place) in sources.items():
        text += f'[[source]]\nname = "{source}"\nbroker = "b{place}"\n'
        text += f'events = "{source}.jsonl"\n'
        times = [second + place / 5 for second in range(40)]
        files[f"{source}.jsonl"] = published(type_name, source, times)
    for place in range(5):
        text += f'[[sink]]\nname = "k{place}"\nbroker = "b{place}"\nsubscribe = ["Z", "Y"]\n'
    ring = {"b0 b1": 5.0, "b1 b2": 5.0, "b2 b3": 5.0, "b3 b4": 5.0, "b0 b4": 5.0}
    outcome = run(written(text + overlay(ring), RULES, **files))
    assert check(outcome) == []


@pytest.mark.parametrize("name", ["distributed-mt", "push-pull-mt", "adaptive"])
def test_one_of_two_that_were_left_out_is_back(written, name: str) -> None:
    """The root had heard of neither that it was left out, and took the other for one that publishes
    their type still: it did not wait for the one that was back, and missed what it found.
    """
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 0.2\nlead_s = 60.0\nforget_s = 3.9\n"
    text += '[[fault]]\nkind = "cut"\nat_s = 12.0\nfor_s = 10.4\n'
    times = {"sa": [0.0, 31.0], "sb": [28.0, 31.0], "sc": [30.0]}
    files = {}
    for source, broker in (("sa", "b0"), ("sb", "b1"), ("sc", "b1")):
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\nevents = "{source}.jsonl"\n'
        files[f"{source}.jsonl"] = published("A" if source == "sa" else "B", source, times[source])
    text += '[[sink]]\nname = "k"\nbroker = "b0"\nsubscribe = ["Z"]\n' + overlay({"b0 b1": 5.0})
    outcome = run(written(text, RULES, **files))
    assert said(outcome, REOPENED).keys() == {"b1"}
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["k"].arrivals) == 1


def test_what_is_from_before_a_part_went_on_may_come_when_they_are_together_again(written) -> None:
    """b0 had what A at 3 s leads to, and waited for what sb says; so did the other part, and found
    what sc had said at 1 s only then.
    """
    both = (
        "event A(n: int)\nevent B(n: int)\n"
        "rule r: define Y(n: int) from B() as b where n = b.n\n"
        "rule q: define Y(n: int) from A() as a where n = a.n\n"
    )
    text = 'rules = "rules.tesla"\n[protocol]\nheartbeat_s = 0.2\nlead_s = 20.0\nforget_s = 4.6\n'
    text += '[[fault]]\nkind = "cut"\nat_s = 5.3\nfor_s = 12.3\nlinks = [["b0", "b1"]]\n'
    files = {}
    for source, type_name, second in (("sa", "A", 3.0), ("sb", "B", 7.0), ("sc", "B", 1.0)):
        text += f'[[source]]\nname = "{source}"\nbroker = "b1"\nevents = "{source}.jsonl"\n'
        files[f"{source}.jsonl"] = published(type_name, source, [second])
    text += '[[sink]]\nname = "k"\nbroker = "b0"\nsubscribe = ["Y"]\n'
    text += "".join(f'[[broker]]\nname = "{name}"\n' for name in ("b0", "b1", "b2"))
    text += "".join(
        f'[[link]]\nbetween = ["b1", "{other}"]\ndelay_ms = 5.0\n' for other in ("b0", "b2")
    )
    outcome = run(written(text, both, **files))
    assert outcome.settled
    came = [
        event.time // 10**6
        for one in outcome.experiment.sinks["k"].arrivals
        for batch in one.delivery.batches
        for event in batch.events()
    ]
    assert came == [3, 1, 7]
    assert check(outcome) == []


def test_what_one_part_has_let_go_of_is_not_evaluated_without_it(written) -> None:
    """b0 went on no further than 18 s, and b1, alone, let go of what Z at 20 s would begin with."""
    rule = (
        "event D(n: int)\nrule r: define Z() from D() as d and first D() as e within 5 s from d\n"
    )
    text = 'strategy = "adaptive"\nrules = "rules.tesla"\n[protocol]\n'
    text += "heartbeat_s = 0.2\nlead_s = 60.0\nforget_s = 6.7\n"
    text += '[[fault]]\nkind = "cut"\nat_s = 9.5\nfor_s = 19.0\n'
    text += '[[source]]\nname = "s"\nbroker = "b1"\nevents = "s.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "b0"\nsubscribe = ["Z"]\n' + overlay({"b0 b1": 5.0})
    outcome = run(written(text, rule, **{"s.jsonl": published("D", "s", [8.0, 15.0, 18.0, 20.0])}))
    assert outcome.settled
    assert check(outcome) == []
