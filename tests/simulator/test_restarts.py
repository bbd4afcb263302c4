"""Brokers that are killed and go on with what their stores have kept: nothing is missing, and
nothing comes twice to durable sinks.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from networks import run
from simulator_text import HEAD, at, lines, overlay

from routing.network import strategy
from routing.storage import StoreContents
from simulator.checkers import check
from simulator.experiment import Outcome
from simulator.stores import SimulatedStore

RULES = """
event A(n: int)
event B(n: int)
rule pair: define Z(n: int) from B() as b and last A() as a within 30 s from b where n = a.n
"""
FILES = {
    "s0.jsonl": lines("s0", "A", 0, 2, 3, 4, 5, 20),
    "s1.jsonl": lines("s1", "B", 1, 3, 5, 7, 9, 11),
}


def story(name: str, brokers: str, *, for_s: float = 3.0, sync_s: float = 0.004) -> str:
    """Sources at b1 and b2, durable sinks at b0 and b1, and brokers killed after 5.5 s."""
    text = HEAD.format(name=name)
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k0", "b0", 'subscribe = ["Z", "A"]\ndurable = true')
    text += at("sink", "k1", "b1", 'subscribe = ["Z()", "B"]\ndurable = true')
    text += f'[[fault]]\nkind = "restart"\nat_s = 5.5\nfor_s = {for_s}\nvalue = {sync_s}\n'
    text += f"brokers = {brokers}\n"
    return text + overlay({"b0 b1": 5.0, "b0 b2": 5.0})


def delivered(outcome: Outcome) -> list[int]:
    sinks = outcome.experiment.sinks.values()
    return [sum(len(one.delivery) for one in sink.arrivals) for sink in sinks]


@pytest.mark.parametrize("brokers", ['["b0"]', '["b1"]', '["b2"]', '["b0", "b1", "b2"]'])
@pytest.mark.parametrize("name", strategy.names())
def test_durable_sinks_get_all_and_nothing_twice(written, name: str, brokers: str) -> None:
    outcome = run(written(story(name, brokers), RULES, **FILES))
    assert check(outcome) == []
    assert delivered(outcome) == [12, 12]
    assert {host.starts for host in outcome.experiment.brokers.values()} >= {2}


@pytest.mark.parametrize("sync_s", [0.0005, 0.05, 1.0])
def test_what_was_not_kept_in_time_is_sent_again(written, sync_s: float) -> None:
    """A source is told that an event has come when the store has it."""
    text = story("centralized", '["b0", "b1", "b2"]', sync_s=sync_s)
    outcome = run(written(text, RULES, **FILES))
    assert check(outcome) == []
    assert delivered(outcome) == [12, 12]


def without_log(kept: StoreContents) -> StoreContents:
    return replace(kept, entries=())


def without_queues(kept: StoreContents) -> StoreContents:
    return replace(kept, records={**kept.records, "durable": {}})


@pytest.mark.parametrize("lose", [without_log, without_queues])
def test_what_the_store_lost_is_missed(
    written, monkeypatch: pytest.MonkeyPatch, lose: Callable[[StoreContents], StoreContents]
) -> None:
    """The checks see a store that forgets."""
    read = SimulatedStore.read
    monkeypatch.setattr(SimulatedStore, "read", lambda self: lose(read(self)))
    outcome = run(written(story("centralized", '["b0", "b1", "b2"]'), RULES, **FILES))
    assert check(outcome)
