"""Summaries against scans of the same entries, bit for bit, while lists change in every way."""

import random
import struct
from bisect import insort
from dataclasses import dataclass, field

import numpy as np
import pytest

from rules.engine.kernels import layout, memory
from rules.engine.kernels.aggregates import FUNCTIONS, aggregate
from rules.engine.kernels.late import late_aggregates
from rules.engine.linking.interner import Interner
from rules.engine.linking.loading import load
from rules.engine.memory.growth import grow, new_arrays
from rules.terms import Function
from runtime.memory import zeros

ROWS = 1 << 12
WIDTH = layout.HEADER + 1
KINDS = {
    "int": layout.KIND_INT,
    "float": layout.KIND_FLOAT,
    "string": layout.KIND_STRING,
}


@dataclass
class Column:
    """One list, in the kernels' memory and as (time, row) in Python; a row's number is its place
    at its source, so entries of one time stand in the order in which they came."""

    kind: str
    scan_max: int = 0
    entries: list[tuple[int, int]] = field(default_factory=list)
    words: dict[int, int] = field(default_factory=dict)
    horizon: int = 0

    def __post_init__(self) -> None:
        self.arrays = new_arrays()
        self.arrays["counters"][layout.SCAN_MAX] = self.scan_max
        self.arrays["summaries"] = zeros((1,), layout.SUMMARY)
        self.arrays.grow("heap", ROWS * WIDTH)
        kind = self.arrays["types"][0]
        kind["width"], kind["capacity"] = WIDTH, ROWS
        self.arrays["counters"][layout.HEAP_TOP] = ROWS * WIDTH
        heap = self.arrays["heap"]
        heap[layout.ROW_SEQUENCE :: WIDTH][:ROWS] = np.arange(ROWS)
        self.strings = Interner()
        self.number = -1
        self.steps = np.zeros(1, layout.STEP)
        load(self.arrays, (layout.LATE_AGGREGATES, layout.LATE_SUMMARIES))

    @property
    def state(self):
        return self.arrays.state

    def grow(self, status: int) -> None:
        grow(self.arrays, status)

    def word(self, value: int | float | str) -> int:
        match value:
            case str():
                code = int(self.strings.codes([value])[0])
                self.arrays["strings"] = self.strings.extents
                self.arrays["string_bytes"] = self.strings.data
                return code
            case float():
                return struct.unpack("<q", struct.pack("<d", value))[0]
        return value

    def add(self, time: int, value: int | float | str) -> None:
        row = len(self.words)
        self.words[row] = self.word(value)
        self.arrays["heap"][row * WIDTH + layout.HEADER] = self.words[row]
        self.number = int(memory.find_list(self.state, 0, 0, 0))
        while self.number < 0:
            self.number = int(memory.make_list(self.state, 0, 0, 0))
            if self.number < 0:
                self.grow(-self.number)
        while status := memory.insert_entry(self.state, self.number, 0, time, row):
            self.grow(status)
        insort(self.entries, (time, row))

    def remove(self, place: int) -> None:
        memory.remove_entry(self.state, self.number, *self.entries.pop(place))

    def forget(self, horizon: int) -> None:
        """Drop what is older than a horizon, and make its rows unreadable."""
        self.arrays["accesses"][0]["horizon"] = horizon
        memory.sweep(self.state, 1)
        for time, row in self.entries:
            if time < horizon:
                self.arrays["heap"][row * WIDTH + layout.HEADER] = 0x7FEFFFFFFFFFFFFF
        self.entries = [entry for entry in self.entries if entry[0] >= horizon]
        if not self.entries:
            self.number = -1

    def ask(self, function: Function, low: int, high: int) -> tuple[int, bool]:
        """By the engine's way, growing what it wishes for until it has it."""
        step = self.steps[0]
        step["function"], step["kind_of_value"] = FUNCTIONS[function], KINDS[self.kind]
        step["offset"], step["residue"], step["program"] = layout.HEADER, -1, -1
        counters, place = self.arrays["counters"], self.steps.ctypes.data
        while True:
            assert late_aggregates(self.state, place, self.number, low, high, 0) == layout.DONE
            answer = (
                int(self.arrays["slots"][0]),
                bool(self.arrays["slots_defined"][0]),
            )
            if not counters[layout.WISH]:
                return answer
            assert answer == self.scan(function, low, high), "without room the window is scanned"
            self.grow(int(counters[layout.WISH]))
            counters[layout.WISH] = layout.DONE

    def scan(self, function: Function, low: int, high: int) -> tuple[int, bool]:
        words = np.array([self.words[row] for _, row in self.entries[low:high]], np.int64)
        return aggregate(self.state, FUNCTIONS[function], KINDS[self.kind], words)

    def segments(self) -> list[tuple[int, int]]:
        """All segments beyond the rows, free or not, as (offset, words)."""
        found = []
        for one in self.arrays["lists"][: self.arrays["counters"][layout.LISTS_TOP]]:
            if one["capacity"]:
                start = layout.LINE_WORDS * int(one["line"])
                found.append((start, int(one["capacity"]) * layout.ENTRY_WORDS))
        for one in self.arrays["summaries"][: self.arrays["counters"][layout.SUMMARIES_TOP]]:
            if one["capacity"]:
                found.append((int(one["values"]), int(one["capacity"])))
                found.append((int(one["blocks"]), 1 << int(one["block_class"])))
        for size, first in enumerate(self.arrays["free"].tolist()):
            while first >= 0:
                found.append((first, 1 << size))
                first = int(self.arrays["heap"][first])
        return sorted(found)


