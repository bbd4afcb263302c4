"""A device whose memory begins with next to nothing, so that all of it has to grow."""

import pytest

from matcher.gpu.device import Device, Lane
from rules.engine.gpu.evaluation import Workspace


def in_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that grows begin with next to nothing, and all columns have indexes."""
    make = Workspace.__init__

    def small(space: Workspace, on: Device, lane: Lane) -> None:
        make(space, on, lane)
        space.words, space.capacity = 2, 2

    monkeypatch.setattr(Workspace, "__init__", small)
    for name, value in (
        ("memory.INDEX_MIN", 4),
        ("memory.CAPACITY_MIN", 4),
        ("memory.TAIL_MIN", 2),
        ("memory.FEW_WORDS", 24),
        ("memory.FEW_RUNS", 12),
        ("evaluation.TERMINATORS_MAX", 3),
        ("evaluation.FIRST_MATCHES", 2),
        ("stores.FORGET_MIN", 1),
    ):
        monkeypatch.setattr(f"rules.engine.gpu.{name}", value)
    monkeypatch.setattr("matcher.gpu.device.PAGE", 16)
