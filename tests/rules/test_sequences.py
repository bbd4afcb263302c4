"""Sequence models: which events are states, what is decided on links, and what is left for last."""

import pytest

import rules
from rules.pattern import Policy
from rules.planning.plan import IDENTITY
from rules.planning.planner import compile_rule
from rules.planning.program import TRUE
from rules.planning.sequences import AutomatonPlan, automaton_of

SCHEMAS = "event A(p: int, v: float) event B(p: int, v: float) event C(p: int, v: float) "
SCHEMAS += "event D(p: int, v: float) "


def automaton(text: str) -> AutomatonPlan | None:
    (rule,) = rules.load(SCHEMAS + text).rules
    return automaton_of(compile_rule(rule))


def made(text: str) -> AutomatonPlan:
    found = automaton(text)
    assert found is not None
    return found


def test_nothing_is_kept_of_events_anchored_on_the_terminator():
    assert automaton("define X() from A() and each B() within 1 s from A") is None
    assert automaton("define X() from A() and last B() within 1 s from A "
                     "and each C() within 9 s from A") is None  # fmt: skip


def test_states_are_the_events_that_others_are_anchored_on_the_earliest_first():
    found = made("""define X() from A() as a and each B() as b within 1 s from a
        and each C() as c within 1 s from b and each D() as d within 1 s from c
        and each D() as e within 2 s from b""")
    assert [state.event for state in found.states] == [2, 1]
    assert [[link.step.event for link in state.links] for state in found.states] == [[3], [2, 4]]
    assert [state.arrivals.column.type.name for state in found.states] == ["C", "B"]
    assert [state.arrivals.reach for state in found.states] == [2_000_000, 1_000_000]


def test_a_chain_may_be_of_any_length():
    clauses = [f"last B() as b{n} within 1 s from b{n - 1}" for n in range(1, 1500)]
    found = made(f"define X() from A() as b0 and {' and '.join(clauses)}")
    assert [state.event for state in found.states] == list(range(1498, 0, -1))


def test_evaluation_looks_among_instances_and_links():
    found = made("""define X() from A(p = $p) as a and each B(p = $p) as b within 1 s from a
        and last C(v > 1) as c within 1 s from b""")
    first, second = found.plan.steps
    assert first.access == found.states[0].instances
    assert first.access.keys == (0,)
    assert second.access == found.states[0].links[0].links
    assert second.access.keys == IDENTITY
    assert second.policy is Policy.LAST


def test_an_equality_through_the_terminator_is_decided_on_the_link():
    found = made("""define X() from A(p = $p) as a and each B(p = $p) as b within 1 s from a
        and last C(p = $p) as c within 1 s from b""")
    (link,) = found.states[0].links
    assert link.step.access.keys == (0,)
    assert [one.event for one in link.step.probes[0].program.code][:1] == [2]  # the frame of b
    assert link.kept == 1
    assert found.plan.steps[1].residue is TRUE


def test_equalities_of_different_kinds_stand_for_nothing():
    found = made("""define X() from A(p = $p) as a and each B(v = $p) as b within 1 s from a
        and last C(v > $p * 0.5) as c within 1 s from b""")
    (link,) = found.states[0].links
    assert link.step.residue is TRUE
    assert link.kept == 0
    assert found.plan.steps[1].residue is not TRUE


@pytest.mark.parametrize(
    ("clause", "kept"),
    [
        ("each C() as c within 1 s from b", 0),
        ("last C() as c within 1 s from b", 1),
        ("3-first C(v > b.v) as c within 1 s from b", 3),
        ("last C(v > a.v) as c within 1 s from b", 0),  # decided when the terminator comes
        ("last C(v > Avg(D().v within 1 s from b)) as c within 1 s from b", 0),
        ("2-last A() as c within 1 s from b", 3),  # the terminator may be one of them
        ("last B() as c within 1 s from b", 1),  # b itself is left out as the link is made
    ],
)
def test_links_are_left_out_for_better_ones_only_where_all_is_decided(clause: str, kept: int):
    found = made(f"define X() from A() as a and each B() as b within 1 s from a and {clause}")
    assert [link.kept for link in found.states[0].links] == [kept]


def test_a_state_that_a_single_selection_chooses_from_needs_no_links():
    for policy, waits in (("each", True), ("last", False), ("2-first", False)):
        found = made(f"""define X() from A() as a and {policy} B() as b within 1 s from a
            and each C() as c within 1 s from b""")
        assert found.states[0].waits is waits


def test_a_constraint_between_two_linked_events_is_tested_on_the_link_too():
    each = """define X() from A() as a and each B() as b within 1 s from a
        and each C() as c within 1 s from b and c.v > b.v"""
    assert made(each).states[0].links[0].step.residue is not TRUE
    # What is chosen is chosen before later clauses are looked at (S3).
    assert made(each.replace("each C", "last C")).states[0].links[0].step.residue is TRUE
