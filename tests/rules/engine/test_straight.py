"""Straight rules: evaluated in one walk, with the matches that the general one finds."""

import random

import pytest
from event_batches import batch_of_events

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventType
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.kernels import layout
from rules.engine.linking.loading import load
from rules.engine.oracle.naive import NaiveEngine

TYPES = [EventType.of(name, k="int", v="float", s="string") for name in ("A", "B", "C")]
SCHEMAS = "".join(f"event {type_}\n" for type_ in TYPES)


def random_rule(random_: random.Random, number: int) -> str:
    """Last events, some of the same type, with a key or none, each within a time of another."""
    names = [random_.choice("ABC") for _ in range(random_.randint(1, 4))]
    text = f"{names[0]}(k = $k, s = $s) as e0"
    for place, name in enumerate(names[1:], 1):
        key = random_.choice(["", "k = $k", "s = $s", "v > 1", "k = $k, v != 2"])
        window, anchor = random_.randint(1, 6), random_.randrange(place)
        text += f" and last {name}({key}) as e{place} within {window} s from e{anchor}"
    value = f"e{random_.randrange(len(names))}.v"
    return f"rule r{number}: define X{number % 2}(v: float) from {text} where v = {value}\n"


def random_events(random_: random.Random) -> list[Event]:
    """Events of which many are simultaneous."""
    events, time = [], 0
    for sequence in range(80):
        time += random_.choice([0, 0, 1, 2]) * MICROSECONDS
        values = random_.randrange(2), float(random_.randrange(3)), random_.choice("xy")
        data = dict(zip("kvs", values, strict=True))
        name, source = random_.choice("ABC"), random_.choice("mn")
        events.append(Event(name, time, source, str(sequence), data, sequence))
    return events


def detected(engine: Detector, events: list[Event], size: int) -> list[object]:
    found: list[object] = []
    for start in range(0, len(events), size):
        part = events[start : start + size]
        for type_ in TYPES:
            chosen = [event for event in part if event.type == type_.name]
            if chosen:
                engine.push(batch_of_events(type_, chosen))
        done = start + size >= len(events)
        marks = TIME_MAX if done else events[start + size].time
        found += [
            (one.type, one.time, one.id, one.data, one.cause)
            for one in engine.advance(marks).events()
        ]
    return found


@pytest.mark.parametrize("seed", range(25))
def test_straight_rules_find_what_the_general_walk_and_the_oracle_find(seed: int):
    print(f"seed {seed}")
    random_ = random.Random(seed)
    ruleset = rules.load(SCHEMAS + "".join(random_rule(random_, n) for n in range(6)))
    events = random_events(random_)
    straight, general, naive = CdpEngine(), CdpEngine(), NaiveEngine()
    for engine in (straight, general, naive):
        engine.deploy(ruleset, since=3 * MICROSECONDS if seed % 3 == 0 else None)
    used = straight._linker.rules.array["straight"][:6]
    assert (used >= 0).all()
    general._linker.rules.array["straight"] = -1
    load(general._arrays, (layout.LATE_DETECT,))
    size = random_.choice([1, 7, 80])
    expected = detected(naive, events, size)
    assert expected
    assert detected(straight, events, size) == expected
    assert detected(general, events, size) == expected


@pytest.mark.parametrize(
    "clause",
    [
        "each B() as b within 5 s from a",
        "first B() as b within 5 s from a",
        "2-last B() as b within 5 s from a",
        "last B(v < $v) as b within 5 s from a",
        "last B(v = $v) as b within 5 s from a",  # floats: 0.0 is -0.0
        "last B(k = $k, s = $s) as b within 5 s from a",
        "not B() within 5 s from a",
    ],
)
def test_what_asks_for_more_than_a_last_event_is_not_straight(clause: str):
    engine = CdpEngine()
    text = f"define X() from A(v = $v, k = $k, s = $s) as a and {clause}"
    engine.deploy(rules.load(SCHEMAS + text))
    assert engine._linker.rules.array["straight"][0] < 0


def test_rules_with_the_same_terminators_stay_in_order_when_some_go():
    engine = CdpEngine()
    for name in "pqr":
        engine.deploy(rules.load(f"{SCHEMAS}rule {name}: define X() from A(k = 1) as a"))
    engine.remove("r")
    engine.remove("p")
    engine.deploy(rules.load(f"{SCHEMAS}rule t: define X() from A(k = 1) as a"))
    events = [Event("A", MICROSECONDS, "s", "1", {"k": 1, "v": 0.0, "s": ""}, 1)]
    engine.push(batch_of_events(TYPES[0], events))
    found = engine.advance(TIME_MAX)
    assert [event.source for event in found.events()] == ["rexmq/rule/q", "rexmq/rule/t"]
