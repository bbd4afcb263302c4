"""The LALR automaton at work: lark makes the tables, this loop runs them.

lark's own loop looks every reduction's callback up by a rule that hashes and compares in Python,
and calls it for the many reductions that only pass a value on (an operand is a product is a sum
is a comparison). Here each table entry holds its callback, and passing on costs nothing. What a
text means cannot differ, since tables and callbacks are the same.

The loop reads the types of tokens alone, and the values that it moves are numbers: what it gives
is the shape of a statement (:mod:`rules.syntax.shape`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FIRST_PLACE = 1
"""The number of the first token; 0 is that of what is absent."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Replace ``size`` values by what ``callback`` makes of them; None passes the one on.

    ``next_states`` gives the state that follows, by the one that is uncovered.
    """

    callback: Callable[[list[Any]], Any] | None
    size: int
    next_states: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Unexpected:
    """No action for token number ``place``, counted from 0."""

    place: int


@dataclass(frozen=True, slots=True)
class Automaton:
    """For each state, what to do at each type of token: shift to a state, or reduce."""

    actions: Mapping[int, Mapping[str, int | Reduction]]
    start: int
    end: int

    def run(self, types: Iterable[str]) -> Any:
        """The value that the callbacks make of the start symbol; ``types`` ends with ``$END``.

        They are given the numbers of tokens, from FIRST_PLACE, and what they have made before.
        """
        actions = self.actions
        states = [self.start]
        values: list[Any] = []
        for place, type_ in enumerate(types, FIRST_PLACE):
            while True:
                action = actions[states[-1]].get(type_)
                if action is None:
                    return Unexpected(place - FIRST_PLACE)
                if isinstance(action, int):
                    states.append(action)
                    values.append(place)
                    break
                if action.callback is None:
                    states.pop()
                else:
                    size = action.size
                    parts = values[-size:] if size else []
                    if size:
                        del values[-size:], states[-size:]
                    values.append(action.callback(parts))
                state = action.next_states[states[-1]]
                if state == self.end:
                    return values[-1]
                states.append(state)
        raise AssertionError("the end of the tokens is not accepted, and no error either")


def automaton_of(configuration: Any) -> Automaton:
    """The automaton of lark's ``ParseConf``: its parse table and its callbacks, for one start."""
    table: Mapping[int, Mapping[str, Any]] = configuration.parse_table.states
    gotos: dict[str, dict[int, int]] = {}
    for state, entries in table.items():
        for symbol, (_, target) in entries.items():
            if not symbol.isupper() and symbol != "$END":
                gotos.setdefault(str(symbol), {})[state] = target
    reductions: dict[Any, Reduction] = {}

    def action_of(target: Any) -> int | Reduction:
        if isinstance(target, int):
            return target
        if target not in reductions:
            passes_on = (
                target.options.expand1
                and target.alias is None
                and len(target.expansion) == 1
                and not getattr(target.expansion[0], "filter_out", False)
            )
            reductions[target] = Reduction(
                None if passes_on else configuration.callbacks[target],
                len(target.expansion),
                gotos[str(target.origin.name)],
            )
        return reductions[target]

    actions = {
        state: {
            str(symbol): action_of(target)
            for symbol, (_, target) in entries.items()
            if symbol.isupper() or symbol == "$END"
        }
        for state, entries in table.items()
    }
    return Automaton(actions, configuration.start_state, configuration.end_state)
