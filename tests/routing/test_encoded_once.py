"""What several sinks get is encoded once, and is no other's."""

from itertools import pairwise

from matcher.model import EventType
from matcher.single import Row, Single
from routing import wire
from routing.messages import Delivery

TEMP = EventType.of("Temp", room="string", value="float")


def delivery(number: int, subscription: int = 1) -> Delivery:
    row = Row(number, "s", number, None, (f"room {number}", float(number)))
    return Delivery((Single(TEMP, row),), ((subscription,),))


def test_deliveries_in_turn_are_each_their_own() -> None:
    first, second = delivery(1), delivery(2)
    told = [wire.encode(one) for one in (first, first, second, first, second, second)]
    assert [told[place] == told[0] for place in range(6)] == [True, True, False, True, False, False]
    read = [wire.decode(frames) for frames in told]
    rows = [next(one.batches[0].events()) for one in read if isinstance(one, Delivery)]
    assert [row.id for row in rows] == ["1", "1", "2", "1", "2", "2"]


def test_one_event_for_other_subscriptions_is_told_with_their_numbers() -> None:
    shared = delivery(1).batches
    told = [wire.encode(Delivery(shared, ((number,),))) for number in (1, 2, 1)]
    assert told[0] == told[2] != told[1]
    assert told[0][1] == told[1][1]  # the same body


def test_frames_are_their_takers_to_change() -> None:
    one = delivery(3)
    taken = [wire.encode(one) for _ in range(3)]
    taken[0].insert(0, b"peer")
    assert all(before is not after for before, after in pairwise(taken))
    assert taken[1] == taken[2] == wire.encode(one)
