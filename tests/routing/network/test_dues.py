"""What brokers say of how far rules have come, put together."""

from matcher.model import TIME_MAX, TIME_MIN
from routing.network.recovery.dues import closed_at, concluded, least, let_go, withdraw


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


def test_what_is_said_of_another_version_can_be_taken_away() -> None:
    due = together(let_go({"r": 6, "q": 1}), (("r", 5), ("q", 3)))
    assert withdraw(due, "r") == 5
    assert withdraw(due, "s") is None
    assert concluded(due) == {"q": 3}


def test_names_for_which_there_is_no_room_go_without() -> None:
    long = "r" * 1_024
    assert let_go({long: 6}) == ()
