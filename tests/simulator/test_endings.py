"""Events of sources that come back when a rule is over are not refused, and make nothing."""

from pathlib import Path

import pytest
from simulator_text import HEAD, at, lines, overlay

from routing.network import strategy
from simulator import checkers, scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.fuzzing.campaign import differences
from simulator.fuzzing.making import random_case
from simulator.oracle import delivered

PAIR = """
event A(n: int)
event B(n: int)
rule pair: define Z(n: int) from B() as b and each A() as a within 5 s from b where n = a.n
"""
FILES = {
    "a0.jsonl": lines("a0", "A", 15),
    "a1.jsonl": lines("a1", "A", 3, 16),
    "s0.jsonl": lines("s0", "B", 17),
}


def pairs(written, name: str, removed_s: float, removes: str = "pair") -> Outcome:
    """A1 is away from 15 s to 24 s, and comes back with A of 16 s; the rule is removed."""
    text = HEAD.format(name=name) + at("source", "a0", "b0", 'events = "a0.jsonl"')
    moves = 'moves = [{ at_s = 12.0, broker = "b0", away_s = 9.0 }]'
    text += at("source", "a1", "b0", f'events = "a1.jsonl"\n{moves}')
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("sink", "k", "b1", 'subscribe = ["Z"]')
    text += f'[[change]]\nat_s = {removed_s}\nbroker = "b0"\nremove = "{removes}"\n'
    path: Path = written(text + overlay({"b0 b1": 5.0}), PAIR, **FILES)
    return Experiment(scenario.read(path)).run()


def found(outcome: Outcome) -> int:
    return len(delivered(outcome.experiment.sinks["k"].arrivals).composite)


def refused(outcome: Outcome) -> int:
    return sum(len(one.refusals) for one in outcome.experiment.sources)


@pytest.mark.parametrize("name", strategy.names())
def test_what_comes_too_late_for_a_rule_that_is_over_makes_nothing(
    written, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Found by a fuzz."""
    outcome = pairs(written, name, 17.0)
    assert (found(outcome), refused(outcome)) == (1, 0)
    assert check(outcome) == []
    monkeypatch.setattr(checkers, "undecided", lambda *given: set())
    assert any(line.endswith("1 composite events, expected 2") for line in check(outcome))


def test_it_is_refused_while_the_rule_is_there(written) -> None:
    outcome = pairs(written, "centralized", 30.0)
    assert (found(outcome), refused(outcome)) == (1, 1)
    assert check(outcome) == []


def test_what_follows_from_events_that_came_in_time_is_missed(written) -> None:
    """And what comes twice is told, whatever came too late."""
    outcome = pairs(written, "centralized", 17.0)
    sink = outcome.experiment.sinks["k"]
    arrivals, sink.arrivals = sink.arrivals, []
    assert any(line.startswith("sink k: missing") for line in check(outcome))
    sink.arrivals = arrivals * 2
    assert any("twice" in line for line in check(outcome))


def test_a_case_of_the_fuzz() -> None:
    assert differences(random_case(8618, "centralized")) == []
