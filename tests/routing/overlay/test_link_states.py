"""When a broker forgets others, and whom it tells of them."""

from random import Random

from routing.messages import LinkState
from routing.overlay.config import OverlayConfig
from routing.overlay.link_states import LinkStateDatabase


def test_at_the_time_that_is_named_somebody_is_forgotten() -> None:
    """Whatever the rounding: who forgot nobody at that time came again at once, for ever."""
    random = Random(7)
    for _ in range(300):
        database = LinkStateDatabase(OverlayConfig("a", forget_s=random.uniform(5.0, 4_000.0)))
        database.take("b", [LinkState("b", 1)])
        assert database.forget({"a"}, random.uniform(-30.0, 10**6)) == []
        assert database.forgets_at is not None
        assert database.forget({"a"}, database.forgets_at) == ["b"]
        assert database.forgets_at is None


def test_neighbours_are_told_again_of_who_was_out_of_reach() -> None:
    database = LinkStateDatabase(OverlayConfig("a"))
    database.take("b", [LinkState("b", 1), LinkState("c", 1), LinkState("d", 1)])
    database.join("e")
    list(database.take_news())
    database.forget({"a", "c"}, 0.0)
    assert not database.has_news
    database.forget({"a", "c", "d"}, 10.0)
    assert list(database.take_news()) == [("e", (LinkState("d", 1),))]
    database.forget({"a", "b", "c", "d"}, 3_595.0)
    assert list(database.take_news()) == [("e", (LinkState("b", 1),))]


def test_a_broker_that_was_away_tells_everything_again() -> None:
    database = LinkStateDatabase(OverlayConfig("a"))
    database.join("b")
    database.take("b", [LinkState("b", 1), LinkState("c", 1)])
    list(database.take_news())
    before = database.own.version
    database.be_away()
    ((neighbour, states),) = database.take_news()
    assert neighbour == "b"
    assert {one.origin for one in states} == {"a", "b", "c"}
    assert database.own.version == before + 1
