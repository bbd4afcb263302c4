"""Each kind of clause over many events and many keys, in every engine, beside what numpy says.

REXMQ_SIZE sets how many events a case has; ``make sizes`` sets it to a size at which every array of
an engine has grown many times.
"""

import os

import clauses
import numpy as np
import pytest

from rules import Engine
from runtime.guarded import Side
from runtime.memory import guarding

SEED = 62
COUNT = int(os.environ.get("REXMQ_SIZE", "12000"))
ALONE = COUNT // 20
"""Events of a case whose events come one by one."""
ENGINES = ("cdp", "aip")
IS_WHOLE = "REXMQ_SIZE" in os.environ
BATCHES = [
    (name, engine)
    for name, clause in clauses.CLAUSES.items()
    for engine in (*ENGINES, *("auto", "hybrid") * IS_WHOLE)
    if engine != "hybrid" or clause.is_chain
]
"""Clauses and engines; ``auto`` and ``hybrid``, which share what the others do, with all sizes."""


def drawn(clause, count: int = COUNT):
    """The events of a clause's case."""
    return clauses.Events.drawn(SEED, count, max(1, count // 4), count // 3, clause.step)


def detected(clause, events, engine: str, parts: int, is_late: bool):
    """The values of all composite events. Events come in ``parts`` that follow one another; if
    ``is_late``, those of each part in an order that is drawn.
    """
    text = clauses.SCHEMAS + clause.rules.replace("W us", f"{events.window} us")
    detector = Engine(text, engine=engine, time_unit="us")
    end = int(max(table.time[-1] for table in events[:3])) + 1
    random, found = np.random.default_rng(SEED), []
    for part in range(parts):
        first, last = part * end // parts, (part + 1) * end // parts
        for name, table in zip("ABC", events[:3], strict=True):
            within = np.arange(*np.searchsorted(table.time, [first, last]))
            if is_late:
                random.shuffle(within)
                for some in np.array_split(within, 3):
                    detector.push(table.rows(some), type=name)
            else:
                detector.push(table.rows(within), type=name)
        found.append(detector.advance(last))
    events = [event for batch in found for event in batch.events()] + [*detector.finish()]
    return [tuple(event.data.values()) for event in events]


def alone(clause, events, engine: str):
    """The same of events that come one by one."""
    text = clauses.SCHEMAS + clause.rules.replace("W us", f"{events.window} us")
    detector = Engine(text, engine=engine, time_unit="us")
    rows = [
        (row.pop("time"), name, row)
        for name, table in zip("ABC", events[:3], strict=True)
        for row in table.rows(np.arange(len(table.time)))
    ]
    found = []
    for time, name, row in sorted(rows, key=lambda one: one[0]):
        found += detector.publish(name, row, time=time)
    found += detector.finish()
    return [tuple(event.data.values()) for event in found]


def check(found, expected) -> None:
    """What was detected is what is expected; floats by 13 digits, for numpy rounds on its way."""
    assert len(found) == len(expected)
    if not found:
        return
    for ours, theirs in zip(zip(*found, strict=True), zip(*expected, strict=True), strict=True):
        if isinstance(theirs[0], float):
            assert np.allclose(ours, theirs, rtol=1e-13, atol=1e-9)
        else:
            assert ours == theirs


@pytest.mark.parametrize(("name", "engine"), BATCHES)
def test_batches_give_what_numpy_says(name: str, engine: str):
    clause = clauses.CLAUSES[name]
    events = drawn(clause)
    expected = clause.expected(events)
    assert len(expected) > COUNT // 1000
    check(detected(clause, events, engine, 7, is_late=False), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", clauses.CLAUSES)
def test_batches_of_events_that_come_late_give_the_same(name: str, engine: str):
    clause = clauses.CLAUSES[name]
    events = drawn(clause)
    check(detected(clause, events, engine, 3, is_late=True), clause.expected(events))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", clauses.CLAUSES)
def test_events_that_come_alone_give_the_same(name: str, engine: str):
    clause = clauses.CLAUSES[name]
    events = drawn(clause, ALONE)
    check(alone(clause, events, engine), clause.expected(events))


@pytest.mark.parametrize("side", Side)
def test_sums_by_keys_that_many_events_have_stay_within_their_arrays(side: Side):
    """A sum over the events of a key of which there are none read the record of no list."""
    clause = clauses.CLAUSES["sum of none"]
    events = drawn(clause, COUNT // 4)
    with guarding(side):
        found = detected(clause, events, "cdp", 3, is_late=True)
    check(found, clause.expected(events))
