"""Matchers on a device give what the naive one gives; what they keep there follows the host."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from conformance.test_matchers import NUMBERS, TEXTS, agree, history, random_filter
from pairs import seeds

from matcher.filters.constraint import OPERATORS, Constraint, Filter, Operator
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.gpu import batched, ccm, choice
from matcher.gpu.batched import BatchedMatcher
from matcher.gpu.ccm import CcmMatcher
from matcher.gpu.choice import PlacedMatcher
from matcher.gpu.device import device
from matcher.gpu.mirror import RUNS_MAX, Mirror
from matcher.matching import Matching
from matcher.methods.choose import make
from matcher.methods.guarded import GuardedMatcher
from matcher.methods.tabled import TableMatcher

MATCHERS: dict[str, Callable[[], TableMatcher]] = {
    "batched": BatchedMatcher,
    "ccm": CcmMatcher,
    "ccm, launched anew": lambda: CcmMatcher(recorded=False),
    "ccm, memset": lambda: CcmMatcher(memset=True),
    "ccm, ordered": lambda: CcmMatcher(ordered=True),
    "ccm, distinct": lambda: CcmMatcher(distinct=True),
    "ccm, together": lambda: CcmMatcher(together=3),
    "ccm, ordered and together": lambda: CcmMatcher(ordered=True, together=5),
}
SIMULATED = device().simulated
SEEDS = {"batched": len(seeds(1, 6)), "ccm": 1} if SIMULATED else dict.fromkeys(MATCHERS, 20)
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("name", SEEDS)
def test_random_histories(name: str) -> None:
    for seed in range(SEEDS[name]):
        try:
            history(MATCHERS[name](), seed, (0, 3, 12) if SIMULATED else (0, 3, 30, 300))
        except Exception as error:
            raise AssertionError(f"matcher {name}, seed {seed}") from error


@pytest.mark.parametrize("name", MATCHERS)
def test_some_events_one_after_the_other(name: str) -> None:
    rng = random.Random(9)
    matcher, oracle = MATCHERS[name](), make("naive")
    for identifier in range(12):
        filter_ = random_filter(rng, NAMES)
        for one in (oracle, matcher):
            one.add(identifier, identifier % 5, filter_)
    agree(oracle, matcher, rng, NAMES)
    for one in (oracle, matcher):
        for identifier in (3, 4, 10):
            one.remove(identifier)
        for identifier in (20, 21):  # what others ask, too
            one.add(identifier, 1, Filter.of(("a", ">", 1), ("b", "=", "a")))
    agree(oracle, matcher, rng, NAMES)


@pytest.mark.parametrize("name", ["batched", *([] if SIMULATED else ["ccm"])])
def test_every_pair_of_values_compares_exactly(name: str) -> None:
    filters = []
    for operand in [*NUMBERS, *TEXTS, True, False]:
        for operator in sorted(OPERATORS[Constraint("x", Operator.EQUAL, operand).sort]):
            filters.append((len(filters), 0, Filter((Constraint("x", operator, operand),))))
    matcher = MATCHERS[name]()
    matcher.add_all(FilterBatch.of(filters))
    events = [*NUMBERS, *TEXTS, True, False, math.nan]
    found = matcher.match(MixedEvents.of([{"x": value} for value in events]), filters=True)
    for value, identifiers in zip(events, found.filter_lists(), strict=True):
        expected = [number for number, _, one in filters if one.matches({"x": value})]
        assert identifiers == expected, value


@pytest.mark.parametrize("name", ["batched", "ccm"])
def test_more_filters_than_there_is_room_for_at_first(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched, "FOUND_MIN", 3)
    monkeypatch.setattr(ccm, "FOUND_MIN", 3)
    matcher = MATCHERS[name]()
    filters = [(number, number % 3, Filter.of(("a", ">", 0))) for number in range(9)]
    matcher.add_all(FilterBatch.of(filters))
    events = MixedEvents.of([{"a": 1}, {"a": 0}, {"a": 2}, {"a": 3}])
    found = matcher.match(events, filters=True)
    everything = list(range(9))
    assert found.filter_lists() == [everything, [], everything, everything]
    assert found.interface_lists() == [[0, 1, 2], [], [0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("name", MATCHERS)
def test_filters_without_constraints_need_no_device(name: str) -> None:
    matcher = MATCHERS[name]()
    matcher.add(1, 10, Filter())
    matcher.add(2, 20, Filter(type="T"))
    found = matcher.match(MixedEvents.of([{}, {"a": 1}], ["U", "T"]), filters=True)
    assert found.interface_lists() == [[10], [10, 20]]
    assert found.filter_lists() == [[1], [1, 2]]


@pytest.mark.parametrize("memory", [2**29, 1])
def test_a_large_batch_goes_in_several_launches(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched, "EVENTS_MAX", 64)
    monkeypatch.setattr(batched, "LAUNCH_BYTES", memory)
    rng = random.Random(3)
    matcher, oracle = BatchedMatcher(), make("naive")
    for identifier in range(10):
        filter_ = random_filter(rng, NAMES)
        for one in (oracle, matcher):
            one.add(identifier, 70 * identifier, filter_)
    events = MixedEvents.of([{"a": rng.randrange(4), "b": rng.choice(TEXTS)} for _ in range(230)])
    for wanted in (True, False):
        expected = oracle.match(events, filters=wanted)
        found = matcher.match(events, filters=wanted)
        assert found.interface_lists() == expected.interface_lists()
        if wanted:
            assert found.filter_lists() == expected.filter_lists()


def test_texts_are_followed_through_growth_and_forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matcher.filters.texts.TEXTS_MAX", 40)
    matcher, oracle = BatchedMatcher(), make("naive")
    for number, operator in enumerate(["=", "prefix", "contains", "<"]):
        for one in (oracle, matcher):
            one.add(number, number, Filter.of(("a", operator, "t1")))
    for batch in range(12):
        texts = [f"t{batch * 7 + place}" for place in range(7)]
        events = MixedEvents.of([{"a": text} for text in [*texts, "t1", "ot1"]])
        found, expected = (one.match(events, filters=True) for one in (matcher, oracle))
        assert found.filter_lists() == expected.filter_lists(), f"batch {batch}"


@pytest.mark.parametrize("name", MATCHERS)
def test_what_is_computed_again_and_again_for_a_benchmark_changes_no_answer(name: str) -> None:
    rng = random.Random(4)
    matcher, oracle = MATCHERS[name](), make("naive")
    for identifier in range(6):
        filter_ = random_filter(rng, NAMES)
        for one in (oracle, matcher):
            one.add(identifier, identifier, filter_)
    events = MixedEvents.of([{"a": 1, "b": rng.choice(TEXTS)} for _ in range(3)])
    expected = oracle.match(events, filters=True)
    for times in (1, 2):
        assert isinstance(matcher, BatchedMatcher | CcmMatcher)
        matcher.launch_again(matcher.encode(events).take(slice(0, 1)))(times)
        found = matcher.match(events, filters=True)
        assert found.filter_lists() == expected.filter_lists()


def test_either_place_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "TRIAL_EVENTS", 4)
    monkeypatch.setattr(choice, "TRIES", 1)
    rng = random.Random(1)
    matcher, oracle = PlacedMatcher(), make("naive")
    for identifier in range(6):
        filter_ = random_filter(rng, NAMES)
        for one in (oracle, matcher):
            one.add(identifier, identifier, filter_)
    for place in (None, 1):
        agree(oracle, matcher, rng, NAMES)
        matcher._from = place
        agree(oracle, matcher, rng, NAMES)
    assert matcher.figures["calls on the device"]


def test_a_mirror_brings_over_what_changed() -> None:
    lane = device().lane()
    mirror = Mirror(device(), np.int64, 2)
    rows = np.arange(400, dtype=np.int64).reshape(200, 2)
    for size in (0, 5, 120):
        buffer = mirror.synchronise(rows, size, lane)
    for place in range(RUNS_MAX + 3):
        rows[place] += 1_000
        mirror.mark(place, place + 1)
    rows[130] = -1
    mirror.mark(130, 131)  # beyond what is in use
    host = np.empty((120, 2), np.int64)
    device().download(host, mirror.synchronise(rows, 120, lane), lane)
    lane.wait()
    assert host.tolist() == rows[:120].tolist()
    assert len(buffer) >= 120


def test_names_come_to_matchers_on_a_device() -> None:
    for one, kind in (
        (Matching("auto", "gpu"), BatchedMatcher),
        (Matching("batched"), BatchedMatcher),
        (Matching("pcm", "gpu"), CcmMatcher),
        (Matching("ccm"), CcmMatcher),
        (Matching("auto", "auto"), PlacedMatcher),
    ):
        made = one.settled().make()
        assert isinstance(made, GuardedMatcher)
        assert type(made._inner) is kind
        assert one.facts(made)["device"] == device().name
