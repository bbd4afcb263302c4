"""One event goes over the wire in the bytes that its columns would have."""

import random

import pytest

from matcher.model import EventBatch, EventType
from matcher.single import Row, Single
from routing import wire
from routing.messages import Acks, Publish

EVERYTHING = EventType.of("All", s="string", b="bool", i="int", f="float", t="string", c="bool")
EMPTY = EventType("Empty")
TEXTS = ["", "a", "Zürich", "日本", "\0", "x" * 300]


def random_single(rng: random.Random) -> Single:
    values = {
        "string": lambda: rng.choice(TEXTS),
        "bool": lambda: rng.random() < 0.5,
        "int": lambda: rng.choice([0, -1, 2**63 - 1, -(2**63), rng.getrandbits(40)]),
        "float": lambda: rng.choice([0.0, -0.0, 46.5, 1e300, 5e-324]),
    }
    event_type = rng.choice((EVERYTHING, EVERYTHING, EMPTY))
    row = Row(
        rng.randrange(-(2**62), 2**62),
        rng.choice(TEXTS),
        rng.randrange(2**63),
        rng.choice([None, *TEXTS]),
        tuple(values[attribute.kind.value]() for attribute in event_type.attributes),
    )
    return Single(event_type, row)


def in_columns(single: Single) -> EventBatch:
    """The same event as an ordinary batch."""
    return EventBatch(single.type, single.time, single.ids, single.columns)


@pytest.mark.parametrize("seed", range(100))
def test_the_bytes_are_those_of_columns(seed: int) -> None:
    rng = random.Random(seed)
    singles = [random_single(rng) for _ in range(rng.randint(1, 4))]
    frames = wire.encode(Publish(tuple(singles), 5, Acks.NONE))
    assert frames == wire.encode(Publish(tuple(map(in_columns, singles)), 5, Acks.NONE))
    published = wire.decode(frames)
    assert isinstance(published, Publish)
    assert [repr(one.row) for one in published.batches if isinstance(one, Single)] == [
        repr(one.row) for one in singles
    ]
