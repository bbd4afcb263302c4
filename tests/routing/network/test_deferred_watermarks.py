"""What one neighbour is told of marks, and what it is owed
(routing.network.tables.deferred_watermarks).
"""

from matcher.model import TIME_MIN
from routing.network.tables.deferred_watermarks import DeferredWatermarks


def owed(*names: str) -> DeferredWatermarks:
    made = DeferredWatermarks()
    made.arrange(names)
    return made


def test_a_mark_is_told_until_it_has_passed_what_was_sent() -> None:
    made = owed("r")
    assert made.send(10) == ()
    assert made.learn({"r": 5}) == (("r", 5),)
    assert made.learn({"r": 10}) == (("r", 10),), "what was sent is not before it"
    assert made.learn({"r": 12}) == (("r", 12),)
    assert made.learn({"r": 15}) == (), "nobody waits for that"
    assert made.learn({"unwanted": 15}) == ()


def test_what_is_owed_goes_with_what_is_sent_next() -> None:
    made = owed("r", "s")
    assert made.learn({"r": 12, "s": 20}) == (("r", 12), ("s", 20))
    assert made.learn({"r": 15}) == made.learn({"s": 25}) == ()
    assert made.learn({"r": 16}) == ()
    assert made.send(12) == (("r", 16),), "that of s is beyond it as it is"
    assert made.send(12) == ()
    assert made.take_all() == (("s", 25),)
    assert made.take_all() == ()


def test_a_mark_is_awaited_until_it_has_passed_what_was_sent() -> None:
    made = owed("r", "s")
    made.send(10)
    made.learn({"r": 5, "s": 12})
    assert made.awaits({"r", "s"}, every=False)
    assert not made.awaits({"s"}, every=False), "it has passed 10"
    assert made.awaits({"s"}, every=True)
    assert not made.awaits({"unwanted"}, every=True)
    made.learn({"r": 6}, ended={"r"})
    assert not made.awaits({"r"}, every=True), "of a rule that has ended nothing is told"


def test_every_mark_is_told_where_others_may_wait_for_it() -> None:
    made = owed("r")
    assert made.learn({"r": 5}) == (("r", 5),)
    assert made.learn({"r": 6}) == ()
    assert made.learn({"r": 7}, every=True) == (("r", 7),)
    assert made.learn({"r": 7}, every=True) == (), "it is no news"


def test_of_a_rule_that_has_ended_nothing_is_owed() -> None:
    made = owed("r")
    assert made.learn({"r": 5}) == (("r", 5),)
    assert made.learn({"r": 6}) == ()
    assert [name for name, _ in made.learn({"r": 7}, ended={"r"})] == ["r", "r"]
    assert made.learn({"r": 8}, ended={"r"}) == made.send(9) == made.take_all() == ()
    assert made.learn({"r": 8}) == (("r", 8),)


def test_when_rules_begin_anew_marks_are_told_up_to_the_front() -> None:
    made = owed("r", "s")
    made.learn({"r": 50, "s": 50})
    assert made.learn({"s": 60}) == ()
    made.begin_anew(40)
    assert made.take_all() == (), "what was owed is of the past"
    assert made.learn({"r": 30}) == (("r", 30),)
    assert made.learn({"r": 41}) == (("r", 41),), "what is held from before lies before the front"
    assert made.learn({"r": 42}) == ()
    assert owed("r").send(TIME_MIN) == ()


def test_what_is_wanted_no_more_is_forgotten() -> None:
    made = owed("r", "s")
    made.learn({"r": 5, "s": 5})
    made.learn({"r": 6, "s": 6})
    made.arrange(["s"])
    assert made.take_all() == (("s", 6),)
    made.arrange(["r", "s"])
    assert made.learn({"r": 4}) == (("r", 4),), "it is told anew"
