"""What brokers say of how far rules have come, put together."""

from dataclasses import replace

from matcher.model import TIME_MAX, TIME_MIN
from routing.network.recovery.dues import closed_at, concluded, least, let_go, over
from routing.serving.deployment import Deployed
from rules.language import load


def together(*tables: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return least(tables)


def test_a_rule_is_due_from_the_least_that_anybody_has() -> None:
    assert concluded(together((("r", 7), ("q", 3)), (("r", 5),))) == {"r": 5, "q": 3}


def test_what_has_closed_counts_if_nobody_says_anything_else() -> None:
    closed = (closed_at("r", 4),), (closed_at("r", 9),)
    assert concluded(together(*closed)) == {"r": 9}
    assert concluded(together(*closed, (("r", 2),))) == {"r": 2}


def test_it_is_due_from_no_earlier_than_where_anybody_has_let_go() -> None:
    committed = let_go({"r": 6, "q": 2, "p": TIME_MAX}), let_go({"r": 8, "q": TIME_MIN})
    assert concluded(together(*committed, (("r", 5), ("q", 3)))) == {"r": 8, "q": 3, "p": TIME_MAX}
    assert concluded(together(*committed, (closed_at("r", 7),)))["r"] == 8


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


def test_names_for_which_there_is_no_room_go_without() -> None:
    long = "r" * 1_024
    assert let_go({long: 6}) == ()
