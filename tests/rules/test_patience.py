"""Who pays for patterns, and what becomes of one whose payer has nothing left."""

from dataclasses import replace

import pytest

from matcher.model import EventType
from matcher.rows import batch_of
from rules import patience
from rules.engine.linking.interner import Interner
from rules.patience import BURST_S, SHARE, Patience, TooSlow
from rules.subscription import parse_subscription
from rules.terms import TextFunction

TEMP = EventType.of("Temp", area="string")


class Times:
    """A clock, and the time that a thread has run, which each look takes some of."""

    def __init__(self, look_s):
        self.now, self.worked, self.look_s = 0.0, 0.0, look_s

    def look(self, texts):
        self.worked += self.look_s
        return [True] * len(texts)


@pytest.fixture
def measured():
    times, made = Times(BURST_S), Patience()
    made.begin(lambda: times.now, lambda: times.worked)
    return made, times


def evaluate(made, times, pattern="x", payer="bob"):
    with made.paying(payer):
        return made.evaluate(pattern, ["a"], times.look)


def test_a_slow_pattern_is_evaluated_until_its_payer_has_nothing_left(measured):
    made, times = measured
    while True:
        try:
            evaluate(made, times)
        except TooSlow:
            break
    assert evaluate(made, times, payer="alice") == [True]
    times.look_s = 0.0
    assert evaluate(made, times, "another") == [True]
    with pytest.raises(TooSlow):
        evaluate(made, times)
    times.now += BURST_S / SHARE
    assert evaluate(made, times) == [True]


def test_whoever_has_used_twice_as_much_has_no_pattern_evaluated(measured):
    made, times = measured
    times.look_s = 3 * BURST_S
    evaluate(made, times)
    with pytest.raises(TooSlow):
        evaluate(made, times, "another")


def test_quick_patterns_and_who_does_not_pay_cost_nothing(measured):
    made, times = measured
    times.look_s = patience.FREE_S
    for _ in range(round(3 * BURST_S / patience.FREE_S)):
        evaluate(made, times)
    times.look_s = BURST_S
    for _ in range(5):
        assert evaluate(made, times, payer=None) == [True]


def test_texts_are_looked_at_a_part_at_a_time(measured):
    made, _ = measured
    parts = []

    def look(texts):
        parts.append(list(map(len, texts)))
        return list(map(len, texts))

    lengths = [4_000, 4_000, 4_000, 20_000, 1]
    with made.paying("bob"):
        assert made.evaluate("x", ["a" * one for one in lengths], look) == lengths
    assert parts == [[4_000, 4_000], [4_000], [20_000], [1]]


@pytest.fixture
def nothing_left(monkeypatch):
    """The account of bob is empty."""
    worked = iter(range(1, 10**6))
    made = Patience()
    made.begin(lambda: 0.0, lambda: 9.0 * next(worked))
    for module in ("rules.subscription", "rules.texts", "rules.engine.linking.interner"):
        monkeypatch.setattr(f"{module}.PATIENCE", made)
    with made.paying("bob"):
        made.evaluate("x", ["a"], list)
    return made


@pytest.mark.parametrize("count", [1, 3, 30])
def test_a_filter_matches_nothing_then_or_where_others_filter_again_all(nothing_left, count):
    found = parse_subscription('Temp(not (area matches "x"))', {"Temp": TEMP})
    rows = [{"area": f"a{n}"} for n in range(count)]
    batch = batch_of(TEMP, rows, source="s", times=range(count))
    none = replace(found, payer="bob")
    every = replace(found, payer="bob", otherwise=True)
    assert not none.mask(batch).any()
    assert nothing_left.take_paused() == [none]
    assert every.mask(batch).all()
    assert not nothing_left.take_paused()
    assert found.mask(batch).all()


def test_what_was_given_up_is_worked_out_at_the_cost_of_another_who_has_it_too(nothing_left):
    strings, pattern = Interner(), TextFunction("x")
    strings.payer = "bob"
    first = strings.use(pattern)
    code = strings.code("xy")
    assert strings.results[first * (len(strings.extents) // 2) + code] == -1
    assert not strings.is_paid(pattern, "bob")
    nothing_left.begin(lambda: 0.0, lambda: 0.0)
    assert strings.is_paid(pattern, "alice")
    assert strings.results[first * (len(strings.extents) // 2) + code] == 1


def test_what_was_given_up_is_worked_out_for_a_rule_that_comes_later(nothing_left):
    strings, pattern = Interner(), TextFunction("x")
    strings.payer = "bob"
    first = strings.use(pattern)
    code = strings.code("xy")
    assert strings.given_up == [pattern]
    assert strings.results[first * (len(strings.extents) // 2) + code] == -1
    nothing_left.begin(lambda: 1e6, lambda: 0.0)
    assert strings.use(pattern) == first
    assert strings.results[first * (len(strings.extents) // 2) + code] == 1
