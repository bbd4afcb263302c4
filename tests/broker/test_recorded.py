"""Recorded files as one stream: marks hold, nothing is lost, chunks change nothing."""

import random
from pathlib import Path

import numpy as np
import pytest

from broker.recorded import RecordedEvents, course_of
from matcher.errors import BadEvent, EventError
from matcher.formats import csvfiles, jsonlines
from matcher.formats.intake import Glance
from matcher.model import TIME_MAX, EventType


def lines(name: str, times: list[int]) -> str:
    return "".join(f'{{"type": "{name}", "time": {time}}}\n' for time in times)


def taken(recorded: RecordedEvents) -> list[tuple[str, str, int]]:
    """Every event as (source, id, time), having checked each mark's promise."""
    events, promised = [], -(2**63)
    for step in recorded.steps():
        for batch in step.batches:
            for event in batch.events():
                assert event.time >= promised, "an event came after its mark"
                events.append((event.source, event.id, event.time))
        assert step.mark >= promised, "a mark went back"
        promised = step.mark
    assert promised == TIME_MAX
    return events


def test_a_course_tells_what_is_still_to_come() -> None:
    pieces = [[5, 3, 9], [], [4, 8], [10]]
    glances = [
        Glance(end, np.array(times, np.int64), min(times, default=TIME_MAX))
        for end, times in zip([3, 4, 6, 7], pieces, strict=True)
    ]
    course = course_of(iter(glances))
    assert [course.mark_after(end) for end in range(8)] == [3, 3, 3, 4, 4, 4, 10, TIME_MAX]
    assert course.setback == 5
    assert course_of(iter([])).mark_after(0) == TIME_MAX


@pytest.mark.parametrize("seed", range(8))
def test_random_files_are_merged_without_breaking_a_promise(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    print("seed", seed)
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", chance.choice([40, 100, 300]))
    monkeypatch.setattr(csvfiles, "ROWS", 3)
    paths, expected = [], []
    for number in range(4):
        times = [chance.randrange(40) for _ in range(chance.randrange(30))]
        if number % 2:
            times.sort()
        path = tmp_path / (f"f{number}.csv" if number == 3 else f"f{number}.jsonl")
        table = "type,time\n" + "".join(f"T,{time}\n" for time in times)
        path.write_text(table if number == 3 else lines("T", times))
        paths.append(path)
        expected += [
            (path.name, str(line), time * 1_000_000) for line, time in enumerate(times, start=1)
        ]
    recorded = RecordedEvents(paths)
    assert sorted(taken(recorded)) == sorted(expected)
    assert recorded.intake.events == len(expected)


def test_files_in_order_of_time_are_read_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 100)
    paths = []
    for name in ("a", "b"):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text(lines("T", list(range(1000))))
    recorded = RecordedEvents(paths)
    assert not recorded.disordered
    waiting, most = 0, 0
    times: list[int] = []
    for step in recorded.steps():
        times += [time for batch in step.batches for time in batch.time.tolist()]
        times = [time for time in times if time >= step.mark]
        waiting = len(times)
        most = max(most, waiting)
    assert waiting == 0
    assert most < 20, "more than a chunk of each file waited"


def test_disorder_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines("T", [1, 5, 2]) + lines("U", [3, 9]))
    assert RecordedEvents([path]).disordered == {str(path): 3_000_000}


def test_types_side_by_side_in_a_chunk_are_no_disorder(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(lines("TU"[time % 2], [time]) for time in range(10)) + "bad\n")
    recorded = RecordedEvents([path], skip_bad=True)
    assert not recorded.disordered
    assert len(taken(recorded)) == 10


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "t.jsonl" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(lines("T", [1]))
    assert [source for source, *_ in taken(RecordedEvents(paths))] == list(map(str, paths))
    same = taken(RecordedEvents([paths[0], paths[0]]))
    assert [source for source, *_ in same] == ["t.jsonl", "t.jsonl"]


def test_schemas_are_known_before_the_first_event_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines("T", [1] * 2000) + '{"type": "Late", "time": 2, "data": {"x": 1}}\n')
    declared = {"T": EventType("T")}
    recorded = RecordedEvents([path], declared=declared)
    assert recorded.intake.schemas == declared | {"Late": EventType.of("Late", x="int")}
    assert recorded.intake.events == 0


def test_a_bad_event_is_raised_when_it_is_reached(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines("T", [1]) + "nonsense\n")
    recorded = RecordedEvents([path])
    with pytest.raises(BadEvent, match=r"t.jsonl:2: not an event"):
        taken(recorded)


def test_timer_events_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines("Timer", [1]))
    with pytest.raises(EventError, match="Timer: it is built in"):
        RecordedEvents([path])
