"""Messages keep within the length of a frame, however long their texts are."""

import numpy as np
import pytest
from brokers import SCHEMAS, Network

from matcher.model import EventBatch, EventIds, StringColumn
from matcher.single import Row, Single
from routing.config import SessionConfig
from routing.errors import SessionError, WireError
from routing.evaluation.outbox import Outbox, message_sized
from routing.messages import Delivery, Flow, Forward, Publish, SubscriptionUpdate
from routing.network.tables.branch import Branch
from routing.outgoing import Outgoing
from routing.partition.forwarder import Forwarded
from routing.wire import FRAME_MAX, decode, encode
from routing.wire.extent import EXTENT_MAX, extent, extent_of
from routing.wire.frames import SAID_MAX

SMOKE = SCHEMAS["Smoke"]
MEGABYTE = 2**20


def smoke(*megabytes: float, character: str = "x") -> EventBatch:
    """Events in rooms whose names are so long."""
    count = len(megabytes)
    rooms = [character * round(one * MEGABYTE) + str(place) for place, one in enumerate(megabytes)]
    times = np.arange(count, dtype=np.int64)
    ids = EventIds(StringColumn.constant("s", count), times + 1)
    return EventBatch(SMOKE, times, ids, (StringColumn.from_strings(rooms),))


def frame(batches: tuple[EventBatch, ...]) -> int:
    return max(map(len, encode(Publish(batches, None))))


def test_what_is_joined_fits_into_frames_whatever_its_characters() -> None:
    for character in "xé€\N{GRINNING FACE}":
        batches = [smoke(3.5, 3.5, character=character), *[smoke(5, character=character)] * 3]
        parts = list(message_sized(batches))
        assert [len(part) for part in parts] == [1, 1, 1, 1]
        assert all(frame(part) <= FRAME_MAX for part in parts)
    assert [len(part) for part in message_sized([smoke(1)] * 20)] == [7, 7, 6]


def test_what_a_client_says_leaves_room_for_what_brokers_make_of_it() -> None:
    """A Publish as long as a frame became a Delivery that was longer, and ended who was sent it."""

    def noted(length: int) -> Single:
        return Single(SMOKE, Row(1, "s", 1, None, ("x" * length,)))

    beside = frame((noted(SAID_MAX // 2),)) - SAID_MAX // 2
    longest = encode(Publish((noted(SAID_MAX - beside),), None))
    assert max(map(len, longest)) == SAID_MAX
    decode(longest, by_client=True)
    with pytest.raises(WireError, match="a frame of more than"):
        decode(encode(Publish((noted(SAID_MAX - beside + 1),), None)), by_client=True)
    delivery = Delivery((noted(SAID_MAX - beside),), (tuple(range(10**6, 10**6 + 1_000)),))
    assert max(map(len, encode(delivery))) <= FRAME_MAX


def many(count: int) -> EventBatch:
    """So many events at once, of a rule that had waited for a mark, say."""
    times = np.arange(count, dtype=np.int64)
    ids = EventIds(StringColumn.constant("s", count), times + 1)
    return EventBatch(SMOKE, times, ids, (StringColumn.constant("kitchen", count),))


def numbers(messages: list[Flow] | list[Forward]) -> list[int]:
    for message in messages:
        assert max(map(len, encode(message))) <= FRAME_MAX
    batches = [batch for message in messages for batch in message.batches]
    return np.concatenate([batch.ids.sequence for batch in batches]).tolist()


@pytest.mark.parametrize("found", [many(200_000), smoke(*[0.5] * 100)])
def test_what_is_found_at_once_goes_to_a_neighbour_in_messages_that_fit(found: EventBatch) -> None:
    """A batch of 235,828 composite events ended the broker that was to send it."""
    branch = Branch("n")
    branch.hear(SubscriptionUpdate(("Smoke()",), 1))
    branch.index({"Smoke": SMOKE}, lambda name: ())
    branch.offer_detected((found,), None, {})
    branch.add_marks((("r", 7),))
    flows = branch.take_flows()
    assert numbers(flows) == list(range(1, len(found) + 1))
    assert [flow.marks for flow in flows] == [()] * (len(flows) - 1) + [(("r", 7),)]


def test_what_goes_up_at_once_goes_in_messages_that_fit() -> None:
    outbox, times = Outbox(), np.arange(200_000, dtype=np.int64)
    found = many(200_000)
    outbox.post(Forwarded((found,), (), {}), (("Smoke", 7),))
    forwards = outbox.take()
    assert numbers(forwards) == list(range(1, 200_001))
    assert all(one.fresh == len(one.batches) for one in forwards)
    assert [one.marks for one in forwards] == [()] * (len(forwards) - 1) + [(("Smoke", 7),)]
    outbox.post(Forwarded((), (), {}, ((found, times),)))
    waited = outbox.take()
    assert numbers(waited) == list(range(1, 200_001))
    assert b"".join(one.came or b"" for one in waited) == times.astype("<i8").tobytes()


def test_a_slice_is_as_long_as_its_own_texts() -> None:
    whole = smoke(*[0.5] * 10)
    assert extent(whole.take(slice(2, 4))) == pytest.approx(MEGABYTE, rel=0.01)
    assert extent(Single(SMOKE, Row(1, "s", 1, None, ("x" * 1_000,)))) == pytest.approx(1_073)


def test_a_client_cuts_what_it_publishes() -> None:
    outgoing = Outgoing(SessionConfig("s"))
    outgoing.begin(0, 16_384)
    outgoing.add([smoke(*[3.0] * 7)], 0.0, None, numbered=False)
    messages = [one for one in outgoing.take() if isinstance(one, Publish)]
    assert [sum(map(len, one.batches)) for one in messages] == [1, 2, 2, 2]
    assert all(extent_of(one.batches) <= EXTENT_MAX for one in messages)


def test_an_event_that_no_message_has_room_for_is_refused_where_it_is_published() -> None:
    outgoing = Outgoing(SessionConfig("s"))
    outgoing.begin(0, 16_384)
    for one in (smoke(1, 9), Single(SMOKE, Row(1, "s", 1, None, ("x" * 9 * MEGABYTE,)))):
        with pytest.raises(SessionError, match=r"an event of Smoke of 9,\d+,\d+ bytes: at most 8,"):
            outgoing.add([one], 0.0, None, numbered=False)
    assert outgoing.unacknowledged == 0


def test_what_waited_for_a_link_crosses_it_however_much_it_is() -> None:
    """What was kept was joined into one message, whose length the neighbour refused, for ever."""
    network = Network(2)
    network.connect("s", "b2").advertise([SMOKE])
    network.connect("k", "b1").subscribe("Smoke()")
    network.connect("slow", "b1").subscribe("Smoke()")
    network.run(0.5)
    wires = network.both_ways("b1", "b2")
    for wire in wires:
        wire.cut = True
    for place in range(6):
        text = "x" * 7 * MEGABYTE
        network.publish("s", f'Smoke@{place + 1}("{text}")', place + 2)
    network.run(8)
    for wire in wires:
        wire.cut = False
    network.take_lines()
    network.mesh.log.clear()
    network.run(8)
    found = [line[:14] for line in network.take_lines() if line.startswith("k:")]
    assert found == [f"k: s#{place} Smoke@{place}" for place in range(1, 7)]
    assert "link refused" not in [getattr(one, "text", "") for one in network.mesh.log]
