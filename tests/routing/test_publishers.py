"""What the local sources of a broker say of their types, and whether anybody waits for them."""

from matcher.model import TIME_MIN
from routing.evaluation.publishers import Publishers
from routing.serving.sources import FAR, Source, SourceState
from routing.watermarks.ends import CLOSED


def source(name: str, promise: int, *types: str) -> Source:
    return Source(name, promise=promise, floors=dict.fromkeys(types, 5))


def with_two() -> tuple[Publishers, Source, Source]:
    publishers, one, other = Publishers(), source("s", 10, "A", "B"), source("t", 20, "B")
    publishers.add(one, ["A", "B"])
    publishers.add(other, ["B"])
    return publishers, one, other


def test_a_type_has_the_least_promise_of_those_who_publish_it() -> None:
    publishers, one, _ = with_two()
    assert publishers.say() == {"A": 10, "B": 10}
    one.promise = TIME_MIN
    publishers.touch()
    assert publishers.say() == {"A": 5, "B": 5}  # beyond the marks that it found


def test_nothing_is_said_unless_it_may_be_news() -> None:
    publishers, _, _ = with_two()
    said = publishers.say()
    assert publishers.say() is None
    assert publishers.marks is said


def test_a_type_that_nobody_publishes_any_more_is_closed() -> None:
    publishers, one, other = with_two()
    one.standing = SourceState.CLOSED
    publishers.touch()
    assert publishers.say() == {"A": CLOSED, "B": 20}
    other.promise = FAR
    publishers.touch()
    assert publishers.say() == {"A": CLOSED, "B": CLOSED}
    assert list(publishers.open) == []
    assert publishers.types == ["A", "B"]


def test_a_type_that_was_asked_for_waits_until_all_is_answered() -> None:
    publishers, _, _ = with_two()
    publishers.expect(["A", "C"])
    publishers.expect(["A"])
    assert publishers.say() == {"A": TIME_MIN, "B": 10, "C": TIME_MIN}
    publishers.expect_no_more(["A", "C"])
    assert publishers.say() == {"A": TIME_MIN, "B": 10}
    publishers.expect_nothing()
    assert publishers.say() == {"A": 10, "B": 10}


def test_who_has_closed_is_told_once() -> None:
    publishers, one, _ = with_two()
    assert not publishers.leaving
    publishers.leave(one)
    assert publishers.leaving
    assert [one.name for one in publishers.take_leaving()] == ["s"]
    assert not publishers.leaving
    publishers.leave(one)
    assert not publishers.leaving


def test_of_sources_that_have_closed_their_types_are_kept_and_nothing_else() -> None:
    publishers, one, other = with_two()
    for source in (one, other):
        source.standing = SourceState.CLOSED
        assert publishers.drop(source)
        assert not publishers.drop(source)
    publishers.touch()
    assert publishers.say() == {"A": CLOSED, "B": CLOSED}
    assert publishers.types == ["A", "B"]
    assert not list(publishers.of("A"))


def test_what_the_plan_knows_of_and_nobody_publishes_is_closed_or_waited_for() -> None:
    publishers, _, _ = with_two()
    publishers.expect(["C"])
    publishers.follow(["A", "C", "D", "E"], ["D"])
    assert publishers.types == ["A", "B", "C", "D", "E"]
    assert publishers.say() == {"A": 10, "B": 10, "C": TIME_MIN, "D": TIME_MIN, "E": CLOSED}
    publishers.add(source("d", 30, "D"), ["D"])
    publishers.follow(["A", "B", "D", "E"], [])
    publishers.expect_no_more(["C"])
    assert publishers.say() == {"A": 10, "B": 10, "C": CLOSED, "D": 30, "E": CLOSED}
