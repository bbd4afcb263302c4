"""The tables of the grammar: what ``rules/syntax/tesla.lark`` says, as the parser goes by it.

lark makes them, which takes longer than to read the rules of most files. So they are made here when
the grammar changes, and kept beside it; ``tests/tools/test_grammar.py`` compares the two.

::

    python tools/grammar.py > rules/syntax/tesla.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lark import Lark
from lark.lexer import Lexer
from lark.parse_tree_builder import maybe_create_child_filter

GRAMMAR = Path(__file__).resolve().parents[1] / "rules" / "syntax" / "tesla.lark"
STARTS = ("statement", "subscription")


class NoLexer(Lexer):
    """Tokens are fed one by one; lark never sees the text."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Any]:
        """No token."""
        return iter(())


def grammar(methods: Any = None) -> Lark:
    """The grammar as lark has it, calling these methods for what it recognises."""
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer=NoLexer,
        start=list(STARTS),
        transformer=methods,
        maybe_placeholders=True,
    )


def tables() -> str:
    """The tables as JSON (:func:`rules.syntax.automaton.automaton_of`); a state is a line."""
    table = grammar().parse_interactive(start=STARTS[0]).parser_state.parse_conf.parse_table
    number_of = _numbers(table)
    rules = {
        target: _reduction(target)
        for entries in table.states.values()
        for _, target in entries.values()
        if not isinstance(target, int)
    }
    reductions = [json.loads(text) for text in sorted(set(map(json.dumps, rules.values())))]

    def entry(target: Any) -> int:
        return (
            number_of[target] if isinstance(target, int) else -1 - reductions.index(rules[target])
        )

    states = [
        {str(symbol): entry(target) for symbol, (_, target) in sorted(table.states[state].items())}
        for state in number_of
    ]
    starts = {
        name: [number_of[table.start_states[name]], number_of[table.end_states[name]]]
        for name in STARTS
    }
    return _printed({"starts": starts, "reductions": reductions, "states": states})


def _numbers(table: Any) -> Mapping[int, int]:
    """The states in an order that does not change: lark numbers them by what sets hold first."""
    numbers: dict[int, int] = {}
    pending = [table.start_states[name] for name in STARTS]
    for state in pending:
        if state not in numbers:
            numbers[state] = len(numbers)
            entries = sorted(table.states[state].items())
            pending += [target for _, (_, target) in entries if isinstance(target, int)]
    return numbers


def _reduction(rule: Any) -> list[Any]:
    """A rule of the grammar: see :func:`rules.syntax.automaton.automaton_of`."""
    options = rule.options
    keep = maybe_create_child_filter(
        rule.expansion, options.keep_all_tokens, False, options.empty_indices
    )
    if keep is None:
        picks: list[Any] = list(range(len(rule.expansion)))
    else:
        children, absent_at_end = (*keep.args, 0)[:2]
        picks = []
        for place, is_spread, *absent in children:
            picks += [None] * sum(absent)
            picks.append([place] if is_spread else place)
        picks += [None] * absent_at_end
    name = rule.alias or options.template_source or str(rule.origin.name)
    is_passed_on = bool(options.expand1 and rule.alias is None)
    return [str(rule.origin.name), name, len(rule.expansion), picks, is_passed_on]


def _printed(tables: Mapping[str, Any]) -> str:
    def lines(rows: list[Any]) -> str:
        return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"

    starts, reductions, states = tables["starts"], tables["reductions"], tables["states"]
    return (
        f'{{"starts": {json.dumps(starts)},\n"reductions": {lines(reductions)},\n'
        f'"states": {lines(states)}}}\n'
    )


if __name__ == "__main__":
    print(tables(), end="")