def functions_of(kind: str) -> list[Function]:
    """Those that summaries answer for; a count is that of the entries."""
    if kind == "string":
        return [Function.MIN, Function.MAX]
    return [function for function in Function if function is not Function.COUNT]


def random_value(random_: random.Random, kind: str, spread: int) -> int | float | str:
    match kind:
        case "int":
            bits = random_.choice((4, 62)) if spread else 6
            return random_.randint(-(2**bits), 2**bits)
        case "float":
            if spread and random_.random() < 0.2:
                return random_.choice((0.0, -0.0, 1e16, -1e16, 1e308, 5e-324, 1.0))
            return random_.uniform(-1, 1) * 2.0 ** random_.randint(-spread, spread)
    return "".join(random_.choice("ab\u00e9") for _ in range(random_.randint(0, 3)))


def random_window(random_: random.Random, length: int) -> tuple[int, int]:
    match random_.randrange(4):
        case 0:
            return max(0, length - random_.randint(1, 70)), length
        case 1:
            return 0, length
    low = random_.randint(0, length)
    return low, random_.randint(low, length)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_summaries_say_what_scans_say(kind: str, seed: int):
    random_ = random.Random(f"{seed} {kind}")
    column, spread, now, horizon = Column(kind), random_.choice((0, 3, 400)), 0, 0
    for _ in range(2500):
        match random_.choices(("add", "late", "remove", "forget", "ask"), (60, 3, 2, 1, 40))[0]:
            case "add":
                now += random_.choice((0, 0, 1, 2))
                column.add(now, random_value(random_, kind, spread))
            case "late":
                value = random_value(random_, kind, spread)
                column.add(random_.randint(horizon, now), value)
            case "remove" if column.entries:
                column.remove(random_.randrange(len(column.entries)))
            case "forget":
                horizon = max(horizon, now - random_.choice((5, 100, 400, 1000)))
                column.forget(horizon)
            case "ask" if column.entries:
                function = random_.choice(functions_of(kind))
                low, high = random_window(random_, len(column.entries))
                assert column.ask(function, low, high) == column.scan(function, low, high), (
                    f"seed {seed}: {function} of {low} to {high}"
                )
    end = ROWS * WIDTH
    for offset, words in column.segments():
        assert offset == end, "segments neither overlap nor are lost"
        end += words


@pytest.mark.parametrize("function", [Function.SUM, Function.STDDEV, Function.MAX])
def test_windows_that_slide_read_each_row_once(function: Function):
    column = Column("float")
    reads = 0
    for place in range(2000):
        column.add(place, float(place % 7))
        if place < 300:
            continue
        low = place + 1 - 300 - column_first(column)
        covered = covered_by(column, function)
        assert column.ask(function, low, place + 1 - column_first(column))[1]
        reads += covered_by(column, function) - covered
        if place % 50 == 0:
            column.forget(place - 320)
    assert reads == 2000, "each row is read once, none twice"


def column_first(column: Column) -> int:
    return int(column.arrays["lists"][column.number]["first"])


def covered_by(column: Column, function: Function) -> int:
    used = column.arrays["summaries"][: column.arrays["counters"][layout.SUMMARIES_TOP]]
    return int(used["end"].max(initial=0))


def test_two_windows_far_apart_share_a_summary_without_starting_over():
    column = Column("int")
    for place in range(600):
        column.add(place, place)
    for place in range(600, 1500):
        column.add(place, place)
        for low, high in ((place - 590, place - 540), (place - 40, place + 1)):
            assert column.ask(Function.SUM, low, high)[0] == sum(range(low, high))
    summary = column.arrays["summaries"][0]
    assert summary["begin"] <= 1499 - 590
    assert summary["end"] == 1500


def test_short_windows_need_no_summary():
    column = Column("int", scan_max=10)
    for place in range(50):
        column.add(place, place)
    assert column.ask(Function.SUM, 40, 50)[0] == sum(range(40, 50))
    assert column.arrays["counters"][layout.SUMMARIES_TOP] == 0
    assert column.ask(Function.SUM, 39, 50)[0] == sum(range(39, 50))
    assert column.arrays["counters"][layout.SUMMARIES_TOP] == 1


def test_a_summary_whose_entries_are_gone_is_given_back():
    column = Column("int")
    for place in range(100):
        column.add(place, place)
    column.ask(Function.SUM, 0, 100)
    column.add(100, 100)
    column.forget(100)
    assert column.arrays["summaries"][0]["capacity"] == 0
    assert column.ask(Function.SUM, 0, 1) == (100, True)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e16] + [1.0] * 40 + [-1e16], 40.0),
        ([0.1] * 40, 4.0),
        ([1e308] * 20 + [-1e308] * 20, 0.0),
    ],
)
def test_sums_over_summaries_do_not_drift(values: list[float], total: float):
    column = Column("float")
    for place in range(300):
        column.add(place, 1e15 * (place % 3))
        column.ask(Function.SUM, max(0, place - 30), place + 1)
    for place, value in enumerate(values, 300):
        column.add(place, value)
        column.ask(Function.SUM, 0, place + 1)
    word, defined = column.ask(Function.SUM, 300, 300 + len(values))
    assert defined
    assert struct.unpack("<d", struct.pack("<q", word))[0] == total


def test_int_sums_are_undefined_just_beyond_64_bits():
    column = Column("int")
    for place, value in enumerate([2**62] * 20 + [-(2**62)] * 40):
        column.add(place, value)
    sums = {1: 2**62, 20: None, 39: 2**62, 40: 0, 42: -(2**63), 43: None}
    for high, expected in sums.items():
        word, defined = column.ask(Function.SUM, 0, high)
        assert (word if defined else None) == expected
