"""Brokers that are out of reach for so long that the others forget them (``forget_s``)."""

import json

import pytest
from networks import run
from simulator_text import overlay

from routing.effects import Effect, Log
from routing.network import strategy
from routing.network.brokers.planner import INPUTS_CLOSED
from routing.overlay.config import OverlayConfig
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.hosts import Driver

RULES = "event A(n: int)\nrule r: define Z(n: int) from A() as a where n = a.n"
LONG_S = 3_720.0
Links = dict[str, float]
"""By two names of brokers, milliseconds."""


def forgetful(*given, **chosen) -> OverlayConfig:
    """Of brokers that forget after less time than a scenario may say."""
    return OverlayConfig(*given, **{**chosen, "forget_s": 6.0})


STAR = {"b0 b1": 5.0, "b0 b2": 5.0}
RING = STAR | {"b1 b2": 5.0}


def away(
    written, name: str, *faults: str, gone: str = "b1", stays: str = "b0", links: Links = STAR
) -> Outcome:
    """Of three brokers one is gone from 10.5 s on; A is published there and at b2, and at one that
    stays there is a sink. b0 is the root whenever it is there.
    """
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 5.0\nlead_s = 60.0\n"
    for source, broker in (("s0", "b2"), ("s1", gone)):
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\nevents = "{source}.jsonl"\n'
    text += f'[[sink]]\nname = "k"\nbroker = "{stays}"\nsubscribe = ["Z"]\n'
    text += "".join(f"[[fault]]\n{fault}\n" for fault in faults)
    text += overlay(links)
    times = {"s0": range(0, 4_000, 50), "s1": (1, 3, 5, 100, 200, 3_800, 3_900)}
    files = {
        f"{source}.jsonl": "".join(
            json.dumps({"type": "A", "source": source, "time": time, "data": {"n": 1}}) + "\n"
            for time in own
        )
        for source, own in times.items()
    }
    return run(written(text, RULES, **files))


STOP = f'kind = "stop"\nat_s = 10.5\nfor_s = {LONG_S}\nbrokers = ["b1"]'
CUT = f'kind = "cut"\nat_s = 10.5\nfor_s = {LONG_S}\nlinks = [["b0", "b1"]]'


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[Log]:
    """What brokers write into their logs that somebody should know of."""
    written: list[Log] = []
    carry_out = Driver._carry_out

    def keep(driver: Driver, effects: list[Effect]) -> None:
        written.extend(one for one in effects if isinstance(one, Log) and one.level == "warning")
        carry_out(driver, effects)

    monkeypatch.setattr(Driver, "_carry_out", keep)
    return written


def found(outcome: Outcome) -> dict[int, float]:
    """When composite events came to the sink, by their times, in seconds."""
    (sink,) = outcome.experiment.sinks.values()
    return {
        event.time // 10**6: one.moment
        for one in sink.arrivals
        for batch in one.delivery.batches
        for event in batch.events()
    }


@pytest.mark.parametrize("name", ["centralized", "push-pull-mt"])
def test_rules_wait_for_five_minutes_and_no_longer(written, name: str) -> None:
    """Though nothing else happens in the network: it was forgotten with the next news alone."""
    came = found(away(written, name, STOP))
    assert came[5] < 6
    assert 310 < came[50] < 350
    assert 350 <= came[350] < 351


@pytest.mark.parametrize("name", strategy.names())
def test_what_a_source_brings_of_the_time_without_it_is_late(written, name: str) -> None:
    """It was taken, and composite events of it were missing without a word. And the brokers that
    had forgotten the one that stopped did not hear of it again.
    """
    outcome = away(written, name, STOP)
    _, source = outcome.experiment.sources
    assert [one.code.value for one in source.refusals] == ["late", "late"]
    assert found(outcome).keys() == {*range(0, 4_000, 50), 1, 3, 5, 3_800, 3_900}
    assert not [one for one in check(outcome) if "broker" in one]


@pytest.mark.parametrize("name", strategy.names())
def test_so_is_what_a_source_of_the_root_brings(written, name: str) -> None:
    """A root that was away is the root again, and had forgotten nobody: what its own source brought
    was taken, and who had what was found without it got nothing of it, without a word.
    """
    stop = STOP.replace("b1", "b0")
    outcome = away(written, name, stop, gone="b0", stays="b1", links=RING)
    _, source = outcome.experiment.sources
    assert [one.code.value for one in source.refusals] == ["late", "late"]
    assert found(outcome).keys() == {*range(0, 4_000, 50), 1, 3, 5, 3_800, 3_900}
    assert not [one for one in check(outcome) if "broker" in one]


