"""Events as rows: one that comes alone is written as it would be in a batch."""

import random

import numpy as np

import rules
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from matcher.single import Row, Single
from rules.engine.cdp import CdpEngine
from rules.engine.intake.rows import row_of

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
    for _ in range(50):
        one = single(random_)
        batch = columns_of(one)
        written = []
        for given in (one, batch, None):
            engine = CdpEngine()
            engine.deploy(rules.load(f"event {TYPE} define Seen() from Reading()"))
            number = engine._linker.tables.type_numbers["Reading"]
            if given is None:
                engine._pending.add(number, batch)
            else:
                assert row_of(given) == one.row
                engine.push(given)
            written.append(engine._pending.rows(number).tolist())
        assert written[0] == written[1] == written[2]
        assert len(written[0]) == 1


def test_what_is_not_alone_or_not_known_by_a_number_is_no_row():
    ids = EventIds(StringColumn.constant("s", 2), np.arange(2))
    two = EventBatch(EventType.of("Tick"), np.arange(2), ids, ())
    assert row_of(two) is None
    assert row_of(Single(EventType.of("Tick"), Row(1, "s", 1, "text", ()))) is None
    digest = np.ones((1, 2), np.uint64)
    known = EventIds(StringColumn.constant("s", 1), np.arange(1), None, digest)
    assert row_of(EventBatch(EventType.of("Tick"), np.arange(1), known, ())) is None
