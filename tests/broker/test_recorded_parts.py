"""Recorded events that parts publish to a broker with a store, which is killed: each stays once."""

import numpy as np

from broker import Publisher
from broker.process import BrokerProcess
from broker.store import Reader
from broker.store.entries import message_of
from matcher.model import Causes, EventBatch, EventIds, EventType, StringColumn

MOVED = EventType.of("Moved", value="int")
COUNT = 600


def recorded() -> EventBatch:
    """Events of two sources, of which every third has an id besides its number."""
    numbers = np.arange(COUNT)
    sources = StringColumn.from_strings([("gate", "hall")[n % 2] for n in range(COUNT)])
    has_id = numbers % 3 == 0
    texts = StringColumn.from_strings([f"g{n}" if n % 3 == 0 else "" for n in range(COUNT)])
    causes = Causes(
        np.arange(COUNT + 1), EventIds(sources, numbers, texts), ~np.ones(COUNT, np.bool_), has_id
    )
    own = EventIds(StringColumn.constant("", COUNT), numbers)
    return EventBatch(MOVED, numbers * 1_000, own, (numbers,), causes)


def test_recorded_events_of_parts_are_known_to_a_broker_that_was_killed(tmp_path):
    """A broker that had got them from several sources in one message did not start again, and one
    that had got them from one source took all of them twice.
    """
    where = {}
    for _ in range(2):
        with BrokerProcess("--engine", "naive", "--data", str(tmp_path), **where) as broker:
            for part in ("f#part-0", "f#part-1"):
                publisher = Publisher(broker.endpoint, name=part, types=[MOVED], live=False)
                publisher.publish_batch(recorded())
                publisher.wait(60)
                publisher.pause()
            where = {"listen": (broker.endpoint,)}
            broker.kill()
    with Reader.open(tmp_path) as reader:
        entries = [*reader.at([entry.position for entry in reader.outlines()])]
    batches = [batch for entry in entries for batch in message_of(entry).batches]
    events = [event for batch in batches for event in batch.events()]
    assert len(events) == len({(one.source, str(one.id)) for one in events}) == COUNT
