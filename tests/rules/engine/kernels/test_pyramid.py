"""Extremes and searches over a ring against Python's min, max and loops."""

import random

import numpy as np
import pytest

from rules.engine.kernels import layout, pyramid
from rules.engine.kernels.arrays import Arrays
from runtime.memory import filled

CAPACITY = 1024


class Ring:
    """A ring of ints and its pyramid, values being numbered from ``begin``."""

    def __init__(self, begin: int) -> None:
        self.arrays = Arrays()
        blocks = int(pyramid.words_of(CAPACITY))
        self.arrays["heap"] = filled(CAPACITY + blocks, -(2**62))
        self.record = self.arrays["summaries"][0]
        self.record["kind"], self.record["capacity"] = layout.KIND_INT, CAPACITY
        self.record["blocks"], self.record["begin"] = CAPACITY, begin
        self.values: dict[int, int] = {}
        self.end = begin

    def add(self, value: int) -> None:
        self.arrays["heap"][self.end & (CAPACITY - 1)] = value
        self.values[self.end] = value
        self.end += 1
        pyramid.complete(self.arrays.state, self.record, self.end)

    def drop(self, begin: int) -> None:
        self.record["begin"] = begin


@pytest.mark.parametrize("seed", range(4))
def test_windows_of_a_ring(seed: int):
    random_ = random.Random(seed)
    begin = random_.randrange(1000)
    ring, spread = Ring(begin), random_.choice((3, 1000))
    for _ in range(4000):
        ring.add(random_.randrange(spread) + ring.end // random_.choice((1, 100)) % spread)
        begin = max(begin, ring.end - CAPACITY + 16)
        ring.drop(begin)
        if random_.random() < 0.8:
            continue
        low = random_.randint(begin, ring.end - 1)
        high = random_.randint(low + 1, ring.end)
        values = [ring.values[place] for place in range(low, high)]
        state, record = ring.arrays.state, ring.record
        assert pyramid.extreme_within(state, record, low, high, False) == min(values), seed
        assert pyramid.extreme_within(state, record, low, high, True) == max(values), seed
        least = random_.randrange(-1, 2 * spread)
        greatest = least + random_.randrange(spread)
        fitting = [low + at for at, value in enumerate(values) if least <= value <= greatest]
        first = pyramid.first_within(state, record, low, high, least, greatest)
        last = pyramid.last_within(state, record, low, high, least, greatest)
        assert first == (fitting[0] if fitting else high), f"seed {seed}"
        assert last == (fitting[-1] if fitting else low - 1), f"seed {seed}"


@pytest.mark.parametrize("word", [0, 1, -1, 2**63 - 1, -(2**63), 0x7FEFFFFFFFFFFFFF])
def test_a_key_of_a_key_is_the_word(word: int):
    for kind in (layout.KIND_INT, layout.KIND_FLOAT):
        assert pyramid.key_of(pyramid.key_of(word, kind), kind) == word


def test_keys_are_ordered_as_floats_are():
    floats = [-1.7e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.7e308]
    words = np.array(floats).view(np.int64)
    keys = [int(pyramid.key_of(int(word), layout.KIND_FLOAT)) for word in words]
    assert keys == sorted(set(keys))
