"""How long an end of a link waits before it sends again."""

import pytest

from routing.overlay.retransmission import RetransmissionTimer


def test_it_waits_as_long_as_acknowledgements_take() -> None:
    timer = RetransmissionTimer(1.0, 30.0)
    for _ in range(50):
        timer.note(0.01)
    assert timer.lasts_s == 1.0
    timer.note(4.0)
    assert timer.lasts_s > 4.0
    for _ in range(50):
        timer.note(4.0)
    assert timer.lasts_s == pytest.approx(4.0, abs=0.1)
    for _ in range(50):
        timer.note(40.0)
    assert timer.lasts_s == 30.0


def test_it_waits_longer_each_time_in_vain() -> None:
    timer = RetransmissionTimer(1.0, 30.0)
    waited = []
    for _ in range(7):
        waited.append(timer.lasts_s)
        timer.double()
    assert waited == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    timer.begin()
    assert timer.lasts_s == 1.0
