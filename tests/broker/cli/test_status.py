"""The page of a broker's status, for people."""

import pytest

from broker.cli.status import page

STATUS = {
    "broker": "b1",
    "uptime_s": 61.2,
    "clients": [{}],
    "totals": {"received": 1200},
    "rates": {"received": 0.5},
    "parts": [3],
    "memory": {"heap": 4096, "rows/Temp": 7},
    "sources": [],
    "types": [],
    "rules": [],
    "network": {"brokers": []},
}


def sink(count: int) -> dict[str, object]:
    filters = [{"number": n, "filter": f"Temp(value > {n})", "waits": False} for n in range(count)]
    figures = {"queued": 0, "limit": 10, "delivered": 5, "dropped": 0}
    return {"name": "k", "subscriptions": filters, "when_full": "block", **figures}


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "k     Temp(value > 0)  block"),
        (3, "k     Temp(value > 0), Temp(value > 1), Temp(value > 2)  block"),
        (1003, "k     Temp(value > 0), Temp(value > 1), Temp(value > 2), 1,000 more  block"),
    ],
)
def test_of_many_subscriptions_the_first_are_shown_and_the_others_counted(count, shown) -> None:
    assert shown in page({**STATUS, "sinks": [sink(count)]})


def test_what_the_engine_keeps_for_each_type_is_left_to_the_whole_answer() -> None:
    lines = page({**STATUS, "sinks": []}).splitlines()
    assert lines == [
        "broker b1: up 61 s",
        "clients: 1",
        "totals: received 1,200",
        "per second: received 0.5",
        "kept: heap 4,096",
    ]
