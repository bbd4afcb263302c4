"""The parts of a random rule that speak of its events: windows, conditions, values.

Engines must agree to the last bit, and so floats may be anything: ``v`` and ``r`` hold whatever
comes out, and ``d`` averages and standard deviations; ``q`` and ``n`` may be huge, for integer
overflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from matcher.model import EventType, Kind
from rules.pattern import TIMER
from simulator.fuzzing.world import SCHEMAS, STRINGS

_T = TypeVar("_T")
HUGE = ("9223372036854775807", "4611686018427387904", "(-9223372036854775807)")


@dataclass(frozen=True, slots=True)
class Named:
    """A numbered event: its name in the text and the number it is anchored to."""

    name: str
    type: EventType
    anchor: int | None


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use. ``inner`` is the event whose parentheses enclose it."""

    events: tuple[Named, ...]
    parameters: Mapping[str, Kind]
    inner: EventType | None = None
    depth: int = 0  # of aggregates

    def inside(self, schema: EventType) -> Scope:
        """The same, of an event of that type."""
        return replace(self, inner=schema)


@dataclass(slots=True)
class ExpressionWriter:
    """Writes about the events and parameters that a rule has so far."""

    random: Random
    primitives: Sequence[str]
    composites: Sequence[str]
    events: list[Named] = field(default_factory=list)
    parameters: dict[str, Kind] = field(default_factory=dict)

    # --- windows -----------------------------------------------------------------------------

    def _within(self) -> tuple[str, int]:
        anchor = self.random.randrange(len(self.events))
        duration = self._one_of("1 s", "2 s", "3s", "4 sec", "5 s", "6 s", "2500 ms", "9 s")
        return f"within {duration} from {self.events[anchor].name}", anchor

    def _window(self) -> str:
        chains = [
            (first, second)
            for second in range(len(self.events))
            for first in self._chain(second)
            if first != second
        ]
        if not chains or self._chance(0.5):
            return self._within()[0]
        pair = list(self._one_of(*chains))
        self.random.shuffle(pair)
        return f"between {self.events[pair[0]].name} and {self.events[pair[1]].name}"

    def _chain(self, number: int) -> list[int]:
        """The event's anchors, one after another."""
        anchor = self.events[number].anchor
        return [] if anchor is None else [anchor, *self._chain(anchor)]

    # --- conditions --------------------------------------------------------------------------

    def _conditions(self, schema: EventType, *, binding: bool) -> tuple[str, ...]:
        scope = self._scope().inside(schema)
        conditions = []
        if binding and schema.attributes and self._chance(0.15):
            conditions.append(self._bind("", schema.attributes[0].kind))  # positional
        for _ in range(self._one_of(0, 0, 0, 1, 1, 2)):
            if binding and schema.attributes and self._chance(0.3):
                attribute = self._one_of(*schema.attributes)
                if self._chance(0.1):
                    conditions.append(self._bind("time", Kind.INT))
                else:
                    conditions.append(self._bind(attribute.name, attribute.kind))
            elif schema.attributes:
                scope = self._scope().inside(schema)
                usable = [name for name, kind in self.parameters.items() if kind.is_number]
                equal = [
                    f"{attribute.name} = {name}"
                    for attribute in schema.attributes
                    for name, kind in self.parameters.items()
                    if kind is attribute.kind
                ]
                equal += [f"time = {event.name}.time" for event in self.events[:1]]
                if equal and usable and self._chance(0.4):
                    conditions.append(self._one_of(*equal))
                else:
                    conditions.append(self._condition(scope))
        return tuple(conditions)

    def _bind(self, attribute: str, kind: Kind) -> str:
        name = f"${self._one_of('x', 'area')}{len(self.parameters)}"
        self.parameters[name] = kind
        if not attribute:
            return name
        return self._one_of(f"{attribute} = {name}", f"{name} = {attribute}")

    def _condition(self, scope: Scope) -> str:
        if self._chance(0.12):
            joined = self._one_of("or", "or", "and").join(
                f" {self._condition(scope)} " for _ in range(2)
            )
            return f"({joined})"
        if self._chance(0.06):
            return f"not ({self._condition(scope)})"
        texts = self._attributes(scope, Kind.STRING)
        truths = self._attributes(scope, Kind.BOOL)
        if texts and self._chance(0.25):
            comparison = self._one_of(
                "=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains"
            )
            other = self._one_of('""', f'"{self._one_of(*STRINGS)}"', *texts)
            text = self._one_of(*texts)
            if self._chance(0.3):
                return self._tested(text, other)
            return f"{text} {comparison} {other}"
        if truths and self._chance(0.25):
            comparison = self._one_of("=", "!=")
            return f"{self._one_of(*truths)} {comparison} {self._one_of('true', 'false', *truths)}"
        if self._chance(0.05) and scope.depth == 0 and scope.events:
            return f"{self._aggregate(scope, moment=True)[0]} {self._one_of('<', '>')} 0.6"
        if self._chance(0.1) and scope.events:
            return self._timing(scope)
        left, _ = self._number(scope)
        if self._chance(0.4):  # mostly true, so that enough rules fire
            return f"{left} {self._one_of('>= 0', '<= 3', '!= 2', '> (-1)', '< 9.5', '>= (-0.5)')}"
        right, _ = self._number(scope)
        if self._chance(0.05):
            return f"{left} {self._one_of('in', 'not in')} ({right}, 1, 2.5)"
        comparison = self._one_of("=", "!=", "<>", "<=", "<", "<=", ">", ">=", ">=")
        return f"{left} {comparison} {right}"

    def _tested(self, text: str, other: str) -> str:
        """A text in a list, in lower case, or one in which a pattern is found."""
        pattern = self._one_of("", "a", "^a", "(?i)A|b$", "^.{0,2}$", "[^a]")
        return self._one_of(
            f'{text} {self._one_of("in", "not in")} ({other}, "{self._one_of(*STRINGS)}")',
            f"lower({text}) {self._one_of('=', '!=', '<=', 'prefix')} lower({other})",
            f'lower({text}) matches "{pattern}"',
            f'{text} {self._one_of("matches", "not matches")} "{pattern}"',
        )

    def _timing(self, scope: Scope) -> str:
        """A condition on when events occurred (X3)."""
        times = [f"{event.name}.time" for event in scope.events]
        own = "time" if scope.inner is not None else self._one_of(*times)
        length = self._one_of("0 s", "1 s", "2 s", "3s", "1500 ms", "-2 s")
        comparison = self._one_of("<", "<=", "<=", ">=", ">", "=", "!=")
        first, second = self._one_of((own, self._one_of(*times)), (self._one_of(*times), own))
        if self._chance(0.3):
            return f"{first} {comparison} {second} {self._one_of('+', '-')} {length}"
        return f"{first} - {second} {comparison} {length}"

    # --- values ------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        return Scope(tuple(self.events), self.parameters)

    def _attributes(self, scope: Scope, *kinds: Kind) -> list[str]:
        """Attributes and parameters of some kinds."""
        names = [
            f"{event.name}.{attribute.name}"
            for event in scope.events
            for attribute in event.type.attributes
            if attribute.kind in kinds and event.type != TIMER
        ]
        if scope.inner is not None:
            names += 3 * [
                attribute.name for attribute in scope.inner.attributes if attribute.kind in kinds
            ]
        names += [name for name, kind in scope.parameters.items() if kind in kinds]
        if Kind.INT in kinds and self._chance(0.15):
            names += [f"{event.name}.time" for event in scope.events]
        return names

    def _number(self, scope: Scope, *, whole: bool = False, depth: int = 0) -> tuple[str, Kind]:
        """A numeric expression, ``whole`` an int."""
        if self._chance(0.3) and depth < 2:
            operation = self._one_of(*("+-*%" if whole else "+-*%/"))
            left, kind = self._number(scope, whole=whole, depth=depth + 1)
            right, other = self._number(scope, whole=whole, depth=depth + 1)
            floats = operation == "/" or Kind.FLOAT in (kind, other)
            return f"({left} {operation} {right})", Kind.FLOAT if floats else Kind.INT
        if self._chance(0.05):
            text, kind = self._number(scope, whole=whole, depth=depth + 1)
            return f"-({text})", kind
        if self._chance(0.12) and scope.depth < 2 and scope.events:
            text, kind = self._aggregate(scope, whole=whole)
            if kind.is_number:
                return text, kind
        ints = self._attributes(scope, Kind.INT)
        floats_ = [] if whole else self._attributes(scope, Kind.FLOAT)
        if (ints or floats_) and self._chance(0.75):
            chosen = self._one_of(*ints, *floats_)
            return chosen, Kind.INT if chosen in ints else Kind.FLOAT
        if self._chance(0.04):
            return self._one_of(*HUGE), Kind.INT
        if whole or self._chance(0.6):
            return self._one_of("0", "1", "1", "2", "3", "(-1)"), Kind.INT
        return self._one_of("0.0", "0.5", "1.2", "2.0", "(-0.7)"), Kind.FLOAT

    def _aggregate(
        self, scope: Scope, *, whole: bool = False, moment: bool = False
    ) -> tuple[str, Kind]:
        """An aggregate: ``whole`` an int or a text, ``moment`` an average or a deviation."""
        schema = SCHEMAS[self._one_of(*self.primitives, *self.composites)]
        conditions = []
        if schema.attributes and self._chance(0.5):
            inner = replace(scope, inner=schema, depth=scope.depth + 1)
            conditions.append(self._condition(inner))
        function, attribute = self._function(schema, whole=whole, moment=moment)
        name = "" if attribute is None else f".{attribute}"
        argument = f"{schema.name}({', '.join(conditions)}){name}"
        kind = Kind.INT if attribute is None else _result(function, schema, attribute)
        if attribute is not None and self._chance(0.3):
            argument, kind = self._computed(scope, schema, argument, kind, whole=whole)
        window = self._window()
        text = self._one_of(f"{function}({argument} {window})", f"{function}({argument}) {window}")
        return text, kind

    def _computed(
        self, scope: Scope, schema: EventType, event: str, kind: Kind, *, whole: bool
    ) -> tuple[str, Kind]:
        """An aggregate's operand: an expression over the event's attributes and what is known."""
        if kind is Kind.STRING:
            return f"lower({event})", kind
        operation = self._one_of(*("+-*%" if whole else "+-*%/"))
        inner = replace(scope, inner=schema, depth=2)  # no aggregate within an aggregate's value
        other, other_kind = self._number(inner, whole=whole, depth=1)
        pair = self._one_of((event, other), (other, event))
        floats = operation == "/" or Kind.FLOAT in (kind, other_kind)
        return f"{pair[0]} {operation} {pair[1]}", Kind.FLOAT if floats else Kind.INT

    def _function(self, schema: EventType, *, whole: bool, moment: bool) -> tuple[str, str | None]:
        choices: list[tuple[str, str | None]] = []
        for attribute in schema.attributes:
            kind, functions = attribute.kind, []
            if not moment and kind is not Kind.BOOL and (kind is not Kind.FLOAT or not whole):
                functions += ["Min", "Max"] + ["Sum"] * kind.is_number
            if kind.is_number and not whole:
                functions += ["Avg", "StdDev"]
            choices += [(function, attribute.name) for function in functions]
        if not moment:
            choices.append(("Count", None))
            if self._chance(0.1):
                choices += [("Min", "time"), ("Max", "time"), ("Sum", "time")]
        return self._one_of(*choices) if choices else ("Count", None)

    def _assigned(self, name: str, kind: Kind) -> str:
        """The value of an attribute in ``where``."""
        scope = self._scope()
        if name == "d":
            return self._aggregate(scope, moment=True)[0]
        if kind.is_number:
            return self._number(scope, whole=kind is Kind.INT)[0]
        known = self._attributes(scope, kind)
        if known and self._chance(0.8):
            return self._one_of(*known)
        return self._one_of("true", "false") if kind is Kind.BOOL else '"ab"'

    # --- chance ------------------------------------------------------------------------------

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _one_of(self, *choices: _T) -> _T:
        return choices[self.random.randrange(len(choices))]


def bindable(name: str) -> Mapping[Kind, Sequence[str]]:
    """The attributes of a type that parameters may be bound to, by kind."""
    found: dict[Kind, list[str]] = {}
    for attribute in SCHEMAS[name].attributes:
        found.setdefault(attribute.kind, []).append(attribute.name)
    return found


def _result(function: str, schema: EventType, attribute: str) -> Kind:
    if attribute == "time":
        return Kind.INT
    place = schema.index(attribute)
    assert place is not None
    kind = schema.attributes[place].kind
    return Kind.FLOAT if function in ("Avg", "StdDev") else kind
