"""Tables of the tree: what is told, and what is left out (routing.network.evaluation.router)."""

from dataclasses import replace
from random import Random

import pytest
from conversation import batches_of, schema_of

from matcher.model import TIME_MAX
from routing.delivery.subscriptions import PER_TYPE_MAX
from routing.deployment import Deployed
from routing.messages import Catalog, RuleFacts, SubscriptionUpdate
from routing.network.agreement.catalog import rules_of
from routing.network.evaluation.router import Router
from routing.network.tables.branch import Branch
from routing.network.tables.filter_cover import maximal
from routing.network.tables.filters import by_type
from routing.overlay.trees import LocalTree

RULE = "define C(n: int) from A() as a where n = a.n"
TEMP = schema_of("Temp(room: string, value: float)")


def router(father: str | None, *children: str) -> Router:
    made = Router("b0")
    made.follow(LocalTree("r" if father else "b0", 1, father, children=set(children)))
    made.join(children)
    return made


def nothing(name: str) -> tuple[Deployed, ...]:
    """No rule defines any type."""
    return ()


def told(made: Router, own: list[str]) -> dict[str, SubscriptionUpdate]:
    """What neighbours are told now, numbered as a broker would."""
    found = {}
    for branch, update in made.updates(by_type(own)):
        branch.told_number += 1
        found[branch.neighbour] = replace(update, number=branch.told_number)
    return found


def test_each_neighbour_is_told_what_the_others_want() -> None:
    made = router("f", "c", "d")
    made.hear_update("c", SubscriptionUpdate(("Temp(value > 5)",), 1))
    made.hear_update("f", SubscriptionUpdate(("Smoke",)))
    made.index({"Temp": TEMP}, nothing)
    assert told(made, ["Own"]) == {
        "c": SubscriptionUpdate(("Own", "Smoke"), 1),
        "d": SubscriptionUpdate(("Own", "Smoke", "Temp(value > 5)"), 1),
        "f": SubscriptionUpdate(("Own", "Temp(value > 5)"), 1),
    }
    assert told(made, ["Own"]) == {}, "it is no news any more"
    made.hear_update("c", SubscriptionUpdate(("Other",), 2, ("Temp(value > 5)",), 1))
    change = SubscriptionUpdate(("Other",), 2, ("Temp(value > 5)",), 1)
    assert told(made, ["Own"]) == {"d": change, "f": change}
    assert not made.hear_update("c", SubscriptionUpdate(("Temp",), 4, (), 3)), (
        "a change of what has not come"
    )
    assert not made.hear_update("x", SubscriptionUpdate(("Temp",))), "not a neighbour in the tree"


@pytest.mark.parametrize("seed", range(20))
def test_who_is_told_what_differs_knows_what_he_would_if_told_the_whole(seed: int) -> None:
    """Filters, types and neighbours come and go; what is told is void where something is lost."""
    random = Random(seed)
    made, types = router("f", "c", "d"), {name: schema_of(f"{name}(n: int)") for name in "ABC"}
    texts = [f"{name}(n > {least})" for name in types for least in range(3)] + [*types, "define"]
    said: dict[str, list[str]] = {}
    hearing = {name: Branch("b0") for name in made.branches}
    heard = dict.fromkeys(hearing, 0)
    for number in range(1, 30):
        name = random.choice(["c", "d", "f"])
        said[name] = random.sample(texts, random.randrange(5))
        assert made.hear_update(name, SubscriptionUpdate(tuple(said[name]), number))
        known = {name: one for name, one in types.items() if random.random() < 0.8}
        made.index(known, nothing)
        if random.random() < 0.2:  # a neighbour has to be told everything anew
            made.branches[random.choice("cdf")].told = None
        if random.random() < 0.1:  # another is in the tree no more, for a while
            made.follow(LocalTree("r", 1, "f", children={"d"}))
            made.follow(LocalTree("r", 1, "f", children={"c", "d"}))
            hearing["c"], heard["c"], said["c"] = Branch("b0"), 0, []
        own = random.sample(texts, random.randrange(4))
        lost = random.choice(["", "", "", *hearing])
        for neighbour, want in told(made, own).items():
            if neighbour == lost:
                continue
            is_void = want.after not in (0, heard[neighbour])
            assert (hearing[neighbour].hear(want) is None) == is_void, f"seed {seed}"
            if is_void:
                made.branches[neighbour].told = None
            else:
                heard[neighbour] = want.number
        for neighbour in hearing.keys() - {lost}:
            if heard[neighbour] == made.branches[neighbour].told_number:
                others = [text for other, has in said.items() if other != neighbour for text in has]
                whole = maximal(by_type([*own, *others]), known)
                found = [
                    text
                    for one in hearing[neighbour].types
                    for text in hearing[neighbour].texts(one)
                ]
                assert sorted(found) == list(whole), f"seed {seed}, {neighbour}"


