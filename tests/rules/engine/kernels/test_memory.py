"""The kernels' lists and hash table against dicts and lists of Python, under random operations."""

import random

import numpy as np
import pytest

from rules.engine.kernels import layout, memory
from rules.engine.kernels.arrays import Arrays
from rules.engine.memory.growth import grow, new_arrays
from runtime.memory import filled

Key = tuple[int, int, int]
ACCESSES, ROWS = 3, 1 << 12


class Store:
    """Lists by key in the kernels' memory, as few words as possible to begin with; whatever a
    kernel asks for is grown. Row numbers are sequence numbers of one source."""

    def __init__(self) -> None:
        self.arrays: Arrays = new_arrays()
        for name, length in (("heap", 8), ("lists", 1), ("buckets", 2)):
            fill = -1 if name == "buckets" else 0
            self.arrays[name] = filled(length, fill, self.arrays[name].dtype)
        self.arrays.grow("heap", ROWS * layout.HEADER)
        types = self.arrays["types"]
        types[0]["width"], types[0]["capacity"] = layout.HEADER, ROWS
        self.arrays["counters"][layout.HEAP_TOP] = ROWS * layout.HEADER
        self.arrays["heap"][layout.ROW_SEQUENCE :: layout.HEADER][:ROWS] = np.arange(ROWS)
        accesses = self.arrays["accesses"]
        accesses["keys"], accesses["list"] = 2, -1
        accesses["keys"][0] = 0  # it has one list, however it is asked
        self.statuses: set[int] = set()

    def find(self, key: Key) -> int:
        return int(memory.find_list(self.arrays.state, *key))

    def add(self, key: Key, time: int, row: int) -> None:
        number = self.find(key)
        while number < 0:
            number = int(memory.make_list(self.arrays.state, *key))
            if number < 0:
                self.grow(-number)
        while status := memory.insert_entry(self.arrays.state, number, 0, time, row):
            self.grow(status)

    def grow(self, status: int) -> None:
        self.statuses.add(status)
        grow(self.arrays, status)

    def entries(self, key: Key) -> list[tuple[int, int]]:
        number = self.find(key)
        if number < 0:
            return []
        record = self.arrays["lists"][number]
        start = layout.LINE_WORDS * int(record["line"]) + layout.ENTRY_WORDS * int(record["head"])
        words = self.arrays["heap"][start : start + layout.ENTRY_WORDS * int(record["length"])]
        found = [tuple(entry) for entry in words.reshape(-1, 2).tolist()]
        assert not found or (record["last_time"], record["last_row"]) == found[-1]
        return found

    def sweep(self, horizon: int) -> None:
        self.arrays["accesses"]["horizon"] = horizon
        memory.sweep(self.arrays.state, int(self.arrays["counters"][layout.LISTS_TOP]))

    def segments(self) -> list[tuple[int, int]]:
        """All segments of the heap, free or not, as (offset, words)."""
        lists, heap = self.arrays["lists"], self.arrays["heap"]
        used = lists[: self.arrays["counters"][layout.LISTS_TOP]]
        found = [
            (layout.LINE_WORDS * int(one["line"]), int(one["capacity"]) * layout.ENTRY_WORDS)
            for one in used[used["capacity"] > 0]
        ]
        for size, first in enumerate(self.arrays["free"].tolist()):
            while first >= 0:
                found.append((first, 1 << size))
                first = int(heap[first])
        return sorted(found)


def random_key(random_: random.Random) -> Key:
    access = random_.randrange(ACCESSES)
    if access == 0:
        return 0, 0, 0
    return access, random_.choice((0, 1, -(2**63), 2**62)), random_.randrange(9)


@pytest.mark.parametrize("seed", range(6))
def test_lists_under_random_operations(seed: int):
    random_, store = random.Random(seed), Store()
    model: dict[Key, list[tuple[int, int]]] = {}
    horizon = 0
    for row in range(1500):
        choice, key = random_.random(), random_key(random_)
        if choice < 0.8:
            time = horizon + random_.randrange(60)
            store.add(key, time, row)
            model[key] = sorted([*model.get(key, []), (time, row)])
        elif choice < 0.9 and model.get(key):
            entry = random_.choice(model[key])
            model[key].remove(entry)
            memory.remove_entry(store.arrays.state, store.find(key), *entry)
        elif choice < 0.93:
            horizon += random_.randrange(30)
            store.sweep(horizon)
            model = {one: [e for e in kept if e[0] >= horizon] for one, kept in model.items()}
            model = {one: kept for one, kept in model.items() if kept}
            assert int(store.arrays["counters"][layout.BUCKETS_USED]) == sum(
                one[0] > 0 for one in model
            )
        else:
            time = horizon + random_.randrange(-5, 70)
            if store.find(key) >= 0:
                earlier = memory.find_time(store.arrays.state, store.find(key), time)
                assert earlier == sum(entry[0] < time for entry in model.get(key, [])), (
                    f"seed {seed}"
                )
        assert store.entries(key) == model.get(key, []), f"seed {seed}"
    for access in range(ACCESSES):
        for first in (0, 1, -(2**63), 2**62):
            for second in range(9):
                key = (access, first, second) if access else (0, 0, 0)
                assert store.entries(key) == model.get(key, []), f"seed {seed}"
    assert store.statuses == {layout.GROW_HEAP, layout.GROW_LISTS, layout.GROW_BUCKETS}


@pytest.mark.parametrize("seed", range(3))
def test_segments_never_overlap_and_none_is_lost(seed: int):
    random_, store = random.Random(seed), Store()
    for row in range(800):
        store.add(random_key(random_), row, row)
        if row % 50 == 49:
            store.sweep(row - random_.randrange(60))
    end = ROWS * layout.HEADER
    for offset, words in store.segments():
        assert offset == end
        end += words
    assert end == store.arrays["counters"][layout.HEAP_TOP]


def test_forgetting_keeps_lists_that_were_pushed_past_a_full_bucket():
    store = Store()
    keys = [(1, number, 0) for number in range(400)]
    for row, key in enumerate(keys):
        store.add(key, row, row)
    for gone in keys[::2]:
        memory.forget_list(store.arrays.state, store.find(gone))
    assert [store.find(key) >= 0 for key in keys] == [False, True] * 200
    assert all(store.entries(key) == [(key[1], key[1])] for key in keys[1::2])


@pytest.mark.parametrize(("words", "size"), [(1, 3), (8, 3), (9, 4), (16, 4), (1 << 40, 40)])
def test_the_size_of_a_segment(words: int, size: int):
    assert memory.logarithm(words) == size
