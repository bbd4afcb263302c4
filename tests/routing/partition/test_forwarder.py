"""The forwarder against its oracle, and what it remembers."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from naive_forwarder import NaiveForwarder
from rule_texts import SCHEMAS
from timeline import batches
from tree_cases import TreeCase

import rules
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    Bools,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from matcher.single import Single, singles
from routing.partition import forwarder as forwarder_module
from routing.partition.arrangement import Arrangement
from routing.partition.derivation import fragment_of
from routing.partition.evaluation import Evaluation
from routing.partition.forwarder import Forwarded, Forwarder
from rules.subscription import Subscription, parse_subscription

CASES = int(os.environ.get("REXMQ_TREES", "60"))


def ids(forwarded: Forwarded) -> list[str]:
    return sorted(
        f"{event.source}#{event.id}" for batch in forwarded.batches for event in batch.events()
    )


@pytest.mark.parametrize("part", range(4))
@pytest.mark.timeout(600)
def test_the_forwarder_sends_what_its_oracle_does(part: int):
    """Every fragment of every node, over all events of its types in order of time."""
    for seed in range(part * CASES // 4, (part + 1) * CASES // 4):
        case, random = TreeCase(seed), Random(seed)
        events = sorted(
            (event for events in case.events.values() for event in events),
            key=lambda event: event.time,
        )
        present = frozenset(random.sample(sorted(case.types), random.randint(1, len(case.types))))
        sole = frozenset(name for name in present if random.random() < 0.8)
        fast, oracle = Forwarder(), NaiveForwarder()
        for rule in case.rules.rules:
            fragment = fragment_of(rule, present, sole)
            if fragment is not None:
                fast.deploy(rule.name, fragment)
                oracle.deploy(rule.name, fragment)
        while events:
            count = random.choice((1, 2, 5, 20))
            chunk, events = events[:count], events[count:]
            for batch in batches(random.sample(chunk, len(chunk)), SCHEMAS.values()):
                fast.push(batch)
                oracle.push(batch)
            # A mark for all types, or one for each; never beyond what is still to come.
            mark = events[0].time if events else TIME_MAX
            marks: int | dict[str, int] = mark
            if random.random() < 0.5:
                marks = {name: mark for name in SCHEMAS if random.random() < 0.7}
            ours, theirs = fast.advance(marks), oracle.advance(marks)
            assert ids(ours) == ids(theirs), f"seed {seed}\n{case}\n{present} {sole}"
            assert fast.marks == theirs.marks, f"seed {seed}"


A, B, C = (EventType.of(name, v="int") for name in "ABC")


def events_of(type_: EventType, first: int, times: list[int], values: list[int]) -> EventBatch:
    count = len(times)
    return EventBatch(
        type_,
        np.array(times, np.int64) * MICROSECONDS,
        EventIds(StringColumn.constant(type_.name, count), first + np.arange(count)),
        (np.array(values, np.int64),),
    )


def forwarder(text: str, *types: str) -> Forwarder:
    rule = rules.load(f"event {A} event {B} event {C} define X() from {text}").rules[0]
    made = Forwarder()
    fragment = fragment_of(rule, frozenset(types), frozenset(types))
    assert fragment is not None
    made.deploy("X", fragment)
    return made


JOIN = "A(v = $v) and each B(v = $v) within 5 s from A and last C() within 5 s from A"


def test_an_event_is_sent_when_its_partner_is_complete_and_once():
    node = forwarder(JOIN, "A", "B")
    node.push(events_of(B, 1, [1, 2, 3], [7, 8, 7]))
    assert ids(node.advance(4 * MICROSECONDS)) == []
    node.push(events_of(A, 1, [4], [7]))
    sent = node.advance({"A": 10 * MICROSECONDS})
    assert ids(sent) == []  # B's mark is still 4
    sent = node.advance({"B": 5 * MICROSECONDS})
    assert ids(sent) == ["A#1", "B#1", "B#3"]
    assert sent.marks == {"A": 5 * MICROSECONDS, "B": 5 * MICROSECONDS}
    assert ids(node.advance(9 * MICROSECONDS)) == []


def test_events_of_either_type_are_sent_for_the_same_partner():
    text = "A(v = $v) as a and {} B(v = $v) or C(v = $v) as e within 5 s from a"
    for policy in ("each", "last"):
        node = forwarder(text.format(policy), "A", "B", "C")
        node.push(events_of(B, 1, [1, 2], [7, 8]))
        node.push(events_of(C, 1, [1, 2], [8, 7]))
        node.push(events_of(A, 1, [3, 9], [7, 8]))
        assert ids(node.advance(10 * MICROSECONDS)) == ["A#1", "B#1", "C#2"], policy


def test_what_may_be_chosen_instead_is_sent_though_it_is_of_another_type():
    """Were C#1 held back, B#1 would be chosen where the rule is evaluated."""
    node = forwarder("A() as a and last B(v > 1) or C(v > a.v) as e within 5 s from a", *"ABC")
    node.push(events_of(B, 1, [1], [7]))
    node.push(events_of(C, 1, [2], [7]))
    node.push(events_of(A, 1, [3], [1]))
    assert ids(node.advance(10 * MICROSECONDS)) == ["A#1", "B#1", "C#1"]


