"""What a broker tells of itself."""

import pytest

from matcher.model import TIME_MAX, TIME_MIN
from routing.serving.sources import FAR
from routing.serving.status import time_or_none


@pytest.mark.parametrize("mark", [None, TIME_MIN, -FAR, FAR, TIME_MAX - 1, TIME_MAX])
def test_what_is_before_or_after_all_events_is_no_time(mark) -> None:
    assert time_or_none(mark) is None


@pytest.mark.parametrize("mark", [1 - FAR, 0, FAR - 1])
def test_the_time_of_an_event_is_shown(mark) -> None:
    assert time_or_none(mark) == mark
