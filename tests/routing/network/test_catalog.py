"""Parts of a network that were apart put together what they know (agreement.catalog)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from brokers import SCHEMAS as NETWORK_SCHEMAS, Network
from conversation import schema_of

from matcher.model import EventType
from routing.config import NodeConfig
from routing.deployment import Deployments
from routing.messages import Catalog, RuleFacts
from routing.network.agreement.catalog import catalog_of, digest_of, merged, rules_of
from routing.serving import known_rules
from routing.serving.advertisements import Advertisements
from rules.language import load
from rules.pattern import RuleSet
from simulator.fuzzing.making import random_case
from simulator.fuzzing.world import OPTIONAL, SCHEMAS

A, B = schema_of("A(n: int)"), schema_of("B(n: int)")
X = schema_of("X(n: int)")


def rule(name: str, version: int = 0, type_: str = "A", since: int | None = None) -> RuleFacts:
    return RuleFacts(name, f"define X(n: int) from {type_}() as e where n = e.n", since, version)


def names(catalog: Catalog) -> list[str]:
    return [one.name for one in catalog.rules]


def test_what_only_one_of_them_knows_counts() -> None:
    own = Catalog((A, X), (rule("r"),), (), (("b1", ("A",)),))
    other = Catalog((A, B, X), (rule("r"), rule("s", type_="B")), (), (("b1", ()), ("b2", ("B",))))
    together = merged(own, [other])
    assert names(together.catalog) == ["r", "s"]
    assert together.catalog.types == (A, B, X)
    assert together.catalog.homes == (("b1", ("A",)), ("b2", ("B",)))
    assert together.left_out == ()


def test_the_later_version_of_a_rule_counts() -> None:
    own, other = Catalog((A, X), (rule("r", 1),)), Catalog((A, X), (rule("r", 2, since=5),))
    assert merged(own, [other]).catalog.rules == (rule("r", 2, since=5),)
    assert merged(other, [own]).catalog.rules == (rule("r", 2, since=5),)


def test_what_has_ended_stays_so_unless_it_was_deployed_again() -> None:
    ended, old = Catalog((A, X), (), (("r", 1),)), Catalog((A, X), (rule("r", 1),))
    assert names(merged(old, [ended]).catalog) == []
    assert names(merged(ended, [old]).catalog) == []
    assert merged(ended, [old]).catalog.ended == (("r", 1),)
    again = Catalog((A, X), (rule("r", 2),), (("r", 1),))
    assert names(merged(ended, [again]).catalog) == ["r"]


def test_a_rule_that_ends_does_so_for_all_and_is_gone_where_somebody_dropped_it() -> None:
    ending = msgspec.structs.replace(rule("r"), until=9)
    before, after = Catalog((A, X), (rule("r"),)), Catalog((A, X), (ending, rule("r", 1, since=9)))
    assert merged(before, [after]).catalog.rules == after.rules
    assert set(merged(after, [before]).catalog.rules) == set(after.rules)
    dropped = Catalog((A, X), (rule("r", 1, since=9),))
    assert merged(after, [dropped]).catalog.rules == dropped.rules
    assert merged(dropped, [before]).catalog.rules == dropped.rules
    removed = Catalog((A, X), (ending,), (("r", 0),))
    assert merged(before, [removed]).catalog == removed


def test_where_they_differ_the_own_counts_and_the_rest_is_named() -> None:
    other_a = schema_of("A(m: string)")
    own = Catalog((A, X), (rule("r"),))
    text = "define X(n: int) from A() as e where n = 1"
    other = Catalog((other_a, X), (RuleFacts("s", text, None, 0),))
    together = merged(own, [other])
    assert together.catalog == own
    assert set(together.left_out) == {"A", "s"}
    two = merged(own, [Catalog((A, X), (rule("r", since=9),))])
    assert (two.catalog, two.left_out) == (own, ("r",))


def test_rules_that_go_with_each_other_in_no_network_are_left_out() -> None:
    """Together they would be a cycle of terminators (S12)."""
    x, y = X, schema_of("Y(n: int)")
    one = RuleFacts("xy", "define Y(n: int) from X() as e where n = e.n", None, 0)
    two = RuleFacts("yx", "define X(n: int) from Y() as e where n = e.n", None, 0)
    own = Catalog((x, y), (one,))
    together = merged(own, [Catalog((x, y), (two,))])
    assert (together.catalog, together.left_out) == (own, ("yx",))


def test_digests_tell_apart_what_is_known() -> None:
    known = Catalog((A, X), (rule("r"),))
    others = [Catalog((A,), ()), Catalog((A, X), ()), Catalog((A, X), (rule("r"),), (("s", 0),))]
    assert digest_of(known) == digest_of(Catalog((A, X), (rule("r"),)))
    assert digest_of(known) not in set(map(digest_of, others))


def test_rules_are_those_of_the_types_as_they_are_known() -> None:
    """What is remembered of a text is forgotten with a type that it speaks of, and no other."""
    (rule_,) = rules_of(Catalog((A, X), (rule("r"),)))
    (same,) = rules_of(Catalog((A, B, X), (rule("r"),)))
    assert same.rule is rule_.rule
    wider = schema_of("A(n: int, m: int)")
    (changed,) = rules_of(Catalog((wider, X), (rule("r"),)))
    assert [one.attributes for one in changed.rule.used_types] == [wider.attributes]


CYCLE = """
rule up: define Spread(d: float) from all C() as e0, X() as e1 within 1 s where d = 1
rule down:
define X(n: int, v: float, s: string)
from C() as e0
where n = Count(Spread()) within 3 s from e0, v = 1, s = "ab"
"""


def deployed(
    text: str, schemas: Mapping[str, EventType] = SCHEMAS
) -> tuple[Deployments, Advertisements]:
    """Rules that were deployed as one text, as their root has them."""
    deployments, advertisements = Deployments(NodeConfig()), Advertisements(NodeConfig())
    rules = load(text, known=schemas).rules
    advertisements.exchange((), schemas.values())
    deployments.add(rules, None, 0)
    return deployments, advertisements


def test_rules_of_a_cycle_are_the_same_to_who_reads_them_one_by_one() -> None:
    """A root whose own rules were others than those it was told of took them for new ones when
    parts of a network came together, and told their composite events twice (found by a fuzz of
    networks torn for long).
    """
    deployments, advertisements = deployed(CYCLE)
    assert rules_of(catalog_of(advertisements, deployments)) == tuple(deployments.rules)


@pytest.mark.parametrize("seed", range(100))
def test_rules_are_the_same_to_who_was_told_of_them(seed: int) -> None:
    case = random_case(seed, "centralized")
    schemas = OPTIONAL if any(rule.optional for rule in case.rules) else SCHEMAS
    deployments, advertisements = deployed("\n\n".join(map(str, case.rules)), schemas)
    told = rules_of(catalog_of(advertisements, deployments))
    assert told == tuple(deployments.rules)
    assert [one.rule for one in told] == [one.rule for one in deployments.rules]


def test_a_text_that_is_deployed_is_not_loaded_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root divides, and tells, the rules that it has loaded to see whether they are right."""
    loads: list[str] = []

    def noted(text: str, **options: Any) -> RuleSet:
        loads.append(text)
        return load(text, **options)

    monkeypatch.setattr(known_rules, "load", noted)
    network = Network(2)
    names = [f"Once{number}" for number in range(100)]
    text = "\n".join(
        f"rule r{name}: define {name}(room: string) from Smoke(room = $r) as s where room = $r"
        for name in names
    )
    network.connect("s", "b1").advertise([NETWORK_SCHEMAS["Smoke"]])
    network.connect("m", "b2").deploy(text)
    network.connect("sink", "b1").subscribe(f"{names[-1]}()")
    network.run(2)
    network.publish("s", 'Smoke@3("hall")', 4)
    assert f'sink: {names[-1]}@3("hall") <- s#1' in network.take_lines()
    assert not loads
