"""What is kept of deliveries, and how recordings are read: enough for figures, and no more."""

from pathlib import Path

import numpy as np
import pytest
from simulator_text import events, overlay

from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, Int64s, StringColumn
from matcher.single import singles
from routing.messages import Delivery
from simulator import recordings, scenario
from simulator.experiment import Experiment
from simulator.measures import figures
from simulator.moments import Moments
from simulator.recordings import Recording

A = EventType.of("A", v="int")
SMALL = """
engine = "naive"
warm_up_s = 2.0
[topology]
kind = "ring"
brokers = 3
[workload]
types = 6
rules = 4
length = 2
window_s = 5.0
rates = [0.5, 4.0]
subscriptions = 2
horizon_s = 10.0
"""


def batch(times: list[int]) -> EventBatch:
    """Events at these times, numbered from 1."""
    numbers = np.arange(len(times)) + 1
    ids = EventIds(StringColumn.constant("s", len(times)), numbers)
    return EventBatch(A, np.array(times, np.int64), ids, (np.zeros(len(times), np.int64),))


def test_moments_of_single_events_and_of_columns() -> None:
    moments = Moments()
    (single,) = singles(batch([900_000]))
    moments.note(1.0, Delivery((single,), ((1,),)))
    moments.note(2.5, Delivery((batch([1_000_000, 2_400_000]), single), ((1,), (1,))))
    assert len(moments) == 4
    assert moments.delays(0.0).tolist() == [100_000, 1_500_000, 100_000, 1_600_000]
    assert moments.delays(2.5).tolist() == [1_500_000, 100_000, 1_600_000]
    assert moments.delays(2.6).tolist() == []
    assert [moments.count_until(last) for last in (899_999, 900_000, 1_000_000)] == [0, 2, 3]


def test_by_arrival_a_delay_is_from_when_the_last_event_was_published(tmp_path: Path) -> None:
    """The same way takes as long by arrival, though a composite event bears another time."""
    file = tmp_path / "scenario.toml"
    text = """
engine = "naive"
rules = "rules.tesla"
[[source]]
name = "s"
broker = "n0"
events = "s.jsonl"
[[sink]]
name = "k"
broker = "n2"
subscribe = ["C", "A"]
"""
    text += overlay({"n0 n1": 30, "n1 n2": 50})
    (tmp_path / "s.jsonl").write_text(events("A", 1.0, 2.0))
    (tmp_path / "rules.tesla").write_text(
        "event A(area: string)\n"
        "rule r: define C() from A() as a and last A() as b within 9 s from a"
    )
    for ordering in ("watermark", "arrival"):
        file.write_text(f'ordering = "{ordering}"\n{text}')
        experiment = Experiment(scenario.read(file))
        experiment.run()
        (sink,) = experiment.sinks.values()
        found = sorted(sink.moments.delays(0.0).tolist())
        assert len(found) == 3
        assert found == pytest.approx([80_000] * 3, abs=2_000)


def test_figures_are_the_same_whether_deliveries_are_kept_or_not(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SMALL)
    read = scenario.read(file)
    whole, lean = Experiment(read), Experiment(read, keeps_deliveries=False)
    assert figures(whole.run()) == figures(lean.run())
    assert not any(sink.arrivals for sink in lean.sinks.values())
    for name, sink in whole.sinks.items():
        since = whole.measured_from
        expected = [
            round(one.moment * MICROSECONDS) - int(time)
            for one in sink.arrivals
            if one.moment >= since
            for own in one.delivery.batches
            for time in own.time
        ]
        assert expected
        assert lean.sinks[name].moments.delays(since).tolist() == expected


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
def test_a_recording_is_published_whole_however_it_is_cut(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "AT_ONCE", 4)
    times = [second // 2 * 2 * MICROSECONDS for second in range(2 * count)]  # two a moment
    times.append(times[-1] + MICROSECONDS)
    published = list(Recording("s", (batch(times),)).publications())
    told: list[Int64s] = [own.time for one in published for own in one.batches]
    assert np.concatenate(told).tolist() == times
    assert [len(one.batches[0]) for one in published] == [2] * count + [1]
    assert [one.promise for one in published] == [*times[2::2], None]
