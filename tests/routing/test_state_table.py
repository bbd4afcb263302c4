"""States of rules as brokers keep them (routing.durability.state_table)."""

from collections.abc import Sequence

import pytest

import rules
from matcher.model import MICROSECONDS, TIME_MIN, EventBatch
from routing.deployment import Deployed
from routing.durability.state_table import StateTable
from routing.messages import RuleState
from rules.engine import make

TEXT = "event A(n: int)\nrule r: define Z(n: int) from A() as a where n = a.n consuming a"


def found_at(*seconds: int) -> tuple[EventBatch, ...]:
    """A composite event of the rule at each of these seconds, in a batch each."""
    from timeline import history, push

    ruleset, engine, batches = rules.load(TEXT), make("naive"), list[EventBatch]()
    engine.deploy(ruleset)
    text = " ".join(f"e{at}=A@{at}({at})" for at in seconds)
    push(engine, history(text, ruleset), ruleset)
    for at in seconds:
        batches += engine.advance(at * MICROSECONDS + 1).batches
    return tuple(batches)


def state(since: int | None, mark: int | None, *seconds: int) -> RuleState:
    first, last = (TIME_MIN if one is None else one * MICROSECONDS for one in (since, mark))
    return RuleState("r", first, last, found_at(*seconds))


def times(batches: Sequence[EventBatch]) -> list[float]:
    return [time / MICROSECONDS for one in batches for time in one.time.tolist()]


def known(table: StateTable) -> tuple[float | None, list[float]]:
    mark = table.marks.get("r")
    resumed = table.resumed(dict(table.marks))
    return (None if mark is None else mark / MICROSECONDS), times(
        resumed["r"].found if "r" in resumed else ()
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([state(None, 10, 3, 7)], (10, [3, 7])),
        ([state(None, 10, 3, 7), state(10, 20, 12)], (20, [3, 7, 12])),
        ([state(None, 10, 3, 7), state(8, 20, 8, 12)], (20, [3, 7, 8, 12])),
        ([state(None, 10, 3, 7), state(None, 20, 3, 7, 12)], (20, [3, 7, 12])),
        ([state(None, 10, 3, 7), state(15, 20, 16)], (10, [3, 7])),  # what lies between is missing
        ([state(15, 20, 16)], (None, [])),
        ([state(None, 20, 3, 7, 12), state(None, 10, 3, 7)], (20, [3, 7, 12])),
        ([state(None, None, 3), state(None, 10, 7)], (10, [3, 7])),  # in two messages
    ],
)
def test_states_are_put_together(
    states: Sequence[RuleState], expected: tuple[float | None, list[float]]
) -> None:
    table = StateTable()
    for one in states:
        table.take(one)
    assert known(table) == expected


def deployed(text: str) -> Sequence[Deployed]:
    return [Deployed(rule, None, 0, n) for n, rule in enumerate(rules.load(text).rules)]


def test_what_nobody_sees_any_more_goes_and_the_mark_stays() -> None:
    table = StateTable()
    for one in (state(None, 10, 3, 7), state(10, 20, 12), state(20, 30)):
        table.take(one)
    table.let_go(deployed(TEXT), {"r": 8 * MICROSECONDS})
    assert known(table) == (30, [12])
    table.let_go(deployed(TEXT), {"r": 25 * MICROSECONDS})
    assert known(table) == (30, [])
    added, gone = table.take_changes()
    assert ([one.number for one in added], gone) == ([2], [0, 1])


def test_what_a_rule_of_its_cycle_sees_stays() -> None:
    table = StateTable()
    for one in (state(None, 10, 3, 7), state(10, 20, 12), state(20, 30)):
        table.take(one)
    cycle = deployed(
        "event A(n: int)\nrule r: define Z(n: int) from A() as a where n = 1\n"
        "rule s: define Z(n: int) from A() as a and last Z() as z within 20 s from a where n = 2"
    )
    starts = {"r": 30 * MICROSECONDS, "s": 10 * MICROSECONDS}
    table.let_go(cycle, starts)
    assert known(table) == (30, [12])
    table.let_go(cycle[:1], starts)
    assert known(table) == (30, [])


def test_marks_alone_take_the_place_of_one_another() -> None:
    table = StateTable()
    for at in range(10, 20):
        table.take(state(None if at == 10 else at - 1, at))
    assert len(table.take_changes()[0]) == 1
    assert known(table) == (19, [])


def test_another_table_gets_the_whole_of_it() -> None:
    table, other = StateTable(), StateTable()
    for one in (state(None, 10, 3, 7), state(10, 20, 12), state(20, 30)):
        table.take(one)
    for one in table.beyond(other.marks):
        other.take(one)
    assert known(other) == known(table)
    assert list(table.beyond(other.marks)) == []
    again = StateTable()
    for one in table.take_changes()[0]:
        again.recall(one.number, one.state)
    assert known(again) == known(table)
