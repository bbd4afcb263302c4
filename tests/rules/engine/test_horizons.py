"""From when on events are of use, beside the obvious loop over rules and accesses."""

import random

import numpy as np
import pytest

from matcher.model import TIME_MAX, TIME_MIN
from rules.engine.kernels import layout
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.horizons import Lookbacks
from rules.engine.linking.interner import Interner
from rules.engine.linking.tables import RecordTable

TIMES = (TIME_MIN, TIME_MIN + 3, -5, 0, 7, 40, TIME_MAX - 1, TIME_MAX)


@pytest.mark.parametrize("seed", range(5))
def test_events_are_of_use_as_long_as_some_rule_looks_back_so_far(seed: int):
    random_ = random.Random(seed)
    tables, lookbacks = ColumnTables(Interner()), Lookbacks()
    rules, groups = RecordTable(layout.RULE), np.zeros(3, layout.GROUP)
    groups["mark"] = random_.choices(TIMES, k=3)
    for _ in range(4):
        tables.types.add()
    columns = [tables.columns.add(type=random_.randrange(4)) for _ in range(6)]
    accesses = [tables.accesses.add(column=random_.choice(columns)) for _ in range(8)]
    held = {}
    for number in range(12):
        since, floor = random_.choice(TIMES), random_.choice(TIMES)
        reaches = {access: random_.choice([0, 2, 50]) for access in random_.sample(accesses, 2)}
        rules.add(
            group=number % 3, floor=floor, since=since, column=random_.choice(columns), next=-1
        )
        held[number] = lookbacks.add(number, number, reaches), reaches
    for number in random_.sample(range(12), 4):
        lookbacks.remove(number, held.pop(number)[0])
    until = random_.choice(TIMES)
    expected, by_type = dict.fromkeys(accesses, TIME_MAX), dict.fromkeys(range(4), TIME_MAX)
    for number, (_, reaches) in held.items():
        rule = {name: int(rules.array[number][name]) for name in ("group", "floor", "since")}
        mark = min(until, max(rule["floor"], int(groups["mark"][rule["group"]])))
        kind = int(tables.columns.array[int(rules.array[number]["column"])]["type"])
        by_type[kind] = min(by_type[kind], mark)
        for access, reach in reaches.items():
            look = max(TIME_MIN, mark - reach, rule["since"])
            expected[access] = min(expected[access], look)
    for access, look in expected.items():
        kind = int(tables.columns.array[int(tables.accesses.array[access]["column"])]["type"])
        by_type[kind] = min(by_type[kind], look)
    found = lookbacks.horizons(until, groups, rules.array, tables)
    assert found.accesses.tolist() == [expected[access] for access in accesses], seed
    assert found.types.tolist() == [by_type[kind] for kind in range(4)], seed
    assert found.least == min(by_type.values())
