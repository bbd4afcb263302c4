"""What a client of a durable sink gives back: it comes again, later, or becomes a dead letter."""

from random import Random

import pytest
from alone import TEMP, Alone, hello, values, with_source

from routing.messages import (
    Advertise,
    Code,
    Confirmed,
    Credit,
    DealtWith,
    Delivery,
    Goodbye,
    Nack,
    Refused,
    RemoveDurable,
    ResendDurable,
    ShowQueue,
    Subscribe,
    Unsubscribe,
)

BILLING = Subscribe(1, 1, "Temp()", durable="billing")
DEAD = Subscribe(1, 1, "Temp()", durable="billing.dead")


def with_events(count: int, peer: bytes = b"k") -> Alone:
    """Billing was given so many events."""
    alone = with_source()
    attach(alone, peer)
    alone.publish(b"s", count)
    assert values(alone.take(peer, Delivery)) == list(range(1, count + 1))
    return alone


def attach(alone: Alone, peer: bytes, asked: Subscribe = BILLING, credit: int = 1_000) -> None:
    alone.turn((peer, hello()), (peer, asked), (peer, Credit(credit)))


def durable(alone: Alone) -> dict[str, tuple[int, int, int, int]]:
    """By name of each durable sink: events that wait, that were given, up to where all is
    acknowledged, and the last.
    """
    told = alone.broker.status(alone.simulation.now)["durable"]
    words = "queued", "given", "acknowledged", "last"
    return {one["name"]: tuple(one[word] for word in words) for one in told}


def test_it_comes_again_at_once_marked_and_under_its_number() -> None:
    alone = with_events(5)
    alone.turn((b"k", Nack(3, 3)))
    (again,) = alone.take(b"k", Delivery)
    assert (values([again]), again.number, again.again) == ([3], 3, True)
    assert durable(alone) == {"billing": (0, 5, 0, 5)}
    alone.turn((b"k", DealtWith(1, 5)))
    assert durable(alone) == {"billing": (0, 0, 5, 5)}
    assert alone.records() == {"durable": 1, "queue/billing": 0}


def test_it_comes_again_after_its_delay_though_nothing_else_happens() -> None:
    alone = with_events(5)
    alone.turn((b"k", DealtWith(1, 1)), (b"k", Nack(2, 3, 20.0)), (b"k", Nack(4, 4, 5.0)))
    assert durable(alone)["billing"] == (3, 1, 1, 5)
    alone.publish(b"s", 1)
    assert values(alone.take(b"k", Delivery)) == [6]
    alone.pass_time(6.0)
    assert values(alone.take(b"k", Delivery)) == [4]
    alone.turn((b"k", DealtWith(4, 6)))
    alone.pass_time(13.0)
    assert not alone.take(b"k", Delivery)
    assert durable(alone)["billing"] == (2, 0, 1, 6)
    alone.pass_time(2.0)
    assert values(alone.take(b"k", Delivery)) == [2, 3]
    alone.turn((b"k", DealtWith(2, 3)))
    assert durable(alone)["billing"] == (0, 0, 6, 6)


def test_a_client_without_credit_is_waited_for() -> None:
    alone = with_source()
    attach(alone, b"k", credit=2)
    alone.publish(b"s", 2)
    alone.turn((b"k", Nack(1, 2, 1.0)))
    alone.pass_time(5.0)
    assert values(alone.take(b"k", Delivery)) == [1, 2]
    alone.turn((b"k", Credit(2)))
    assert values(alone.take(b"k", Delivery)) == [1, 2]


def test_it_goes_to_another_client_of_the_name_too() -> None:
    alone = with_source()
    attach(alone, b"k", credit=1)
    alone.publish(b"s", 1)
    attach(alone, b"l")
    alone.turn((b"k", Nack(1, 1)))
    assert values(alone.take(b"l", Delivery)) == [1]


