"""Where TESLA can say the same, an operator and a rule find the same."""

import random
import subprocess
import sys

import numpy as np
import pytest
from operating import AGGREGATES, CONDITIONS, OF_FLOATS, A, B, events

from matcher.model import MICROSECONDS, TIME_MAX, EventBatch, EventIds
from rules import load
from rules.engine import make
from studies.operators import Aggregate, Filter, Join, Length, Stream, Time, concatenated
from studies.operators.naive import Row, rows_of

KNOWN = {"A": A, "B": B}


def detected(rule: str, *batches: EventBatch) -> list[Row]:
    """Time and data of what a rule finds in all of these events, in order of time and data."""
    engine = make("cdp")
    engine.deploy(load(rule, known=KNOWN))
    for batch in batches:
        engine.push(batch)
    found = engine.advance(TIME_MAX)
    return sorted((one.time, *one.data.values()) for one in found.events())


def at_seconds(rng: random.Random, count: int, begin: int, *, distinct: bool = False) -> list[int]:
    made = []
    for _ in range(count):
        begin += rng.choice((1, 2, 3) if distinct else (0, 0, 1, 3))
        made.append(begin * MICROSECONDS)
    return made


def numbered(batch: EventBatch, begin: int) -> EventBatch:
    ids = EventIds(batch.ids.source, begin + np.arange(len(batch)))
    return EventBatch(batch.type, batch.time, ids, batch.columns)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_filter_is_a_rule_of_one_event(condition: str) -> None:
    batch = events(random.Random(condition), A, at_seconds(random.Random(3), 80, 0))
    inside = f"({condition})" if condition else ""
    rule = f"define F(s, x) from A({inside}) as a where s = a.s, x = a.x"
    found = Filter(A, condition, device="cpu").push(batch)
    assert sorted((row[0], row[1], row[2]) for row in rows_of(found)) == detected(
        rule, numbered(batch, 0)
    )


@pytest.mark.parametrize("condition", ["a.x = b.y", "a.s = b.s and a.v < b.w", "a.x - b.y < 2"])
def test_a_join_is_a_rule_of_each_event_within_a_time(condition: str) -> None:
    rng = random.Random(condition)
    join = Join(
        Stream(A, "a", Length(1)),
        Stream(B, "b", Time(4 * MICROSECONDS)),
        condition,
        {"x": "a.x", "w": "b.w"},
        trigger="left",
        device="cpu",
    )
    rule = (
        f"define J(x, w) from A() as a and each B() as b within 4 s from a and ({condition}) "
        f"where x = a.x, w = b.w"
    )
    found, ours, theirs = [], [], []
    for part in range(4):  # cut between instants: a rule sees an instant as a whole
        ours.append(events(rng, A, at_seconds(rng, 12, 100 * part)))
        theirs.append(events(rng, B, at_seconds(rng, 12, 100 * part)))
        found += rows_of(join.push((ours[-1], theirs[-1])))
    batches = numbered(concatenated(ours), 0), numbered(concatenated(theirs), 1000)
    assert sorted(found) == detected(rule, *batches)


@pytest.mark.parametrize("select", AGGREGATES + OF_FLOATS)
def test_an_aggregate_is_that_of_a_rule(select: dict[str, str]) -> None:
    rng = random.Random(str(select))
    batch = events(rng, A, at_seconds(rng, 60, 0, distinct=True))
    made = Aggregate(A, Time(7 * MICROSECONDS), select, by=("s",), device="cpu")
    found = [
        row for at in range(0, 60, 17) for row in rows_of(made.push(batch.take(slice(at, at + 17))))
    ]
    grouped = {
        name: text.replace("A(", "A(s = it.s, ").replace(", )", ")")
        for name, text in select.items()
    }
    where = ", ".join(f"{name} = {text} within 7 s from it" for name, text in grouped.items())
    rule = f"define G(s, {', '.join(select)}) from A() as it where s = it.s, {where}"
    assert sorted(found) == detected(rule, batch)


def test_a_start_of_the_command_knows_of_no_operators() -> None:
    script = "import sys, broker.cli, broker.detection; print('studies.operators' in sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]
