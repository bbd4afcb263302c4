"""What ``auto`` chooses."""

import numpy as np
import pytest

from benchmarks.matching import Scenario, events_of, filters_of
from matcher.methods.choose import AutoMatcher, make


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (Scenario("sparse", constraints=100_000), "signature"),
        (Scenario("dense", constraints=100_000, names=8), "index"),
        (Scenario("wide", constraints=100_000, attributes=(16, 16)), "index"),
    ],
    ids=lambda value: value.name if isinstance(value, Scenario) else value,
)
def test_the_method_follows_the_workload(scenario, expected):
    rng = np.random.default_rng(5)
    matcher, other = AutoMatcher(), make("index" if expected == "signature" else "signature")
    filters, events = filters_of(scenario, rng), events_of(scenario, 256, rng)
    for one in (matcher, other):
        one.add_all(filters)
    found = matcher.match(events, filters=True)
    assert matcher.figures["method"] == expected
    assert found.filter_lists() == other.match(events, filters=True).filter_lists()
    assert np.array_equal(found.bits, matcher.match(events).bits)


def test_filters_that_come_one_by_one_are_chosen_for_in_steps() -> None:
    rng = np.random.default_rng(6)
    matcher, oracle = AutoMatcher(), make("counting")
    alive: list[int] = []
    identifiers, methods = iter(range(10**6)), set()
    for scenario in (
        Scenario("sparse", constraints=12_000, attributes=(2, 2), numeric=0.0),
        Scenario("dense", constraints=40_000, names=8, attributes=(8, 8)),
    ):
        batch, events = filters_of(scenario, rng), events_of(scenario, 64, rng)
        for place, identifier in zip(range(len(batch)), identifiers, strict=False):
            one = batch.filter(place)
            for target in (matcher, oracle):
                target.add(identifier, place % 70, one)
            alive.append(identifier)
            if place % 9 == 0:
                gone = alive.pop(int(rng.integers(len(alive))))
                for target in (matcher, oracle):
                    target.remove(gone)
            if place % 25 == 0:
                found = matcher.match(events, filters=True)
                methods.add(matcher.figures["method"])
            if place % 500 == 0:
                expected = oracle.match(events, filters=True)
                assert found.filter_lists() == expected.filter_lists()
    assert methods == {"signature", "index"}


def test_a_name_that_is_none_is_refused():
    with pytest.raises(KeyError):
        make("magic")
