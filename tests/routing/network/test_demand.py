"""What goes to a neighbour is what one of its filters matches, however many there are."""

from random import Random

import numpy as np
import pytest
from conversation import schema_of

from matcher.rows import batch_of
from routing.delivery.subscriber_index import MANY
from routing.delivery.subscriptions import PER_TYPE_MAX
from routing.messages import SubscriptionUpdate
from routing.network.tables.branch import Branch
from rules.subscription import parse_subscription

TEMP = schema_of("Temp(room: string, value: float, n: int)")
SCHEMAS = {"Temp": TEMP}
ROOMS = ["a", "ab", "b", "ba", "c"]


def random_filter(random: Random) -> str:
    conditions = [
        random.choice(
            [
                f"room {random.choice(['=', '!=', 'prefix', 'contains'])} '{random.choice(ROOMS)}'",
                f"value {random.choice(['>', '<', '='])} {random.randrange(9)}",
                f"n = {random.randrange(30)}",
                f"n % 7 = {random.randrange(9)}",  # which constraints cannot say
            ]
        )
        for _ in range(random.choice([1, 2, 2, 3]))
    ]
    return f"Temp({' and '.join(conditions)})"


@pytest.mark.parametrize("seed", range(4))
def test_filters_that_come_and_go_want_together_what_each_wants_alone(seed: int) -> None:
    random = Random(seed)
    branch, told = Branch("b"), {random_filter(random) for _ in range(3)}
    for size in (MANY - 1, 2 * MANY, PER_TYPE_MAX + 20, MANY, MANY - 2, 3 * MANY, 0):
        while len(told) > size or (told and random.random() < 0.8):
            told.remove(random.choice(sorted(told)))
        while len(told) < size:
            told.add(random_filter(random))
        branch.hear(SubscriptionUpdate(tuple(told)))
        branch.index(SCHEMAS, lambda name: ())
        filters = [parse_subscription(text, SCHEMAS) for text in told]
        for count in (1, 5, 60):
            rows = [
                {
                    "room": random.choice([*ROOMS, "abc", ""]),
                    "value": random.choice([0.0, 2.0, 8.5, -1.0]),
                    "n": random.randrange(40),
                }
                for _ in range(count)
            ]
            batch = batch_of(TEMP, rows, source="s", times=list(range(count)))
            masks = [one.mask(batch) for one in filters]
            wanted = np.flatnonzero(np.any(masks, axis=0)) if masks else []
            delivery_batch = branch.offer([batch], None)
            sent = [] if delivery_batch is None else delivery_batch.batches[0].ids.sequence.tolist()
            assert sent == [place + 1 for place in wanted], f"seed {seed}, {size} filters"


def test_one_filter_without_conditions_wants_all() -> None:
    branch = Branch("b")
    branch.hear(SubscriptionUpdate(("Temp", *(f"Temp(n = {number})" for number in range(MANY)))))
    branch.index(SCHEMAS, lambda name: ())
    rows = [{"room": "a", "value": 1.0, "n": -1}] * 3
    delivery_batch = branch.offer([batch_of(TEMP, rows, source="s", times=[1, 2, 3])], None)
    assert delivery_batch is not None
    assert len(delivery_batch) == 3
