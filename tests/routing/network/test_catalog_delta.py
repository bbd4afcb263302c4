"""Who is told what has become of what is known has what he would if told the whole
(catalog_delta)."""

from random import Random

import pytest
from conversation import schema_of

from routing import wire
from routing.errors import ProtocolError
from routing.messages import Catalog, CatalogDelta, RuleFacts
from routing.network.agreement.catalog_delta import changed, delta_between, difference, with_delta

NOTHING = ((), ())


def random_catalog(random: Random) -> Catalog:
    """Types of two schemas, rules in any order, everything else as it comes."""
    types = [
        schema_of(f"T{n}({random.choice('ab')}: int)") for n in range(6) if random.random() < 0.7
    ]
    rules = [RuleFacts(f"r{n}", "define", random.choice([None, 5]), 0) for n in range(4)]
    if random.random() < 0.3:
        random.shuffle(rules)
    names = [f"b{n}" for n in range(5) if random.random() < 0.8]
    return Catalog(
        tuple(types),
        tuple(rules[: random.randrange(5)]),
        tuple((f"e{n}", random.randrange(2)) for n in range(random.randrange(3))),
        tuple((name, tuple(f"T{n}" for n in range(random.randrange(3)))) for name in names),
        tuple(f"T{n}" for n in range(3) if random.random() < 0.5),
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_is_amended_step_by_step_is_what_is_known(seed: int) -> None:
    random = Random(seed)
    told = catalog = random_catalog(random)
    for number in range(1, 30):
        before, catalog = catalog, random_catalog(random)
        message = delta_between(before, catalog)
        told = with_delta(told, wire.decode(wire.encode(message)))
        assert told == catalog, f"seed {seed}, step {number}"


def test_only_what_differs_is_told() -> None:
    catalog = Catalog((schema_of("A()"), schema_of("B()")), (), (), (("b1", ("A",)), ("b2", ())))
    less = Catalog((schema_of("B()"),), (), (), (("b1", ("A",)), ("b2", ("C",))))
    message = delta_between(catalog, less)
    homes = ((1,), ((1, ("b2", ("C",))),))
    assert message == CatalogDelta(((0,), ()), NOTHING, NOTHING, homes, NOTHING)
    assert with_delta(catalog, message).rules is catalog.rules
    assert difference("abc", "bac") == ((0, 1, 2), ((0, "b"), (1, "a"), (2, "c")))


@pytest.mark.parametrize("change", [((3,), ()), ((), ((4, "d"),)), ((0, 1), ((2, "d"),))])
def test_a_delta_of_something_else_is_refused(change: object) -> None:
    with pytest.raises(ProtocolError, match="place"):
        changed(("a", "b", "c"), change)  # type: ignore[arg-type]
