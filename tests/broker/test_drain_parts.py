"""A broker that drains says whether the network falls into parts without it."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.drain import Draining
from routing.messages import LinkState
from routing.overlay.graph import components_of

NEIGHBOURS = {"b1": "b2", "b2": "b1 b3 b4", "b3": "b2", "b4": "b2 b5", "b5": "b4"}
STATES = [
    LinkState(name, 1, tuple((other, 1) for other in others.split()))
    for name, others in NEIGHBOURS.items()
]


def broker(name: str) -> Any:
    """A broker of a tree of five that knows all of it; it waits for nothing."""
    topology = SimpleNamespace(states=STATES, part=components_of(STATES)[name])
    overlay = SimpleNamespace(name=name, topology=topology)
    return SimpleNamespace(overlay=overlay, node=SimpleNamespace(draining=True))


@pytest.mark.parametrize(
    ("name", "parts"), [("b2", "b1|b3|b4 b5"), ("b4", "b1 b2 b3|b5"), ("b1", ""), ("b5", "")]
)
def test_the_parts_are_named(
    name: str, parts: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("broker.drain.go_on_draining", lambda broker, now: [])
    with caplog.at_level(logging.WARNING):
        assert Draining(cast("Any", broker(name))).is_over(0.0)
    told = [vars(record)["fields"]["parts"] for record in caplog.records]
    assert told == ([[tuple(part.split()) for part in parts.split("|")]] if parts else [])
