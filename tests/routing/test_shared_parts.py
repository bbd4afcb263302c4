"""The part of a batch that a sink gets has the bytes of its rows; sinks of the same share it."""

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing import wire
from routing.config import NodeConfig
from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.sinks import Sinks
from routing.delivery.subscriptions import delivery_batch_of
from routing.deployment import Deployments
from routing.messages import Delivery, Subscribe

SIZE = 6
READING = EventType.of("Reading", area="string", n="int")


def batch(has_digests: bool = False) -> EventBatch:
    areas = StringColumn.from_strings([f"a{number % 2}" for number in range(SIZE)])
    digests = np.arange(2 * SIZE, dtype=np.uint64).reshape(SIZE, 2) if has_digests else None
    ids = EventIds(StringColumn.constant("s", SIZE), np.arange(SIZE), digest=digests)
    return EventBatch(READING, np.arange(SIZE), ids, (areas, np.arange(SIZE)))


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("has_digests", [False, True])
@pytest.mark.parametrize("rows", [[0], [3], [5], [1, 4]])
def test_a_part_has_the_bytes_of_its_rows(
    rows: list[int], has_digests: bool, is_late: bool
) -> None:
    whole, chosen = batch(has_digests), np.array(rows)
    part = delivery_batch_of((whole,), ([((7,), chosen)],), None, is_late)
    assert part is not None
    plain = DeliveryBatch.of((whole.take(chosen),), ((7,),), None, is_late)
    assert len(part) == len(rows)
    for frame, expected in zip(
        wire.encode(part.delivery), wire.encode(plain.delivery), strict=True
    ):
        assert bytes(frame) == bytes(expected)


def test_sinks_that_want_the_same_rows_share_them() -> None:
    sinks = Sinks(NodeConfig(name="b1"), Deployments(NodeConfig(name="b1")))
    for peer, text in ((b"1", "n > 3"), (b"2", "n >= 4"), (b"3", "n = 2"), (b"4", "n = 2")):
        sinks.subscribe(peer, "", Subscribe(1, 1, f"Reading({text})"), {"Reading": READING})
        sinks.subscribe(peer, "", Subscribe(2, 2, f"Reading({text}, n < 9)"), {"Reading": READING})
    for sink in sinks:
        sink.grant(sink.peer, 100, 100)
    sinks.offer((batch(),), None)
    got: list[Delivery | None] = [sink.take(100) for sink in sinks]
    assert got[0] is got[1]
    assert got[2] is got[3]
    assert [len(one) for one in got if one is not None] == [2, 2, 1, 1]
