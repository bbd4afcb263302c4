"""What a durable sink has given to a client, and what the client has dealt with of it."""

from event_batches import batch_of_events

from matcher.model import Event, EventType
from routing.given import GAPS_MAX, Given
from routing.messages import Delivery

TEMP = EventType.of("Temp", n="int")


def delivery(first: int, last: int, *, again: bool = False) -> Delivery:
    events = [Event("Temp", n, "s", str(n), {"n": n}, n) for n in range(first, last + 1)]
    return Delivery((batch_of_events(TEMP, events),), ((1,),), number=last, again=again)


def taken(given: Given, said: Delivery) -> tuple[list[int], list[tuple[int, int]]]:
    """The values that are new, and the numbers that are told again."""
    new, unheard = given.take(said)
    return ([] if new is None else new.batches[0].columns[0].tolist()), list(unheard)


def test_all_up_to_an_event_is_what_was_given_before_it() -> None:
    given = Given()
    for first, last in ((1, 3), (6, 8), (4, 5), (9, 9)):
        given.take(delivery(first, last, again=first == 4))
    assert list(given.deal_with_all(2)) == [(1, 2)]
    assert list(given.deal_with_all(2)) == []
    assert list(given.deal_with_all(7)) == [(3, 3), (6, 7)]
    assert list(given.deal_with_all(4)) == [(4, 4), (8, 8)]
    assert list(given.deal_with_all(9)) == [(5, 5), (9, 9)]


def test_one_event_is_dealt_with_once() -> None:
    given = Given()
    given.take(delivery(1, 4))
    given.take(delivery(5, 6))
    assert [given.deal_with(number) for number in (5, 2, 2, 7, 0)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert list(given.deal_with_all(3)) == [(1, 3)]
    assert [given.deal_with(number) for number in (3, 4, 6)] == [False, True, True]
    assert list(given.deal_with_all(6)) == []


def test_what_comes_again_is_left_out_and_what_was_dealt_with_is_told_again() -> None:
    given = Given()
    given.take(delivery(2, 3))
    given.take(delivery(5, 5))
    assert given.deal_with(3)
    assert taken(given, delivery(1, 6, again=True)) == ([1, 4, 6], [(3, 3)])
    assert list(given.deal_with_all(4)) == [(1, 5)], "2 and 5 came first"
    assert taken(given, delivery(1, 6, again=True)) == ([], [(1, 5)])
    assert taken(given, delivery(7, 8, again=True)) == ([7, 8], [])


def test_a_client_that_has_every_second_event_forgets_the_oldest() -> None:
    given = Given()
    for number in range(2, 2 * GAPS_MAX + 12, 2):
        given.take(delivery(number, number))
        assert given.deal_with(number)
    assert taken(given, delivery(1, 11, again=True)) == (list(range(1, 12)), [])
    assert taken(given, delivery(12, 15, again=True)) == ([13, 15], [(12, 12), (14, 14)])


def test_numbers_that_come_anew_are_another_sinks() -> None:
    given = Given()
    given.take(delivery(1, 6))
    assert list(given.deal_with_all(6)) == [(1, 6)]
    assert taken(given, delivery(1, 2)) == ([1, 2], [])
    assert given.deal_with(2)
    assert taken(given, delivery(1, 3, again=True)) == ([3], [(2, 2)])
    assert list(given.deal_with_all(3)) == [(1, 3)]


def test_a_program_acknowledges_all_up_to_what_it_gave_back() -> None:
    given = Given()
    given.take(delivery(1, 4))
    assert given.give_back(4)
    assert not given.give_back(4)
    assert list(given.deal_with_all(4)) == [(1, 3)]
    assert not given.deal_with(4)
