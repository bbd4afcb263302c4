"""Statements built by their shapes are those that lark's own loop gives."""

from typing import Any

import pytest
from lark.exceptions import UnexpectedToken

from rules.errors import Span
from rules.syntax.automaton import Unexpected
from rules.syntax.parser import _automaton, parse
from rules.syntax.printer import print_file
from rules.syntax.shape import Recorder, _Call, shape_of
from rules.syntax.tokens import tokenize
from rules.syntax.words import Token
from tools.grammar import grammar

LARK = grammar(Recorder())

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
    state = LARK.parse_interactive(start="statement")
    for place, token in enumerate(tokens):
        try:
            told = state.feed_token(token)
        except UnexpectedToken:
            return Unexpected(place)
    return built(told)


def built(told: Any) -> Any:
    """What the builder makes of the calls that the recorder tells of."""
    if not isinstance(told, _Call):
        return told
    return told.method([built(part) for part in told.parts])


def by_shape(tokens: list[Token], types: list[str]) -> Any:
    shape = shape_of(_automaton("statement"), types)
    return shape if isinstance(shape, Unexpected) else shape.build(tokens)


@pytest.mark.parametrize("text", TEXTS)
def test_our_loop_gives_what_that_of_lark_gives(text: str) -> None:
    tokens, _ = tokenize(text)
    end = Token("$END", "", None, Span(len(text), len(text), 1, 1))
    assert by_shape(tokens, [token.type for token in tokens]) == by_lark([*tokens, end])


@pytest.mark.parametrize("text", TEXTS)
def test_what_may_follow_is_what_lark_accepts(text: str) -> None:
    state = LARK.parse_interactive(start="statement")
    types: list[str] = []
    for token in tokenize(text)[0]:
        assert _automaton("statement").expected(types) == state.accepts()
        try:
            state.feed_token(token)
        except UnexpectedToken:
            return
        types.append(token.type)
    assert _automaton("statement").expected(types) == state.accepts()


def test_statements_of_one_shape_are_built_from_their_own_tokens() -> None:
    one = "define A(x) from B(y > 1) and each C() within 2 s from B where x = B.y"
    two = "define D(z) from E(v > 3) and each F() within 4 min from E where z = E.w"
    assert [token.type for token in tokenize(one)[0]] == [token.type for token in tokenize(two)[0]]
    for text in (one, two):
        assert " ".join(print_file(parse(text)).split()) == text
