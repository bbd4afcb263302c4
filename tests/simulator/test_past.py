"""Rules that hold from a past instant: they find what logs have of it, as the oracle does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from networks import FORGETFUL, run
from simulator_text import HEAD, at, lines, overlay

from matcher.model import MICROSECONDS
from routing.network import strategy
from simulator.checkers import check
from simulator.experiment import Outcome
from simulator.oracle import delivered
from simulator.stores import SimulatedStore

RULES = """
event A(n: int)
event B(n: int)
rule pair: define Z(n: int) from B() as b and last A() as a within 1 s from b where n = a.n
"""
LATER = """
event A(n: int)
event B(n: int)
rule each: define Y(n: int) from B() as b and each A() as a within 3 s from b where n = b.n
"""
FILES = {
    "s0.jsonl": lines("s0", "A", 0, 2, 3, 4, 5, 20),
    "s1.jsonl": lines("s1", "B", 1, 3, 5, 7, 9, 21),
    "later.tesla": LATER,
}
KILLED = """
[[fault]]
kind = "restart"
at_s = 7.5
for_s = 3.0
value = 0.004
brokers = ["b0", "b1", "b2"]
"""
Written = Callable[..., Path]


def story(name: str, more: str = "", *, since_s: float = 2.5) -> str:
    """Sources at b1 and b2, sinks at b0 and b1, and a rule that comes after 15 s."""
    text = HEAD.format(name=name).replace("[protocol]\n", FORGETFUL)
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k0", "b0", 'subscribe = ["Z", "Y"]')
    text += at("sink", "k1", "b1", 'subscribe = ["Y(n > 0)"]')
    text += f'[[change]]\nat_s = 15.0\nbroker = "b0"\nrules = "later.tesla"\nsince_s = {since_s}\n'
    return text + more + overlay({"b0 b1": 5.0, "b0 b2": 5.0})


def found(outcome: Outcome, sink: str) -> list[float]:
    """The times in seconds of the Ys that a sink got, in their order."""
    composite = delivered(outcome.experiment.sinks[sink].arrivals).composite
    return [event.time / MICROSECONDS for event in composite if event.type == "Y"]


def held(outcome: Outcome, rule: str) -> int:
    """The instant from which a rule has held."""
    (since,) = (one.since for one in outcome.experiment.book.held if one.rule.name == rule)
    assert since is not None
    return since


@pytest.mark.parametrize("more", ["", KILLED])
@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_finds_what_it_would_have_found(written: Written, name: str, more: str) -> None:
    """In the logs of brokers that have let go of it, and been killed since. Of A at 2 s, before the
    rule holds, it sees nothing.
    """
    outcome = run(written(story(name, more), RULES, **FILES))
    assert check(outcome) == []
    assert held(outcome, "each") == 2.5 * MICROSECONDS
    expected = [3.0, 5.0, 5.0, 5.0, 7.0, 7.0, 21.0]
    assert found(outcome, "k0") == found(outcome, "k1") == expected


def test_one_that_is_to_hold_from_what_is_to_come_holds_from_now(written: Written) -> None:
    outcome = run(written(story("centralized", since_s=60.0), RULES, **FILES))
    assert check(outcome) == []
    assert outcome.experiment.book.past == {("each", 0): 60 * MICROSECONDS}
    assert held(outcome, "each") < 30 * MICROSECONDS


def nothing(self: SimulatedStore, since: int) -> Iterator[object]:
    return iter(())


def test_what_the_logs_have_lost_is_missed(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks see a past that nobody reads."""
    monkeypatch.setattr(SimulatedStore, "stretches", nothing)
    outcome = run(written(story("centralized"), RULES, **FILES))
    assert [line for line in check(outcome) if "missing: Y of" in line]


WAITING = """
event A(n: int)
event B(n: int)
rule first: define Z(n: int) from A() as a and each B() as b within 2 s from a
where n = 1 consuming b
"""


@pytest.mark.parametrize("name", strategy.names())
def test_a_first_source_is_not_late_for_a_rule_that_waits_for_it(
    written: Written, name: str
) -> None:
    """A rule whose memory no window bounds goes on from a state, when rules begin anew: up to the
    first A, of 12 s, it has found all. It was taken for evaluated so far without B, and the B of 11
    s was refused as late (fuzz seed 1).
    """
    text = HEAD.format(name=name).replace("[protocol]\n", FORGETFUL)
    text += at("source", "s0", "b0", 'events = "s0.jsonl"')
    text += at("source", "s1", "b0", 'events = "s1.jsonl"\nat_s = 20.0')
    text += at("sink", "k0", "b0", 'subscribe = ["Z"]')
    text += '[[change]]\nat_s = 10.0\nbroker = "b0"\nrules = "later.tesla"\nsince_s = 1.0\n'
    files = {
        "s0.jsonl": lines("s0", "A", 12),
        "s1.jsonl": lines("s1", "B", 11),
        "later.tesla": LATER,
    }
    outcome = run(written(text + overlay({"b0 b1": 5.0}), WAITING, **files))
    assert check(outcome) == []
    assert len(delivered(outcome.experiment.sinks["k0"].arrivals).composite) == 1
