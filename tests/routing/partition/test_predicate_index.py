"""The index finds the same for events that come alone as for those in columns."""

from random import Random

import pytest

from matcher.model import EventBatch, EventType
from matcher.single import Row, Single
from routing.partition.predicate_index import PredicateIndex
from routing.partition.predicates import Predicate
from rules.subscription import parse_subscription
from rules.terms import CANDIDATE

TYPE = EventType.of("T", area="string", value="float", floor="int", on="bool")
CONDITIONS = (
    'area = "a1"',
    'area = "a2"',
    'area != "a1"',
    "value = 2",
    "value > floor",
    "floor = 2",
    "floor * 4611686018427387904 > 0",
    "on",
    "not on and floor < 2",
)


@pytest.mark.parametrize("seed", range(30))
def test_an_event_alone_satisfies_what_it_does_in_columns(seed: int):
    random = Random(seed)
    texts = {
        f"T({' and '.join(random.sample(CONDITIONS, random.randint(1, 3)))})" for _ in range(12)
    }
    found = [parse_subscription(text, {"T": TYPE}) for text in sorted({"T", *texts})]
    index = PredicateIndex(Predicate.of(one.type, one.conditions, CANDIDATE) for one in found)
    seen = 0
    for number in range(50):
        values = (
            random.choice(("a1", "a2", "a3")),
            float(random.randrange(4)),
            random.randrange(4),
            random.random() < 0.5,
        )
        alone = Single(TYPE, Row(number, "s", number, None, values))
        columns = EventBatch(TYPE, alone.time, alone.ids, alone.columns)
        satisfied = [{one for one, _ in index.sift(batch)} for batch in (alone, columns)]
        assert satisfied[0] == satisfied[1], f"{values}, {sorted(texts)}"
        assert all(places.tolist() == [0] for _, places in index.sift(alone))
        masks = [[bool(one.mask(batch)[0]) for one in found] for batch in (alone, columns)]
        assert masks[0] == masks[1], f"{values}, {sorted(texts)}"
        seen += len(satisfied[0])
    assert seen > 50
