"""What ways cost, counted by hand on a line of three brokers, and which are preferred.

T is published at a, its rule's composite events are wanted at c; b in the middle is the root.
"""

from dataclasses import replace

import pytest

from matcher.model import EventType
from routing.messages import Ways
from routing.network.strategy import Adaptive, Choice
from routing.network.ways import preferring
from routing.network.ways.forecast import Forecast
from routing.network.ways.sizes import ASKING, MESSAGE, PART, answer_bytes, event_bytes, mark_bytes
from routing.network.ways.terrain import Facts
from routing.network.ways.weighing import Weighing
from routing.partition.placement import tree_of
from rules.language import load

T, S = EventType.of("T", p="int"), EventType.of("S", p="int")
RULES = load(
    f"event {T}\nevent {S}\n"
    "rule one: define X(p: int) from T() as t where p = t.p\n"
    "rule two: define Y(p: int) from S() as s and last T() within 5 s from s where p = s.p\n",
    file="rules.tesla",
).rules
TIME = 1_600_000_000_000_000
MARK, RULE_MARK = mark_bytes("T", TIME), mark_bytes("one", TIME)
"""Of a type; of a rule, whose names are as long here."""
ROOT, DEEP, OWN = Ways(), Ways(deep=("X", "Y")), Ways(own=("X", "Y"))
FACTS = Facts(
    single=tree_of("b", {"a": "b", "c": "b"}),
    trees={"c": tree_of("c", {"a": "b", "b": "c"})},
    published={"a": frozenset({"T"}), "b": frozenset(), "c": frozenset({"S"})},
    schemas={"T": T, "S": S},
    rules=RULES[:1],
    rates={"T": 10.0, "S": 0.0},
    found={"one": (200.0, 2.0)},
    wants={"c": frozenset({"X"})},
    seconds=60.0,
    age=60.0,
    time=TIME,
)
EVENT = 10 * event_bytes(T)


def test_at_the_root_events_go_up_and_composite_events_down() -> None:
    up = 10 * (MESSAGE + MARK) + EVENT
    down = 200 + 2 * (MESSAGE + RULE_MARK)
    assert Weighing(FACTS).cost(ROOT) == pytest.approx(up + down)


def test_as_deep_as_may_be_only_composite_events_go() -> None:
    assert Weighing(FACTS).cost(DEEP) == pytest.approx(2 * (200 + 2 * (MESSAGE + RULE_MARK)))


def test_where_sinks_find_for_themselves_what_serves_them_is_evaluated_as_deep() -> None:
    """Along the tree of c the rule is evaluated at a, too: its composite events go up to c."""
    assert Weighing(FACTS).cost(OWN) == Weighing(FACTS).cost(DEEP)


def test_trees_share_messages_and_events() -> None:
    facts = replace(
        FACTS,
        rules=RULES[1:],
        published={"a": frozenset({"T"}), "b": frozenset({"S"}), "c": frozenset()},
        trees={"b": tree_of("b", {"a": "b", "c": "b"}), "c": FACTS.trees["c"]},
        wants={"b": frozenset({"Y"}), "c": frozenset({"Y"})},
        found={},
    )
    # From a to b for both trees: both evaluate the rule at b, from where nothing more has to go.
    assert Weighing(facts).cost(OWN) == pytest.approx(10 * (MESSAGE + 2 * (PART + MARK)) + EVENT)


def test_what_is_not_wanted_is_evaluated_nowhere() -> None:
    assert Weighing(replace(FACTS, wants={})).cost(OWN) == 0


def test_marks_are_told_where_others_come_from_beyond() -> None:
    facts = replace(
        FACTS,
        rules=RULES,
        rates={"T": 10.0, "S": 1.0},
        wants={"c": frozenset({"X", "Y"})},
        found={},
    )
    served = 10 * (MESSAGE + MARK) + EVENT + (MESSAGE + MARK) + event_bytes(S)  # for Y, at b
    told = 10 * (MESSAGE + RULE_MARK)  # of X from a to b, where Y is; both come to c over one link
    assert Weighing(facts).cost(DEEP) == pytest.approx(served + told)
    above = Weighing(replace(facts, wants={"a": frozenset({"X", "Y"})}))
    told = MESSAGE + RULE_MARK  # of Y from b to a, where X is, whenever its terminator S comes
    assert above.cost(DEEP) == pytest.approx(served + told)


