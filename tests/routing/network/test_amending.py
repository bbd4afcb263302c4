"""Who is told what has become of what is known has what he would if told the whole (amending)."""

from random import Random

import pytest
from conversation import schema_of

from routing import wire
from routing.errors import ProtocolError
from routing.messages import Amended, Known, RuleFacts
from routing.network.agreement.amending import amended, amendment, changed, difference

NOTHING = ((), ())


def random_known(random: Random) -> Known:
    """Types of two schemas, rules in any order, everything else as it comes."""
    types = [
        schema_of(f"T{n}({random.choice('ab')}: int)") for n in range(6) if random.random() < 0.7
    ]
    rules = [RuleFacts(f"r{n}", "define", random.choice([None, 5]), 0) for n in range(4)]
    if random.random() < 0.3:
        random.shuffle(rules)
    names = [f"b{n}" for n in range(5) if random.random() < 0.8]
    return Known(
        tuple(types),
        tuple(rules[: random.randrange(5)]),
        tuple((f"e{n}", random.randrange(2)) for n in range(random.randrange(3))),
        tuple((name, tuple(f"T{n}" for n in range(random.randrange(3)))) for name in names),
        tuple(f"T{n}" for n in range(3) if random.random() < 0.5),
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_is_amended_step_by_step_is_what_is_known(seed: int) -> None:
    random = Random(seed)
    told = known = random_known(random)
    for number in range(1, 30):
        before, known = known, random_known(random)
        message = amendment(before, known)
        told = amended(told, wire.decode(wire.encode(message)))
        assert told == known, f"seed {seed}, step {number}"


def test_only_what_differs_is_told() -> None:
    known = Known((schema_of("A()"), schema_of("B()")), (), (), (("b1", ("A",)), ("b2", ())))
    less = Known((schema_of("B()"),), (), (), (("b1", ("A",)), ("b2", ("C",))))
    message = amendment(known, less)
    homes = ((1,), ((1, ("b2", ("C",))),))
    assert message == Amended(((0,), ()), NOTHING, NOTHING, homes, NOTHING)
    assert amended(known, message).rules is known.rules
    assert difference("abc", "bac") == ((0, 1, 2), ((0, "b"), (1, "a"), (2, "c")))


@pytest.mark.parametrize("change", [((3,), ()), ((), ((4, "d"),)), ((0, 1), ((2, "d"),))])
def test_an_amendment_of_something_else_is_refused(change: object) -> None:
    with pytest.raises(ProtocolError, match="place"):
        changed(("a", "b", "c"), change)  # type: ignore[arg-type]
