"""The shape of a statement, told by the types of its tokens alone.

The automaton looks at nothing else, so statements whose tokens have the same types are built
alike, from other tokens; and the rules of one file often differ in names and numbers only. So a
*shape* is found once: which method of :mod:`rules.syntax.builder` is called, in which order, with
which tokens and earlier results. To build a statement of a known shape is to call them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from rules.syntax.automaton import Automaton, Unexpected
from rules.syntax.builder import Builder
from rules.syntax.words import Token

Method: TypeAlias = Callable[[Sequence[Any]], Any]
Step: TypeAlias = tuple[Method, Callable[[list[Any]], Sequence[Any]]]
"""A method of the builder, and what takes its arguments from the values there are."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How to build a statement. Values are numbered: nothing, the tokens, what steps make."""

    steps: tuple[Step, ...]
    result: int

    def build(self, tokens: Sequence[Token]) -> Any:
        """The node of a statement with these tokens."""
        values: list[Any] = [None, *tokens]
        for method, arguments in self.steps:
            values.append(method(arguments(values)))
        return values[self.result]


def shape_of(automaton: Automaton, types: Sequence[str]) -> Shape | Unexpected:
    """The shape of a statement whose tokens have these types.

    The automaton's callbacks must be those of :class:`Recorder`.
    """
    result = automaton.run((*types, "$END"))
    if isinstance(result, Unexpected):
        return result
    calls = _in_order(result)
    numbers = {id(call): number for number, call in enumerate(calls, 1 + len(types))}

    def number_of(part: _Call | int | None) -> int:
        return numbers[id(part)] if isinstance(part, _Call) else part or 0

    steps = [(call.method, _taking([number_of(part) for part in call.parts])) for call in calls]
    return Shape(tuple(steps), number_of(result))


class Recorder:
    """Stands in for the builder while the automaton runs: its methods tell what was called.

    It has the methods that the builder has and no others: lark treats rules without one apart.
    """

    def __getattr__(self, name: str) -> Callable[[Sequence[Any]], _Call]:
        """The stand-in for a method of the builder."""
        method = getattr(_BUILDER, name)
        return lambda parts: _Call(method, tuple(parts))


_BUILDER = Builder()


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the builder; ``parts`` are calls, the numbers of tokens, or None."""

    method: Method
    parts: tuple[_Call | int | None, ...]


def _in_order(result: _Call | int) -> list[_Call]:
    """The calls that a result takes, those that others need before them; nested however deep."""
    found: list[_Call] = []
    pending = [result]
    while pending:
        call = pending.pop()
        if isinstance(call, _Call):
            found.append(call)
            pending.extend(part for part in call.parts if isinstance(part, _Call))
    return found[::-1]


def _taking(places: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that takes the values at these places, as a sequence even of one or none."""
    match places:
        case []:
            return lambda values: ()
        case [place]:
            return lambda values: (values[place],)
        case _:
            return itemgetter(*places)