def test_what_passes_by_itself_waits_for_nothing():
    node = forwarder(JOIN, "A", "C")
    node.push(events_of(B, 1, [1], [7]))
    node.push(events_of(C, 1, [1], [7]))
    assert ids(node.advance({})) == []
    alone = forwarder(JOIN, "C")
    alone.push(events_of(C, 1, [1], [7]))
    sent = alone.advance({"C": 0})
    assert ids(sent) == ["C#1"]
    assert sent.marks == {"C": 0}


def test_memory_is_bounded_by_the_windows():
    node = forwarder(JOIN, "A", "B")
    kept = []
    for second in range(0, 20_000, 10):
        times = [second + place for place in range(10)]
        node.push(events_of(B, second, times, [place % 3 for place in range(10)]))
        node.push(events_of(A, second, times[:1], [5]))
        node.advance((second + 10) * MICROSECONDS)
        kept.append(len(node))
    assert max(kept) < 1_500
    assert max(kept[len(kept) // 2 :]) <= max(kept[: len(kept) // 2])


def test_a_mark_never_goes_back():
    node = forwarder(JOIN, "A", "B")
    assert node.advance(5).marks == {"A": 5, "B": 5}
    assert node.advance({"A": 3, "B": 7}).marks == {}
    assert node.marks == {"A": 5, "B": 5}


def test_marks_are_there_whole_when_a_replaced_fragment_goes() -> None:
    """It goes within the advance that takes the marks beyond its reach."""
    node = forwarder(JOIN, "A", "B")
    node.push(events_of(A, 1, [1], [7]))
    node.deploy("X", replace(node.fragments["X"], reach=3))
    assert node.advance(50 * MICROSECONDS).marks == {"A": 50 * MICROSECONDS, "B": 50 * MICROSECONDS}
    assert node.marks == {"A": 50 * MICROSECONDS, "B": 50 * MICROSECONDS}


def fragments(text: str, *soles: str):
    """The fragments of one rule for a node with A and B, of which those named come from nowhere
    else."""
    rule = rules.load(f"event {A} event {B} event {C} define X() from {text}").rules[0]
    return [fragment_of(rule, frozenset("AB"), frozenset(sole)) for sole in soles]


def test_a_fragment_that_binds_more_leaves_time_to_warm_up():
    """B@1 was sent by the first fragment; the second never saw it, and A@4 needs it."""
    loose, tight = fragments(JOIN, "A", "AB")
    node = Forwarder()
    node.deploy("X", loose)
    node.push(events_of(B, 1, [1], [7]))
    assert ids(node.advance(2 * MICROSECONDS)) == ["B#1"]
    node.deploy("X", tight)
    node.push(events_of(A, 1, [4], [7]))
    assert ids(node.advance(5 * MICROSECONDS)) == ["A#1"]
    node.advance(20 * MICROSECONDS)
    node.push(events_of(A, 2, [21], [7]))
    assert ids(node.advance(30 * MICROSECONDS)) == []


def test_what_is_of_a_new_type_passes_while_it_may_belong_with_what_has_passed():
    """A@3 was sent when there was no source of B, and is not kept; B@2 may come all the same."""
    rule = rules.load(f"event {A} event {B} event {C} define X() from {JOIN}").rules[0]
    alone, both = (fragment_of(rule, frozenset(one), frozenset(one)) for one in ("A", "AB"))
    assert alone is not None
    assert both is not None
    node = Forwarder()
    node.deploy("X", alone)
    node.push(events_of(A, 1, [3], [7]))
    assert ids(node.advance({"A": 4 * MICROSECONDS})) == ["A#1"]
    node.deploy("X", both)
    node.push(events_of(B, 1, [2], [8]))
    assert ids(node.advance(5 * MICROSECONDS)) == ["B#1"]
    node.advance(20 * MICROSECONDS)
    node.push(events_of(B, 2, [21], [8]))
    assert ids(node.advance(30 * MICROSECONDS)) == []


def test_a_fragment_that_binds_less_sends_what_was_held_back():
    """A@4 has no B here; a source of B elsewhere may still have had one."""
    loose, tight = fragments(JOIN, "A", "AB")
    node = Forwarder()
    node.deploy("X", tight)
    node.push(events_of(A, 1, [4], [7]))
    assert ids(node.advance(5 * MICROSECONDS)) == []
    node.deploy("X", loose)
    assert ids(node.advance(6 * MICROSECONDS)) == ["A#1"]


def test_many_fragments_are_arranged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were after each: 10 s in one step for a text of 1,000 rules."""
    fragment = forwarder(JOIN, "A", "B").fragments["X"]
    node, made = Forwarder(), list[int]()

    class Counted(Arrangement):
        def __init__(self, in_force: Mapping[str, Evaluation], *others: Any) -> None:
            made.append(len(in_force))
            super().__init__(in_force, *others)

    monkeypatch.setattr(forwarder_module, "Arrangement", Counted)
    node.follow({f"X{number}": fragment for number in range(100)}, {})
    node.follow({f"X{number}": fragment for number in range(50)}, {})
    assert made == [100, 50]


def test_what_is_removed_forwards_nothing_more():
    node = forwarder(JOIN, "A", "B")
    node.remove("X")
    node.push(events_of(B, 1, [1], [7]))
    sent = node.advance(9)
    assert (sent.batches, sent.marks, len(node)) == ((), {}, 0)


def test_what_is_simultaneous_with_the_last_is_sent_too():
    """Which of them is the last is for the evaluating node to say (E4)."""
    node = forwarder("A() and last B() within 5 s from A and last C() within 5 s from A", "A", "B")
    node.push(events_of(B, 1, [1, 2, 2, 2], [7, 7, 8, 9]))
    node.push(events_of(A, 1, [3], [7]))
    assert ids(node.advance(4 * MICROSECONDS)) == ["A#1", "B#2", "B#3", "B#4"]


@dataclass(frozen=True)
class Together:
    """Filters of one type as one demand."""

    filters: list[Subscription]

    def takes(self, event: Single) -> bool:
        return any(one.takes(event) for one in self.filters)

    def wanted(self, batch: EventBatch) -> Bools:
        return np.any([one.mask(batch) for one in self.filters], axis=0)


def by_type(filters: Iterable[Subscription]) -> dict[str, Together]:
    found: dict[str, list[Subscription]] = {}
    for one in filters:
        found.setdefault(one.type.name, []).append(one)
    return {name: Together(own) for name, own in found.items()}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_wanted_passes_beside_what_a_rule_needs(seed: int):
    """Fresh events pass at once, others only for the sake of a rule, and all of them once (Law 6);
    what was wanted before does not matter.
    """
    random, schemas = Random(seed), {one.name: one for one in (A, B, C)}
    wanting, ruled = (forwarder(JOIN, "A", "B") if seed % 2 else Forwarder() for _ in "12")
    filters = [f"{name}{of}" for name in schemas for of in ("", "(v > 1)", "(v = 2)", "(v = 3)")]
    sent, expected = list[str](), set[str]()
    for step in range(4):
        found = [
            parse_subscription(text, schemas)
            for text in random.sample(filters, random.randrange(len(filters)))
        ]
        demands = by_type(found)
        wanting.want(demands)
        for type_ in schemas.values():
            times = list(range(20 * step, 20 * step + 20))
            batch = events_of(type_, times[0], times, [random.randrange(5) for _ in times])
            fresh = random.random() < 0.7
            for node in (wanting, ruled):
                node.push(batch, fresh=fresh)
            if fresh and type_.name in demands:
                taken = batch.take(demands[type_.name].wanted(batch))
                expected.update(f"{event}" for event in taken.events())
        forwarded, for_rule = (
            node.advance((20 * step + 10) * MICROSECONDS) for node in (wanting, ruled)
        )
        sent += [f"{event}" for batch in forwarded.batches for event in batch.events()]
        expected.update(f"{event}" for batch in for_rule.batches for event in batch.events())
        assert forwarded.marks == for_rule.marks
        assert sorted(sent) == sorted(expected), f"seed {seed}, step {step}"


@pytest.mark.parametrize("seed", range(20))
def test_events_that_come_alone_pass_like_those_in_columns(seed: int):
    """Whether they are fresh or not, and whatever wants them."""
    random, schemas = Random(seed), {one.name: one for one in (A, B, C)}
    alone, in_columns = (forwarder(JOIN, "A", "B") if seed % 2 else Forwarder() for _ in "12")
    filters = [f"{name}(v > {limit})" for name in schemas for limit in range(4)]
    found = [parse_subscription(text, schemas) for text in random.sample(filters, 5)]
    for node in (alone, in_columns):
        node.want(by_type(found))
    for time in range(40):
        type_, fresh = random.choice(sorted(schemas.values(), key=str)), random.random() < 0.7
        batch = events_of(type_, time + 1, [time], [random.randrange(6)])
        in_columns.push(batch, fresh=fresh)
        alone.push(*singles(batch), fresh=fresh)
        sent = [node.advance(time * MICROSECONDS) for node in (alone, in_columns)]
        ours, theirs = (
            [
                [f"{event}" for batch in part for event in batch.events()]
                for part in (o.fresh, o.late)
            ]
            for o in sent
        )
        assert ours == theirs, f"seed {seed}, at {time}"
