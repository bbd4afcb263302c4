"""Events with ids are taken once at a broker, others of their ids refused (serving.published)."""

import numpy as np

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from matcher.single import singles
from routing.config import NodeConfig
from routing.messages import Code
from routing.serving.published import PublishedIds, Sifted

TEMP = EventType.of("Temp", value="float")


def batch(*rows: tuple[str, float], first: int = 1, source: str = "gate") -> EventBatch:
    """Events of a source with ids and values, all at 5 s."""
    texts, values = zip(*rows, strict=True)
    sequence = np.arange(first, first + len(rows))
    ids = EventIds(
        StringColumn.constant(source, len(rows)), sequence, StringColumn.from_strings(texts)
    )
    return EventBatch(TEMP, np.full(len(rows), 5_000_000), ids, (np.array(values),))


def taken(found: Sifted) -> list[str]:
    return [one for some in found.batches for one in some.ids.printed()]


def test_a_duplicate_goes_and_a_conflict_is_refused_by_name():
    known = PublishedIds(NodeConfig())
    assert taken(known.sift([batch(("7", 1.0), ("8", 1.0))])) == ["7", "8"]
    found = known.sift([batch(("7", 1.0), ("7", 2.0), ("9", 1.0), ("8", 2.0), first=3)])
    assert (taken(found), found.rejected) == (["9"], 2)
    (said,) = found.rejections
    assert (said.code, said.sequences) == (Code.CONFLICT, ((4, 4), (6, 6)))
    assert said.reason == (
        "2 Temp with the id of another event: first id 7 of source 'gate' at 1970-01-01T00:00:05Z, "
        "which names one at 1970-01-01T00:00:05Z with other contents"
    )


def test_events_that_come_alone_are_known_as_those_of_batches_are():
    known = PublishedIds(NodeConfig())
    known.sift([batch(("7", 1.0), ("x", 1.0))])
    alone = singles(batch(("7", 1.0), ("x", 2.0), ("y", 1.0)))
    for one, rejected in zip(alone, (0, 1, 0), strict=True):
        found = known.sift([one])
        assert found.rejected == rejected
        assert taken(found) == (["y"] if one.row.text == "y" else [])


def test_another_source_has_ids_of_its_own_and_numbers_are_not_looked_at():
    known = PublishedIds(NodeConfig())
    numbered = batch(("7", 1.0))
    numbered = EventBatch(
        TEMP, numbered.time, EventIds(numbered.ids.source, np.array([7])), numbered.columns
    )
    for some in (batch(("7", 1.0)), batch(("7", 2.0), source="door"), numbered):
        assert known.sift([some]).batches == (some,)


def test_of_what_is_not_remembered_any_more_nothing_is_said():
    known = PublishedIds(NodeConfig(repeat_ids_max=10))
    for first in range(0, 100, 5):
        known.sift([batch(*((f"e{number}", 1.0) for number in range(first, first + 5)))])
        assert known.remembered <= 20
    found = known.sift([batch(("e99", 1.0), ("e90", 2.0), ("e0", 2.0))])
    assert (taken(found), found.rejected) == (["e0"], 1)
