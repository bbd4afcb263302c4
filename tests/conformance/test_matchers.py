"""All matchers give what the naive one gives, on random filters and events (docs/matching.md).

Each seed is a history of its own: filters come and go, one at a time and in batches, between
batches of events, mixed and typed. The worlds are small, so that filters and events meet, and
full of what is awkward: extreme numbers, NaN, empty and foreign texts, absent attributes and
those of another kind.
"""

import math
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pairs import seeds

from matcher.filters.constraint import OPERATORS, Constraint, Filter, Operator, Sort
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.methods.choose import MATCHERS, make
from matcher.methods.counting import CountingMatcher
from matcher.methods.matcher import Matcher
from matcher.methods.ocm import OcmMatcher
from matcher.methods.pcm import PcmMatcher
from matcher.model import EventType, Value
from matcher.rows import batch_of
from runtime.guarded import Side
from runtime.memory import guarding

MAKERS = {name: make for name in MATCHERS if name != "naive"}
SEEDS = len(seeds(14, 60))

NUMBERS: list[int | float] = [
    *(0, 1, -1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**62 + 1),
    *(0.0, -0.0, 1.0, 0.5, 2.5, -0.5, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 1e300, -1e300),
    *(5e-324, math.inf, -math.inf, 2.0**53 + 2),
]
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aba",
    "abab",
    "éa",
    "a\u0301",
    "日本",
    "日",
    "\U0001f600",
    "z" * 40,
]
NAMES = ["a", "b", "c", "d", "Ä"]
TYPES = ["T", "U"]
SCHEMA = EventType.of("T", a="int", b="string", c="float", d="bool")


def random_value(rng: random.Random) -> Value:
    return rng.choice(
        [rng.choice(NUMBERS), rng.choice(TEXTS), rng.random() < 0.5, rng.randrange(4)]
    )


def random_constraint(rng: random.Random, names: list[str]) -> Constraint:
    operand = random_value(rng)
    sort = Constraint("x", Operator.EQUAL, operand).sort
    operators = sorted(OPERATORS[sort])
    return Constraint(rng.choice(names), rng.choice(operators), operand)


def random_filter(rng: random.Random, names: list[str]) -> Filter:
    size = rng.choice([0, 1, 1, 2, 2, 3, 4])
    constraints = tuple(random_constraint(rng, names) for _ in range(size))
    return Filter(constraints, rng.choice([None, None, *TYPES]))


def random_event(rng: random.Random, names: list[str]) -> Mapping[str, Value]:
    width = rng.randrange(len(names) + 1)
    data = {name: random_value(rng) for name in rng.sample(names, width)}
    if rng.random() < 0.1:
        data["a"] = math.nan
    return data


def random_events(rng: random.Random, names: list[str]) -> MixedEvents:
    rows = [random_event(rng, names) for _ in range(rng.choice([0, 1, 8, 40]))]
    types = [rng.choice([*TYPES, "V"]) for _ in rows] if rng.random() < 0.6 else None
    return MixedEvents.of(rows, types)


def agree(oracle: Matcher, matcher: Matcher, rng: random.Random, names: list[str]) -> None:
    if rng.random() < 0.3:
        rows = [
            {
                "a": rng.randrange(4),
                "b": rng.choice(TEXTS),
                "c": rng.choice([0.5, 1.0, 2.0**53]),
                "d": rng.random() < 0.5,
            }
            for _ in range(9)
        ]
        events = batch_of(SCHEMA, rows, source="s", times=[0] * 9)
    else:
        events = random_events(rng, names)
    expected = oracle.match(events, filters=True)
    found = matcher.match(events, filters=True)
    assert found.filter_lists() == expected.filter_lists()
    assert found.interface_lists() == expected.interface_lists()
    assert matcher.match(events).interface_lists() == expected.interface_lists()
    assert len(matcher) == len(oracle)


