"""Times that clocks show twice, told by the order of rows."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.recorded import RecordedEvents
from matcher.formats import csvfiles, jsonlines, pieces
from matcher.formats.frames import Frame
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.formats.wallclock import WallClock

BERLIN = Layout(times=TimeForm(zone="Europe/Berlin"))
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COURSES = {
    "every half hour": ("01:30 02:00 02:30 02:00' 02:30' 03:00", 0),
    "every hour": ("00:00 01:00 02:00 02:00' 03:00", 0),
    "every forty minutes": ("01:20 02:00 02:40 02:20' 03:00", 0),
    "once in each": ("01:50 02:10 02:05' 03:00", 0),
    "as if nothing were": ("01:00 02:10 02:20 03:00", 2),
    "the last ones": ("02:40 02:50 02:10'", 0),
    "two at a time": ("01:00 01:00 02:00 02:00 03:00", 2),
    "a first row repeated": ("02:00 02:00 03:00", 2),
    "a job by day": ("26T02:40 27T02:30 28T02:40", 1),
    "two sensors": ("01:30 02:30 02:00' 02:30' 04:00 02:00 02:30 02:00' 03:00", 0),
    "several loggers": (
        "01:50:05 01:50:03 02:30:05 02:30:03 02:30:09 02:10:00' 02:09:58' 03:00",
        0,
    ),
    "a step back in the second hour": ("02:50 02:20' 02:30' 02:29' 02:40' 03:00", 0),
    "the newest first": ("03:20 03:00 02:40' 02:20' 02:00' 02:40 02:20 02:00 01:40", 3),
}
"""Local times of 27 October 2024, ``'`` behind those of the second hour; how many are undecided."""


def clock_of(text: str) -> tuple[datetime, int]:
    """The clock and the hour, 0 or 1, of ``02:00``, ``02:00:05'`` or ``26T02:40``."""
    day, _, time = text.removesuffix("'").rpartition("T")
    return datetime.fromisoformat(f"2024-10-{day or 27}T{time}"), int(text.endswith("'"))


def time_of(clock: datetime, fold: int, zone: str = "Europe/Berlin") -> int:
    return (clock.replace(tzinfo=ZoneInfo(zone), fold=fold) - EPOCH) // MICROSECOND


@pytest.mark.parametrize("name", COURSES)
def test_the_order_of_rows_tells_the_hour(name: str) -> None:
    texts, undecided = COURSES[name]
    rows = [clock_of(text) for text in texts.split()]
    read = BERLIN.times.times_of([str(clock) for clock, _ in rows])
    assert read is not None
    for size in (1, 2, len(rows)):
        clock, found = WallClock(), list[int]()
        for begin in range(0, len(rows), size):
            piece = np.arange(begin, min(begin + size, len(rows)))
            found += clock.told(read.take(piece)).tolist()
        assert found == [time_of(*row) for row in rows]
        assert clock.undecided == undecided


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe"])
def test_events_of_any_form_are_at_the_times_that_clocks_showed(
    zone: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are dense enough to go back at the change, of two types, in small pieces."""
    chance = random.Random(seed)
    monkeypatch.setattr(csvfiles, "ROWS", 7)
    monkeypatch.setattr(pieces, "ROWS", 7)
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 300)
    change = datetime(2024, 4, 6, 14) if "Lord" in zone else datetime(2024, 11, 3, 5)
    moment, times = change.replace(tzinfo=UTC), []
    for _ in range(120):
        moment += timedelta(seconds=chance.randrange(1, 240))
        times.append(moment)
    rows = [
        {
            "type": chance.choice("AB"),
            "time": time.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(" "),
            "n": number,
        }
        for number, time in enumerate(times)
    ]
    expected = [(number, (time - EPOCH) // MICROSECOND) for number, time in enumerate(times)]
    frame = pd.DataFrame(rows)
    stamped = frame.assign(time=pd.to_datetime(frame["time"]))
    frame.to_csv(tmp_path / "e.csv", index=False)
    pq.write_table(pa.Table.from_pandas(stamped), tmp_path / "e.parquet")
    lines = [
        json.dumps({"type": row["type"], "time": row["time"], "data": {"n": row["n"]}})
        for row in rows
    ]
    (tmp_path / "e.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "late.csv").write_text((tmp_path / "e.csv").read_text() + "A,soon,9\n,,1\n")
    layout = Layout(times=TimeForm(zone=zone))
    inputs = [tmp_path / name for name in ("e.csv", "e.parquet", "e.jsonl", "late.csv")]
    for source in [*inputs, Frame.of(stamped, layout=layout), Frame.of(frame, layout=layout)]:
        recorded = RecordedEvents([source], layout=layout, skip_bad=True)
        assert not recorded.disordered
        assert not recorded.intake.undecided
        events = (e for step in recorded.steps() for batch in step.batches for e in batch.events())
        assert sorted((event.data["n"], event.time) for event in events) == expected


def test_what_the_first_look_reads_and_the_second_refuses_breaks_no_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look takes the last time for the second hour, by an event that is refused."""
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 10)
    path = tmp_path / "e.jsonl"
    clocks = ["01:50", "02:30", "02:10", "03:10"]
    members = ["", ', "id": []', "", ""]
    path.write_text(
        "".join(
            f'{{"type": "A", "time": "2024-10-27 {clock}"{member}}}\n'
            for clock, member in zip(clocks, members, strict=True)
        )
    )
    recorded = RecordedEvents([path], layout=BERLIN, skip_bad=True)
    promised, found = 0, list[int]()
    for step in recorded.steps():
        times = [time for batch in step.batches for time in batch.time.tolist()]
        assert min(times, default=promised) >= promised
        promised = step.mark
        found += times
    assert found == [time_of(*clock_of(clock)) for clock in ("01:50", "02:10", "03:10")]
