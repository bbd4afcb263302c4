"""Rules that find nothing, but look for it at more events than anybody wants to wait for."""

from collections.abc import Iterable

import pytest

from rules.local import Engine, TooManyComposites

W = "within 10 min from t"
PAIRS = f"each A() as x {W} and each A() as y {W}"
SEARCHES = {
    "each": f"each A(n + x.n + y.n = -1) {W}",
    "last": f"3-last A(n + x.n + y.n = -1) {W}",
    "not": f"not A(n + x.n + y.n = -1) {W} and each B(n + x.n = -1) {W}",
    "aggregate": f"2 < Sum(A(n + x.n + y.n = -1).n {W})",
    "aggregate in a condition": f"each A(n = -1 - Count(A(n + x.n + y.n > 5) {W})) {W}",
    "run": f"last 5.. A(n + x.n > 0, while n + x.n + y.n < -1) as r {W}",
}


@pytest.mark.parametrize("engine", ["cdp", "aip"])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_rule_that_looks_at_too_many_events_ends_and_others_go_on(search, engine):
    rules = f"""
        define Long(n: int) from B() as t and {PAIRS} and {SEARCHES[search]} where n = x.n
        define Other(n: int) from B() and last A() within 10 min from B where n = A.n
    """
    detector = detector_of(rules, [3_001, 3_002], engine)
    with pytest.raises(TooManyComposites, match="looks for them at more than 20000000") as caught:
        detector.finish()
    (overrun,) = caught.value.overruns
    assert (overrun.rule, overrun.instant) == ("Long", 3_001)
    found = [(event.type, event.time) for event in caught.value.detections.events()]
    assert found == [("Other", 3_001), ("Other", 3_002)]


def test_the_bound_is_of_one_instant():
    rules = f"""
        define Two(n: int) from B() as t and each A() as x {W} and each A(n + x.n = 1) as y {W}
        where n = x.n + y.n
    """
    detector = detector_of(rules, range(3_001, 3_004))  # each looks at nine million events
    assert [event.data["n"] for event in detector.finish()] == [1] * 6


def detector_of(rules: str, times: Iterable[int], engine: str = "cdp") -> Engine:
    """An engine that has 3,000 events, and others at the times given that end the search."""
    declared = "event A(n: int) event B(n: int)"
    detector = Engine(declared + rules, engine=engine, time_unit="us")
    detector.push([{"time": number, "n": number} for number in range(3_000)], type="A")
    detector.push([{"time": time, "n": 0} for time in times], type="B")
    return detector
