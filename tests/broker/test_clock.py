"""A wall clock that is set back never stands still, and never goes back."""

import time

import pytest

from broker.clock import Clock


class Hands:
    """Both clocks of the system, as they are set and as they run on."""

    def __init__(self) -> None:
        self.wall, self.moment = 1_000_000.0, 50.0

    def run(self, seconds: float) -> None:
        self.wall += seconds
        self.moment += seconds


@pytest.fixture
def hands(monkeypatch) -> Hands:
    hands = Hands()
    monkeypatch.setattr(time, "time", lambda: hands.wall)
    monkeypatch.setattr(time, "monotonic", lambda: hands.moment)
    return hands


def test_it_is_the_wall_clock_while_that_runs_on_or_is_set_forward(hands) -> None:
    clock = Clock()
    assert clock.now() == 1_000_000.0
    hands.run(2.5)
    assert clock.now() == 1_000_002.5
    hands.wall += 3_600
    assert clock.now() == 1_003_602.5


def test_set_back_it_goes_on_at_half_its_pace_until_the_wall_clock_has_caught_up(hands) -> None:
    clock = Clock()
    clock.now()
    hands.wall -= 60
    seen = []
    for _ in range(130):
        hands.run(1)
        seen.append(clock.now())
    assert seen[:3] == [1_000_000.5, 1_000_001.0, 1_000_001.5]
    assert seen[119] == 1_000_060.0 == hands.wall - 10
    assert seen[-1] == hands.wall
    assert seen == sorted(set(seen))
