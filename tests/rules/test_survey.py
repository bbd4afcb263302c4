"""How far terminators get: the survey against explanations of every single one."""

import os
from collections.abc import Callable, Iterator, Sequence

import pytest
from cases import Case, random_case
from iteration_cases import iteration_case
from pairs import WHOLE
from recordings import plain_cases, recording_of
from timeline import batches, history

import rules
from matcher.model import Event
from rules import Summary
from rules.engine.oracle.values import Scope, holds
from rules.explaining import runs
from rules.explaining.document import document
from rules.explaining.explainer import Explainer
from rules.explaining.explanation import Branch
from rules.explaining.recording import Recording
from rules.explaining.survey import surveyed
from rules.explaining.telling import told_summary
from rules.pattern import Rule
from rules.planning.variants import variants
from rules.terms import Expression

COUNT = int(os.environ.get("REXMQ_CASES", "40" if WHOLE else "16"))
PARTS = 4
ALL = 1_000_000


def paths(branch: Branch, before: int = 0) -> Iterator[int]:
    """How many steps each way through the branches has passed."""
    passed = before + sum(step.passed for step in branch.steps)
    if not branch.branches:
        yield passed
    for inner in branch.branches:
        yield from paths(inner, passed)


def stages(recording: Recording, rule: Rule) -> tuple[list[int], int]:
    """Per step of the walk how many terminators passed it, and how many fired."""
    explainer = Explainer(recording, rule, candidates=0, branches=ALL)
    found = [explainer.explain(terminator) for terminator in recording.terminators(rule)]
    furthest = [max(paths(explanation.branch)) for explanation in found]
    count = len(rule.clauses) + 2
    passed = [sum(one > step for one in furthest) for step in range(count)]
    return passed, sum(explanation.fired for explanation in found)


