"""Our loop over lark's tables gives what lark's own loop gives."""

from typing import Any

import pytest
from lark.exceptions import UnexpectedToken

from rules.automaton import Unexpected, automaton_of
from rules.errors import Span
from rules.parser import grammar
from rules.tokens import Token, tokenize

TEXTS = [
    "event A(x: int, y: string);",
    "define A() from B()",
    "rule r: define A(x, y: float) from B($p, q = 1 and r = 'x') as b and "
    "3-last C(x < -y * 2 % z - 1) within 5 min from b and not D() between C and b and "
    "C within 1 s from b and 45 < $t = Avg(T(a = $p).v within 1 h from b) and "
    "not Count(T()) within 1 h from b > 3 and (x.y = 1 or not true and $t != 2) "
    "where x = 1 and y = ((2)) consuming b, C",
    "define A() from B() and each within 1 s from B",
    "define A() form B()",
    "define A() from B(x = 1",
    "define A() from B(x = 1))",
    "",
    ";",
]


def by_lark(tokens: list[Token]) -> Any:
    state = grammar().parse_interactive(start="statement")
    for place, token in enumerate(tokens):
        try:
            node = state.feed_token(token)
        except UnexpectedToken:
            return Unexpected(place)
    return node


@pytest.mark.parametrize("text", TEXTS)
def test_both_loops_agree(text: str) -> None:
    tokens = [*tokenize(text)[0], Token("$END", "", None, Span(len(text), len(text), 1, 1))]
    configuration = grammar().parse_interactive(start="statement").parser_state.parse_conf
    assert automaton_of(configuration).run(tokens) == by_lark(tokens)
