"""Slices of one rule, each of which comes some time after the one before it."""

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import pytest

from matcher.model import EventType
from routing.evaluation import tree_evaluator
from routing.messages import RuleFacts
from routing.network.brokers import catalog_sync
from routing.serving import known_rules, slices
from routing.serving.slices import Slices
from rules.pattern import Rule


def slow_slices(monkeypatch: pytest.MonkeyPatch, pause_s: float) -> list[str]:
    """Have it so; gives a list of what was prepared, which grows with each slice."""
    monkeypatch.setattr(slices, "RULES", 1)
    monkeypatch.setattr(slices, "SLICED_FROM", 0)
    monkeypatch.setattr(tree_evaluator, "INSTALLED", 1)
    monkeypatch.setattr(catalog_sync, "load_ahead", _load_all)
    due_at, handle_timer = Slices.due_at, Slices.handle_timer
    next_at: WeakKeyDictionary[Slices, float] = WeakKeyDictionary()
    seen: list[str] = []

    def later(one: Slices) -> float | None:
        now: float | None = due_at.fget(one)  # type: ignore[attr-defined]
        return None if now is None else next_at.setdefault(one, now + pause_s)

    def noted(one: Slices) -> None:
        next_at.pop(one, None)
        seen.append("prepared" if one.is_preparing else "ahead")
        handle_timer(one)

    monkeypatch.setattr(Slices, "due_at", property(later))
    monkeypatch.setattr(Slices, "handle_timer", noted)
    return seen


def _load_all(types: Iterable[EventType], rules: Iterable[RuleFacts]) -> Iterator[Rule]:
    """As ``known_rules.load_ahead`` where no other broker is in the same process."""
    schemas = {schema.name: schema for schema in types}
    for facts in rules:
        yield known_rules._rule(facts, schemas)
