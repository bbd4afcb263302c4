"""What bounds new subscriptions does not keep a broker from starting with those it has kept."""

from dataclasses import replace

import pytest
from alone import TEMP, Alone, hello, values, with_source

from routing.delivery import sinks
from routing.messages import Advertise, Credit, Delivery, Goodbye, Refused, Subscribe

FILTERS = [f"Temp((n > {n} or n < -{n}))" for n in range(1, 4)]


def with_filters() -> Alone:
    """A durable sink of several filters, whose client has gone."""
    alone = with_source()
    asked = [
        (b"b", Subscribe(number, number, text, durable="busy"))
        for number, text in enumerate(FILTERS, 1)
    ]
    alone.turn((b"b", hello()), *asked)
    assert not alone.take(b"b", Refused)
    alone.turn((b"b", Goodbye()))
    return alone


def given(alone: Alone) -> list[int]:
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.publish(b"s", 4)
    alone.turn((b"c", hello()), (b"c", Subscribe(1, 1, FILTERS[0], durable="busy", again=True)))
    alone.turn((b"c", Credit(10)))
    return values(alone.take(b"c", Delivery))


@pytest.mark.parametrize("is_known", [False, True])
def test_filters_that_would_be_too_much_work_now_are_there_again(
    monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """While their type is not known each counts as if it were matched by itself."""
    alone = with_filters()
    if not is_known:
        alone.turn((b"s", Goodbye()))
        alone.pass_time(1.0)
    monkeypatch.setattr(sinks, "WORK_MAX", 1)
    alone.fail()
    assert given(alone) == [2, 3, 4]


def test_a_smaller_bound_leaves_those_that_there_are() -> None:
    alone = with_filters()
    alone.config = replace(alone.config, subscriptions_max=1)
    alone.fail()
    assert given(alone) == [2, 3, 4]
