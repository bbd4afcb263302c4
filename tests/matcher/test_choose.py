"""What ``auto`` chooses."""

import numpy as np
import pytest

from benchmarks.matching import Scenario, events_of, filters_of
from matcher.choose import AutoMatcher, make


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


def test_a_name_that_is_none_is_refused():
    with pytest.raises(KeyError):
        make("magic")
