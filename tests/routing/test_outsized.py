"""What would take more memory or time than the message has bytes costs its sender the link."""

import numpy as np
import pytest
from alone import TEMP, Alone, hello, values, with_source
from event_batches import batch_of_events

from matcher.model import Event, EventBatch, EventIds, StringColumn
from routing import wire
from routing.messages import Credit, Delivery, Goodbye, Publish, Stay, Stays, Subscribe
from routing.messages.values import ID_MAX
from routing.wire.codec import LINK_HELLO, prefix


def published(alone: Alone, length: int, count: int) -> list[Goodbye]:
    """Publish events that share an id of that length; gives what the source is told of its end."""
    events = [Event("Temp", n * 1_000, "s", str(n), {"n": n}, n) for n in range(1, count + 1)]
    batch = batch_of_events(TEMP, events)
    ids = StringColumn(np.zeros(count, np.int32), ("x" * length,))
    known = EventIds(batch.ids.source, batch.ids.sequence, ids)
    batch = EventBatch(batch.type, batch.time, known, batch.columns)
    alone.turn((b"s", Publish((batch,))))
    return alone.take(b"s", Goodbye)


@pytest.mark.parametrize("count", [1, 3])
def test_an_id_beyond_the_bound_costs_its_sender_the_link(count: int) -> None:
    (goodbye,) = published(with_source(), ID_MAX + 1, count)
    assert f"an id of {ID_MAX + 1} characters: {ID_MAX} at most" in goodbye.reason


def test_an_id_as_long_as_may_be_is_taken() -> None:
    alone = with_source()
    alone.turn((b"c", hello()), (b"c", Subscribe(1, 1, "Temp()")), (b"c", Credit(10)))
    assert not published(alone, ID_MAX, 1)
    assert values(alone.take(b"c", Delivery)) == [1]


def test_a_message_of_brokers_is_not_read_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kind that is one, whatever follows."""
    packet = LINK_HELLO + 1
    kinds = [packet, *(codec.kind for codec in wire.CODECS if codec.kind >= LINK_HELLO)]
    assert len(kinds) > 10
    for kind in kinds:
        alone = with_source()
        alone.broker.receive_frames(b"s", [prefix(kind) + b"\xff" * 10], alone.simulation.now)
        alone.turn()
        (goodbye,) = alone.take(b"s", Goodbye)
        assert "a message among brokers, from a client" in goodbye.reason


def test_all_accounts_go_in_messages_that_frames_hold() -> None:
    stays = [Stay(n, "b1", True, f"{n:05}" + "\U0001f600" * 250) for n in range(40_000)]
    parts = [*Stays.in_parts(stays)]
    assert [stay for part in parts for stay in part.stays] == stays
    sizes = [sum(map(len, wire.encode(part))) for part in parts]
    assert 1 < len(parts) < 20
    assert max(sizes) < wire.FRAME_MAX // 4


@pytest.mark.parametrize("stays", [[], [Stay(1, "b1", True, "s")]])
def test_few_accounts_are_one_message_and_none_are_none(stays: list[Stay]) -> None:
    assert [part.stays for part in Stays.in_parts(stays)] == ([tuple(stays)] if stays else [])
