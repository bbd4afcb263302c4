"""The checksum is a function of the set of events, and of all of it (docs/files.md)."""

import random

import numpy as np
from event_batches import batch_of_events
from msgspec import structs

from matcher.checksum import GOLDEN, checksum, event_hashes, text_number
from matcher.model import Event, EventBatch, EventIds, EventType, StringColumn

MIXED = EventType.of("Mixed", i="int", f="float", b="bool", s="string")
EVENT = Event("Mixed", 5, "src", "x", {"i": -1, "f": 1.5, "b": True, "s": "é"}, 1)


def sum_of(*events: Event) -> int:
    return checksum(batch_of_events(MIXED, events))


def mix(number: int) -> int:
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


def test_it_is_what_the_documentation_says() -> None:
    numbers = [
        5,
        text_number("src"),
        text_number("x"),
        2**64 - 1,
        0x3FF8 << 48,
        1,
        text_number("é"),
    ]
    expected = text_number("Mixed")
    for number in numbers:
        expected = mix((expected * GOLDEN + number) % 2**64)
    assert sum_of(EVENT) == expected


def test_neither_order_nor_batches_change_it() -> None:
    seed = 11
    chance = random.Random(seed)
    events = [structs.replace(EVENT, id=f"x{n}", time=chance.randrange(9)) for n in range(50)]
    shuffled = events[:]
    chance.shuffle(shuffled)
    assert sum_of(*events) == sum_of(*shuffled)
    assert sum_of(*events) == (sum_of(*events[:20]) + sum_of(*events[20:])) % 2**64
    assert sum_of() == 0


def test_every_part_of_an_event_changes_it() -> None:
    variants = [
        EVENT,
        structs.replace(EVENT, time=6),
        structs.replace(EVENT, source="other"),
        structs.replace(EVENT, id="y"),
        *(
            structs.replace(EVENT, data={**EVENT.data, name: value})
            for name, value in {"i": 0, "f": -1.5, "b": False, "s": "e"}.items()
        ),
    ]
    assert len({sum_of(event) for event in variants}) == len(variants)
    renamed = EventType("Other", MIXED.attributes)
    assert checksum(batch_of_events(renamed, [EVENT])) != sum_of(EVENT)


def test_digests_are_ids_too() -> None:
    ids = EventIds(
        StringColumn.constant("r", 2),
        np.zeros(2, np.int64),
        digest=np.array([[1, 2], [2, 1]], np.uint64),
    )
    batch = EventBatch(EventType("T"), np.zeros(2, np.int64), ids, ())
    first, second = event_hashes(batch).tolist()
    assert first != second
