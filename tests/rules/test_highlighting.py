"""Editors show words as the parser reads them."""

import re
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name

from rexmq.lexer import TeslaLexer
from rules.syntax.tokens import CALLS, FUNCTIONS, KINDS, UNITS, WORDS, tokenize
from rules.syntax.words import RESERVED

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
SHOWN = {
    "NAME": {"Name", "Name.Class"},
    "KIND": {"Keyword.Type"},
    "NUMBER": {"Literal.Number"},
    "DURATION": {"Literal.Number"},
    "RANK": {"Literal.Number"},
    "TIMES": {"Literal.Number"},
    "INSTANT": {"Literal.Date"},
    "STRING": {"Literal.String"},
    "PARAMETER": {"Name.Variable"},
    "FUNCTION": {"Name.Builtin"},
    "CALL": {"Name.Builtin"},
    "TRUE": {"Keyword.Constant"},
    "FALSE": {"Keyword.Constant"},
    "NULL": {"Keyword.Constant"},
    "EVENT": {"Keyword.Declaration"},
    "RULE": {"Keyword.Declaration"},
}
"""How words of a type are shown; others as keywords, operators or punctuation."""
OTHERS = {"Keyword", "Operator", "Operator.Word", "Punctuation"}


def shown(text):
    """How each character of a text is shown."""
    styles = []
    for _, token, value in TeslaLexer().get_tokens_unprocessed(text):
        styles += [str(token).removeprefix("Token.")] * len(value)
    return styles


def styles_of(text):
    tokens, problems = tokenize(text)
    assert not problems
    styles = shown(text)
    return [(token.type, token.text, styles[token.span.start]) for token in tokens]


def verify(text):
    for kind, word, style in styles_of(text):
        assert style in SHOWN.get(kind, OTHERS), f"{kind} {word} is shown as {style}"


def test_every_rule_of_the_pages_is_shown_as_it_is_read():
    texts = [path.read_text() for path in ROOT.glob("examples/**/*.tesla")]
    for page in PAGES:
        texts += re.findall(r"```tesla\n(.*?)```", page.read_text(), re.DOTALL)
    readable = [text for text in texts if not tokenize(text)[1]]
    assert len(readable) > 50
    for text in readable:
        verify(text)


def test_every_word_of_the_language_is_shown():
    within = " within 5 min from Smoke"
    events = "".join(f" and {word} Temp(){within}" for word in ("each", "first", "last"))
    functions = ", ".join(f"x = {word}(Temp.v{within})" for word in sorted(FUNCTIONS))
    calls = ", ".join(f"x = {word}(Temp.v)" for word in sorted(CALLS))
    tests = (
        'a in (1, 2), b matches "c.*", d prefix "e", f suffix "g", h contains "i", j is not null'
    )
    kinds = ", ".join(f"a{place}: {kind}" for place, kind in enumerate(KINDS))
    units = "".join(f" and not Temp() within 5 {unit} from Smoke" for unit in UNITS)
    text = (
        f"event E({kinds}) rule r: define Z(x: int?) from all Temp(while v > 1) as t, Fog() within "
        f"5 s and not Rain() between Temp and Smoke{events}{units} "
        f"where {functions}, {calls}, y = true, z = false consuming Temp "
        f"define Y() from Temp({tests}) or Smoke()"
    )
    verify(text)
    words = {word.lower() for kind, word, _ in styles_of(text) if kind != "NAME"}
    assert {*RESERVED, *WORDS} <= words


@pytest.mark.parametrize("word", sorted({*WORDS} - {"is", "null"}))
def test_words_of_the_language_may_be_names(word):
    verify(f"event A({word}: int) define B({word}: int) from A({word} > 3) where {word} = A.{word}")


def test_comments_and_what_is_no_word_are_told_apart():
    styles = shown("# from\n// from\n€")
    assert styles[2] == styles[10] == "Comment.Single"
    assert styles[-1] == "Error"


def test_pygments_finds_the_language_by_name():
    assert isinstance(get_lexer_by_name("tesla"), TeslaLexer)
