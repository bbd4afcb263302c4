"""Streams of events: a delivery is written in parts, since texts stand in it once."""

from random import Random

import numpy as np
import pytest
from event_batches import batch_of_events

from broker.monitoring import event_streams
from broker.monitoring.event_streams import parts_of
from matcher.formats.printing import json_lines
from matcher.model import Event, EventType
from routing.delivery.delivery_batch import DeliveryBatch
from routing.messages import Delivery

A, B = EventType.of("A", text="string"), EventType.of("B", n="int")


def delivery(seed: int, events: int) -> Delivery:
    """Events of two types, of which few have texts of their own."""
    random = Random(seed)
    texts = [letter * length for letter, length in zip("abcd", [1, 50, 300, 900], strict=True)]
    rows: dict[str, list[Event]] = {"A": [], "B": []}
    for n in range(1, events + 1):
        name = random.choice("AAB")
        data = {"text": random.choice(texts)} if name == "A" else {"n": n}
        rows[name].append(Event(name, n, "s", str(n), data, n))
    batches = [batch_of_events(kind, rows[kind.name]) for kind in (A, B) if rows[kind.name]]
    mixed = rows["A"] + rows["B"]
    order = np.array(sorted(range(events), key=lambda place: mixed[place].time), np.int64)
    return DeliveryBatch.of(tuple(batches), ((1,),) * len(batches), order).delivery


def lines(some: Delivery) -> list[bytes]:
    return json_lines(some.batches, some.order, full_cause=True, traces=some.traces).splitlines()


def characters(some: Delivery) -> int:
    """The characters of the texts of A."""
    texts = [event.data.get("text", "") for batch in some.batches for event in batch.events()]
    return sum(len(str(text)) for text in texts)


@pytest.mark.parametrize("seed", range(8))
def test_parts_are_the_delivery_and_none_is_long(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(event_streams, "PART_CHARACTERS", 1_000)
    whole = delivery(seed, 60)
    parts = [*parts_of(whole)]
    assert [line for part in parts for line in lines(part)] == lines(whole)
    assert all(characters(part) <= 1_000 + 900 for part in parts)
    assert len(parts) > 1


def test_a_delivery_with_short_texts_goes_as_it_is() -> None:
    whole = delivery(1, 60)
    assert [*parts_of(whole)] == [whole]