def test_marks_are_told_to_sinks_that_have_trees_of_their_own_too() -> None:
    facts = replace(
        FACTS,
        rules=RULES,
        rates={"T": 10.0, "S": 1.0},
        wants={"c": frozenset({"X", "Y"})},
        found={},
    )
    mixed = Weighing(facts).cost(Ways(own=("X",), deep=("X", "Y")))
    tree = 2 * 10 * (MESSAGE + PART + RULE_MARK)  # of X, evaluated at a, over two links up to c
    served = 10 * (MESSAGE + MARK) + EVENT + (MESSAGE + MARK) + event_bytes(S)
    assert mixed == pytest.approx(tree + served + (MESSAGE + RULE_MARK))


def test_a_pulled_rule_costs_what_lies_around_its_masters() -> None:
    wants = {"c": frozenset({"Y"})}
    facts = replace(FACTS, rules=RULES[1:], rates={"T": 100.0, "S": 0.001}, found={}, wants=wants)
    weighing = Weighing(facts)
    pulled = replace_masters(DEEP, two=0)
    assert weighing.cost(pulled) < 0.15 * weighing.cost(DEEP)
    assert preferring.prefer(weighing, Ways(deep=("Y",))).masters == (("two", 0),)
    soon = Weighing(replace(facts, seconds=4.0))  # what is rare may be less so
    assert soon.cost(pulled) > 3 * weighing.cost(pulled)
    sooner = Weighing(replace(facts, seconds=0.1))
    assert preferring.prefer(sooner, Ways(deep=("Y",))).masters == ()


def replace_masters(ways: Ways, **masters: int) -> Ways:
    return Ways(ways.own, ways.deep, tuple(sorted(masters.items())))


def test_ways_are_left_only_for_clearly_better_ones() -> None:
    weighing = Weighing(FACTS)
    assert weighing.cost(preferring.prefer(weighing, ROOT)) == weighing.cost(DEEP)
    much = Weighing(replace(FACTS, found={"one": (1e6, 2.0)}))  # over one link rather than two
    assert preferring.prefer(much, DEEP) == Ways()
    # Nothing is so much worse at the root that it would pay to leave it.
    alike = Weighing(replace(FACTS, found={"one": (EVENT + 10 * (MESSAGE + MARK) - 190, 2.0)}))
    assert alike.cost(DEEP) < alike.cost(ROOT)
    assert preferring.prefer(alike, ROOT) == ROOT


