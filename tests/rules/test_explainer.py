"""``explain`` against the engines, and what it says of each clause (tesla.md S1 to S15)."""

import os
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from cases import Case, random_case, run
from engines import make
from iteration_cases import iteration_case
from pairs import WHOLE
from recordings import plain_cases, recording_of
from timeline import batches, history

import rules
from matcher.errors import EventError
from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, Event, Value
from rules import Explanation, RuleErrors
from rules.explaining.explainer import Explainer, explained
from rules.explaining.explanation import Fate
from rules.explaining.recording import Recording
from rules.pattern import Rule

COUNT = int(os.environ.get("REXMQ_CASES", "40" if WHOLE else "16"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 4
ALL = 1_000_000

Found = tuple[str, tuple[str, ...], tuple[tuple[str, Value], ...]]
"""A rule, the causes of a firing, terminator first, and the values of its composite event."""


def detected(case: Case, recording: Recording) -> Counter[Found]:
    """What the oracle detects, by the causes that have names: of a consumed run the last event."""
    found: list[Event] = list(run(case, make("naive")).events())
    names = [event.source.removeprefix(RULE_SOURCE) for event in found]
    return Counter(
        (
            name,
            event.cause_full[: len(recording.rule(name).event_names)],
            tuple(event.data.items()),
        )
        for name, event in zip(names, found, strict=True)
    )


def told_of(recording: Recording, rule: Rule) -> Counter[Found]:
    """What the explanations of all terminators tell of."""
    explainer = Explainer(recording, rule, candidates=3, branches=ALL)
    found: Counter[Found] = Counter()
    for terminator in recording.terminators(rule):
        explanation = explainer.explain(terminator)
        assert explanation.count == len(explanation.matches)
        found.update(
            (rule.name, match.cause, tuple(match.data.items())) for match in explanation.matches
        )
    return found


@pytest.mark.parametrize("case_of", [random_case, iteration_case])
@pytest.mark.parametrize("part", range(PARTS))
def test_explanations_tell_of_exactly_what_is_detected(part: int, case_of: Callable[[int], Case]):
    seeds = range(FIRST + part * COUNT // PARTS, FIRST + (part + 1) * COUNT // PARTS)
    for case in plain_cases(seeds, case_of):
        recording = recording_of(case)
        told: Counter[Found] = Counter()
        for rule in recording.rules.values():
            told += told_of(recording, rule)
        assert told == detected(case, recording), str(case)


def test_what_lies_beyond_the_bound_on_branches_is_counted():
    recordings = [recording_of(case) for case in plain_cases(range(40))]
    whole, bounded = explanations(recordings, ALL), explanations(recordings, 2)
    assert [one.count for one in bounded] == [one.count for one in whole]
    assert any(one.branch.unlisted() for one in bounded)
    # For each name that an event of ``all`` may bear (X1); other branches follow a step.
    names = (1 if one.branch.steps else len(one.branch.branches) for one in bounded)
    assert all(len(one.matches) <= 3 * n for one, n in zip(bounded, names, strict=True))


def explanations(recordings: Sequence[Recording], branches: int) -> list[Explanation]:
    return [
        Explainer(recording, rule, branches=branches).explain(terminator)
        for recording in recordings
        for rule in recording.rules.values()
        for terminator in recording.terminators(rule)
    ]


# --- events in any order (X1) --------------------------------------------------------------------

PAIR = "define P(s) from all A(x = $x) as a, B(x = $x, y > 1) as b within 3 s where s = a.x"


def test_the_latest_event_is_explained_as_the_terminator():
    told = why(PAIR, "A1=A@1(1) A2=A@2(1) B1=B@4(1, 2.0) A3=A@5(1)", "B1")
    assert told.clauses == (
        "B(y > 1) as b",
        "each A(b.x = x, time < b.time) as a within 3 s from b",
    )
    assert [match.cause for match in told.matches] == [
        ("history#A1", "history#B1"),
        ("history#A2", "history#B1"),
    ]
    (firing,) = why(PAIR, "A1=A@1(1) B1=B@4(1, 2.0) A3=A@5(1)", "A3").matches
    assert firing.names == ("a", "b")
    assert firing.cause == ("history#A3", "history#B1")


def test_an_event_that_may_bear_two_names_is_explained_with_both():
    rule = "define P() from all A() as low, A(x > low.x) as high within 3 s"
    told = why(rule, "A1=A@1(1) A2=A@2(5) A3=A@3(3)", "A3")
    assert [branch.chosen.id for branch in told.branch.branches] == ["A3", "A3"]
    assert [match.cause for match in told.matches] == [
        ("history#A3", "history#A2"),
        ("history#A1", "history#A3"),
    ]


def test_an_event_of_another_type_is_none_of_those_that_come_together():
    told = why(PAIR, "C1=C@1(1)", "C1")
    assert not told.fired
    assert told.branch.steps[0].because == "a C, and the rule's events are A or B"


# --- events of either type (X2) ------------------------------------------------------------------

EITHER = (
    "define P(x) from C() as c and {} A(x > 1) or B(x > 1) as e within 3 s from c where x = e.x"
)


def test_a_choice_among_both_types_is_explained_from_either():
    events = "A1=A@1(5) B1=B@2(7, 1.0) A2=A@3(1) C1=C@4(0)"
    told = why(EITHER.format("last"), events, "C1")
    assert [match.cause for match in told.matches] == [("history#C1", "history#B1")]
    first, second = told.branch.branches
    choice = first.steps[1]
    assert choice.text == "last A(x > 1) or B(x > 1) as e within 3 s from c"
    assert choice.because == "of 2 that fit, the one it takes is a B"
    assert choice.considered is not None
    assert choice.considered.counts[Fate.PASSED_OVER] == 1
    assert second.steps[1].because == "chosen of 2 that fit"


def test_each_way_to_choose_has_a_branch_of_its_own():
    told = why(EITHER.format("each"), "A1=A@1(5) B1=B@2(7, 1.0) A2=A@3(1) C1=C@4(0)", "C1")
    assert [match.cause[1] for match in told.matches] == ["history#A1", "history#B1"]


def test_an_event_that_is_of_neither_type():
    told = why("define P() from A(x > 1) or B() as e", "C1=C@1(1)", "C1")
    assert told.clauses == ("A(x > 1) or B() as e",)
    assert told.branch.steps[0].because == "a C, and the rule's terminator is A or B"


# --- one clause at a time ----------------------------------------------------------------------

SCHEMA = """
event A(x: int)
event B(x: int, y: float)
event C(x: int)
"""


def why(rule: str, events: str, event: str, *, name: str = "P", since: int | None = None):
    """The explanation of a rule at an event of a history in the notation of ``timeline``."""
    ruleset = rules.load(SCHEMA + rule)
    pushed = batches(history(events, ruleset), ruleset.schemas.values())
    return rules.explain(ruleset, pushed, rule=name, event=event, since=since, engine="naive")


def fates(explanation: Explanation, step: int = 1) -> dict[str, Fate]:
    """What became of each event that a step of the first branch lists, by its id."""
    considered = explanation.branch.steps[step].considered
    assert considered is not None
    return {candidate.event.id: candidate.fate for candidate in considered.candidates}


LAST = "define P() from A(x = $x) and last B(x = $x, y > 2) within 5 s from A"


def test_a_single_selection_says_what_excluded_each_event():
    found = why(LAST, "B@3(1,9) B@5(1,3) B@6(2,3) B@7(1,1) B@8(1,4) A@10(1) B@11(1,9)", "6")
    assert fates(found) == {
        "2": Fate.PASSED_OVER,
        "3": Fate.PARAMETER,
        "4": Fate.CONDITION,
        "5": Fate.CHOSEN,
    }
    considered = found.branch.steps[1].considered
    assert considered.counts[Fate.OUTSIDE] == 2
    assert considered.failed == {"y > 2": 1, "x = A.x": 1}
    compared = considered.candidates[1].check
    assert [(term.text, term.value) for term in compared.terms] == [("x", 2), ("A.x", 1)]
    assert found.matches[0].cause == ("history#6", "history#5")


def test_events_just_outside_the_window_are_told_with_their_distance():
    found = why(LAST, "B@1(1,9) B@4(1,1) A@10(1) B@12(1,9)", "3")
    assert not found.fired
    told = {one.event.id: one for one in found.branch.steps[1].considered.candidates}
    assert {name: one.distance / MICROSECONDS for name, one in told.items()} == {
        "1": -4,
        "2": -1,
        "4": 2,
    }
    assert told["1"].check is None  # it would have fitted otherwise
    assert told["2"].check.text == "y > 2"


def test_an_event_is_not_selected_twice():
    found = why(
        "define P() from A() and last B() as one within 5 s from A "
        "and last B() as two within 5 s from A",
        "B@1(1,1) A@2(1)",
        "2",
    )
    assert fates(found, 2) == {"1": Fate.TAKEN}


def test_a_rank_that_is_not_reached():
    found = why("define P() from A() and 3-last B() within 5 s from A", "B@1(1,1) A@2(1)", "2")
    assert found.branch.steps[1].because == "only 1 of the 3 that it takes"
    assert fates(found) == {"1": Fate.PASSED_OVER}


def test_consumed_events_name_the_firing_that_consumed_them():
    rule = LAST + " consuming B"
    found = why(rule, "B@1(1,9) A@2(1) A@3(1)", "3")
    (candidate,) = found.branch.steps[1].considered.candidates
    assert candidate.fate is Fate.CONSUMED
    assert candidate.by.time == 2 * MICROSECONDS
    assert why(rule, "B@1(1,9) A@2(1) A@3(1)", "2").fired
    found = why("define P() from A() consuming A", "A@2(1)", "1")
    assert found.fired  # what an instant consumes is there for the whole of it (S11)


def test_a_negation_names_the_event_that_must_not_be():
    rule = "define P() from A() and last B() within 9 s from A and not C(x > 1) between B and A"
    found = why(rule, "B@1(1,1) C@1(5) C@2(1) C@3(2) A@4(1)", "5")
    assert fates(found, 2) == {"3": Fate.CONDITION, "4": Fate.VIOLATES}
    assert found.branch.steps[2].considered.counts[Fate.OUTSIDE] == 1  # at the start itself (S6)
    assert not found.fired


def test_a_negation_waits_for_the_selections_of_its_type():
    rule = "define P() from A() and not B() within 5 s from A and last B() within 5 s from A"
    found = why(rule, "B@1(1,1) A@2(1)", "2")
    assert [step.clause for step in found.branch.steps] == [0, 2, 1, 3]
    assert found.fired


def test_an_aggregate_tells_its_value_and_its_events():
    rule = "define P() from A() and Sum(B(x = 1).y within 5 s from A) >= 10"
    found = why(rule, "B@1(1,2) B@2(2,50) B@3(1,4) A@4(1)", "4")
    (check,) = found.branch.steps[1].checks
    assert check.result is False
    (term,) = check.terms
    assert term.value == 6.0
    assert term.considered.counts == {Fate.COUNTED: 2, Fate.CONDITION: 1}


def test_undefined_values_say_why():
    average = "define P() from A() and Avg(B().y within 5 s from A) > 1"
    (check,) = why(average, "A@4(1)", "1").branch.steps[1].checks
    assert check.result is None
    assert check.terms[0].because == "Avg of no events"
    quotient = "define P(q) from A() where q = 1 / A.x"
    (value,) = why(quotient, "A@4(0)", "1").branch.steps[-1].values
    assert value.because == "division by zero in 1 / A.x"
    product = "define P(q) from A() where q = A.x * 4611686018427387904"
    (value,) = why(product, "A@4(2)", "1").branch.steps[-1].values
    assert value.because == "A.x * 4611686018427387904 is out of the range of int"


def test_parameters_keep_their_names():
    rule = "define P() from A() and $n = Count(B() within 5 s from A) and $n + 1 > 5"
    found = why(rule, "B@1(1,1) A@2(1)", "2")
    assert found.clauses[1:] == ("$n = Count(B() within 5 s from A)", "$n + 1 > 5")
    (check,) = found.branch.steps[2].checks
    assert [(term.text, term.value) for term in check.terms] == [("$n + 1", 2), ("$n", 1)]


def test_a_time_constraint_says_by_how_much_it_is_missed():
    rule = "define P() from A() and last B() within 9 s from A and B within 2 s from A"
    assert why(rule, "B@1(1,1) A@4.5(1)", "2").branch.steps[2].because == "1.5 s too early"


def test_a_rule_that_does_not_hold_yet():
    found = why(LAST, "B@1(1,9) A@4(1)", "2", since=5 * MICROSECONDS)
    assert "holds from 1970-01-01T00:00:05Z" in found.branch.steps[0].because
    found = why(LAST, "B@1(1,9) A@4(1)", "2", since=3 * MICROSECONDS)
    assert found.branch.steps[1].considered.counts == {Fate.NOT_IN_FORCE: 1}


def test_within_a_cycle_only_earlier_events_are_seen():
    rule = (
        "rule start: define R(n: int) from A(x = 0) as t where n = 0 "
        "rule P: define R(n: int) from A(x > 0) as t and last R() as r within 9 s from t "
        "where n = r.n + 1"
    )
    found = why(rule, "A@1(0) A@1(1)", "2")
    (candidate,) = found.branch.steps[1].considered.candidates
    assert candidate.fate is Fate.SIMULTANEOUS


def test_an_event_that_is_no_terminator():
    found = why(LAST, "B@1(1,9) A@4(1)", "1")
    assert found.branch.steps[0].because == (
        "a B, and the rule's terminator is A; clause 1 looks for B"
    )
    found = why("define P() from A(x > 3)", "A@1(2)", "1")
    assert not found.fired
    assert found.branch.steps[0].checks[0].terms[0].value == 2


def test_timers_are_explained_by_their_second():
    rule = "define P() from Timer(S % 2 = 0) and last B() within 1 s from Timer"
    assert why(rule, "B@1(1,1) B@5(1,1)", "timer/2").fired
    assert not why(rule, "B@1(1,1) B@5(1,1)", "timer#timer/4").fired
    with pytest.raises(EventError, match="does not tick at 1970-01-01T00:00:09Z"):
        why(rule, "B@1(1,1) B@5(1,1)", "timer/9")


def test_composite_events_may_be_terminators():
    rule = "rule low: define L(x) from A() where x = A.x  rule P: define H() from L(x > 1)"
    ruleset = rules.load(SCHEMA + rule)
    pushed = batches(history("A@1(1) A@2(2)", ruleset), ruleset.schemas.values())
    recording = Recording(ruleset, pushed, engine="naive")
    first, second = recording.terminators(recording.rules["P"])
    assert not explained(recording, "P", first.id).fired
    assert explained(recording, "P", f"rexmq/rule/low#{second.id}").fired


def test_what_does_not_exist_is_named_with_a_hint():
    with pytest.raises(RuleErrors, match="no rule is called Q\n  hint: the rules are P"):
        why(LAST, "A@1(1)", "1", name="Q")
    with pytest.raises(EventError, match=r"no event has the id temp-12; did you mean temp_1\?"):
        why(LAST, "temp_1=A@1(1)", "temp-12")
    with pytest.raises(EventError, match="looks like 1, or in full history#1"):
        why(LAST, "A@1(1)", "nowhere")


def test_of_several_events_of_one_id_the_terminator_is_meant():
    ruleset = rules.load(SCHEMA + LAST)
    one, other, third = (
        Event("A", 9_000_000, "a", "7", {"x": 1}, 7),
        Event("B", 8_000_000, "b", "7", {"x": 1, "y": 3.0}, 7),
        Event("A", 9_000_000, "c", "7", {"x": 2}, 7),
    )

    def at(events: list[Event], name: str) -> Explanation:
        pushed = batches(events, ruleset.schemas.values())
        return rules.explain(ruleset, pushed, rule="P", event=name, engine="naive")

    assert at([one, other], "7").fired
    assert at([one, other], "b#7").event.type == "B"
    with pytest.raises(EventError, match="2 events have the id 7, say which: a#7, c#7"):
        at([one, other, third], "7")


def test_ids_and_sources_may_have_a_number_sign():
    ruleset = rules.load(SCHEMA + LAST)
    names = [("hall#1", "7#b"), ("hall", "1#7#b"), ("hall", "x#1"), ("#", "#")]
    events = [Event("A", n * 1_000_000, *name, {"x": n}, n) for n, name in enumerate(names, 1)]

    def at(name: str) -> int:
        pushed = batches(events, ruleset.schemas.values())
        found = rules.explain(ruleset, pushed, rule="P", event=name, engine="naive").event
        return names.index((found.source, found.id))

    asked = {"7#b": 0, "1#7#b": 1, "x#1": 2, "hall#x#1": 2, "#": 3, "###": 3}
    assert {name: at(name) for name in asked} == asked
    with pytest.raises(EventError, match="say which: `hall#1`#7#b, `hall`#1#7#b"):
        at("hall#1#7#b")
    assert (at("`hall#1`#7#b"), at("`hall`#1#7#b")) == (0, 1)
