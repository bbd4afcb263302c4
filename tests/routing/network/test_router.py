"""Tables of the tree: what is told, and what is left out (routing.network.router)."""

from random import Random

import pytest
from conversation import batches_of, schema_of

from matcher.model import TIME_MAX
from routing.messages import Known, RuleFacts
from routing.network.branch import Branch
from routing.network.knowledge import rules_of
from routing.network.relaying import DividedRouter
from routing.overlay.trees import Tree
from routing.subscriptions import PER_TYPE_MAX

RULE = "define C(n: int) from A() as a where n = a.n"
TEMP = schema_of("Temp(room: string, value: float)")


def router(father: str | None, *children: str) -> DividedRouter:
    made = DividedRouter("b0")
    made.follow(Tree("r" if father else "b0", 1, father, children=set(children)))
    made.partners = set(children)
    return made


def test_each_neighbour_is_told_what_the_others_want() -> None:
    made = router("f", "c", "d")
    made.want("c", ("Temp(value > 5)",))
    made.want("f", ("Smoke",))
    made.index({"Temp": TEMP}, {})
    assert dict(made.wants(["Own"])) == {
        "c": ("Own", "Smoke"),
        "d": ("Own", "Smoke", "Temp(value > 5)"),
        "f": ("Own", "Temp(value > 5)"),
    }
    assert dict(made.wants(["Own"])) == {}, "it is no news any more"
    made.want("c", ())
    assert dict(made.wants(["Own"])) == {"d": ("Own", "Smoke"), "f": ("Own",)}
    assert not made.want("x", ("Temp",)), "not a neighbour in the tree"


def test_events_go_to_who_wants_them_but_not_back() -> None:
    made = router("f", "c", "d")
    made.want("c", ("Temp(value > 5)",))
    made.want("d", ("Temp",))
    made.want("f", ("Temp",))  # who gets it as a Forward
    made.index({"Temp": TEMP}, {})
    batches = batches_of('Temp@1("a", 4) Temp@2("a", 6)', {"Temp": TEMP})
    made.route_down(batches, None, "d")
    assert [(name, len(flow.batches[0])) for name, flow in made.take_flows()] == [("c", 1)]
    made.route_down(batches, None, None)
    sent = {name: sum(map(len, flow.batches)) for name, flow in made.take_flows()}
    assert sent == {"c": 1, "d": 2}
    made.partners = {"c"}
    made.route_down(batches, None, None)
    assert [name for name, _ in made.take_flows()] == ["c"], "d does not follow the same plan"


def test_promises_go_to_the_father_in_one_message() -> None:
    made = router("f")
    made.promise("s", 5)
    made.promise("t", 6)
    made.promise("s", 7)
    ((name, flow),) = made.take_flows()
    assert (name, flow.promises) == ("f", (("s", 7), ("t", 6)))
    assert list(made.take_flows()) == []


def test_a_new_epoch_forgets_what_was_told() -> None:
    made = router("f")
    assert dict(made.wants(["Own"])) == {"f": ("Own",)}
    assert not made.follow(Tree("r", 1, "f"))
    assert made.follow(Tree("r", 2, "f")), "what was under way in the old one may be lost"
    assert dict(made.wants(["Own"])) == {"f": ("Own",)}
    assert made.follow(Tree("r", 2, "g"))
    assert made.follow(None)
    assert not made.has_tree


def test_very_many_filters_of_a_type_are_asked_of_sources_together() -> None:
    branch = Branch("b")
    branch.filters = tuple(f"Temp(value = {n})" for n in range(PER_TYPE_MAX + 1))
    branch.index({"Temp": TEMP}, {})
    assert (len(branch.predicates), list(branch.demands)) == (0, ["Temp"])
    assert branch.offer(batches_of('Temp@3("a", 1000)', {"Temp": TEMP}), None) is None
    assert branch.offer(batches_of('Temp@3("a", 5)', {"Temp": TEMP}), None) is not None
    branch.filters = branch.filters[1:]
    branch.index({"Temp": TEMP}, {})
    assert (len(branch.predicates), list(branch.demands)) == (PER_TYPE_MAX, [])


def test_a_filter_that_fits_no_known_type_matches_nothing_yet() -> None:
    branch = Branch("b")
    branch.filters = ("Temp(depth > 3)", "Other()")
    branch.index({"Temp": TEMP}, {})
    assert branch.offer(batches_of('Temp@3("a", 1000)', {"Temp": TEMP}), None) is None


@pytest.mark.parametrize("seed", range(20))
def test_what_is_worked_out_step_by_step_is_what_would_be_worked_out_anew(seed: int) -> None:
    random = Random(seed)
    schemas = {name: schema_of(f"{name}(n: int)") for name in ("A", "B", "C")}
    others = {"A": schema_of("A(m: int)")}
    texts = [f"{name}(n > {limit})" for name in schemas for limit in range(3)] + ["A", "A(m = 1)"]
    rules = rules_of(Known(tuple(schemas.values()), (RuleFacts("r", RULE, None, 0),)))
    batches = batches_of("A@1(1) B@2(2) C@3(9)", schemas)
    branch = Branch("b")
    for _ in range(20):
        if random.random() < 0.7:
            branch.filters = tuple(sorted(random.sample(texts, random.randrange(len(texts)))))
        known = {name: one for name, one in schemas.items() if random.random() < 0.7}
        if random.random() < 0.2:
            known |= others
        defining = {"C": rules} if random.random() < 0.5 else {}
        anew = Branch("b")
        anew.filters = branch.filters
        for one in (branch, anew):
            one.index(known, defining)
        assert branch.predicates == anew.predicates
        assert branch.rules == anew.rules
        for batch in (one for one in batches if known.get(one.type.name) == one.type):
            offered = [one.offer([batch], None) for one in (branch, anew)]
            assert (offered[0] is None) == (offered[1] is None)


def test_the_mark_of_a_rule_that_has_ended_is_not_told() -> None:
    """It moves with those of other rules, and would say that the rule has not ended after all."""
    made = Branch("n")
    rules = rules_of(Known((schema_of("A(n: int)"),), (RuleFacts("C", RULE, None, 1),)))
    made.filters = ("C",)
    made.index({"C": rules[0].rule.defines}, {"C": rules})
    told = []
    for mark, ended in ((5, ()), (6, ("C",)), (9, ("C",)), (9, ())):
        made.offer_detected((), None, {"C": mark}, every_mark=True, ended=ended)
        told.append([flow.marks for flow in made.take_flows()])
    assert told == [
        [(("C", 5),)],
        [(("C", 6), ("C", TIME_MAX))],
        [],
        [(("C", 9),)],
    ]
