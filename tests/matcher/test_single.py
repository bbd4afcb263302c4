"""A single event is a batch of one, whichever way it is looked at."""

import copy
import pickle
import random

import numpy as np
import pytest

from matcher.filters.mixed import MixedEvents
from matcher.model import DTYPES, EventBatch, EventIds, EventType, Kind, StringColumn
from matcher.single import Row, Single, packed, single_at, singles

EVERYTHING = EventType.of("All", s="string", b="bool", i="int", f="float", t="string", c="bool")
TEXTS = ["", "a", "Zürich", "日本", "\0", "x" * 300]


def random_row(rng: random.Random) -> Row:
    values = {
        "string": lambda: rng.choice(TEXTS),
        "bool": lambda: rng.random() < 0.5,
        "int": lambda: rng.choice([0, -1, 2**63 - 1, -(2**63), rng.getrandbits(40)]),
        "float": lambda: rng.choice([0.0, -0.0, 46.5, 1e300, 5e-324]),
    }
    return Row(
        rng.randrange(-(2**62), 2**62),
        rng.choice(TEXTS),
        rng.randrange(2**63),
        rng.choice([None, *TEXTS]),
        tuple(values[attribute.kind.value]() for attribute in EVERYTHING.attributes),
    )


def in_columns(single: Single) -> EventBatch:
    """The same event as an ordinary batch."""
    return EventBatch(single.type, single.time, single.ids, single.columns)


@pytest.mark.parametrize("seed", range(100))
def test_it_equals_the_ordinary_batch(seed: int) -> None:
    single = Single(EVERYTHING, random_row(random.Random(seed)))
    batch = in_columns(single)
    assert len(single) == len(batch) == 1
    assert [repr(event) for event in single.events()] == [repr(event) for event in batch.events()]
    assert repr(single.event(0)) == repr(batch.event(0))
    assert not single.is_composite
    assert single.causes is None
    assert [column.tolist() for column in single.columns] == [[v] for v in single.row.values]
    assert (single.time.dtype, single.ids.sequence.dtype) == (np.int64, np.int64)
    assert len(single.take(np.array([], np.int64))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_falls_apart_into_its_events(seed: int) -> None:
    rng = random.Random(seed)
    rows = [random_row(rng) for _ in range(rng.randint(1, 5))]
    if any(row.text is None for row in rows):  # a batch has texts for all of its ids, or for none
        rows = [Row(one.time, one.source, one.sequence, None, one.values) for one in rows]
    names = [row.text for row in rows if row.text is not None]
    ids = EventIds(
        StringColumn.from_strings([row.source for row in rows]),
        np.array([row.sequence for row in rows]),
        StringColumn.from_strings(names) if names else None,
    )
    columns = tuple(
        StringColumn.from_strings(values)
        if attribute.kind is Kind.STRING
        else np.array(values, DTYPES[attribute.kind])
        for attribute, *values in zip(
            EVERYTHING.attributes, *(row.values for row in rows), strict=True
        )
    )
    batch = EventBatch(EVERYTHING, np.array([row.time for row in rows]), ids, columns)
    assert [(one.type, one.row) for one in singles(batch)] == [(EVERYTHING, row) for row in rows]
    alone = [single_at(batch, place) for place in range(len(batch))]
    assert [(one.type, one.row) for one in alone] == [(EVERYTHING, row) for row in rows]
    for one, other in zip(alone, singles(batch), strict=True):
        assert [*map(type, one.row.values)] == [*map(type, other.row.values)]


def test_columns_are_made_once() -> None:
    single = Single(EVERYTHING, random_row(random.Random(1)))
    assert single.columns is single.columns
    assert single.ids.source.values == (single.row.source,)


def test_it_survives_copying_and_pickling() -> None:
    single = Single(EVERYTHING, random_row(random.Random(2)))
    for one in (copy.copy(single), pickle.loads(pickle.dumps(single))):
        assert (one.type, one.row) == (single.type, single.row)


def test_what_it_has_not_is_missing() -> None:
    with pytest.raises(AttributeError, match="Single has no attribute 'colour'"):
        getattr(Single(EventType("Empty"), Row(0, "s", 1, None, ())), "col" + "our")


@pytest.mark.parametrize("seed", range(20))
def test_what_came_by_itself_is_packed_each_source_in_its_order(seed: int) -> None:
    rng = random.Random(seed)
    other = EventType.of("Other", n="int")
    come: list[EventBatch] = [
        Single(EVERYTHING, random_row(rng))
        if rng.random() < 0.8
        else Single(other, Row(rng.randrange(10), rng.choice(TEXTS), rng.randrange(9), None, (1,)))
        for _ in range(rng.randint(0, 40))
    ]
    for number in (3, 7):  # of one of the sources that come one by one, too
        names = StringColumn.constant(rng.choice(TEXTS), 2)
        ids = EventIds(names, np.array([number, number + 1]))
        come.insert(
            rng.randrange(len(come) + 1), EventBatch(other, ids.sequence, ids, (ids.sequence,))
        )

    def by_source(batches: list[EventBatch]) -> dict[tuple[str, str, bool], list[str]]:
        found: dict[tuple[str, str, bool], list[str]] = {}
        for batch in batches:
            given = batch.ids.text is None
            for event in batch.events():
                key = event.type, event.source, given
                found.setdefault(key, []).append(repr(event))
        return found

    done = packed(come)
    assert by_source(done) == by_source(come)
    assert len(done) == len(by_source(come))


def test_what_is_composite_or_of_several_sources_is_not_packed() -> None:
    names = EventIds(
        StringColumn.constant("r", 1), np.array([1]), digest=np.ones((1, 2), np.uint64)
    )
    found = EventBatch(EventType.of("Found"), np.array([5]), names, ())
    several = EventIds(StringColumn.from_strings(["a", "b"]), np.array([1, 1]))
    mixed = EventBatch(EventType.of("Found"), np.array([5, 6]), several, ())
    assert packed([found, mixed, found]) == [found, mixed, found]


@pytest.mark.parametrize("seed", range(20))
def test_an_event_alone_is_matched_by_the_values_of_its_columns(seed: int) -> None:
    rng = random.Random(seed)
    other = EventType.of("Other", f="float", s="string")
    for _ in range(20):
        row = random_row(rng)
        event = Single(EVERYTHING, row)
        if rng.random() < 0.3:  # the last type is another one now
            event = Single(other, Row(1, "s", 1, None, (rng.random(), rng.choice(TEXTS))))
        columns = EventBatch(event.type, event.time, event.ids, event.columns)
        alone, whole = MixedEvents.of_batch(event), MixedEvents.of_batch(columns)
        assert repr(alone.data(0)) == repr(whole.data(0)), seed
        assert alone.type_of(0) == whole.type_of(0)
        assert [column.dtype for column in (alone.cells.values, alone.cells.kinds)] == [
            column.dtype for column in (whole.cells.values, whole.cells.kinds)
        ]
