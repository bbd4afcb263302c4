"""Bad input of ``detect``: every mistake is told by the name of its column, or counted."""

import pytest

from broker.spark import detect, explain_plan, rejected
from broker.spark.instants import UNREAD_TIME
from matcher.errors import BadEvent, SchemaError

RULE = """
event Temp(area: string, value: float)
rule hot: define Hot(area) from Temp(area = $a, value > 45) where area = $a
"""


pytestmark = pytest.mark.filterwarnings("ignore:the events have no column")


def temps(spark, rows, schema="time double, area string, value double"):
    return {"Temp": spark.createDataFrame(rows, schema)}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("time double, area string", "event Temp lacks column value .float."),
        ("time double, area string, value string", "column value of event Temp is of type string"),
        ("area string, value double", "no column time holds the time"),
        ("time boolean, area string, value double", "column time is of type boolean"),
        ("time timestamp_ntz, area string, value double", "column time .* without a time zone"),
    ],
)
def test_a_column_that_is_missing_or_of_another_kind_is_named(spark, schema, said):
    with pytest.raises(SchemaError, match=said):
        detect(temps(spark, [], schema), RULE)


def test_other_mistakes_are_told_before_anything_runs(spark):
    frame = temps(spark, [])
    with pytest.raises(SchemaError, match="no column 'type'"):
        detect(frame["Temp"], RULE)
    with pytest.raises(ValueError, match="the rules use Temp, of which no frame is given"):
        detect({"Smoke": frame["Temp"]}, RULE)
    with pytest.raises(ValueError, match="the rules define Hot"):
        detect(frame, RULE, types=["Cold"])
    with pytest.raises(ValueError, match="room is no key of rule hot"):
        detect(frame, RULE, "room")
    undeclared = "define Hot(area) from Temp(value > 45) where area = Temp.area"
    with pytest.raises(SchemaError, match="column extra of event Temp is of type binary"):
        detect(temps(spark, [], "time double, value double, extra binary"), undeclared)


def test_rows_that_are_no_events_are_refused_or_dropped_and_counted(spark):
    nan = float("nan")
    rows = [(1.0, "a", 50.0), (None, "a", 50.0), (2.0, None, 50.0), (3.0, "a", nan)]
    rows += [(4.0, "b", None), (5.0, "c", 60.0), (nan, "c", 60.0)]
    frame = temps(spark, rows)
    with pytest.raises(BadEvent, match="5 rows are no events") as refused:
        detect(frame, RULE)
    assert "1 of Temp: attribute area: expected string, found null" in str(refused.value)
    with pytest.warns(UserWarning, match="5 rows are no events"):
        found = detect(frame, RULE, on_bad="drop", cells=1)
    assert sorted(one["Hot"]["area"] for one in found.collect()) == ["a", "c"]
    reasons = {one["reason"] for one in rejected(frame, RULE).collect()}
    assert reasons == {
        "no time",
        UNREAD_TIME,
        "attribute area: expected string, found null",
        "attribute value: expected a finite float",
        "attribute value: expected float, found null",
    }


@pytest.mark.filterwarnings("ignore:1 row is no event")
def test_times_come_as_timestamps_texts_seconds_and_wall_clocks(spark):
    """One instant, told in four ways, as text without a zone, too; finer digits are no time."""
    texts = [
        "2013-07-01T12:00:00.25+02:00",
        "2013-07-01T12:00:00.25",
        "2013-07-01T10:00:00.0000001Z",
    ]
    made = spark.createDataFrame([(text,) for text in texts], "text string").selectExpr(
        "text",
        "'a' as area",
        "50d as value",
        "timestamp_micros(1372672800250000) as instant",
        "1372672800.25d as seconds",
        "timestamp_ntz'2013-07-01 12:00:00.25' as clock",
    )
    found = {}
    for name in ("text", "instant", "seconds", "clock"):
        frame = {"Temp": made.select(name, "area", "value")}
        out = detect(frame, RULE, time=name, time_zone="Europe/Rome", on_bad="drop", cells=1)
        found[name] = [round(one["time"].timestamp() * 1e6) for one in out.collect()]
    assert found == {
        "text": [1372672800250000] * 2,
        "instant": [1372672800250000] * 3,
        "seconds": [1372672800250000] * 3,
        "clock": [1372672800250000] * 3,
    }


def test_the_plan_says_how_each_rule_is_cut(spark):
    more = (
        RULE
        + """rule any: define Any() from Hot() as Now
        and last Hot() as Before within 1 min from Now consuming Before"""
    )
    with pytest.warns(UserWarning, match="rule any: in one piece, for it consumes events"):
        detect(temps(spark, [(1.0, "a", 50.0)]), more)
    assert explain_plan(temps(spark, []), more).splitlines() == [
        "hot: by key, Temp.area",
        "any: in one piece, for it consumes events and the events of any are not all bound to "
        "one value",
        "pass 1: hot",
        "pass 2: any",
        "the frame of Temp: read by Spark, for its rows have no sequence numbers and are named "
        "after what they hold",
    ]
