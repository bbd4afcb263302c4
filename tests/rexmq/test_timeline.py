"""A timeline shows what the clauses of a rule looked at, and what became of it."""

import matplotlib as mpl
import pandas as pd
import pytest

import rexmq
from rexmq.timeline import rows_of
from rules.explaining.explanation import Fate

mpl.use("agg")
RULES = """rule fire: define Fire(v: float, n: int)
    from Smoke() as s and each Temp(value > 45) within 5 min from s and
         not Rain() within 1 min from s
    where v = Temp.value, n = Count(Temp() within 2 min from s)"""
EVENTS = {
    "Temp": pd.DataFrame({"time": [0, 60, 240, 250], "value": [50.0, 40.0, 47.0, 60.0]}),
    "Smoke": pd.DataFrame({"time": [290, 1000]}),
    "Rain": pd.DataFrame({"time": [100, 990]}),
}


@pytest.fixture(scope="module")
def found():
    return rexmq.detect(RULES, EVENTS)


def test_a_row_for_each_clause_and_aggregate(found):
    rows = rows_of(found.explain("Fire", 0).explanation)
    fates = [[(event.id, fate) for event, fate in row.events] for row in rows]
    assert [row.label.split(" within")[0] for row in rows] == [
        "Smoke() as s",
        "each Temp(value > 45)",
        "not Rain()",
        "n = Count(Temp()",
    ]
    assert fates[2] == []  # no rain in the window
    assert rows[1].window == (-10_000_000, 290_000_000)
    assert [one for one, fate in fates[1] if fate is Fate.CHOSEN] == ["1", "3", "4"]
    assert [one for one, fate in fates[3] if fate is Fate.COUNTED] == ["3", "4"]


def test_it_is_drawn_on_new_axes_or_on_given_ones(found):
    axes = found.explain("Fire", 0).plot()
    assert axes.get_title() == "fire fires at 1970-01-01T00:04:50Z"
    assert axes.get_yticklabels()[0].get_text() == "Smoke() as s"
    again = found.explain("fire", event="Smoke#2").plot(axes.figure.add_subplot())
    assert again.get_title() == "fire does not fire at 1970-01-01T00:16:40Z"
    axes.figure.canvas.draw()
