"""Composite events by type: each with the columns that it has, and no others."""

from datetime import UTC, datetime

import pytest

from broker.spark import detect, of_type, write_by_type

pytestmark = pytest.mark.filterwarnings("ignore:the events have")
RULES = """
rule high: define High(area: string, value: float) from Seen(value > 10) as Now
where area = Now.area, value = Now.value
rule alarm: define Alarm() from Seen(value > 20)
rule never: define Never(value: int) from Seen(value > 1000) as Now where value = 1
"""


def test_each_type_is_written_with_the_columns_that_it_has(spark, tmp_path):
    rows = [(float(number), "ab"[number % 2], float(number)) for number in range(30)]
    seen = spark.createDataFrame(rows, "time double, area string, value double")
    found = detect({"Seen": seen}, RULES, cells=3)
    for _ in range(2):  # a second time over the first
        assert write_by_type(found, tmp_path) == {"High": 19, "Alarm": 9, "Never": 0}
    written = {
        name: spark.read.parquet(str(tmp_path / name)) for name in ("High", "Alarm", "Never")
    }
    assert written["High"].columns == ["time", "area", "value", "source", "id", "cause"]
    assert written["Alarm"].columns == ["time", "source", "id", "cause"]
    assert written["Never"].columns == ["time", "value", "source", "id", "cause"]
    for name, frame in written.items():
        assert sorted(frame.collect()) == sorted(of_type(found, name).collect()), name
    first = min(written["High"].collect())
    assert (first["time"].astimezone(UTC), first["area"], first["value"]) == (
        datetime(1970, 1, 1, 0, 0, 11, tzinfo=UTC),
        "b",
        11.0,
    )


def test_a_frame_that_is_kept_stays_so(spark, tmp_path):
    seen = spark.createDataFrame([(1.0, "a", 30.0)], "time double, area string, value double")
    found = detect({"Seen": seen}, RULES, types=["Alarm"], cells=1).cache()
    assert write_by_type(found, str(tmp_path)) == {"Alarm": 1}
    assert found.is_cached
    found.unpersist()
