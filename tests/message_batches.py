"""Batches of events as messages bear them, at random: every kind of attribute, id and cause."""

import random

import numpy as np
from plain_messages import TEMP

from matcher.model import Attribute, Causes, EventBatch, EventIds, EventType, Kind, StringColumn
from matcher.single import Row, Single
from routing.messages import Delivery

TEXTS = ["", "a", "Zürich", "日本", "\0", "x" * 300, "a1", "#", '"']


def strings(rng: random.Random, count: int) -> StringColumn:
    column = StringColumn.from_strings([rng.choice(TEXTS) for _ in range(count)])
    # A slice of something longer keeps a dictionary that is too large for it.
    longer = StringColumn.concatenate([StringColumn.from_strings(TEXTS), column])
    return rng.choice([column, longer.take(slice(len(TEXTS), None))])


def column(rng: random.Random, kind: Kind, count: int) -> object:
    match kind:
        case Kind.STRING:
            return strings(rng, count)
        case Kind.BOOL:
            return np.array([rng.random() < 0.5 for _ in range(count)], np.bool_)
        case Kind.INT:
            return np.array([rng.randint(-(2**63), 2**63 - 1) for _ in range(count)], np.int64)
        case Kind.FLOAT:
            return np.array([rng.choice([0.0, -1.5, 1e308, 5e-324]) for _ in range(count)])


def ids(rng: random.Random, count: int) -> EventIds:
    digest = np.array([[rng.getrandbits(64) for _ in range(2)] for _ in range(count)], np.uint64)
    return EventIds(
        strings(rng, count),
        np.array([rng.randint(0, 2**62) for _ in range(count)], np.int64),
        rng.choice([None, strings(rng, count)]),
        rng.choice([None, digest]),
    )


def causes(rng: random.Random, count: int) -> Causes:
    lengths = [rng.randint(1, 3) for _ in range(count)]
    total = sum(lengths)
    named = ids(rng, total)
    flags = np.array([rng.random() < 0.5 for _ in range(total)])
    nothing = np.zeros(total, np.bool_)
    return Causes(
        np.cumsum([0, *lengths]),
        named,
        nothing if named.digest is None else flags,
        nothing if named.text is None else flags,
    )


def batch(rng: random.Random, count: int) -> EventBatch:
    kinds = [rng.choice(list(Kind)) for _ in range(rng.randint(0, 6))]
    schema = EventType(
        rng.choice("TUV"), tuple(Attribute(f"a{n}", kind) for n, kind in enumerate(kinds))
    )
    return EventBatch(
        schema,
        np.array([rng.randint(-(2**63), 2**63 - 1) for _ in range(count)], np.int64),
        ids(rng, count),
        tuple(column(rng, kind, count) for kind in kinds),
        rng.choice([None, causes(rng, count)]),
    )


def delivery(rng: random.Random) -> Delivery:
    batches = tuple(batch(rng, rng.randint(1, 5)) for _ in range(rng.randint(0, 3)))
    total = sum(map(len, batches))
    order = np.array(rng.sample(range(total), total), np.int64)
    numbers = tuple(tuple(range(rng.randint(1, 3))) for _ in batches)
    return Delivery(batches, numbers, rng.choice([None, order]), rng.randint(0, 9), False)


def single() -> Single:
    """One event alone, which is written another way."""
    return Single(TEMP, Row(7, "station-7", 17, None, ("a1", 46.5)))
