"""The table of filters: one at a time and many at once, and room that is used again."""

import random

import numpy as np
import pytest

from matcher.filters.constraint import Filter
from matcher.filters.mixed import FilterBatch
from matcher.filters.table import FilterTable

FILTERS = [
    Filter(),
    Filter.of(("a", "=", 1.0), ("b", "prefix", "x"), type="T"),
    Filter.of(("a", "<", 0.5), ("b", "<", "x"), ("on", "!=", True)),
    Filter.of(("a", "<", 1e300), type="U"),
]


def described(table: FilterTable, identifier: int) -> list[tuple[object, ...]]:
    """A filter's rows in words, whatever the numbers of terms and tests."""
    words = []
    for word, operand in table.rows_of(table.slot(identifier)).tolist():
        term = table.vocabulary.terms.words[word & 0xFFFFFFFF]
        how = word >> 36
        asked = table.vocabulary.tests.words[operand] if how in (2, 3) else operand
        words.append((term, word >> 32 & 15, how, asked))
    return words


def test_many_at_once_are_packed_like_one_at_a_time():
    single, many = FilterTable(), FilterTable()
    for number, filter_ in enumerate(FILTERS):
        single.add(number, number, filter_)
    many.add_all(FilterBatch.of([(number, number, one) for number, one in enumerate(FILTERS)]))
    for number in range(len(FILTERS)):
        assert described(single, number) == described(many, number)


def test_more_rows_than_their_number_can_say_are_refused(monkeypatch):
    monkeypatch.setattr("matcher.filters.table.ROWS_MAX", 10)
    table = FilterTable()
    table.add(1, 1, Filter.of(("a", "=", 1), ("b", "=", 1)))
    wide = Filter.of(*((f"n{number}", "=", 1) for number in range(9)))
    with pytest.raises(ValueError, match="together may have 10 constraints"):
        table.add(2, 1, wide)
    with pytest.raises(ValueError, match="together may have 10 constraints"):
        table.add_all(FilterBatch.of([(2, 1, wide)]))
    assert len(table) == 1
    assert len(table.vocabulary.terms) == 2


def test_nothing_grows_when_filters_come_and_go():
    table, rng = FilterTable(), random.Random(3)
    for number in range(5_000):
        name, operand = f"n{rng.randrange(10**6)}", f"t{rng.randrange(10**6)}"
        table.add(number, number, Filter.of((name, "=", operand), (name, "<", operand)))
        if number >= 20:
            table.remove(number - 20)
    assert len(table) == 20
    assert table.live_interfaces == 20
    vocabulary = table.vocabulary
    sizes = (table.rows.size // 2, table.filters.size, table.interfaces.size)
    assert max(*sizes, len(vocabulary.terms), len(vocabulary.tests) // 2) <= 21
    assert np.count_nonzero(table.interfaces.rows[: table.interfaces.size] >= 0) == 20