def test_what_a_client_was_not_given_or_has_dealt_with_it_cannot_give_back() -> None:
    alone = with_events(5)
    attach(alone, b"l")
    alone.turn((b"k", DealtWith(2, 2)), (b"l", Nack(1, 5)), (b"k", Nack(2, 2)), (b"k", Nack(9, 12)))
    assert not alone.take(b"k", Delivery) + alone.take(b"l", Delivery)
    alone.turn((b"x", hello()), (b"x", Nack(1, 1)))
    (gone,) = alone.take(b"x", Goodbye)
    assert gone.code is Code.PROTOCOL


def test_what_was_given_as_often_as_it_may_be_is_a_dead_letter_and_sent_again_on_request() -> None:
    alone = with_events(3)
    for _ in range(2):
        alone.turn((b"k", Nack(2, 2, 0.0, 3)))
        assert values(alone.take(b"k", Delivery)) == [2]
    alone.turn((b"k", Nack(2, 2, 0.0, 3)))
    assert not alone.take(b"k", Delivery)
    assert durable(alone) == {"billing": (0, 2, 0, 3), "billing.dead": (1, 0, 0, 1)}
    alone.turn((b"k", DealtWith(1, 3)))
    assert durable(alone)["billing"] == (0, 0, 3, 3)
    alone.publish(b"s", 2)
    assert values(alone.take(b"k", Delivery)) == [4, 5]
    assert durable(alone)["billing.dead"] == (1, 0, 0, 1), "nothing else comes to dead letters"
    alone.turn((b"m", hello()), (b"m", ShowQueue(1, "billing.dead")))
    (shown,) = alone.take(b"m", Confirmed)
    assert [one["data"] for one in shown.detail["events"]] == [{"n": 2}]
    alone.fail()
    assert durable(alone)["billing.dead"] == (1, 0, 0, 1)
    alone.turn((b"m", hello()), (b"m", ResendDurable(2, "billing")))
    (resent,) = alone.take(b"m", Confirmed)
    assert resent.detail == {"queued": 1}
    attach(alone, b"k")
    alone.turn()
    assert values(alone.take(b"k", Delivery)) == [4, 5, 2]
    alone.turn((b"k", DealtWith(1, 9)))
    assert alone.records() == {"durable": 2, "queue/billing": 0, "queue/billing.dead": 0}


def test_dead_letters_are_read_as_any_durable_sink_by_the_filters_that_they_came_for() -> None:
    alone = with_events(4)
    alone.turn((b"k", Nack(2, 3, 0.0, 1)))
    attach(alone, b"d", DEAD)
    (dead,) = alone.take(b"d", Delivery)
    assert (values([dead]), dead.number, dead.subscriptions) == ([2, 3], 2, ((1,),))
    alone.turn((b"d", DealtWith(1, 2)))
    assert durable(alone)["billing.dead"] == (0, 0, 2, 2)
    alone.turn((b"e", hello()), (b"e", Subscribe(1, 1, "Temp(n > 7)", durable="billing.dead")))
    alone.turn((b"f", hello()), (b"f", Subscribe(1, 1, "Temp()", durable="other.dead")))
    refused = alone.take(b"e", Refused) + alone.take(b"f", Refused)
    assert [one.code for one in refused] == [Code.UNKNOWN, Code.UNKNOWN]
    alone.turn((b"d", Goodbye()), (b"m", hello()), (b"m", RemoveDurable(1, "billing.dead")))
    assert alone.take(b"m", Confirmed)
    alone.turn((b"k", Nack(1, 1, 0.0, 1)))
    assert durable(alone)["billing.dead"] == (1, 0, 0, 1)


def test_while_dead_letters_have_no_room_it_comes_again() -> None:
    alone = Alone()
    alone.turn((b"s", hello("s")))
    alone.turn((b"s", Advertise(1, (TEMP,))))
    attach(alone, b"k", Subscribe(1, 1, "Temp()", durable="billing", limit=2))
    alone.publish(b"s", 3)
    assert values(alone.take(b"k", Delivery)) == [1, 2, 3]
    for number in (1, 2, 3):
        alone.turn((b"k", Nack(number, number, 0.0, 1)))
    assert durable(alone)["billing.dead"] == (2, 0, 0, 2)
    alone.pass_time(11.0)
    assert values(alone.take(b"k", Delivery)) == [3]


