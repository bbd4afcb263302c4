"""Tables that grow, and use again what was given back."""

import random

import numpy as np

from rules.engine.linking.tables import BlockTable, RecordTable

PAIR = np.dtype([("one", np.int64), ("other", np.int64)])


def test_a_record_begins_as_zero_but_for_its_fields():
    table = RecordTable(PAIR, capacity=1)
    first, second = table.add(one=1, other=2), table.add(other=3)
    assert table.array[[first, second]].tolist() == [(1, 2), (0, 3)]
    table.release(first)
    assert table.add(one=7) == first
    assert table.array[first].item() == (7, 0)
    assert len(table) == 2


def test_records_under_random_operations_stay_apart_and_bounded():
    random_, table, kept = random.Random(1), RecordTable(PAIR, capacity=1), {}
    for step in range(2000):
        if kept and (len(kept) > 20 or random_.random() < 0.5):
            number = random_.choice(list(kept))
            assert table.array[number]["one"] == kept.pop(number)
            table.release(number)
        else:
            number = table.add(one=step)
            assert number not in kept
            kept[number] = step
    assert len(table) <= 21


def test_blocks_given_back_serve_others_of_their_length():
    table = BlockTable(np.int64, capacity=2)
    first, second = table.add([1, 2, 3]), table.add([4])
    assert table.array[first : first + 3].tolist() == [1, 2, 3]
    assert table.array[second] == 4
    table.release(first, 3)
    assert table.add([5, 6]) not in (first, second)
    assert table.add([7, 8, 9]) == first


def test_blocks_begin_at_multiples_of_their_unit():
    table = BlockTable(np.int64, capacity=2, unit=4)
    blocks = [(table.add([1] * count), count) for count in (1, 4, 5, 3)]
    assert [first for first, _ in blocks] == [0, 4, 8, 16]
    table.release(*blocks[2])
    assert table.reserve(7) == 8  # it takes as many units