@pytest.mark.parametrize("name", ["centralized", "distributed-mt"])
def test_sources_that_go_on_in_a_part_of_their_own_lose_nothing_when_it_is_back(
    written, name: str, warnings: list[Log]
) -> None:
    """But for what rules elsewhere have been evaluated without, and that is said."""
    outcome = away(written, name, CUT)
    assert [one.refusals for one in outcome.experiment.sources] == [[], []]
    assert found(outcome).keys() == {*range(0, 4_000, 50), 1, 3, 5, 3_800, 3_900}
    assert not [one for one in check(outcome) if "broker" in one]
    said = [one.fields for one in warnings if one.text == INPUTS_CLOSED]
    assert [(one["why"], one["brokers"], one["types"]) for one in said] == [
        ("unreachable", ["b1"], ["A"]),
        ("unreachable", ["b0", "b2"], ["A"]),
    ]


@pytest.mark.parametrize(
    ("links", "faults"),
    [
        pytest.param(
            {"b0 b1": 5.0, "b0 b2": 5.0},
            [("stop", 10.0, 9.0, '["b0"]')],
            id="the root was away, and has lost its tree",
        ),
        pytest.param(
            {"b0 b1": 40.0, "b0 b2": 40.0, "b1 b3": 400.0},
            [("stop", 4.143, 9.603, '["b1"]'), ("cut", 5.054, 4.708, '[["b1", "b3"]]')],
            id="one between others was away, which had forgotten each other",
        ),
        pytest.param(
            {"b0 b1": 5.0, "b0 b2": 5.0, "b2 b3": 0.5},
            [("stop", 10.754, 8.158, '["b3"]'), ("cut", 17.048, 14.74, '[["b2", "b3"]]')],
            id="what waits at a link is told when its teller has forgotten it",
        ),
        pytest.param(
            {"b6 b5": 5.0, "b5 b4": 5.0, "b4 b0": 5.0, "b0 b1": 5.0, "b1 b2": 5.0, "b1 b3": 5.0},
            [("cut", 8.0, 7.0, '[["b6", "b5"]]'), ("cut", 12.5, 3.6, '[["b5", "b4"]]')],
            id="one had missed the others before its neighbour did",
        ),
    ],
)
def test_brokers_that_have_forgotten_each_other_agree_again(
    written, monkeypatch: pytest.MonkeyPatch, links: dict[str, float], faults: list[tuple]
) -> None:
    """Found by a search among networks whose brokers forget after 6 s."""
    monkeypatch.setattr("simulator.network.OverlayConfig", forgetful)
    text = 'strategy = "distributed-mt"\nrules = "rules.tesla"\n'
    text += "[protocol]\nheartbeat_s = 0.5\nlead_s = 20.0\n"
    text += '[[source]]\nname = "s"\nbroker = "b1"\nevents = "s.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "b2"\nsubscribe = ["Z"]\n'
    for kind, at_s, for_s, places in faults:
        where = "brokers" if kind == "stop" else "links"
        text += f'[[fault]]\nkind = "{kind}"\nat_s = {at_s}\nfor_s = {for_s}\n{where} = {places}\n'
    lines = (f'{{"type": "A", "source": "s", "time": {t}, "data": {{"n": 1}}}}\n' for t in (0, 50))
    outcome = run(written(text + overlay(links), RULES, **{"s.jsonl": "".join(lines)}))
    assert outcome.settled
    assert not [one for one in check(outcome) if "broker" in one or "centres" in one]


def test_who_had_forgotten_somebody_hears_of_it_from_who_had_not(
    written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c0 lost its own link to b0 last, and so forgot b1 a moment before c1 did, which was just then
    back in reach of it: what b1 says of itself was nothing new to c1, and c0 was not told.
    """
    monkeypatch.setattr("simulator.network.OverlayConfig", forgetful)
    text = 'rules = "rules.tesla"\n[protocol]\nheartbeat_s = 0.5\nlead_s = 20.0\n'
    for other, at_s, for_s in (("c1", 8.0, 9.6), ("c0", 10.0, 60.0)):
        text += f'[[fault]]\nkind = "cut"\nat_s = {at_s}\nfor_s = {for_s}\n'
        text += f'links = [["b0", "{other}"]]\n'
    text += '[[source]]\nname = "s"\nbroker = "b0"\nevents = "s.jsonl"\n'
    text += overlay({"b0 b1": 5.0, "b0 c0": 5.0, "b0 c1": 5.0, "c0 c1": 400.0})
    event = '{"type": "A", "source": "s", "time": 0, "data": {"n": 1}}\n'
    experiment = Experiment(scenario.read(written(text, RULES, **{"s.jsonl": event})))
    known: list[str] = []

    def look() -> None:
        states = experiment.brokers["c0"].broker.overlay.topology.states
        known.append(" ".join(state.origin for state in states))

    for moment in (17.0, 18.0, 30.0):
        experiment.simulation.at(moment, look)
    experiment.run()
    assert known == ["b0 b1 c0 c1", "c0 c1", "b0 b1 c0 c1"]