def test_beyond_what_may_be_looked_at_ways_that_send_all_alike_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So in networks of some 250 brokers with sinks, and more (decision 0015)."""
    monkeypatch.setattr(preferring, "PATHS_MAX", 0)
    weighing = Weighing(FACTS)
    assert weighing.cost(preferring.prefer(weighing, ROOT)) == weighing.cost(DEEP)


def test_a_change_costs_what_is_sent_once_more() -> None:
    weighing = Weighing(replace(FACTS, rules=RULES, age=10.0))  # the other reaches back 5 s
    assert weighing.price(ROOT, ROOT) == weighing.price(OWN, OWN) == 0
    assert weighing.price(ROOT, OWN) == 0  # nothing goes over links before X is found at a
    assert weighing.price(DEEP, ROOT) == pytest.approx(EVENT * 5 / 10)
    pulled = replace_masters(DEEP, two=0)
    assert weighing.price(DEEP, pulled) == 0 < weighing.price(pulled, DEEP)
    older = Weighing(replace(FACTS, rules=RULES, age=100.0))
    assert older.price(DEEP, ROOT) == pytest.approx(weighing.price(DEEP, ROOT) / 10)


def test_of_what_is_pulled_only_that_is_sent_once_more_which_is_asked_for() -> None:
    wants = {"c": frozenset({"Y"})}
    facts = replace(FACTS, rules=RULES[1:], rates={"T": 10.0, "S": 0.01}, wants=wants, age=10.0)
    weighing = Weighing(facts)  # T crosses two links on the way to c, the rule reaches back 5 s
    assert weighing.price(ROOT, OWN) == pytest.approx(2 * EVENT * 5 / 10)
    awake = Forecast(facts.rates, facts.seconds, facts.age).awake("S", 5_000_000)
    pulled = replace_masters(OWN, two=0)
    assert weighing.price(ROOT, pulled) == pytest.approx(awake * 2 * EVENT * 5 / 10)
    assert 0 < awake < 0.2


def test_what_pulling_saves_is_held_against_what_can_be_saved() -> None:
    """Composite events take nine tenths of all traffic, and no way spares any of them."""
    wants = {"c": frozenset({"Y"})}
    facts = replace(FACTS, rules=RULES[1:], rates={"T": 10.0, "S": 0.01}, wants=wants, age=1e6)
    found = {"two": (9 * Weighing(replace(facts, found={})).cost(DEEP), 0.0)}
    weighing = Weighing(replace(facts, found=found))
    pulled = replace_masters(DEEP, two=0)
    assert weighing.composites(DEEP) == weighing.composites(pulled) > 0.8 * weighing.cost(DEEP)
    assert 0.9 * weighing.cost(DEEP) < weighing.cost(pulled) < 0.95 * weighing.cost(DEEP)
    assert preferring.prefer(weighing, DEEP).masters == (("two", 0),)


def test_marks_behind_composite_events_go_no_more_often_than_they_move() -> None:
    wants = {"c": frozenset({"X", "Y"})}
    rates = {"T": 10.0, "S": 0.5}
    rare = replace(FACTS, rules=RULES, rates=rates, wants=wants, found={"one": (0.0, 2.0)})
    alone = replace(rare, rules=RULES[:1])
    more = Weighing(rare).cost(ROOT) - Weighing(alone).cost(ROOT)
    served = 0.5 * (MESSAGE + MARK) + 0.5 * event_bytes(S)  # of S, from c up to the root
    assert more == pytest.approx(served + 0.5 * RULE_MARK)  # of Y, behind X


def test_masters_that_rules_have_no_more_are_left_out() -> None:
    """A rule was replaced by one without such an event, another one removed."""
    ways = Ways(deep=("X", "Y"), masters=(("gone", 0), ("two", 2)))
    weighing = Weighing(replace(FACTS, rules=RULES))
    assert weighing.cost(ways) == weighing.cost(DEEP)
    assert weighing.price(ways, DEEP) == 0
    published = {"a": (T,), "b": (), "c": (S,)}
    choice = Choice(ways=ways)
    assert Adaptive().divide_by(FACTS.single, published, RULES, choice).pulls == {}
    kept = Choice(ways=replace_masters(DEEP, two=0))
    assert set(Adaptive().divide_by(FACTS.single, published, RULES, kept).pulls) == {"two"}


U = EventType.of("U", p="int")
PULLED = load(
    f"event {T}\nevent {S}\nevent {U}\n"
    "rule two: define Y(p: int) from S() as s and last T() within 5 s from s where p = s.p\n"
    "rule too: define Z(p: int) from U() as u and last T() within 5 s from u where p = u.p\n",
    file="pulled.tesla",
).rules
SHARED = replace(
    FACTS,
    single=tree_of("c", {"a": "b", "b": "c"}),
    trees={"b": tree_of("b", {"a": "b", "c": "b"}), "c": tree_of("c", {"a": "b", "b": "c"})},
    published={"a": frozenset({"T"}), "b": frozenset({"U"}), "c": frozenset({"S"})},
    schemas={"T": T, "S": S, "U": U},
    rules=PULLED,
    rates={"T": 10.0, "S": 0.01, "U": 5.0},
    found={},
    wants={"c": frozenset({"Y"}), "b": frozenset({"Z"})},
)
"""T goes from a up to b, for a rule there, and further up to c for one that may be pulled."""
YZ = Ways(deep=("Y", "Z"), masters=(("two", 0),))


def pushed_at(*brokers: str) -> Ways:
    return Ways(YZ.own, YZ.deep, YZ.masters, tuple(("two", "c", one) for one in brokers))


def test_over_a_link_that_its_types_cross_anyway_a_rule_is_pushed() -> None:
    weighing = Weighing(SHARED)
    assert list(weighing.frontiers(YZ)) == [(("two", "c", "a"),)]
    forecast = Forecast(SHARED.rates, SHARED.seconds, SHARED.age)
    answers = forecast.awake("S", 0) * 10 * answer_bytes("two", TIME)  # no window lies ahead of S
    saved = forecast.rate("S") * ASKING + answers
    assert weighing.cost(YZ) - weighing.cost(pushed_at("a")) == pytest.approx(saved)
    assert preferring.prefer(weighing, Ways()) == pushed_at("a")
    # As far as b means all the way, as if it were not pulled.
    assert weighing.cost(pushed_at("b")) == weighing.cost(pushed_at("a", "b"))
    assert weighing.cost(pushed_at("b")) == pytest.approx(weighing.cost(Ways(deep=YZ.deep)))
    assert weighing.cost(pushed_at("b")) > weighing.cost(YZ)


def test_over_a_link_that_only_what_is_asked_for_crosses_it_is_pulled() -> None:
    weighing = Weighing(replace(SHARED, rules=PULLED[:1], wants={"c": frozenset({"Y"})}))
    assert list(weighing.frontiers(YZ)) == [()]
    assert weighing.cost(pushed_at("a")) > weighing.cost(YZ)
    assert preferring.prefer(weighing, Ways()).pushed == ()


def test_what_is_rare_beside_its_master_is_pushed_all_the_way() -> None:
    rates = {"T": 0.01, "S": 10.0, "U": 5.0}
    weighing = Weighing(replace(SHARED, rates=rates, rules=PULLED[:1]))
    assert list(weighing.frontiers(YZ)) == [(("two", "c", "b"),)]


def test_of_sinks_that_find_for_themselves_each_tree_has_frontiers_of_its_own() -> None:
    """Up to c as above; up to a nothing but S, which is asked for over both links, goes."""
    trees = {"a": tree_of("a", {"c": "b", "b": "a"}), "c": SHARED.single}
    wants = {"c": frozenset({"Y", "Z"}), "a": frozenset({"Y"})}
    weighing = Weighing(replace(SHARED, trees=trees, wants=wants))
    own = Ways(("Y", "Z"), ("Y", "Z"), YZ.masters)
    assert list(weighing.frontiers(own)) == [(), (), (("two", "c", "a"),)]


def test_pushing_over_other_links_is_a_change_like_another_master() -> None:
    weighing = Weighing(replace(SHARED, age=10.0))
    assert weighing.price(YZ, YZ) == weighing.price(pushed_at("a"), pushed_at("a")) == 0
    assert weighing.price(YZ, pushed_at("b")) == weighing.price(YZ, Ways(deep=YZ.deep)) > 0


def test_a_plan_says_by_tree_where_rules_are_pushed() -> None:
    published = {"a": (T,), "b": (U,), "c": (S,)}

    def asked(ways: Ways) -> list[str]:
        tree = SHARED.single
        fragments = Adaptive().divide_by(tree, published, PULLED, Choice(ways=ways)).fragments
        return [node for node in "ab" if fragments[node]["two"].kept]

    assert asked(YZ) == ["a", "b"]
    assert asked(pushed_at("a")) == ["b"]
    assert asked(pushed_at("b")) == []  # what is pushed comes to b unasked
    assert asked(pushed_at("gone")) == ["a", "b"]
    of_another = Ways(YZ.own, YZ.deep, YZ.masters, (("two", "a", "a"), ("gone", "c", "a")))
    assert asked(of_another) == ["a", "b"]
