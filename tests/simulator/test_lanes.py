"""Lanes: delay, bandwidth, queues, and what goes wrong on them."""

import pytest

from routing import wire
from routing.messages import Promise
from simulator.lanes import Frames, Lane, Quality
from simulator.simulation import Simulation


class Probe:
    """A lane, and what arrived at its end: moment and number."""

    def __init__(self, **quality: float) -> None:
        self.simulation = Simulation(1)
        self.arrived: list[tuple[float, int]] = []
        self.lane = Lane(self.simulation, "a>b", Quality(**quality), self.take)

    def take(self, frames: Frames) -> None:
        message = wire.decode(frames)
        assert isinstance(message, Promise)
        self.arrived.append((round(self.simulation.now, 9), message.mark))

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.lane.send(wire.encode(Promise(number)))


def test_a_message_takes_its_delay() -> None:
    probe = Probe(delay_s=0.25)
    probe.send(1, 2)
    probe.simulation.run(1)
    assert probe.arrived == [(0.25, 1), (0.25, 2)]


def test_bandwidth_makes_messages_queue() -> None:
    size = sum(map(len, wire.encode(Promise(1))))
    probe = Probe(delay_s=0.25, bandwidth=size / 0.1)
    probe.send(1, 2, 3)
    probe.simulation.run(1)
    assert probe.arrived == [(0.35, 1), (0.45, 2), (0.55, 3)]
    assert (probe.lane.messages, probe.lane.bytes) == (3, 3 * size)


def test_a_queue_is_bounded() -> None:
    size = sum(map(len, wire.encode(Promise(1))))
    probe = Probe(bandwidth=size, queue_s_max=2.0)
    probe.send(*range(1, 9))
    probe.simulation.run(100)
    assert [number for _, number in probe.arrived] == [1, 2, 3]
    assert probe.lane.lost == 5


def test_a_lane_keeps_the_order_when_its_delay_shrinks() -> None:
    probe = Probe(delay_s=1.0)
    probe.send(1)
    probe.lane.quality = Quality(delay_s=0.1)
    probe.send(2)
    probe.simulation.run(5)
    assert probe.arrived == [(1.0, 1), (1.0, 2)]


def test_what_is_under_way_on_a_cut_lane_is_lost() -> None:
    probe = Probe(delay_s=1.0)
    probe.send(1)
    probe.simulation.run(0.5)
    probe.lane.is_cut = True
    probe.send(2)
    probe.simulation.run(5)
    assert probe.arrived == []
    assert probe.lane.lost == 2


def test_loss_repeats_and_reordering_are_as_large_as_asked_for() -> None:
    lossy = Probe(loss=0.3)
    repeating = Probe(repeats=0.3)
    mixing = Probe(jitter_s=1.0)
    for probe in (lossy, repeating, mixing):
        probe.send(*range(1_000))
        probe.simulation.run(10)
    assert 650 < len(lossy.arrived) < 750
    assert 1_250 < len(repeating.arrived) < 1_350
    numbers = [number for _, number in mixing.arrived]
    assert sorted(numbers) == list(range(1_000)) != numbers


@pytest.mark.parametrize(
    "wrong",
    [{"delay_s": -1}, {"loss": 1.5}, {"repeats": -0.1}, {"bandwidth": 0}, {"queue_s_max": -1}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_quality_without_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Quality(**wrong)
