"""What follows from rules follows from their outlines (outlining, Law 1)."""

from random import Random

import pytest

import rules
from matcher.model import EventType
from routing.messages import Known, RuleFacts
from routing.network.agreement.knowledge import (
    bereft_of_texts,
    digest_of,
    divisible,
    gathered,
    in_full,
    in_outline,
    lacking_of,
    merged,
    rules_of,
)
from routing.network.recovery.dues import horizons, starts
from routing.network.ways.sink_trees import below, kinds_of
from routing.partition.derivation import reach_of
from routing.partition.placement import is_unbounded
from rules.checking.dependencies import arrange
from rules.errors import RuleErrors
from rules.outlining import digest_of_text, is_bereft, is_outline, outline_of, read_outline
from rules.pattern import Rule
from simulator.fuzzing.maker import SCHEMAS, Maker


def random_rules(seed: int) -> tuple[Rule, ...]:
    """The rules of a network of the fuzz."""
    case = Maker(Random(f"{seed}/outlines")).case(seed, "distributed-mt")
    declared = "".join(f"event {schema}\n" for schema in SCHEMAS.values())
    return rules.load(declared + "\n".join(map(str, case.rules))).rules


def outlined(rule: Rule) -> Rule:
    """A rule as its outline says."""
    schemas = {schema.name: schema for schema in (rule.defines, *rule.used_types)}
    return read_outline(outline_of(rule, reach_of(rule)), rule.name, schemas)


def known_of(found: tuple[Rule, ...]) -> Known:
    types: dict[str, EventType] = {}
    for rule in found:
        types |= {one.name: one for one in (rule.defines, *rule.used_types) if one.name != "Timer"}
    facts = (RuleFacts(one.name, one.text, place, 0) for place, one in enumerate(found))
    return Known(tuple(types[name] for name in sorted(types)), tuple(facts))


@pytest.mark.parametrize("seed", range(150))
def test_an_outline_says_what_others_need(seed: int) -> None:
    found = random_rules(seed)
    plain = tuple(map(outlined, found))
    whole, rough = arrange(found), arrange(plain)
    assert whole.ranks == rough.ranks
    for one, other in zip(whole.rules, rough.rules, strict=True):
        assert (one.name, one.defines, one.opening) == (other.name, other.defines, other.opening)
        assert one.used_types == other.used_types
        assert is_unbounded(one) == is_unbounded(other)
        assert reach_of(one) == reach_of(other)
        assert digest_of_text(one.text) == digest_of_text(other.text)
        assert is_outline(other.text)
        assert not is_outline(one.text)


@pytest.mark.parametrize("seed", range(60))
def test_horizons_and_kinds_follow_from_outlines(seed: int) -> None:
    known = known_of(random_rules(seed))
    rough, random = in_outline(known), Random(seed)
    assert len(lacking_of(rough)) == len(known.rules)
    assert rules_of(rough) == rules_of(known), "they stand for the same rules"
    due = {facts.name: random.randrange(10**8) for facts in known.rules if random.random() < 0.7}
    assert starts(rules_of(rough), due) == starts(rules_of(known), due)
    assert horizons(rules_of(rough), due) == horizons(rules_of(known), due)
    assert kinds_of(rough) == kinds_of(known)
    for facts in known.rules:
        (rule,) = (one.rule for one in rules_of(known) if one.rule.name == facts.name)
        names = [one.rule.name for one in below({rule.defines.name}, rules_of(known))]
        assert names == [one.rule.name for one in below({rule.defines.name}, rules_of(rough))]
    assert in_full(rough, [known]) == known


def test_what_several_know_has_all_the_texts_that_one_of_them_has() -> None:
    known = known_of(random_rules(0))
    rough = in_outline(known)
    lost = bereft_of_texts(rough)
    assert all(is_bereft(facts.text) for facts in lost.rules)
    assert rules_of(lost) == rules_of(known), "they are the same rules"
    assert divisible(rules_of(lost)) == ()
    for several in ([lost, rough, known], [known, lost], [rough, known, lost], [lost, known]):
        assert gathered([], several) == [known]
        for own in (lost, rough, known):
            assert in_full(merged(own, several).known, several, for_root=True).rules == known.rules
    assert in_full(lost, [known]) is lost, "only the root says so"
    assert in_full(lost, [known], for_root=True) == known
    assert digest_of(lost) == digest_of(rough) == digest_of(known)


def test_an_outline_in_words() -> None:
    text = """event Temp(area: string, value: float) event Smoke(area: string)
    define Fire(area) from Smoke($a) and last Temp(area = $a) as T within 5 min from Smoke
    where area = $a consuming T"""
    (rule,) = rules.load(text).rules
    found = outline_of(rule, reach_of(rule))
    assert found == f"~ {digest_of_text(rule.text)} 300000000! Fire Smoke < Temp"


@pytest.mark.parametrize(
    "text",
    ["~ ", "~ 0123 1 A B < C", f"~ {'0' * 16} -1 A B < C", f"~ {'0' * 16} 1 A <", "define A()"],
)
def test_what_is_no_outline_is_refused(text: str) -> None:
    with pytest.raises(RuleErrors, match="expected the outline of a rule"):
        read_outline(text, "r", {})


def test_names_in_an_outline_may_have_blanks_and_signs() -> None:
    (rule,) = rules.load(
        "event `Sea Buoy`(x: int) event `<`(x: int) event `a?`(x: int) "
        "define `Warm Water`(x) from `Sea Buoy`() as b and each `a?`() within 1 s from b "
        "and not `<`() within 1 s from b where x = b.x"
    ).rules
    again = outlined(rule)
    assert again.defines == rule.defines
    assert again.used_types == rule.used_types


def test_types_of_an_outline_must_be_known() -> None:
    with pytest.raises(RuleErrors, match="event A is not known"):
        read_outline(f"~ {'0' * 16} 1 A Timer <", "r", {})