@pytest.mark.parametrize("case_of", [random_case, iteration_case])
@pytest.mark.parametrize("part", range(PARTS))
def test_the_survey_agrees_with_every_explanation(part: int, case_of: Callable[[int], Case]):
    seeds = range(part * COUNT // PARTS, (part + 1) * COUNT // PARTS)
    for case in plain_cases(seeds, case_of):
        recording = recording_of(case)
        for name, rule in recording.rules.items():
            summary = surveyed(recording, name)
            ways = variants(rule)
            assert len(summary.ways) == (len(ways) if len(ways) > 1 else 0)
            for way, told in zip(ways, summary.ways or (summary,), strict=True):
                found = ([stage.passed for stage in told.stages], told.fired)
                assert found == stages(recording, way), f"seed {case.seed}, {name}\n{rule.text}"
                assert_consistent(told)
            assert summary.composites == len(recording.firings(rule))
            if summary.ways:
                assert summary.composites == sum(way.composites for way in summary.ways)


def assert_consistent(summary: Summary) -> None:
    """What fails at a stage and what passes it is what has reached it."""
    reached = summary.terminators
    for stage in summary.stages:
        assert stage.reached == reached
        assert sum(stage.reasons.values()) <= stage.reached - stage.passed
        assert bool(stage.reasons) == (stage.passed < stage.reached) == (stage.example is not None)
        reached = stage.passed
    assert reached == summary.fired


def test_events_in_any_order_have_a_summary_for_each_that_may_come_last() -> None:
    rule = "define P() from all A(x = $x) as a, B(x = $x) as b within 3 s"
    summary = summarised(rule, "A@1(1) B@2(1,0) B@3(1,0) A@9(2) B@9(2,0) A@20(3) B@30(3,0)")
    assert (summary.terminators, summary.fired, summary.composites) == (7, 3, 3)
    assert summary.stages == ()
    told = {way.way: (way.terminators, way.fired, way.composites) for way in summary.ways}
    # Of two that are latest, the one that the text names first terminates.
    assert told == {"a comes last": (3, 1, 1), "b comes last": (4, 2, 2)}
    reasons = [dict(stage.reasons) for way in summary.ways for stage in way.stages]
    assert {"no B in the window": 2} in reasons


def test_events_of_either_type_have_a_summary_for_each() -> None:
    rule = "define P() from C() and last A(x > 0) or B(y > 2) as e within 5 s from C"
    summary = summarised(rule, "A@1(1) B@2(1,9) C@3(0) A@11(1) C@12(0) C@20(0)")
    assert (summary.terminators, summary.fired, summary.composites) == (3, 2, 2)
    of_a, of_b = summary.ways
    assert (of_a.way, of_b.way) == ("e is of type A", "e is of type B")
    assert (of_a.fired, of_b.fired) == (1, 1)
    assert of_a.stages[1].reasons == {"the one it takes is a B": 1, "no A in the window": 1}
    told = told_summary(summary)
    assert "where e is of type B:" in told
    assert told.splitlines()[-1] == "2 terminators fired: 2 composite events"
    assert [way["way"] for way in document(summary)["ways"]] == ["e is of type A", "e is of type B"]


# --- reasons -----------------------------------------------------------------------------------

SCHEMA = "event A(x: int) event B(x: int, y: float) event C(x: int) "


def summarised(rule: str, events: str) -> Summary:
    ruleset = rules.load(SCHEMA + rule)
    pushed = batches(history(events, ruleset), ruleset.schemas.values())
    return rules.summarise(ruleset, pushed, rule="P", engine="naive")


LAST = "define P() from A(x = $x, x > 0) and last B(y > 2, x = $x) within 5 s from A"


@pytest.mark.parametrize(
    ("rule", "events", "stage", "reason"),
    [
        (LAST, "A@1(0)", 0, "x > 0 is false"),
        (LAST, "A@9(1) B@1(1,9) B@10(1,9)", 1, "no B in the window"),
        (LAST, "A@9(1) B@8(1,1)", 1, "no B in the window with y > 2"),
        (LAST, "A@9(1) B@8(2,9) B@8(1,1)", 1, "no B in the window with x = A.x"),
        (LAST + " and A.x < 1", "A@9(1) B@8(1,9)", 2, "A.x < 1 is false"),
        (LAST + " and B within 1 s from A", "A@9(1) B@5(1,9)", 2, "B is outside the window"),
        (LAST + " and not C() between B and A", "A@9(1) B@5(1,9) C@6(1)", 2, "negated by C"),
        (LAST + " and 1 / (A.x - 1) > 0", "A@9(1) B@8(1,9)", 2, "undefined: division by zero"),
        (LAST + " and $v = Avg(C().x within 1 s from A)", "A@9(1) B@8(1,9)", 2, "Avg of no events"),
        (LAST + " consuming B", "A@9(1) B@8(1,9) A@10(1)", 1, "the B is consumed"),
        ("define P() from A() and 2-last B() within 5 s from A", "A@9(1) B@8(1,9)", 1, "fewer B"),
        ("define P(v) from A() where v = 1 / A.x", "A@9(0)", 1, "v is undefined: division by zero"),
    ],
)
def test_reasons(rule: str, events: str, stage: int, reason: str):
    told = summarised(rule, events).stages[stage]
    assert told.passed == told.reached - 1
    assert reason in next(iter(told.reasons))


def test_a_summary_names_an_example_of_the_commonest_reason():
    summary = summarised(LAST, "A@1(1) A@2(1) B@20(1,1) A@21(1) B@30(1,9) A@31(1)")
    stage = summary.stages[1]
    assert (stage.reached, stage.passed) == (4, 1)
    assert dict(stage.reasons) == {"no B in the window": 2, "no B in the window with y > 2": 1}
    assert isinstance(stage.example, Event)
    assert stage.example.id == "1"
    assert (summary.fired, summary.composites) == (1, 1)


def test_a_summary_looks_at_runs_no_further_than_it_has_to(monkeypatch: pytest.MonkeyPatch):
    """Each candidate of each terminator was asked for its run anew, over the whole window."""
    text = """event T(v: int) define Up(n: int)
        from T(v = 0) as t and last 3.. T(v > previous.v) as up within 1 day from t
        where n = Count(up)"""
    asked: list[Scope] = []

    def counted(conditions: Sequence[Expression], scope: Scope) -> bool:
        asked.append(scope)
        return holds(conditions, scope)

    monkeypatch.setattr(runs, "holds", counted)
    checked = rules.load(text)
    events = " ".join(f"T@{n}({n % 4})" for n in range(1_000))
    pushed = batches(history(events, checked), checked.schemas.values())
    summary = rules.summarise(checked, pushed, rule="Up")
    assert summary.fired == 249
    assert not rules.explain(checked, pushed, rule="Up", event="1000").fired
    assert len(asked) < 5_000