def test_events_go_to_who_wants_them_but_not_back() -> None:
    made = router("f", "c", "d")
    made.hear_update("c", SubscriptionUpdate(("Temp(value > 5)",)))
    made.hear_update("d", SubscriptionUpdate(("Temp",)))
    made.hear_update("f", SubscriptionUpdate(("Temp",)))  # who gets it as a Forward
    made.index({"Temp": TEMP}, nothing)
    batches = batches_of('Temp@1("a", 4) Temp@2("a", 6)', {"Temp": TEMP})
    made.route_down(batches, None, "d")
    assert [(name, len(flow.batches[0])) for name, flow in made.take_flows()] == [("c", 1)]
    made.route_down(batches, None, None)
    sent = {name: sum(map(len, flow.batches)) for name, flow in made.take_flows()}
    assert sent == {"c": 1, "d": 2}
    made.join({"c"})
    made.route_down(batches, None, None)
    assert [name for name, _ in made.take_flows()] == ["c"], "d does not follow the same plan"


@pytest.mark.parametrize("seed", range(20))
def test_events_go_to_who_wants_them_now(seed: int) -> None:
    """Whatever is wanted, known and connected changes in between."""
    random = Random(seed)
    schemas = {name: schema_of(f"{name}(n: int)") for name in ("A", "B")}
    made, wanted, children = router("f"), dict[str, tuple[str, int]](), set[str]()
    for step in range(30):
        if random.random() < 0.2:
            children = set(random.sample(("c", "d", "e"), random.randint(1, 3)))
            made.follow(LocalTree("r", 1, "f", children=set(children)))
            made.join(children)
            wanted = {child: want for child, want in wanted.items() if child in children}
        for child in sorted(children):
            if random.random() < 0.3:
                wanted[child] = random.choice(sorted(schemas)), random.randrange(5)
                made.hear_update(
                    child,
                    SubscriptionUpdate(("{}(n > {})".format(*wanted[child]),), number=step + 1),
                )
        made.index(schemas, nothing)
        name, value = random.choice(sorted(schemas)), random.randrange(6)
        sender = random.choice(("c", "d", "e", None))
        made.route_down(batches_of(f"{name}@1({value})", schemas), None, sender)
        expected = {
            child
            for child, (of, limit) in wanted.items()
            if child != sender and of == name and value > limit
        }
        assert {to for to, _ in made.take_flows()} == expected, f"seed {seed}, step {step}"


def test_a_new_epoch_forgets_what_was_told() -> None:
    made = router("f")
    assert told(made, ["Own"]) == {"f": SubscriptionUpdate(("Own",), 1)}
    assert not made.follow(LocalTree("r", 1, "f"))
    assert made.follow(LocalTree("r", 2, "f")), "what was under way in the old one may be lost"
    assert told(made, ["Own"]) == {"f": SubscriptionUpdate(("Own",), 1)}
    assert made.follow(LocalTree("r", 2, "g"))
    assert made.follow(None)
    assert not made.has_tree


