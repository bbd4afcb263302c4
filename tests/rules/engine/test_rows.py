"""Events as rows: one that comes alone is written as it would be in a batch."""

import random

import numpy as np

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from matcher.single import Row, Single
from rules.engine.interner import Interner
from rules.engine.rows import RowWriter, row_of

TYPE = EventType.of("Reading", area="string", value="float", count="int", wet="bool")
VALUES = {
    "area": ["", "hall", "\u00e9"],
    "value": [0.0, -0.0, 1.5, -1e308, 5e-324],
    "count": [0, -1, 2**63 - 1, -(2**63)],
    "wet": [True, False],
}


def single(random_: random.Random) -> Single:
    values = tuple(random_.choice(VALUES[name]) for name in TYPE.names)
    return Single(TYPE, Row(random_.randrange(99), random_.choice("xy"), 7, None, values))


def columns_of(one: Single) -> EventBatch:
    return EventBatch(TYPE, one.time, one.ids, one.columns)


def test_an_event_that_comes_alone_is_written_as_one_of_a_batch():
    random_ = random.Random(5)
    for _ in range(200):
        one = single(random_)
        writer = RowWriter(Interner())
        batch = columns_of(one)
        expected = writer.rows(batch)
        for given in (one, batch):
            row = row_of(given)
            assert row == one.row
            words = np.frombuffer(writer.words(TYPE, row), np.int64)
            assert np.array_equal(words, expected[0])


def test_what_is_not_alone_or_not_known_by_a_number_is_no_row():
    ids = EventIds(StringColumn.constant("s", 2), np.arange(2))
    two = EventBatch(EventType.of("Tick"), np.arange(2), ids, ())
    assert row_of(two) is None
    assert row_of(Single(EventType.of("Tick"), Row(1, "s", 1, "text", ()))) is None
    digest = np.ones((1, 2), np.uint64)
    known = EventIds(StringColumn.constant("s", 1), np.arange(1), None, digest)
    assert row_of(EventBatch(EventType.of("Tick"), np.arange(1), known, ())) is None
