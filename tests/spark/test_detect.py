"""``detect`` over DataFrames gives what the oracle gives over the whole, however they are cut."""

import os
import warnings
from random import Random

import pytest
from agreement import row
from cases import random_case
from cut_cases import Cut, cut_case, found_in_whole, identity
from iteration_cases import iteration_case
from spark_frames import events_of, frame_of

from broker.spark import detect, detection

CASES, FIRST = int(os.environ.get("REXMQ_CASES", "4")), int(os.environ.get("REXMQ_SEED", "0"))


@pytest.fixture
def few_rows_a_block(monkeypatch):
    """So that few events make blocks that can be cut by time."""
    monkeypatch.setattr(detection, "ROWS_MIN", 2)


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("few_rows_a_block")
@pytest.mark.parametrize("case_of", [random_case, iteration_case])
def test_cells_give_what_the_whole_gives(spark, case_of):
    fired = 0
    for seed in range(FIRST, FIRST + CASES):
        cut: Cut = cut_case(seed, case_of)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = detect(
                frame_of(spark, cut.events, Random(seed)),
                cut.text,
                ways=cut.ways,
                cells=cut.parts,
                full_cause=True,
            )
        ours = sorted(events_of(found), key=identity)
        whole = sorted(found_in_whole(cut), key=identity)
        fired += len(whole) > 0
        assert [*map(row, ours)] == [*map(row, whole)], (
            f"seed {seed}, {cut.ways}, {cut.parts} cells\n{cut.text}\n"
            f"{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
        )
    assert fired > CASES // 6


PAIRS = """
event Temp(area: string, value: float)
rule pair: define Pair(area: string, first: float, second: float)
from Temp(area = $a) as Now and last Temp(area = $a) as Before within 1 min from Now
where area = $a, first = Before.value, second = Now.value
"""


def pairs(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = detect({"Temp": frame}, PAIRS, full_cause=True, **options)
    return sorted(map(row, events_of(found)))


@pytest.mark.usefixtures("few_rows_a_block")
def test_rows_without_names_find_the_same_however_they_are_partitioned(spark):
    """Simultaneous rows, and rows that hold the same, are told apart by what they hold alone."""
    random = Random(7)
    rows = [
        (float(random.randint(0, 30)), random.choice("ab"), random.randint(0, 3) / 2)
        for _ in range(150)
    ]
    schema = "time double, area string, value double"
    found = []
    for cells, parts, ways in ((1, 1, ()), (3, 2, ("key",)), (5, 3, ("time",))):
        random.shuffle(rows)
        frame = spark.createDataFrame(rows, schema).repartition(parts)
        found.append(pairs(frame, cells=cells, ways=ways))
    assert len(set(rows)) < len(rows)
    assert len(found[0]) > 100
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("few_rows_a_block")
def test_a_key_with_most_of_the_events_is_cut_by_time_as_well(spark):
    schema = "time double, area string, value double, source string, sequence long"
    rows = [(float(n), "busy" if n % 10 else f"a{n % 7}", n / 2, "s", n) for n in range(2_000)]
    frame = spark.createDataFrame(rows, schema)
    whole = pairs(frame, cells=1, ways=())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = detect({"Temp": frame}, PAIRS, full_cause=True, cells=4)
    assert found.rdd.getNumPartitions() > 4
    assert sorted(map(row, events_of(found))) == whole
    assert len(whole) > 1_700


HEADINGS = """
event Buoy(`Sea Temp (C)`: float, `from`: string, `a.b`: int)
define Warm(`Station-Id`, mean) from Buoy(lower(`from`) in ("north", "south")) as b
where `Station-Id` = b.`from`, mean = Avg(Buoy(`from` matches "^N").`Sea Temp (C)` * `a.b`
within 1 h from b)
"""


def test_columns_have_headings_of_any_signs(spark):
    rows = [(0.0, "s", 1, 4.5, "North", 2), (60.0, "s", 2, 5.5, "South", 3)]
    names = "time double, source string, sequence long"
    frame = spark.createDataFrame(
        rows, f"{names}, `Sea Temp (C)` double, `from` string, `a.b` long"
    )
    found = detect({"Buoy": frame}, HEADINGS, types=["Warm"])
    data = [event.data for event in events_of(found)]
    assert sorted(map(str, data)) == [
        "{'Station-Id': 'North', 'mean': 9.0}",
        "{'Station-Id': 'South', 'mean': 9.0}",
    ]
