"""What is still needed of the past (routing.network.recovery), and what sinks have had."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from brokers import SCHEMAS, Network
from conversation import batches_of, schema_of

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    TIME_MIN,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from matcher.single import Row, Single, singles
from routing.delivery.deduplicator import Deduplicator
from routing.deployment import Deployed
from routing.evaluation.blocks import BLOCK_EVENTS, BYTES_EACH
from routing.network.recovery.replay_buffer import APART, UNASKED_BYTES, ReplayBuffer
from routing.network.recovery.resume_points import from_resume_points_on
from routing.partition.replay_starts import replay_starts
from rules.engine import make

A, B = schema_of("A(n: int)"), schema_of("B(n: int)")
KNOWN = {"A": A, "B": B}
TICK = EventType.of("Tick")
LOW = "rule low: define L(n: int) from A() as a and last B() within 5 s from a where n = a.n"
HIGH = "rule high: define H(n: int) from A() as a and last L() within 10 s from a where n = a.n"


def deployed(text: str, since: int | None = None) -> tuple[Deployed, ...]:
    found = rules.load(text, known=KNOWN).rules
    return tuple(Deployed(rule, since, 0, serial) for serial, rule in enumerate(found))


def in_seconds(times: dict[str, int]) -> dict[str, float | None]:
    return {name: None if at == TIME_MIN else at / MICROSECONDS for name, at in times.items()}


def test_what_all_had_before_a_rule_began_anew_is_not_due_once_more() -> None:
    """A second plan, while what was needed for the first still came, began where that reached back
    to.
    """
    network = Network(2)
    network.connect("t", "b2").advertise([SCHEMAS["Temp"]])
    network.connect("m", "b1").deploy("rule hot: define Hot() from Temp()")
    network.connect("k", "b1").subscribe("Hot()")
    network.run(1)
    (detection,) = (
        broker.context.detection
        for broker in network.brokers.values()
        if "hot" in broker.context.detection.part.evaluator.rules
    )
    assert detection.part.mark_of("hot") < 40 * MICROSECONDS
    detection.part.resume_from = {"hot": 40 * MICROSECONDS}
    assert detection.resume_points_of(()) == {"hot": 40 * MICROSECONDS}


def test_a_type_is_needed_as_far_back_as_the_rules_above_reach() -> None:
    resume_from = {"low": 100 * MICROSECONDS, "high": 60 * MICROSECONDS}
    # High has to be right from 60 on and sees L from 50 on; so low has to be right from there.
    found = replay_starts(deployed(f"{LOW}\n{HIGH}"), resume_from).horizons
    # That looks for B in the 5 s before each A.
    assert in_seconds(found) == {"A": 50.0, "B": 45.0, "L": 50.0}


def test_what_no_window_bounds_is_needed_since_the_rule_holds() -> None:
    text = LOW.replace("where n = a.n", "where n = a.n consuming B")
    assert in_seconds(replay_starts(deployed(text), {"low": 9}).horizons) == {"A": None, "B": None}
    since = 7 * MICROSECONDS
    needed = replay_starts(deployed(text, since), {"low": 9}).horizons
    assert in_seconds(needed) == {"A": 7.0, "B": 7.0}


def test_a_cycle_of_rules_that_came_apart_is_needed_from_the_beginning() -> None:
    one = "rule one: define X(n: int) from A() as a and last Y() within 5 s from a where n = a.n"
    two = "rule two: define Y(n: int) from B() as b and last X() within 5 s from b where n = b.n"
    together = rules.load(f"{one}\n{two}", known=KNOWN)
    known = {schema.name: schema for schema in together.schemas.values()}
    apart = tuple(
        Deployed(rules.load(rule.text, known=known).rules[0], None, 0, serial)
        for serial, rule in enumerate(together.rules)
    )
    found = replay_starts(apart, {"one": 100, "two": 100}).horizons
    assert in_seconds(found) == dict.fromkeys(("A", "Y", "B", "X"))


def test_a_rule_that_nobody_has_anything_of_needs_everything() -> None:
    assert in_seconds(replay_starts(deployed(LOW), {}).horizons) == {"A": None, "B": None}


def test_events_are_kept_until_they_have_arrived_and_are_past() -> None:
    replay_buffer = ReplayBuffer(100, 2)
    replay_buffer.add(batches_of("A@1(1)", KNOWN))
    assert not replay_buffer.is_full
    replay_buffer.add(batches_of("B@9(1)", KNOWN))
    assert replay_buffer.is_full
    replay_buffer.probe()
    replay_buffer.add(batches_of("A@2(2)", KNOWN))
    replay_buffer.commit({"A": 5 * MICROSECONDS, "B": 5 * MICROSECONDS})
    assert len(replay_buffer) == 3, "that all have heard of this checkpoint is not known yet"
    replay_buffer.probe()
    replay_buffer.commit({"A": 5 * MICROSECONDS, "B": 5 * MICROSECONDS})
    # A@2 came after the first checkpoint, and B@9 is not past.
    assert [batch.type.name for own in replay_buffer for batch in own] == ["B", "A"]
    replay_buffer.probe()
    replay_buffer.begin_anew()
    replay_buffer.commit({})
    # A checkpoint of another tree says nothing of A@2; and no rule uses B any more.
    assert [batch.type.name for own in replay_buffer for batch in own] == ["A"]


def test_after_a_change_of_the_tree_it_is_soon_time_to_survey_again() -> None:
    """Else changes that come faster than two checkpoints would let the buffer grow without end."""
    replay_buffer = ReplayBuffer(100, 2)
    for _ in range(4):
        replay_buffer.add(batches_of("A@1(1)", KNOWN))
    replay_buffer.probe()
    replay_buffer.commit({})
    assert len(replay_buffer) == 4
    replay_buffer.add(batches_of("A@2(1)", KNOWN))
    assert replay_buffer.is_full
    replay_buffer.probe()
    replay_buffer.commit({})
    assert len(replay_buffer) == 1


def test_what_comes_while_a_checkpoint_is_under_way_does_not_put_off_the_next() -> None:
    replay_buffer = ReplayBuffer(100_000, 10)
    most = 0
    for _ in range(100):
        while not replay_buffer.is_full:
            replay_buffer.add(batches_of("A@1(1)", KNOWN))
        replay_buffer.probe()
        for _ in range(5):
            replay_buffer.add(batches_of("A@1(1)", KNOWN))
        replay_buffer.commit({})
        most = max(most, len(replay_buffer))
    assert most <= (APART + 3) * 5 + 10, "and a block, which goes when all of it may"


def test_what_is_needed_may_be_more_than_half_of_what_may_be_kept() -> None:
    """Then twice as much was never reached: nothing was let go any more, and events were lost."""
    replay_buffer = ReplayBuffer(8, 2)
    for number in range(6):
        replay_buffer.add(batches_of(f"A@{number}(1)", KNOWN))
    for _ in range(2):
        replay_buffer.probe()
        replay_buffer.commit({"A": 0})
    assert not replay_buffer.is_full
    for number in (6, 7):
        replay_buffer.add(batches_of(f"A@{number}(1)", KNOWN))
    assert replay_buffer.is_full
    replay_buffer.commit({"A": 6 * MICROSECONDS})
    assert (len(replay_buffer), replay_buffer.given_up) == (2, 0)


def single(number: int, name: str = "A") -> EventBatch:
    (batch,) = batches_of(f"{name}@{number}({number})", KNOWN)
    (found,) = singles(batch)
    return found


def checked(replay_buffer: ReplayBuffer, horizons: Mapping[str, int]) -> None:
    """Have all that has come arrive, and what is past let go."""
    for _ in range(2):
        replay_buffer.probe()
        replay_buffer.commit(horizons)


LONG = EventType.of("Long", text="string")


def long(number: int, size: int) -> EventBatch:
    return Single(LONG, Row(number * MICROSECONDS, "s", number, None, ("x" * size,)))


def test_long_events_are_asked_about_by_their_bytes() -> None:
    """4,096 events of 8 MB, which nobody needed, were 32 GB."""
    replay_buffer = ReplayBuffer(1_000_000, 4_096)
    most = 0
    for number in range(200):
        replay_buffer.add([long(number, UNASKED_BYTES // 8)])
        most = max(most, replay_buffer.size)
        if replay_buffer.is_full:
            replay_buffer.probe()
            replay_buffer.commit({})
    assert most <= 3 * UNASKED_BYTES
    for number in range(200, 240):  # they are needed: the more is kept, the less often
        replay_buffer.add([long(number, UNASKED_BYTES // 8)])
        if replay_buffer.is_full:
            replay_buffer.probe()
            replay_buffer.commit({"Long": 0})
    assert replay_buffer.size >= 40 * UNASKED_BYTES // 8
    assert not replay_buffer.is_full


def test_long_events_give_way_by_their_bytes() -> None:
    replay_buffer = ReplayBuffer(1_000, 4_096)
    for number in range(1_000):
        replay_buffer.add([long(number, 10 * BYTES_EACH)])
    assert replay_buffer.size <= 1_000 * BYTES_EACH
    assert len(replay_buffer) == 1_000 - replay_buffer.given_up > 0


def test_events_that_came_one_by_one_are_packed_once_they_have_been_sent() -> None:
    replay_buffer = ReplayBuffer(100_000, 4_096)
    for number in range(2 * BLOCK_EVENTS):
        replay_buffer.add([single(number)], is_sent=number < BLOCK_EVENTS)
    replay_buffer.add([single(2 * BLOCK_EVENTS)], is_sent=False)
    packed_ones, *others = replay_buffer
    # Those that wait to be sent are counted by their messages.
    assert [len(one) for one in packed_ones] == [BLOCK_EVENTS]
    assert len(others) == BLOCK_EVENTS + 1
    assert replay_buffer.place == len(replay_buffer) == 2 * BLOCK_EVENTS + 1
    events = [event for batches in replay_buffer for batch in batches for event in batch.events()]
    assert [event.time for event in events] == [
        n * MICROSECONDS for n in range(2 * BLOCK_EVENTS + 1)
    ]


def test_a_type_is_let_go_of_though_its_blocks_have_others() -> None:
    replay_buffer = ReplayBuffer(100_000, 4_096)
    for number in range(BLOCK_EVENTS):
        replay_buffer.add([single(number, "AB"[number % 2])])
    replay_buffer.add([single(BLOCK_EVENTS)])
    checked(
        replay_buffer, {"A": BLOCK_EVENTS // 2 * MICROSECONDS, "B": BLOCK_EVENTS * MICROSECONDS}
    )
    assert len(replay_buffer) == BLOCK_EVENTS // 2 + 1
    assert replay_buffer.let_go == {"B": (BLOCK_EVENTS - 1) * MICROSECONDS + 1}
    checked(replay_buffer, {})
    assert (len(replay_buffer), replay_buffer.first) == (0, BLOCK_EVENTS + 1)


def test_what_follows_a_checkpoint_costs_what_it_lets_go_of() -> None:
    """The step was as long as the buffer: 0.2 s with 200,000 events that came one by one."""

    class Looked(dict[str, int]):
        looks = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.looks += 1
            return super().get(key, default)

    replay_buffer = ReplayBuffer(1_000_000, 4_096)
    for number in range(20 * BLOCK_EVENTS):
        replay_buffer.add([single(number)])
    horizons = Looked(A=2 * BLOCK_EVENTS * MICROSECONDS)
    checked(replay_buffer, horizons)
    assert len(replay_buffer) == 18 * BLOCK_EVENTS
    assert horizons.looks == 20


def test_a_replay_buffer_is_bounded_and_says_what_it_gave_up() -> None:
    replay_buffer = ReplayBuffer(3, 4_096)
    for number in range(3):
        replay_buffer.add(batches_of(f"A@{number}(1)", KNOWN))
    assert replay_buffer.given_up == 0
    replay_buffer.add(batches_of("A@9(1)", KNOWN))
    assert (len(replay_buffer), replay_buffer.given_up) == (3, 1)


def test_published_events_come_once() -> None:
    deduplicator = Deduplicator(10, 5)
    first = tuple(batches_of("A@1(1) A@2(2)", KNOWN))
    second = tuple(batches_of("A@1(1) A@2(2) A@3(3)", KNOWN))
    assert sum(map(len, deduplicator.news(first))) == 2
    assert sum(map(len, deduplicator.news(first))) == 2, "nothing is sent again yet"
    deduplicator.begin_anew()
    (news,) = deduplicator.news(second)
    assert news.ids.sequence.tolist() == [3]
    assert deduplicator.news(first) == ()


def test_numbers_are_remembered_of_the_last_sources() -> None:
    """They were of all that there ever were."""
    deduplicator = Deduplicator(10, 5)

    def sent(source: str, number: int) -> int:
        ids = EventIds(StringColumn.from_strings([source]), np.array([number]), None)
        (batch,) = batches_of("A@1(1)", KNOWN)
        return sum(map(len, deduplicator.news((replace(batch, ids=ids),))))

    for place in range(100):
        assert sent(f"s{place}", 7) == 1
        assert sent("always", place) == 1
        assert deduplicator.sources <= 10
    deduplicator.begin_anew()
    assert sent("always", 99) == 0
    assert [sent(f"s{place}", 7) for place in (99, 98, 97, 96)] == [0, 0, 0, 0]
    assert sent("s0", 7) == 1
    assert sent("always", 100) == 1


def test_events_with_ids_come_once_whoever_brings_them() -> None:
    """Against a plain set, within the window in which ids are known."""
    for seed in range(40):
        random = Random(seed)
        deduplicator, seen = Deduplicator(600, 5), set[tuple[str, str]]()
        for _ in range(25):
            sent = []
            for _ in range(random.randint(1, 3)):
                count = random.randint(0, 12)
                sources = random.choices(("f", "g"), k=count)
                texts = [f"e{random.randint(0, 150)}" for _ in range(count)]
                sent.append(named(sources, texts))
            pairs = [pair for one in sent for pair in pairs_of(one)]
            expected = [pair for pair in dict.fromkeys(pairs) if pair not in seen]
            seen.update(pairs)
            news = deduplicator.news(tuple(sent))
            assert all(map(len, news)), f"seed {seed}"
            assert [pair for one in news for pair in pairs_of(one)] == expected, f"seed {seed}"


def test_the_window_of_ids_has_a_bound() -> None:
    deduplicator = Deduplicator(10, 5)
    for first in range(0, 100, 5):
        deduplicator.news((named(["f"] * 5, [f"e{number}" for number in range(first, first + 5)]),))
    (news,) = deduplicator.news((named(["f"] * 3, ["e90", "e99", "e0"]),))
    assert pairs_of(news) == [("f", "e0")]


def named(sources: list[str], texts: list[str]) -> EventBatch:
    """Events with ids of their own."""
    ids = EventIds(
        StringColumn.from_strings(sources), np.arange(len(texts)), StringColumn.from_strings(texts)
    )
    return EventBatch(TICK, np.arange(len(texts)), ids, ())


def pairs_of(batch: EventBatch) -> list[tuple[str, str]]:
    return [*zip(batch.ids.source.tolist(), batch.ids.printed(), strict=True)]


def test_composite_events_before_their_due_are_left_out_in_order() -> None:
    engine = make("naive")
    engine.deploy(
        rules.load(f"{LOW}\nrule all: define M(n: int) from A() as a where n = a.n", known=KNOWN)
    )
    for batch in batches_of("B@1(0) A@2(2) A@3(3) A@4(4)", KNOWN):
        engine.push(batch)
    found = engine.advance(TIME_MAX)
    assert from_resume_points_on(found, {}) is found
    kept = from_resume_points_on(found, {"low": 3 * MICROSECONDS, "all": 4 * MICROSECONDS})
    shown = [(one.source.removeprefix(RULE_SOURCE), one.data["n"]) for one in kept.events()]
    assert shown == [("low", 3), ("low", 4), ("all", 4)]
