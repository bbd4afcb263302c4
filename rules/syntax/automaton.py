"""The LALR automaton at work: lark made the tables, this loop runs them.

The tables are made when the grammar changes, and kept beside it (``tesla.json``): nothing of lark
is needed to read rules. lark's own loop would look every reduction's callback up by a rule that
hashes and compares in Python, and call it for the many reductions that only pass a value on (an
operand is a product is a sum is a comparison). Here each table entry holds its callback, and
passing on costs nothing.

The loop reads the types of tokens alone, and the values that it moves are numbers: what it gives
is the shape of a statement (:mod:`rules.syntax.shape`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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

    actions: Sequence[Mapping[str, int | Reduction]]
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

    def expected(self, types: Iterable[str]) -> set[str]:
        """The types of tokens that may follow these, all of which it takes."""
        states = [self.start]
        for type_ in types:
            self._take(states, type_)
        return {type_ for type_ in self.actions[states[-1]] if self._take(states.copy(), type_)}

    def _take(self, states: list[int], type_: str) -> bool:
        """Whether a token is taken; the states after it."""
        while (action := self.actions[states[-1]].get(type_)) is not None:
            if isinstance(action, int):
                states.append(action)
                return True
            if action.size:
                del states[-action.size :]
            state = action.next_states[states[-1]]
            if state == self.end:
                return True
            states.append(state)
        return False


def automaton_of(tables: Mapping[str, Any], start: str, methods: object) -> Automaton:
    """The automaton of a ``start`` of the grammar, from its tables (tools/grammar.py) and the
    methods that are called for what is recognised.

    Each of ``states`` says what follows a type of token or a symbol: a state, or -1 and below a
    reduction. Each of ``reductions`` names its symbol and its method, says how many values it
    takes, and what of them is handed on: the value at a place, all of those at [a place], or
    nothing (null); and whether a value that is alone is passed on as it is.
    """
    states: Sequence[Mapping[str, int]] = tables["states"]
    next_states: dict[str, dict[int, int]] = {}
    for state, row in enumerate(states):
        for symbol, to in row.items():
            next_states.setdefault(symbol, {})[state] = to
    reductions = []
    for symbol, name, size, picks, is_passed_on in tables["reductions"]:
        is_all = is_passed_on and picks == [0] and size == 1
        method = getattr(methods, name, _as_it_is)
        callback = None if is_all else _callback(method, picks, is_passed_on)
        reductions.append(Reduction(callback, size, next_states[symbol]))
    actions = [
        {
            type_: to if to >= 0 else reductions[-1 - to]
            for type_, to in row.items()
            if type_.isupper()
        }
        for row in states
    ]
    return Automaton(actions, *tables["starts"][start])


def _as_it_is(values: list[Any]) -> list[Any]:
    return values


def _callback(
    method: Callable[[list[Any]], Any], picks: Sequence[Any], is_passed_on: bool
) -> Callable[[list[Any]], Any]:
    def callback(parts: list[Any]) -> Any:
        values: list[Any] = []
        for pick in picks:
            if isinstance(pick, list):
                found = parts[pick[0]]
                if values:
                    values += found
                else:  # nobody else has it: a list that grows is not copied for each one more
                    values = found
            else:
                values.append(None if pick is None else parts[pick])
        return values[0] if is_passed_on and len(values) == 1 else method(values)

    return callback
