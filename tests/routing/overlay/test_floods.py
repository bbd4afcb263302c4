"""When a broker forgets others, and whom it tells of them."""

from random import Random

from routing.messages import LinkState
from routing.overlay.config import OverlayConfig
from routing.overlay.floods import Floods


def test_at_the_time_that_is_named_somebody_is_forgotten() -> None:
    """Whatever the rounding: who forgot nobody at that time came again at once, for ever."""
    random = Random(7)
    for _ in range(300):
        floods = Floods(OverlayConfig("a", forget_s=random.uniform(5.0, 4_000.0)))
        floods.take("b", [LinkState("b", 1)])
        assert floods.forget({"a"}, random.uniform(-30.0, 10**6)) == []
        assert floods.forgets_at is not None
        assert floods.forget({"a"}, floods.forgets_at) == ["b"]
        assert floods.forgets_at is None


def test_neighbours_are_told_again_of_who_was_out_of_reach() -> None:
    floods = Floods(OverlayConfig("a"))
    floods.take("b", [LinkState("b", 1), LinkState("c", 1), LinkState("d", 1)])
    floods.join("e")
    list(floods.take_news())
    floods.forget({"a", "c"}, 0.0)
    assert not floods.has_news
    floods.forget({"a", "c", "d"}, 10.0)
    assert list(floods.take_news()) == [("e", (LinkState("d", 1),))]
    floods.forget({"a", "b", "c", "d"}, 3_595.0)
    assert list(floods.take_news()) == [("e", (LinkState("b", 1),))]


def test_a_broker_that_was_away_tells_everything_again() -> None:
    floods = Floods(OverlayConfig("a"))
    floods.join("b")
    floods.take("b", [LinkState("b", 1), LinkState("c", 1)])
    list(floods.take_news())
    before = floods.own.version
    floods.be_away()
    ((neighbour, states),) = floods.take_news()
    assert neighbour == "b"
    assert {one.origin for one in states} == {"a", "b", "c"}
    assert floods.own.version == before + 1