def test_a_filter_that_ends_takes_what_was_given_back_with_it() -> None:
    alone = with_events(2)
    alone.turn((b"k", Nack(1, 2, 50.0)), (b"k", Unsubscribe(2, 1)))
    assert durable(alone)["billing"] == (0, 0, 2, 2)
    alone.pass_time(60.0)
    assert not alone.take(b"k", Delivery)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_given_back_each_event_is_dealt_with_once_or_dead(seed: int) -> None:
    """Clients come, go, acknowledge and give back at random; the broker is killed now and then."""
    random, alone = Random(seed), with_source()
    held: dict[bytes, list[int]] = {}
    done: set[int] = set()
    most = 3

    def take() -> None:
        for peer, numbers in held.items():
            for one in alone.take(peer, Delivery):
                numbers += range(one.number - len(one) + 1, one.number + 1)
                assert values([one]) == list(range(one.number - len(one) + 1, one.number + 1))
                assert not done.intersection(numbers), (seed, "it was dealt with")

    for step in range(150):
        peer = random.choice((b"k", b"l", b"m"))
        what = random.random()
        if what < 0.3:
            alone.publish(b"s", random.randint(1, 5))
        elif peer not in held:
            held[peer] = []
            attach(alone, peer, credit=50)
        elif what < 0.36:
            alone.turn((peer, Goodbye()))
            alone.take(peer, Delivery)
            del held[peer]
        elif what < 0.38:
            alone.fail()
            held.clear()
            alone.turn((b"s", hello("s")), (b"s", Advertise(step, (TEMP,))))
        elif held[peer]:
            number = random.choice(held[peer])
            held[peer].remove(number)
            if what < 0.7:
                done.add(number)
                alone.turn((peer, DealtWith(number, number)), (peer, Credit(1)))
            else:
                delay_s = random.choice((0.0, 0.5, 30.0))
                alone.turn((peer, Nack(number, number, delay_s, most)), (peer, Credit(1)))
        else:
            alone.pass_time(random.choice((0.1, 1.0, 40.0)))
        take()
    for peer in held:
        alone.turn((peer, Goodbye()))
    attach(alone, b"z", credit=10_000)
    alone.pass_time(100.0)
    rest = values(alone.take(b"z", Delivery))
    attach(alone, b"d", DEAD, 10_000) if "billing.dead" in durable(alone) else None
    dead = values(alone.take(b"d", Delivery))
    assert sorted([*done, *rest, *dead]) == list(range(1, alone.published + 1)), seed


def test_a_sink_is_removed_with_its_dead_letters_and_not_while_some_wait() -> None:
    """Else another user's sink of its name would get them, by filters that it never had."""
    alone = with_events(1)
    alone.turn((b"k", Nack(1, 1, 0.0, 1)), (b"k", Goodbye(Code.CLOSING, "")))
    alone.turn((b"m", hello()), (b"m", RemoveDurable(1, "billing")))
    (refused,) = alone.take(b"m", Refused)
    assert refused.reason == (
        "1 dead letters of 'billing' wait: resend them, or remove 'billing.dead' first"
    )
    alone.turn((b"m", RemoveDurable(2, "billing.dead")), (b"m", RemoveDurable(3, "billing")))
    assert len(alone.take(b"m", Confirmed)) == 2
    assert durable(alone) == {}


def test_dead_letters_that_are_all_read_go_with_their_sink() -> None:
    alone = with_events(1)
    alone.turn((b"k", Nack(1, 1, 0.0, 1)), (b"k", Goodbye(Code.CLOSING, "")))
    attach(alone, b"r", DEAD)
    alone.turn((b"m", hello()), (b"m", RemoveDurable(1, "billing")))
    assert "1 clients are attached to 'billing.dead'" in str(alone.take(b"m", Refused))
    alone.turn((b"r", DealtWith(1, 1)), (b"r", Goodbye(Code.CLOSING, "")))
    alone.turn((b"m", RemoveDurable(2, "billing")))
    assert durable(alone) == {}
    assert not any(alone.records().values())
