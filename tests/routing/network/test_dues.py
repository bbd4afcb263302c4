"""What brokers say of how far rules have come, put together."""

from dataclasses import replace

from routing.network.recovery.dues import least, over
from routing.serving.deployment import Deployed
from rules.language import load


def test_a_rule_is_due_from_the_least_that_anybody_has() -> None:
    assert least(((("r", 7), ("q", 3)), (("r", 5),))) == {"r": 5, "q": 3}


UPPER = """event A(p: int)
rule fire: define Fire(p: int) from A() as a where p = a.p
rule alarm: define Alarm(p: int) from A() as a and each Fire() as f within 5 s from a
where p = f.p
"""


def test_a_rule_is_dropped_once_it_has_been_found_everywhere() -> None:
    fire, alarm = (Deployed(rule, None, 0, 0) for rule in load(UPPER).rules)
    fire = replace(fire, until=20_000_000)
    assert over([fire], {"fire": 19_999_999}) == []
    assert over([fire], {"fire": 20_000_000}) == [fire]
    assert over([fire], {}) == [fire], "nobody has it, or wants it"
    assert over([fire, alarm], {"fire": 20_000_000, "alarm": 24_000_000}) == []
    assert over([fire, alarm], {"fire": 20_000_000, "alarm": 25_000_000}) == [fire]
