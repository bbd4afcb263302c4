"""``Engine.publish`` gives for each event what an engine gives that is advanced to its time, while
rules come, go and are replaced."""

from itertools import pairwise
from random import Random

import pytest
from agreement import row
from cases import Case, Deploy, Push, random_case
from iteration_cases import iteration_case
from sequence_cases import sequence_case

from matcher.model import Event
from rules import Engine
from rules.local import PUT_OFF_MAX

WAYS = {"any": random_case, "sequences": sequence_case, "iterations": iteration_case}


def parts_of(case: Case) -> tuple[str, list[str], list[Event]]:
    """The types' declarations, the rules' texts, and the events of a case in order of time."""
    deployed = [one for step in case.steps if isinstance(step, Deploy) for one in step.rules]
    texts = [*{one.name: str(one) for one in deployed}.values()]
    pushed = [one for step in case.steps if isinstance(step, Push) for one in step.events]
    declared = "\n".join(f"event {schema}" for schema in case.schemas.values())
    return declared, texts, sorted(pushed, key=lambda event: event.time)


def change(random: Random, engines: tuple[Engine, ...], texts: list[str]) -> None:
    """Remove a rule, or bring one that is there, or not, anew."""
    rules = engines[0].rules
    if rules and random.random() < 0.5:
        name = random.choice(rules).name
        for engine in engines:
            engine.remove(name)
    else:
        text = random.choice(texts)
        for engine in engines:
            engine.deploy(text, replace=True)


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["auto", "cdp", "aip", "naive"])
def test_each_publish_gives_what_an_advance_to_its_time_gives(
    name: str, seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    if random.random() < 0.5:
        monkeypatch.setattr("rules.local.PUT_OFF_MAX", 3)
    declared, texts, events = parts_of(WAYS[kind](seed))
    rules = declared + "\n" + "\n".join(texts)
    alone, advanced = engines = Engine(rules, engine=name), Engine(rules, engine=name)
    for event in events:
        if random.random() < 0.1:
            change(random, engines, texts)
        at = event.time / 1e6
        if random.random() < 0.1:
            for engine in engines:
                engine.push([{**event.data, "time": at}], type=event.type)
            continue
        given = alone.publish(event.type, event.data, time=at)
        advanced.push([{**event.data, "time": at}], type=event.type)
        expected = [*advanced.advance(event.time).events()]
        assert [*map(row, given)] == [*map(row, expected)], (seed, event)
    assert [*map(row, alone.finish())] == [*map(row, advanced.finish())], seed


def test_at_instants_where_no_rule_begins_nothing_is_evaluated() -> None:
    engine = Engine("event A(n: int) event B() define C() from B() and last A() within 1 h from B")
    advances = []
    advance = engine._detector.advance
    engine._detector.advance = lambda mark: advances.append(mark) or advance(mark)  # type: ignore[func-returns-value, method-assign]
    for second in range(2 * PUT_OFF_MAX):
        assert not engine.publish("A", time=second, n=second)
    assert [later - earlier for earlier, later in pairwise(advances)] == [PUT_OFF_MAX * 10**6]
    engine.publish("B", time=2 * PUT_OFF_MAX)
    assert [one.cause_full for one in engine.publish("A", time=2 * PUT_OFF_MAX + 1, n=0)] != []


def test_ticks_of_the_timer_are_evaluated_though_no_event_begins_a_rule() -> None:
    engine = Engine("""
        event A(n: int)
        define Quiet() from Timer(S = 0) as t and not A() within 1 min from t
    """)
    assert not engine.publish("A", time=0, n=1)
    quiet = engine.publish("A", time=200, n=1)
    assert [event.time // 10**6 for event in quiet] == [120, 180]
