"""Groups of filters say what each filter says, however they come and go."""

import math
import random

import pytest
from pairs import every_pair

from matcher.filters.constraint import OPERATORS, Constraint, Filter, Operator, Sort
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.kernels.layout import GROUP_MAX, GROUP_MIN, GROUP_ROWS_MAX, GROUP_TERMS_MAX
from matcher.methods import homes
from matcher.methods.choose import make
from matcher.methods.indexed import GATHERED_MIN, IndexedMatcher
from matcher.model import Value

NUMBERS: list[int | float] = [
    *(0, 1, 2, 3, 4, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, 1.5, -0.5, 2.0**53, 1e300),
    *(-1e300, 2.0**63, -(2.0**64), math.inf, -math.inf, 5e-324),
]
TEXTS = ["", "a", "ab", "abc", "b", "ba", "é", "日本", "z"]
NAMES = ["a", "b", "c"]


def value(rng: random.Random, name: str) -> Value:
    return rng.choice(TEXTS if name == "c" else NUMBERS)


def constraint(rng: random.Random, name: str) -> Constraint:
    operand = value(rng, name)
    operators = sorted(OPERATORS[Sort.TEXT if name == "c" else Sort.NUMBER])
    return Constraint(name, rng.choice(operators), operand)


def random_filter(rng: random.Random, typed: bool) -> Filter:
    names = rng.sample(NAMES, rng.randint(1, 3)) if typed else NAMES
    rows = [constraint(rng, name) for name in names for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return Filter(tuple(rows), "T" if typed else None)


def random_events(rng: random.Random, typed: bool) -> MixedEvents:
    rows: list[dict[str, Value]] = []
    for _ in range(30):
        names = NAMES if rng.random() < 0.8 else rng.sample(NAMES, 2)
        rows.append({name: value(rng, name) for name in names})
        if rng.random() < 0.1:
            rows[-1]["a"] = math.nan
    return MixedEvents.of(rows, ["T"] * len(rows) if typed else None)


@pytest.mark.parametrize(
    ("names", "by", "coming"),
    every_pair(("one set of names", "one type"), ("signature", "index"), ("at once", "one by one")),
)
def test_filters_of_groups_match_as_they_do_alone(names, by, coming):
    typed, by_access, at_once = names == "one type", by == "index", coming == "at once"
    for seed in range(3):
        rng = random.Random(seed)
        matcher, oracle = IndexedMatcher(by_access=by_access), make("naive")
        filters = [
            (n, rng.randrange(5 * 10**seed), random_filter(rng, typed)) for n in range(1_200)
        ]
        for one in (matcher, oracle):
            if at_once:
                one.add_all(FilterBatch.of(filters))
            else:
                for row in filters:
                    one.add(*row)
        assert matcher.figures["groups"] > 0
        alive = [number for number, _, _ in filters]
        rng.shuffle(alive)
        while alive:
            events = random_events(rng, typed)
            expected = oracle.match(events, filters=True)
            found = matcher.match(events, filters=True)
            assert found.filter_lists() == expected.filter_lists(), seed
            assert found.interface_lists() == expected.interface_lists(), seed
            assert matcher.match(events).interface_lists() == expected.interface_lists(), seed
            for identifier in [alive.pop() for _ in range(min(len(alive), 150))]:
                matcher.remove(identifier)
                oracle.remove(identifier)
        assert matcher.figures["groups"] == matcher.figures["filters in groups"] == 0


def ranges(count: int, first: int = 0) -> list[tuple[int, int, Filter]]:
    """Filters on one set of names, each with a threshold of its own."""
    rows = ((number, Filter.of(("a", ">", number), ("b", "!=", 7))) for number in range(count))
    return [(first + number, number % 3, filter_) for number, filter_ in rows]


@pytest.mark.parametrize("step", [1, 2**32 // 299, 2**32 // 299 + 1, 2**61 // 299])
def test_identifiers_of_a_group_may_be_as_far_apart_as_they_like(step):
    count = 300
    numbers = [-(2**60) + step * n for n in range(count)]
    filters = [(one, n % 7, Filter.of(("a", ">", n))) for n, one in enumerate(numbers)]
    matcher = IndexedMatcher(by_access=False)
    matcher.add_all(FilterBatch.of(filters))
    assert matcher.figures["filters in groups"] == count
    for left in (count, count - 80, 20):  # the last time they are a group no more
        for gone in range(left, len(matcher)):
            matcher.remove(numbers[gone])
        found = matcher.match(MixedEvents.of([{"a": 10}, {"a": 1e9}]), filters=True)
        assert found.filter_lists() == [numbers[:10], numbers[:left]]


def test_few_filters_are_no_group_and_many_are_several():
    matcher = IndexedMatcher(by_access=True)
    matcher.add_all(FilterBatch.of(ranges(GROUP_MIN - 1)))
    assert matcher.figures["groups"] == 0
    matcher.add_all(FilterBatch.of(ranges(GROUP_MAX + GROUP_MIN, first=100)))
    assert matcher.figures["groups"] >= 2
    found = matcher.match(MixedEvents.of([{"a": 10.5, "b": 1}, {"a": 10.5, "b": 7}]), filters=True)
    assert found.filter_lists() == [[*range(11), *range(100, 111)], []]


def test_groups_double_as_filters_come_one_by_one():
    matcher = IndexedMatcher(by_access=True)
    for row in ranges(16 * GATHERED_MIN):
        matcher.add(*row)
    assert matcher.figures["filters in groups"] >= 15 * GATHERED_MIN  # the first ones had others
    assert matcher.figures["groups"] < 6


def test_a_filter_that_asks_one_text_for_two_things_stays_outside():
    matcher = IndexedMatcher(by_access=False)
    both = Filter.of(("a", "prefix", "x"), ("a", "!=", "xy"))
    long = Filter(tuple(Constraint("a", Operator.UNEQUAL, n) for n in range(GROUP_ROWS_MAX + 1)))
    rows = [(number, 1, filter_) for number, filter_ in enumerate([both, long] * 200)]
    matcher.add_all(FilterBatch.of(rows))
    assert matcher.figures["groups"] == 0
    found = matcher.match(MixedEvents.of([{"a": "xy"}, {"a": "xyz"}, {"a": 99}]), filters=True)
    assert [len(row) for row in found.filter_lists()] == [0, 200, 200]


@pytest.mark.parametrize(
    ("interfaces", "count", "groups"),
    [
        (100, 250, 1),  # in layers
        (2_000, 250, 1),  # too sparse for layers
        (300, 800, 2),
        (5, 380, 3),  # dealt out
    ],
)
def test_filters_of_a_type_stand_in_few_groups(interfaces, count, groups, monkeypatch):
    monkeypatch.setattr(homes, "GROUP_MAX", 128)
    monkeypatch.setattr(homes, "WIDE_MAX", 500)
    rng = random.Random(interfaces)
    matcher, oracle = IndexedMatcher(by_access=False), make("naive")
    filters = [
        (n - 5, 3 * rng.randrange(interfaces), random_filter(rng, typed=True)) for n in range(count)
    ]
    for one in (matcher, oracle):
        one.add_all(FilterBatch.of(filters))
    assert matcher.figures["groups"] == groups
    for left in (count, count // 2, 40, 0):
        alive = [number for number, _, _ in filters]
        rng.shuffle(alive)
        for number in alive[left:]:
            matcher.remove(number)
            oracle.remove(number)
        filters = [row for row in filters if row[0] in set(alive[:left])]
        events = random_events(rng, typed=True)
        expected = oracle.match(events, filters=True)
        found = matcher.match(events, filters=True)
        assert found.filter_lists() == expected.filter_lists()
        assert found.interface_lists() == expected.interface_lists()
        assert matcher.match(events).interface_lists() == expected.interface_lists()


def test_filters_with_more_terms_than_a_group_has_stand_in_several():
    matcher = IndexedMatcher(by_access=False)
    count = 2 * GROUP_TERMS_MAX
    for number in range(count):
        matcher.add(number, number, Filter.of((f"n{number}", ">", 0), type="T"))
    assert matcher.figures["filters in groups"] == count
    events = MixedEvents.of([{f"n{number}": number % 2} for number in range(count)], ["T"] * count)
    found = matcher.match(events, filters=True)
    assert found.filter_lists() == [[number] if number % 2 else [] for number in range(count)]


def test_flips_that_sixteen_bits_cannot_count_stand_in_several_groups():
    count, each = 9_000, 4  # 72,000 flips of one term
    filters = [
        (
            n,
            n % 500,
            Filter(tuple(Constraint("a", Operator.UNEQUAL, n + k) for k in range(each)), "T"),
        )
        for n in range(count)
    ]
    matcher = IndexedMatcher(by_access=False)
    matcher.add_all(FilterBatch.of(filters))
    assert matcher.figures["filters in groups"] == count
    assert matcher.figures["groups"] == 4
    values = [-1, 0, 5, 4_500, 8_999, 9_002, 9_003]
    found = matcher.match(
        MixedEvents.of([{"a": v} for v in values], ["T"] * len(values)), filters=True
    )
    for value, numbers in zip(values, found.filter_lists(), strict=True):
        assert numbers == [n for n in range(count) if not n <= value < n + each], value
