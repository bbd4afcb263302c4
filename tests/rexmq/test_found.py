"""The results of a detection are tables, texts and explanations."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rexmq

RULES = """
rule high:
define High(room: string) from Temp(value > 20) where room = Temp.room
rule low:
define Low(room: string) from Temp(value < 5) where room = Temp.room
"""
TEMPS = pd.DataFrame(
    {"time": [0, 60, 120], "room": ["<b>&", "attic", "hall"], "value": [25.5, 10.0, 30.0]}
)


@pytest.fixture(scope="module")
def found():
    return rexmq.detect(RULES, {"Temp": TEMPS})


def test_tables_are_frames_of_any_library(found):
    table = found["High"]
    assert list(table.to_pandas()["room"]) == ["<b>&", "hall"]
    assert table.to_polars()["room"].to_list() == ["<b>&", "hall"]
    assert table.to_arrow().equals(pa.table(table))
    assert pl.DataFrame(table).equals(table.to_polars())
    assert found["Low"].to_pandas().empty


def test_results_feed_rules_again(found):
    again = rexmq.detect(
        "define Twice() from High() as b and last High() within 5 min from b", found
    )
    assert len(again["Twice"]) == 1


def test_which_table_is_asked_for_is_said(found):
    with pytest.raises(rexmq.EventError, match=r"which table\? .*High, Low"):
        found.to_pandas()
    with pytest.raises(KeyError, match="no rule defines Hihg; defined are: High, Low"):
        found["Hihg"]


def test_results_can_be_read(found):
    assert repr(found).splitlines() == [
        "High(room: string): 2 rows",
        "  1970-01-01T00:00:00Z  room='<b>&'",
        "  1970-01-01T00:02:00Z  room='hall'",
        "Low(room: string): 0 rows",
    ]
    rules = "define Seen(at: int, n: int) from Temp(value > 20) as t where at = t.time, n = 7"
    first = rexmq.detect(rules, {"Temp": TEMPS[:1]})
    assert repr(first).endswith("at=1970-01-01T00:00:00Z, n=7")
    assert "<td>1970-01-01T00:00:00Z</td><td>7</td>" in first._repr_html_()
    assert list(first["Seen"].to_pandas()["at"]) == [0]
    assert repr(
        rexmq.detect("define All() from Temp()", {"Temp": pd.concat([TEMPS] * 4)})
    ).endswith("\n  and 2 more")


def test_html_is_escaped(found):
    html = found._repr_html_()
    assert "<td>&lt;b&gt;&amp;</td>" in html
    assert "<b>" not in html
    assert "<caption>Low: 0 rows</caption>" in html
    assert "<b>" not in found.explain("High", 0)._repr_html_()


def test_rows_are_explained(found):
    assert "It fires: 1 match." in str(found.explain("High", 1))
    assert "value > 20 is false: value = 10.0" in repr(found.explain("high", event="2"))
    with pytest.raises(rexmq.EventError, match="give the row of a table, or a rule and event=ID"):
        found.explain("High")
    with pytest.raises(IndexError, match="High has 2 rows"):
        found.explain("High", 2)


def test_an_engine_takes_frames_and_gives_tables():
    engine = rexmq.Engine("event Temp(room: string, value: float)" + RULES)
    engine.push(TEMPS.iloc[:1], type="Temp")
    engine.push({"Temp": pl.from_pandas(TEMPS.iloc[1:])})
    found = engine.advance()
    assert [event.cause for event in found.events()] == [("1",), ("3",)]
    assert list(found.tables()["High"].to_pandas()["room"]) == ["<b>&", "hall"]
    assert repr(found) == "Detections(High: 2)"
    assert repr(engine) == "Engine(rules: high, low; event types: Temp, High, Low)"
    assert "value &gt; 20" in engine._repr_html_()


def test_an_engine_names_the_row_of_the_frame_that_it_refuses():
    engine = rexmq.Engine("event Temp(room: string, value: float)" + RULES)
    engine.push(TEMPS, type="Temp")
    later = TEMPS.assign(time=TEMPS["time"] + 180, value=[1.0, None, 2.0])
    with pytest.raises(rexmq.BadEvent, match=r"^frame Temp:row 2: attribute value: .* found null"):
        engine.push({"Temp": later})
    with pytest.raises(rexmq.BadEvent, match="no event type is called Hum"):
        engine.push(TEMPS, type="Hum")
    with pytest.raises(rexmq.BadEvent, match="no event type is called Hum"):
        engine.push(TEMPS.assign(type="Hum"))
    assert len(engine.advance().tables()["High"]) == 2  # nothing of what was refused


def test_a_frame_with_sources_may_be_pushed_in_pieces():
    engine = rexmq.Engine("event Temp(room: string, value: float)" + RULES)
    for _ in range(2):
        engine.push(TEMPS.assign(source="s"), type="Temp")
    assert len(engine.advance().tables()["High"]) == 4
    assert engine.duplicates == 0
