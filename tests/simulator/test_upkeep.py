"""Brokers that are drained and started again, or start with a backup: nothing is lost but what a
backup has not.
"""

import pytest
from networks import run
from simulator_text import HEAD, at, lines, overlay

from routing.network import strategy
from routing.network.brokers.registry import KNOWN_BEYOND
from routing.serving.sources import SourceState
from simulator.checkers import check
from simulator.experiment import Outcome

RULES = """
event A(n: int)
event B(n: int)
rule pair: define Z(n: int) from B() as b and last A() as a within 3 s from b where n = a.n
"""
FILES = {
    "s0.jsonl": lines("s0", "A", 0, 2, 3, 4, 5, 20, 30),
    "s1.jsonl": lines("s1", "B", 1, 3, 5, 7, 9, 11, 31),
}
LINKS = {"b0 b1": 5.0, "b0 b2": 5.0}


def story(name: str, *faults: tuple[str, float, str], sinks: str = "durable = true") -> str:
    """Sources at b1 and b2, sinks at b0 and b1; ``faults``: kind and value, when, and where."""
    text = HEAD.format(name=name)
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k0", "b0", f'subscribe = ["Z", "A"]\n{sinks}')
    text += at("sink", "k1", "b1", f'subscribe = ["Z()", "B"]\n{sinks}')
    for kind, at_s, broker in faults:
        text += f'[[fault]]\nkind = {kind}\nat_s = {at_s}\nfor_s = 1.0\nbrokers = ["{broker}"]\n'
    return text + overlay(LINKS)


def delivered(outcome: Outcome) -> list[int]:
    sinks = outcome.experiment.sinks.values()
    return [sum(len(one.delivery) for one in sink.arrivals) for sink in sinks]


@pytest.mark.parametrize("order", ["b0", "b1", "b2", "b0 b1 b2", "b2 b1 b0"])
@pytest.mark.parametrize("name", strategy.names())
def test_durable_sinks_get_all_once_while_brokers_drain(written, name: str, order: str) -> None:
    drains = [('"drain"', 5.5 + 4 * place, one) for place, one in enumerate(order.split())]
    outcome = run(written(story(name, *drains), RULES, **FILES))
    assert check(outcome) == []
    assert delivered(outcome) == [12, 12]
    hosts = outcome.experiment.brokers
    assert {one for one, host in hosts.items() if host.starts == 2} == {*order.split()}


@pytest.mark.parametrize("broker", ["b0", "b1", "b2"])
@pytest.mark.parametrize("name", strategy.names())
def test_what_a_backup_has_not_may_be_lost_and_nothing_else(
    written, name: str, broker: str
) -> None:
    text = story(name, ('"backup"\nvalue = 3.0', 5.5, broker))
    outcome = run(written(text, RULES, **FILES))
    assert check(outcome) == []
    assert outcome.experiment.brokers[broker].starts == 2


def test_a_rule_goes_on_over_a_type_whose_source_closed_at_a_broker_that_has_left(written) -> None:
    """It waited for the type's first source, as if nobody had ever published it."""
    text = HEAD.format(name="centralized")
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b0", 'events = "s1.jsonl"')
    text += at("sink", "k", "b0", 'subscribe = ["Z"]')
    text += '[[fault]]\nkind = "drain"\nat_s = 12.0\nfor_s = 1.0\nbrokers = ["b1"]\n'
    files = {"s0.jsonl": lines("s0", "A", 0, 9), "s1.jsonl": lines("s1", "B", 1, 10, 20, 30)}
    rules = RULES + "rule lone: define Z(n: int) from B() as b and not A() within 3 s from b\n"
    outcome = run(written(text + overlay(LINKS), rules + "where n = 0", **files))
    assert check(outcome) == []
    assert delivered(outcome) == [4]
    assert outcome.experiment.brokers["b1"].starts == 2


@pytest.mark.parametrize("name", ["centralized", "push-pull-st"])
def test_a_root_that_has_drained_is_back_without_sources_that_have_moved(
    written, name: str
) -> None:
    """It kept what it knew of them at their new brokers as if that were its own, and waited for
    them. And it was no news that others knew more of their events where they merely moved.
    """
    text = HEAD.format(name=name)
    text += at("source", "s0", "b0", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k", "b2", 'subscribe = ["Z"]\ndurable = true')
    text += '[[fault]]\nkind = "drain"\nat_s = 5.5\nfor_s = 1.0\nbrokers = ["b0"]\n'
    outcome = run(written(text + overlay({**LINKS, "b1 b2": 5.0}), RULES, **FILES))
    assert check(outcome) == []
    hosts = outcome.experiment.brokers
    own = hosts["b0"].broker.context.sources
    assert hosts["b0"].starts == 2
    assert [one.name for one in own if one.standing is not SourceState.CLOSED] == []
    assert not [
        log for host in hosts.values() for _, log in host.warnings if log.text == KNOWN_BEYOND
    ]


def test_a_source_that_moves_is_not_late_though_rules_that_pull_have_come_further(written) -> None:
    """A rule had found nothing up to 48 s, since none of its terminators came, and its other types
    were taken to be as far."""
    rules = "event A(n: int)\nevent B(n: int)\n" + (
        "rule r: define Z(n: int) from B(n > 5) as b and last A() as a within 20 s from b "
        "where n = a.n"
    )
    text = HEAD.format(name="push-pull-mt")
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k", "b0", 'subscribe = ["Z"]')
    text += '[[fault]]\nkind = "drain"\nat_s = 20.5\nfor_s = 1.0\nbrokers = ["b1"]\n'
    files = {
        "s0.jsonl": lines("s0", "A", 0, 21, 40),
        "s1.jsonl": lines("s1", "B", 1, 2, 3, 38, 41),
    }
    outcome = run(written(text + overlay(LINKS), rules, **files))
    assert check(outcome) == []
