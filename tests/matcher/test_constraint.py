"""Constraints and filters: what is refused, and how a filter is checked against a type."""

import math

import pytest

from matcher.errors import FilterError
from matcher.filters.constraint import SPELLING, SYMBOLS, Constraint, Filter, Operator
from matcher.filters.mixed import Cells, FilterBatch
from matcher.filters.table import FilterTable
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float", on="bool", level="int")


@pytest.mark.parametrize(
    ("operator", "operand", "message"),
    [
        (Operator.EQUAL, math.nan, "NaN compares with nothing"),
        (Operator.EQUAL, 2**63, "an int beyond 64 bits"),
        (Operator.LESS, True, "does not fit a bool"),
        (Operator.PREFIX, 5, "does not fit a number"),
        (Operator.EQUAL, None, "expected a number, a text or a bool, found null"),
    ],
)
def test_what_no_event_could_be_held_against_is_refused(operator, operand, message):
    with pytest.raises(FilterError, match=message):
        Constraint("x", operator, operand)


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        (Filter.of(("height", ">", 1)), "Temp has no attribute height"),
        (Filter.of(("area", ">", 1)), "Temp.area is of kind string, the operand is a number"),
        (Filter.of(("on", "=", "x")), "Temp.on is of kind bool, the operand is a text"),
    ],
)
def test_a_filter_that_does_not_fit_its_type_is_refused(filter_, message):
    with pytest.raises(FilterError, match=message):
        filter_.check(TEMP)


def test_a_filter_that_fits_its_type_passes():
    Filter.of(("area", "prefix", "a"), ("value", "<", 5), ("level", "!=", 0.5)).check(TEMP)
    Filter().check(TEMP)


def test_every_operator_has_its_symbol():
    assert {SYMBOLS[symbol] for symbol in SPELLING.values()} == set(Operator)
    assert str(Constraint("x", Operator.LESS_EQUAL, 5)) == "x <= 5"


def test_filters_given_as_arrays_are_refused_too_and_nothing_is_added():
    good = FilterBatch.of([(1, 1, Filter.of(("x", "=", 1.5)))])
    for operators, values, message in (
        ([Operator.PREFIX], good.cells.values, "does not fit"),
        ([Operator.EQUAL], Cells.of([[("x", math.nan)]]).values, "NaN"),
    ):
        cells = Cells(good.cells.offsets, good.cells.names, good.cells.kinds, values, ())
        batch = FilterBatch(good.identifiers, good.interfaces, cells, good.operators * 0)
        batch.operators[:] = operators
        table = FilterTable()
        with pytest.raises(FilterError, match=message):
            table.add_all(batch)
        assert len(table) == 0
        assert len(table.vocabulary.terms) == 0
