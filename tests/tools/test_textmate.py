"""The grammar for editors is that of the parser's words, and its patterns are patterns."""

import json

from tools.textmate import GRAMMAR, textmate


def test_the_grammar_is_that_of_the_words() -> None:
    made = "make it with: python tools/textmate.py > editors/vscode/syntaxes/tesla.tmLanguage.json"
    assert GRAMMAR.read_text("utf-8") == textmate(), made


def test_the_extension_leads_to_the_grammar() -> None:
    folder = GRAMMAR.parents[1]
    (grammar,) = json.loads((folder / "package.json").read_text())["contributes"]["grammars"]
    assert (folder / grammar["path"]).resolve() == GRAMMAR
    assert json.loads(GRAMMAR.read_text("utf-8"))["scopeName"] == grammar["scopeName"]
