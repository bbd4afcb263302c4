"""Events as entries of a log, and back."""

import pytest

from broker.errors import StoreDamaged
from broker.store import Append, Store
from broker.store.entries import entry_of, message_of, pack
from matcher.model import EventBatch, EventType
from matcher.rows import batch_of
from routing.messages import Heartbeat, Publish
from routing.wire import encode

TEMP = EventType.of("Temp", area="string", value="float")
SMOKE = EventType.of("Smoke", area="string")


def batch(event_type: EventType, rows, times, first: int) -> EventBatch:
    return batch_of(event_type, rows, source="hall", times=times, first_sequence=first)


def published(message: Publish):
    return [list(one.events()) for one in message.batches]


def test_a_message_is_an_entry_and_comes_back(tmp_path):
    temps = batch(TEMP, [{"area": "a", "value": 1.5}, {"area": "b", "value": 2.0}], [30, 10], 7)
    smoke = batch(SMOKE, [{"area": "c"}], [20], 9)
    message = Publish((temps, smoke), promise=10)
    made = entry_of("hall", message)
    assert (made.first_sequence, made.last_sequence, made.events) == (7, 9, 3)
    assert (made.types, made.first_time, made.last_time) == (("Temp", "Smoke"), 10, 30)
    with Store.open(tmp_path) as store:
        assert store.wait(store.write([Append(made)]), 30)
        (read,) = store.entries()
    assert message_of(read).promise == 10
    assert published(message_of(read)) == published(message)


def test_other_frames_are_no_events():
    other = entry_of("hall", Publish((batch(SMOKE, [{"area": "c"}], [20], 1),)))
    for frames in (b"", b"\0\0", b"\xff\0\0\0x", pack(encode(Heartbeat()))):
        changed = type(other)("hall", 1, 1, ("Smoke",), 20, 20, 1, frames, position=3)
        with pytest.raises(StoreDamaged, match="entry 3 of the log"):
            message_of(changed)
