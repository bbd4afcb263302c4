"""A broker's ids are known after a restart, also of events that no rule needs any more."""

import sqlite3
import time
from contextlib import closing

from event_batches import batch_of_events

from broker.node_store import Keeping, StoreChoices
from matcher.model import Event, EventType
from routing.durability.records import KINDS
from routing.effects import Store
from routing.storage import Append, Put, Trim

TEMP = EventType.of("Temp", n="int")


def entry(position):
    event = Event("Temp", position, "plant", f"i{position}", {"n": position}, position)
    return Append(position, (batch_of_events(TEMP, [event]),))


def needed_from(folder):
    """The first entry of a store that rules need, as it is noted."""
    with closing(sqlite3.connect(folder / "broker.db")) as kept:
        rows = kept.execute("SELECT number FROM facts WHERE name = 'reach'").fetchall()
    return rows[0][0] if rows else 0


def test_a_store_gives_what_no_rule_needs_apart_from_what_rules_need(tmp_path):
    store = Keeping(StoreChoices(tmp_path))
    store.ask(Store(1, (Put(KINDS[0], "k", b""), *map(entry, range(1, 10)), Trim(7))))
    until = time.monotonic() + 60
    while needed_from(tmp_path) != 7:
        assert time.monotonic() < until
        store.take_kept()
        time.sleep(0.005)
    store.close()
    store = Keeping(StoreChoices(tmp_path))
    contents = store.read()
    needed = [position for position, *_ in contents.entries]
    earlier = [batch.event(0).id for (batch,) in contents.earlier]
    store.close()
    assert needed == [7, 8, 9]
    assert earlier == [f"i{position}" for position in range(1, 7)]
