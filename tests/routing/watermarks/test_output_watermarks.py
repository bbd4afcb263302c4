"""How far ahead nothing more will be found (routing.watermarks.output_watermarks)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conversation import batches_of, schema_of
from networks import run, sharp, write

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MIN
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import Catalog, RuleFacts
from routing.network.agreement.catalog import rules_of
from routing.order import greatest_time, least_time
from routing.watermarks import output_watermarks
from routing.watermarks.output_watermarks import OutputWatermarks
from rules.engine.engine import Detections
from rules.pattern import Rule, Wiring

S = 1_000_000
SCHEMAS = {name: schema_of(f"{name}(n: int)") for name in ("A", "B")}
RULES = (
    ("r", "define C(n: int) from A() as a and last B() as b within 1 min from a where n = a.n"),
    ("s", "define D(n: int) from B() as b where n = b.n"),
    ("t", "define E(n: int) from all A() as a, B() as b within 1 min where n = a.n"),
)


@cache
def deployed() -> Mapping[str, Rule]:
    facts = tuple(RuleFacts(name, text, None, 0) for name, text in RULES)
    found = rules_of(Catalog(tuple(SCHEMAS.values()), facts))
    return {one.rule.name: one.rule for one in found}


MARKS: dict[str, int] = {}
"""Up to where rules have been evaluated."""


def mark_of(rule: str) -> int:
    return MARKS.get(rule, TIME_MIN)


def made() -> OutputWatermarks:
    MARKS.clear()
    found = OutputWatermarks(mark_of)
    arrange(found, deployed())
    return found


def arrange(found: OutputWatermarks, rules: Mapping[str, Rule], stay: Collection[str] = ()) -> None:
    alike: dict[Wiring, list[str]] = {}
    for name, rule in rules.items():
        alike.setdefault(rule.wiring, []).append(name)
    found.arrange(alike, stay)


def outlook_of(found: OutputWatermarks, rule: str, mark: int, types: Mapping[str, int]) -> int:
    MARKS[rule] = mark
    opening = deployed()[rule].wiring.opening
    found.rise(rule, opening, mark, bound_of(rule, types))
    return found.of(rule)


def bound_of(rule: str, types: Mapping[str, int]) -> int:
    """The least mark of the types of its terminators."""
    return min(types.get(one.name, TIME_MIN) for one in deployed()[rule].opening)


def see(found: OutputWatermarks, text: str) -> None:
    for batch in batches_of(text, SCHEMAS):
        found.see(batch.type.name, least_time(batch), greatest_time(batch))


def test_a_rule_looks_ahead_as_far_as_its_terminators_are_known() -> None:
    found = made()
    assert outlook_of(found, "r", 3 * S, {"A": 9 * S, "B": 3 * S}) == 9 * S
    assert found.rise("r", ("A",), 3 * S, 8 * S) == 9 * S
    assert outlook_of(found, "s", 3 * S, {"A": 9 * S, "B": 3 * S}) == 3 * S
    assert outlook_of(found, "t", 3 * S, {"A": 9 * S, "B": 3 * S}) == 3 * S, (
        "either may be the last"
    )
    assert outlook_of(found, "r", 4 * S, {"B": 4 * S}) == 9 * S, "it never goes back"


def test_a_terminator_that_waits_is_as_far_as_it_gets() -> None:
    found = made()
    see(found, "A@5(1) B@4(1)")
    see(found, "A@7(2)")
    types = {"A": 9 * S, "B": 3 * S}
    assert outlook_of(found, "r", 3 * S, types) == 5 * S
    assert outlook_of(found, "r", 5 * S, types) == 5 * S, "what is at the mark is not evaluated yet"
    assert outlook_of(found, "r", 5 * S + 1, types) == 7 * S
    assert outlook_of(found, "r", 8 * S, types) == 9 * S


def test_a_batch_that_is_evaluated_in_part_may_go_on_at_once() -> None:
    found = made()
    see(found, "A@5(1) A@8(2)")
    types = {"A": 9 * S}
    assert outlook_of(found, "r", 3 * S, types) == 5 * S
    assert outlook_of(found, "r", 6 * S, types) == 6 * S
    found.forget(mark_of)
    arrange(found, deployed())
    assert outlook_of(found, "r", 7 * S, types) == 9 * S


def test_an_outlook_outlasts_plans_until_its_rule_begins_anew_or_is_another() -> None:
    """A type that moved it may be forwarded no more, since a rule that used it has ended."""
    found, there = made(), deployed()
    assert outlook_of(found, "r", 3 * S, {"A": 9 * S}) == 9 * S
    assert outlook_of(found, "s", 3 * S, {"B": 9 * S}) == 9 * S
    arrange(found, {"r": there["r"], "s": there["t"]}, ["r"])
    assert found.of("r") == 9 * S
    assert outlook_of(found, "r", 3 * S, {"A": 7 * S}) == 9 * S
    assert outlook_of(found, "s", 3 * S, {"B": 7 * S}) == 7 * S
    found.forget(mark_of)
    arrange(found, there)
    assert found.of("r") == TIME_MIN
    assert outlook_of(found, "r", 3 * S, {"A": 7 * S}) == 7 * S


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_watermarks, "EXTENTS_MAX", 3)
    found = made()
    for second in range(10, 20):
        see(found, f"A@{second}(1)")
    types = {"A": 90 * S}
    assert outlook_of(found, "t", TIME_MIN, {}) == TIME_MIN
    assert outlook_of(found, "r", 11 * S, types) == 11 * S
    assert outlook_of(found, "r", 11 * S + 1, types) == 12 * S, "the last of them are one"
    assert outlook_of(found, "r", 15 * S, types) == 15 * S
    assert outlook_of(found, "r", 20 * S, types) == 90 * S


@pytest.mark.parametrize("strategy", ["distributed-st", "push-pull-st"])
def test_nothing_is_found_before_an_outlook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    advance, looked, ahead = TreeEvaluator.advance, [0], [0]

    def watched(evaluator: TreeEvaluator, own: Mapping[str, int], *rest: Any) -> Detections | None:
        before = {rule: evaluator.output_watermark(rule) for rule in evaluator.rules}
        found = advance(evaluator, own, *rest)
        for batch in found.batches if found is not None else ():
            sources = batch.ids.source.tolist()
            for source, time in zip(sources, batch.time.tolist(), strict=True):
                looked[0] += 1
                assert time >= before[source.removeprefix(RULE_SOURCE)], (seed, source)
        ahead[0] += sum(
            evaluator.output_watermark(rule) > evaluator.engine.mark(rule)
            for rule in evaluator.rules
        )
        return found

    monkeypatch.setattr(TreeEvaluator, "advance", watched)
    for seed in range(8):
        if (case := sharp(seed)) is not None:
            run(write(tmp_path, seed, *case, strategy))
    assert looked[0] > 20, looked
    assert ahead[0] > 20, ahead
