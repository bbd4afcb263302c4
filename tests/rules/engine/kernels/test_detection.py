"""The kernels' ids of composite events, and the words by which events are looked up."""

import math
import random

import numpy as np
import pytest

from matcher.identity import composite_key
from rules.engine.kernels import layout
from rules.engine.kernels.emission import digest
from rules.engine.kernels.spans import key_word


def words(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.uint64).view(np.int64)


def test_the_compiled_digest_is_the_defined_one():
    random_ = random.Random(4)
    for _ in range(200):
        events = random_.randint(1, 9)
        rule = random_.getrandbits(64), random_.getrandbits(64)
        causes = [
            (random_.choice((0, 2**64 - 1, random_.getrandbits(64))), random_.getrandbits(64))
            for _ in range(events)
        ]
        heap = np.zeros((events + 1) * layout.HEADER, np.int64)
        for place, cause in enumerate(causes, 1):
            first = place * layout.HEADER + layout.ROW_KEY_HIGH
            heap[first : first + 2] = words(list(cause))
        frame = np.arange(events + 1) * layout.HEADER
        found = digest(heap, frame, events, 0, np.uint64(rule[0]), np.uint64(rule[1]))
        assert tuple(map(int, found)) == composite_key(rule, causes)


def bits(number: float) -> int:
    return int(np.float64(number).view(np.int64))


@pytest.mark.parametrize(
    ("word", "kind", "key"),
    [
        (-7, layout.PROBE_SAME, -7),
        (bits(0.5), layout.PROBE_FLOAT, bits(0.5)),
        (bits(-0.0), layout.PROBE_FLOAT, 0),
        (bits(3.0), layout.PROBE_FLOAT_TO_INT, 3),
        (bits(-0.0), layout.PROBE_FLOAT_TO_INT, 0),
        (bits(-(2.0**63)), layout.PROBE_FLOAT_TO_INT, -(2**63)),
        (bits(2.0**63), layout.PROBE_FLOAT_TO_INT, None),
        (bits(3.5), layout.PROBE_FLOAT_TO_INT, None),
        (bits(math.nextafter(2.0**53, 0)), layout.PROBE_FLOAT_TO_INT, 2**53 - 1),
        (0, layout.PROBE_INT_TO_FLOAT, 0),
        (2**53, layout.PROBE_INT_TO_FLOAT, bits(2.0**53)),
        (2**53 + 1, layout.PROBE_INT_TO_FLOAT, None),
        (2**63 - 1, layout.PROBE_INT_TO_FLOAT, None),
        (-(2**63), layout.PROBE_INT_TO_FLOAT, bits(-(2.0**63))),
    ],
)
def test_a_value_is_looked_up_only_where_an_event_can_have_it(
    word: int, kind: int, key: int | None
):
    found, possible = key_word(word, kind)
    assert (found if possible else None) == key
