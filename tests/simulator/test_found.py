"""Faults of brokers that the checkers find, though brokers themselves tell what they go by."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace as changed
from networks import run
from simulator_text import RULES, SMALL, events

from matcher.model import MICROSECONDS, TIME_MIN, Event
from routing.delivery.sink import Sink
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.messages import Delivery
from routing.network.evaluation.divided import DividedDetection
from routing.serving.sources import Source
from simulator.checkers import check
from simulator.fuzzing.campaign import differences, kinds_of
from simulator.fuzzing.making import made_fickle, random_case
from simulator.oracle import Answer, differences as compared

FICKLE = 14
"""A seed of the fuzz: sinks turn to other filters there, and sources rest."""


def found(seed: int, strategy: str = "centralized") -> str:
    return "\n".join(differences(random_case(seed, strategy)))


def test_a_rule_that_holds_later_than_it_need(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Deployments.add

    def later(self: Deployments, rules: Any, since: int | None, *others: Any) -> Any:
        since = None if since is None else since + 20 * MICROSECONDS
        return add(self, rules, since, *others)

    monkeypatch.setattr(Deployments, "add", later)
    assert "nobody was beyond" in found(1)


def test_a_source_that_is_refused_more_than_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_at = Source.begin_at

    def later(self: Source, type_name: str, floor: int) -> None:
        begin_at(self, type_name, floor if floor == TIME_MIN else floor + 5 * MICROSECONDS)

    monkeypatch.setattr(Source, "begin_at", later)
    assert "late" in found(9)


def test_a_subscription_that_is_not_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Sink.take

    def numbered(self: Sink, *arguments: Any) -> Delivery | None:
        delivery = take(self, *arguments)
        if delivery is None:
            return None
        return changed(delivery, subscriptions=((7_777,),) * len(delivery.subscriptions))

    monkeypatch.setattr(Sink, "take", numbered)
    assert "came for subscriptions [7777]" in found(0)


def test_what_sinks_lacked_before_their_broker_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a broker's failure no more is excused than it had not given by then."""
    case = random_case(257, "distributed-st")
    homes = {one.broker for one in case.sinks}
    (fault, *_) = [one for one in case.faults if not homes.isdisjoint(one.brokers)]
    case = replace(case, sinks=tuple(one for one in case.sinks if one.broker in fault.brokers))
    until = case.events[0].time + round((fault.at_s - 1) * MICROSECONDS)
    wanted = Sinks._wanted

    def fewer(self: Sinks, *arguments: Any) -> Iterator[Any]:
        for sink, delivery_batch in wanted(self, *arguments):
            batch = delivery_batch.batches[0]
            if not (batch.is_composite and batch.time[0] < until):
                yield sink, delivery_batch

    monkeypatch.setattr(Sinks, "_wanted", fewer)
    assert "missing" in "\n".join(differences(case))


def test_a_subscription_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sinks, "unsubscribe", lambda *_: None)
    assert "which is wrong of" in found(FICKLE)


def test_what_has_waited_for_a_subscription_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held, or queued, came after its end had been confirmed."""
    case = made_fickle(random_case(119, "centralized"), Random("f119"))
    assert differences(case) == []
    monkeypatch.setattr(Sink, "forget", lambda *_: None)
    assert "Y came for subscriptions [1]" in "\n".join(differences(case))


def test_a_sink_that_was_given_nothing_before_it_turned(tmp_path: Path) -> None:
    """What it is due ends with what came last, but for what was published long before."""
    (tmp_path / "rules.tesla").write_text(RULES)
    (tmp_path / "s1.jsonl").write_text(events("Temp", *range(10, 50)))
    then = 'subscribe = ["Temp()"]\nthen = [{ at_s = 30.0, unsubscribe = ["Temp()"] }]'
    text = SMALL.replace('subscribe = ["Fire(temp > 45)", "Temp()"]', then)
    (tmp_path / "scenario.toml").write_text(text)
    outcome = run(tmp_path / "scenario.toml")
    assert check(outcome) == []
    outcome.experiment.sinks["k1"].arrivals.clear()
    assert "missing" in "\n".join(check(outcome))


def test_types_that_are_advertised_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DividedDetection, "withdraw", lambda *_: None)
    assert "advertises" in found(FICKLE)


def test_a_value_of_another_kind() -> None:
    one, other = (Event("A", 0, "a", "1", {"n": value}, 1) for value in (1, 1.0))
    assert compared(Answer((), (one,)), Answer((), (other,)))


def test_what_is_made_small_stays_missing_or_surplus() -> None:
    count = "sink k0: 1 composite events, expected 2"
    missing = kinds_of([count, "sink k0: missing: A of a, id 4"])
    surplus = kinds_of([count, "sink k3: not expected, or twice: A of a, id 4"])
    assert missing
    assert missing.isdisjoint(surplus)
    assert kinds_of([count])
