"""The parser goes by the tables of the grammar as it is."""

from tools.grammar import GRAMMAR, tables


def test_tables_are_those_of_the_grammar() -> None:
    kept = GRAMMAR.with_suffix(".json").read_text("utf-8")
    assert kept == tables(), "make them with: python tools/grammar.py > rules/syntax/tesla.json"