def history(matcher: Matcher, seed: int, batches: tuple[int, ...] = (0, 3, 30, 300)) -> None:
    """Filters that come, match and go; ``batches``: how many may come at once."""
    rng = random.Random(seed)
    oracle = make("naive")
    names = NAMES if seed % 3 else [f"n{number}" for number in range(12)]
    alive: list[int] = []
    fresh = iter(range(-3, 10**6))
    for _ in range(rng.randrange(4, 12)):
        for _ in range(rng.choice([0, 1, 5])):
            identifier, interface = next(fresh), rng.choice([1, 2, 70, -5, rng.randrange(200)])
            filter_ = random_filter(rng, names)
            for one in (oracle, matcher):
                one.add(identifier, interface, filter_)
            alive.append(identifier)
        if rng.random() < 0.4:
            count = rng.choice(batches)
            many = [
                (next(fresh), rng.randrange(90), random_filter(rng, names)) for _ in range(count)
            ]
            for one in (oracle, matcher):
                one.add_all(FilterBatch.of(many))
            alive.extend(identifier for identifier, _, _ in many)
        agree(oracle, matcher, rng, names)
        rng.shuffle(alive)
        for _ in range(min(len(alive), rng.choice([0, 1, len(alive) // 2, len(alive)]))):
            identifier = alive.pop()
            for one in (oracle, matcher):
                one.remove(identifier)
        agree(oracle, matcher, rng, names)


@pytest.mark.parametrize("name", MAKERS)
def test_random_histories(name: str) -> None:
    for seed in range(SEEDS):
        try:
            history(make(name), seed)
        except Exception as error:
            raise AssertionError(f"matcher {name}, seed {seed}") from error


@pytest.mark.parametrize("side", Side)
def test_random_histories_in_guarded_memory(side: Side) -> None:
    with guarding(side):
        for name in MATCHERS:
            history(make(name), seed=62)


def test_random_histories_of_plain_counting() -> None:
    for seed in range(SEEDS // 4):
        history(CountingMatcher(plain=True), seed)


@pytest.mark.parametrize("kind", [PcmMatcher, OcmMatcher])
def test_random_histories_on_threads(kind: type[PcmMatcher]) -> None:
    for seed in range(SEEDS // 4):
        history(kind(threads=2 + seed % 2), seed)


def test_more_threads_than_cores_count_no_constraint_twice() -> None:
    matcher, oracle = OcmMatcher(threads=5), PcmMatcher()
    rng = random.Random(8)
    many = [(number, number % 70, random_filter(rng, NAMES)) for number in range(3_000)]
    for one in (matcher, oracle):
        one.add_all(FilterBatch.of(many))
    for _ in range(8):
        events = random_events(rng, NAMES)
        found, expected = (one.match(events, filters=True) for one in (matcher, oracle))
        assert found.filter_lists() == expected.filter_lists()
        assert found.interface_lists() == expected.interface_lists()


@pytest.mark.parametrize("name", MATCHERS)
def test_every_pair_of_values_compares_exactly(name: str) -> None:
    values: list[Value] = [*NUMBERS, *TEXTS, True, False]
    filters = []
    for operand in values:
        for operator in sorted(OPERATORS[Constraint("x", Operator.EQUAL, operand).sort]):
            filters.append((len(filters), 0, Filter((Constraint("x", operator, operand),))))
    matcher = make(name)
    matcher.add_all(FilterBatch.of(filters))
    events = [*values, math.nan]
    found = matcher.match(MixedEvents.of([{"x": value} for value in events]), filters=True)
    for value, identifiers in zip(events, found.filter_lists(), strict=True):
        expected = [number for number, _, one in filters if one.matches({"x": value})]
        assert identifiers == expected, value


@pytest.mark.parametrize("name", MATCHERS)
def test_identifiers_are_taken_once_and_missing_ones_named(name: str) -> None:
    matcher = make(name)
    matcher.add(5, 1, Filter())
    with pytest.raises(ValueError, match="filter 5 already"):
        matcher.add(5, 2, Filter())
    with pytest.raises(ValueError, match="filter 5 already"):
        matcher.add_all(FilterBatch.of([(4, 1, Filter()), (5, 1, Filter())]))
    with pytest.raises(ValueError, match="filter"):
        matcher.add_all(FilterBatch.of([(6, 1, Filter()), (6, 1, Filter())]))
    assert len(matcher) == 1
    matcher.remove(5)
    with pytest.raises(KeyError):
        matcher.remove(5)
    assert matcher.match(MixedEvents.of([{}])).interface_lists() == [[]]


@pytest.mark.parametrize("name", MATCHERS)
def test_an_empty_filter_matches_all_of_its_type(name: str) -> None:
    matcher = make(name)
    matcher.add(1, 10, Filter())
    matcher.add(2, 20, Filter(type="T"))
    events = MixedEvents.of([{}, {"a": 1}, {"a": 1}], ["U", "T", "V"])
    assert matcher.match(events).interface_lists() == [[10], [10, 20], [10]]
    assert matcher.match(MixedEvents.of([{"a": 1}])).interface_lists() == [[10]]


@pytest.mark.parametrize("name", MATCHERS)
def test_a_filter_of_ten_thousand_constraints(name: str) -> None:
    matcher = make(name)
    constraints = tuple(Constraint("x", Operator.UNEQUAL, number) for number in range(10_000))
    matcher.add(1, 1, Filter(constraints))
    wide = tuple(Constraint(f"n{number}", Operator.LESS, 5) for number in range(10_000))
    matcher.add(2, 2, Filter(wide))
    events = [{"x": 9_999}, {"x": 10_000}, {f"n{number}": 1 for number in range(10_000)}]
    assert matcher.match(MixedEvents.of(events)).interface_lists() == [[], [1], [2]]


@pytest.mark.parametrize("name", MATCHERS)
def test_more_interfaces_than_two_bytes_can_count(name: str) -> None:
    count = 200_000 if name != "naive" else 10**4
    matcher = make(name)
    names = FilterBatch.of([(0, 0, Filter.of(("x", "=", 1)))])
    every = np.arange(count, dtype=np.int64)
    filters = FilterBatch(
        every,
        every,
        type(names.cells)(
            np.arange(count + 1, dtype=np.int64),
            names.cells.names.take(np.zeros(count, np.int64)),
            np.zeros(count, np.uint8),
            every,
            (),
        ),
        np.zeros(count, np.uint8),
    )
    matcher.add_all(filters)
    events = MixedEvents.of([{"x": 7}, {"x": count - 1}, {"x": count}])
    found = matcher.match(events, filters=True)
    assert found.interface_lists() == [[7], [count - 1], []]
    assert found.filter_lists() == [[7], [count - 1], []]


@pytest.mark.parametrize("name", MATCHERS)
def test_more_filters_for_one_event_than_there_is_room_for_at_first(name: str) -> None:
    matcher = make(name)
    count = 20_000
    matcher.add_all(FilterBatch.of([(number, number % 3, Filter()) for number in range(count)]))
    found = matcher.match(MixedEvents.of([{}, {"a": 1}]), filters=True)
    assert found.filter_lists() == [list(range(count))] * 2


def test_sorts_and_operators_of_the_suite_are_all_there_are() -> None:
    assert set(OPERATORS) == set(Sort)


@pytest.mark.parametrize("name", MATCHERS)
def test_threads_match_at_once(name: str) -> None:
    rng = random.Random(4)
    matcher = make(name)
    many = [(number, number % 50, random_filter(rng, NAMES)) for number in range(300)]
    matcher.add_all(FilterBatch.of(many))
    batches = [random_events(rng, NAMES) for _ in range(40)]
    expected = [matcher.match(batch, filters=True).filter_lists() for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda batch: matcher.match(batch, filters=True), batches * 3)
        assert [one.filter_lists() for one in found] == expected * 3