def test_who_has_been_away_knows_that_it_is_back() -> None:
    made, other = router("f"), LocalTree("q", 1, "f")
    assert not made.is_back
    made.follow(LocalTree("r", 2, "f"))
    assert not made.is_back, "a new epoch"
    made.follow(other)
    assert not made.is_back, "a new root"
    made.follow(LocalTree("r", 2, "f"))
    assert made.is_back
    made.follow(LocalTree("r", 2, "g"))
    assert made.is_back, "with another father, who says all anew"


def test_very_many_filters_of_a_type_are_asked_of_sources_together() -> None:
    branch = Branch("b")
    texts = tuple(f"Temp(value = {n})" for n in range(PER_TYPE_MAX + 1))
    branch.hear(SubscriptionUpdate(texts, 1))
    branch.index({"Temp": TEMP}, nothing)
    assert branch.offer(batches_of('Temp@3("a", 1000)', {"Temp": TEMP}), None) is None
    assert branch.offer(batches_of('Temp@3("a", 5)', {"Temp": TEMP}), None) is not None
    branch.hear(SubscriptionUpdate((), 2, texts[:1], 1))
    branch.index({"Temp": TEMP}, nothing)
    assert branch.offer(batches_of('Temp@3("a", 0)', {"Temp": TEMP}), None) is None


def test_a_filter_that_fits_no_known_type_matches_nothing_yet() -> None:
    branch = Branch("b")
    branch.hear(SubscriptionUpdate(("Temp(depth > 3)", "Other()")))
    branch.index({"Temp": TEMP}, nothing)
    assert branch.offer(batches_of('Temp@3("a", 1000)', {"Temp": TEMP}), None) is None


@pytest.mark.parametrize("seed", range(20))
def test_what_is_worked_out_step_by_step_is_what_would_be_worked_out_anew(seed: int) -> None:
    random = Random(seed)
    schemas = {name: schema_of(f"{name}(n: int)") for name in ("A", "B", "C")}
    others = {"A": schema_of("A(m: int)")}
    texts = [f"{name}(n > {limit})" for name in schemas for limit in range(3)] + ["A", "A(m = 1)"]
    rules = rules_of(Catalog(tuple(schemas.values()), (RuleFacts("r", RULE, None, 0),)))
    batches = batches_of("A@1(1) B@2(2) C@3(9)", schemas)
    branch = Branch("b")
    told_before, number = set[str](), 0
    for step in range(20):
        if random.random() < 0.7:
            wanted = set(random.sample(texts, random.randrange(len(texts))))
            new, gone = wanted - told_before, told_before - wanted
            branch.hear(SubscriptionUpdate(tuple(new), step + 1, tuple(gone), number))
            told_before, number = wanted, step + 1
        known = {name: one for name, one in schemas.items() if random.random() < 0.7}
        if random.random() < 0.2:
            known |= others
        there = random.random() < 0.5
        anew = Branch("b")
        anew.hear(SubscriptionUpdate(tuple(told_before)))
        for one in (branch, anew):
            one.index(known, lambda name, there=there: rules if there and name == "C" else ())
        assert branch.demands.keys() == anew.demands.keys()
        assert branch.rules == anew.rules
        for batch in (one for one in batches if known.get(one.type.name) == one.type):
            offered = [one.offer([batch], None) for one in (branch, anew)]
            assert (offered[0] is None) == (offered[1] is None)


def test_the_mark_of_a_rule_that_has_ended_is_not_told() -> None:
    """It moves with those of other rules, and would say that the rule has not ended after all."""
    made = Branch("n")
    rules = rules_of(Catalog((schema_of("A(n: int)"),), (RuleFacts("C", RULE, None, 0),)))
    made.hear(SubscriptionUpdate(("C",)))
    made.index({"C": rules[0].rule.defines}, lambda name: rules)
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
