"""What brokers say of how far rules have come, put together."""

from dataclasses import replace

from routing.deployment import Deployed
from routing.messages import Report
from routing.network.agreement.rounds import combined
from routing.network.recovery.resume_points import least, over
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


def test_of_promises_the_least_counts_and_of_what_is_committed_the_greatest() -> None:
    one, other = (
        Report("b1", 1, 1, promises=(("Temp", promised),), committed=(("r", committed),))
        for promised, committed in ((5, 3), (4, 8))
    )
    found = combined(one, [other])
    assert (found.promises, found.committed) == ((("Temp", 4),), (("r", 8),))


def test_of_events_published_the_sum_counts_and_of_those_found_the_most() -> None:
    one, other = (
        Report("b1", 1, 1, counts=(("Temp", count, front),), found=(("r", size, 1),))
        for count, front, size in ((5, 30, 200), (4, 80, 100))
    )
    found = combined(one, [other])
    assert (found.counts, found.found) == ((("Temp", 9, 80),), (("r", 200, 1),))
