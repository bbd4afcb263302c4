"""A broker that is back without its memory: whom the others wait for, and how long."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from networks import run
from pairs import every_pair, some_of_each
from simulator_text import RULES, SMALL, events, overlay

from routing.network import strategy
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome

RING = {"b1 b2": 5.0, "b2 b3": 5.0, "b3 b4": 5.0, "b4 b1": 5.0, "b2 b4": 5.0}
TEMPS = range(2, 60, 2)
SMOKES = [one - 0.1 for one in TEMPS]
FORGET_S = 40.0
CALM = """
event Temp(area: string, value: float)
event Smoke(area: string)
rule calm:
define Fire(area: string)
from Smoke() and not Temp() within 1 s from Smoke
where area=Smoke.area
"""


def crashing(
    name: str,
    links: Mapping[str, float],
    homes: Mapping[str, tuple[str, str]],
    at_sink: str,
    broker: str,
    at_s: float,
    lasts_s: float,
) -> str:
    """A scenario in which a broker crashes. ``homes``: by source, its broker and its file."""
    head, _ = SMALL.split("[[broker]]", 1)
    text = f'{head}strategy = "{name}"\n{overlay(links)}'
    for source, (home, file) in homes.items():
        text += f'[[source]]\nname = "{source}"\nbroker = "{home}"\nevents = "{file}.jsonl"\n'
    text += f'[[sink]]\nname = "k1"\nbroker = "{at_sink}"\nsubscribe = ["Fire()"]\n'
    text += f'[[fault]]\nkind = "crash"\nat_s = {at_s}\nfor_s = {lasts_s}\n'
    return text + f'brokers = ["{broker}"]\n'


def outage(written, name: str, broker: str, lasts_s: float, *, stays: bool = True) -> Path:
    """Temps at ``broker``, which crashes from 13 s on, and a Smoke just before each at another. If
    the source does not stay, it has closed by then.
    """
    at_smokes, at_sink = [one for one in ("b1", "b2", "b3", "b4") if one != broker][:2]
    homes = {"s1": (broker, "temps"), "s2": (at_smokes, "smokes")}
    text = crashing(name, RING, homes, at_sink, broker, 13 - SMOKES[0], lasts_s)
    temps = [one for one in TEMPS if stays or one < 8]
    files = {"temps.jsonl": events("Temp", *temps), "smokes.jsonl": events("Smoke", *SMOKES)}
    if not stays:
        text += f"[protocol]\nforget_s = {FORGET_S}\n"
    path: Path = written(text, RULES if stays else CALM, **files)
    return path


def fires(outcome: Outcome) -> dict[float, float]:
    """When each came, by its time, both in seconds."""
    return {
        event.time / 1e6: one.moment
        for one in outcome.experiment.sinks["k1"].arrivals
        for batch in one.delivery.batches
        for event in batch.events()
    }


@pytest.mark.parametrize(
    ("name", "broker", "lasts_s"),
    every_pair(strategy.names(), ["b1", "b2", "b3", "b4"], [10.0, 10.2, 10.4]),
)
def test_rules_wait_until_clients_of_a_broker_that_has_failed_are_back(
    written, name: str, broker: str, lasts_s: float
) -> None:
    """Where it was the root nobody knew of its sources: they were given up before their clients had
    connected again, and what these had kept of the time of the outage was late.
    """
    outcome = run(outage(written, name, broker, lasts_s))
    assert outcome.settled
    assert check(outcome) == []
    assert not any(one.refusals for one in outcome.experiment.sources)
    assert {one for one in SMOKES if one > 14} <= fires(outcome).keys()


@pytest.mark.parametrize(
    ("name", "broker"), some_of_each(strategy.names(), ["b1", "b2", "b3", "b4"])
)
def test_who_had_closed_at_a_broker_that_has_failed_is_not_waited_for(
    written, name: str, broker: str
) -> None:
    """Nobody there says again that it has closed. The root knew it; where it was another by then
    rules waited until the broker's inputs were closed.
    """
    outcome = run(outage(written, name, broker, 10.0, stays=False))
    assert outcome.settled
    assert check(outcome) == []
    came = fires(outcome)
    assert came.keys() == set(SMOKES)
    assert came[21.9] < 13 + 12
    assert came[57.9] < 70


@pytest.mark.parametrize(
    ("name", "lasts_s", "at_s"),
    every_pair(strategy.names(), [1.0, 2.5, 3.0], [10.5, 10.62, 10.75]),
)
def test_a_broker_that_is_back_before_anybody_has_missed_it(
    written, name: str, at_s: float, lasts_s: float
) -> None:
    """A plan for what its clients ask came before one for its return, and what others of its
    clients had published was known no more, and not given up: rules waited for it for ever.
    """
    links = {"b1 b2": 5.0, "b2 b3": 5.0, "b3 b4": 50.0, "b4 b1": 50.0, "b2 b4": 50.0}
    homes = {"s1": ("b3", "temps"), "s2": ("b4", "smokes"), "s3": ("b3", "others")}
    text = crashing(name, links, homes, "b1", "b3", at_s, lasts_s)
    odd = """
event Other(area: string)
rule odd: define Odd() from Other() and last Smoke() within 9 s from Other
"""
    files = {
        "temps.jsonl": events("Temp", 2.0, 3.0, 4.0),
        "smokes.jsonl": events("Smoke", *TEMPS),
        "others.jsonl": events("Other", *range(2, 60)),
    }
    outcome = run(written(text, CALM + odd, **files))
    assert outcome.settled
    assert check(outcome) == []
    assert {*range(6, 60, 2)} <= fires(outcome).keys()


def test_what_a_broker_waits_for_is_told_by_its_status(written) -> None:
    """Else nobody would know why a rule stands still."""
    told = []
    path = outage(written, "centralized", "b2", 10.0)
    lost = '[[fault]]\nkind = "lost"\nat_s = 10.0\nfor_s = 70.0\nsources = ["s1"]\n'
    path.write_text(f"{path.read_text()}{lost}[protocol]\nforget_s = {FORGET_S}\n")
    experiment = Experiment(scenario.read(path))

    def look() -> None:
        (rule,) = experiment.brokers["b2"].broker.status(experiment.simulation.now)["rules"]
        told.append((rule["says"], [one["standing"] for one in rule["held_by"]]))

    for moment in (24.0, 70.0):
        experiment.simulation.at(moment, look)
    experiment.run()
    assert told == [
        ("stalled by Temp of clients that may come back at 13900000 us", ["gone"]),
        ("running", []),
    ]
