"""Random TESLA rules over a small world of types, written as text, clause by clause.

Every clause of tesla.md section 3 can come up. Matches stay few: a rule has at most two ``each``
clauses, one above composite events, and selects composite events that may depend on itself only by
``first`` and ``last``. What conditions say is in ``expressions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from matcher.model import EventType, Kind
from rules.pattern import TIMER
from simulator.fuzzing.expressions import ExpressionWriter, Named, bindable
from simulator.fuzzing.world import COMPOSITE, SCHEMAS, Piece, RuleText


@dataclass(slots=True)
class RuleWriter(ExpressionWriter):
    """Writes one rule."""

    multiple: int = 0  # how many "each" there are
    either: set[str] = field(default_factory=set)  # types of events that may have several

    def write(self, name: str, defines: str) -> RuleText:
        """A rule called ``name`` that defines composite type ``defines``."""
        if self._chance(0.12):
            return self._write_together(name, defines)
        pieces = [self._terminator(defines)]
        for _ in range(self._one_of(0, 1, 1, 1, 2, 2, 2, 3)):
            pieces.append(self._selected(defines))
            if self._chance(0.15):
                pieces.append(self._constraint())
        for write, chance in (
            (self._timed, 0.15),
            (self._negated, 0.25),
            (self._let, 0.2),
            (self._constraint, 0.3),
        ):
            if self._chance(chance) and (write != self._timed or len(self.events) > 1):
                pieces.append(write())
        return RuleText(name, defines, tuple(pieces), *self._ending(defines))

    def _write_together(self, name: str, defines: str) -> RuleText:
        """A rule of events that come in any order (X1)."""
        below = [one for one in self.composites if _level(one) < _level(defines)]
        pieces = []
        for number in range(self._one_of(2, 2, 3)):
            pool = below if below and self._chance(0.2) else self.primitives
            schema = SCHEMAS[self._one_of(*pool)]
            conditions = self._conditions(schema, binding=True)
            pieces.append(Piece(schema.name, conditions, f" as e{number}", opens=True))
            self.events.append(Named(f"e{number}", schema, None))
        for write, chance in ((self._let, 0.2), (self._constraint, 0.4)):
            if self._chance(chance):
                pieces.append(write())
        duration = self._one_of("1 s", "1 s", "2 s", "1500 ms", "3s")
        return RuleText(name, defines, tuple(pieces), *self._ending(defines), duration)

    def _ending(self, defines: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """``where`` and ``consuming``."""
        where = tuple(
            f"{attribute.name} = {self._assigned(attribute.name, attribute.kind)}"
            for attribute in SCHEMAS[defines].attributes
        )
        names = [event.name for event in self.events]
        consuming = self.random.sample(names, self._one_of(0, 0, 0, 1, 1, len(names)))
        return where, tuple(consuming)

    # --- clauses -----------------------------------------------------------------------------

    def _terminator(self, defines: str) -> Piece:
        below = [name for name in self.composites if _level(name) < _level(defines)]
        if self._chance(0.12):
            zoned = ("S % 2 = 0", 'zone = "Africa/Monrovia"')
            plain = ((), ("S % 2 = 0",), ("S >= 3",), ("M = 0",), ("S = 4", "H=0"))
            conditions = self._one_of(*plain, zoned)
            self.events.append(Named("e0", TIMER, None))
            return Piece("Timer", conditions, " as e0")
        pool = below if below and self._chance(0.3) else self.primitives
        names = self._types(pool, 0.12)
        self.multiple += any(name in COMPOSITE for name in names)  # there may be many already
        conditions, others = self._alternatives(names)
        self.events.append(Named("e0", _common(names), None))
        return Piece(names[0], conditions, f"{others} as e0")

    def _selected(self, defines: str) -> Piece:
        names = self._types(self._usable(defines), 0.2)
        above = any(_level(name) >= _level(defines) >= 0 for name in names)
        single = above or self.multiple == 2
        policy = self._one_of("first", "last", "last", f"{self._one_of(1, 2, 3)}-first", "2-last")
        if not single and self._chance(0.55):
            policy, self.multiple = "each", self.multiple + 1
        window, anchor = self._within()
        conditions, others = self._alternatives(names)
        # An event may be known by its type while no other event has that type.
        known = {event.type.name for event in self.events} | self.either
        by_type = names[0] not in known and len(names) == 1 and self._chance(0.2)
        name = names[0] if by_type else f"e{len(self.events)}"
        self.events.append(Named(name, _common(names), anchor))
        tail = f"{others}{'' if by_type else ' as ' + name} {window}"
        return Piece(f"{policy} {names[0]}", conditions, tail)

    def _types(self, pool: Sequence[str], several: float) -> list[str]:
        """The type of an event, or with that chance several that it may have (X2)."""
        names = sorted(set(pool))
        if len(names) == 1 or not self._chance(several):
            return [self._one_of(*pool)]
        chosen = self.random.sample(names, min(len(names), self._one_of(2, 2, 3)))
        self.either.update(chosen)
        return chosen

    def _alternatives(self, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The conditions of an event; and, where it may have several types, the others' text."""
        if len(names) == 1:
            return self._conditions(SCHEMAS[names[0]], binding=True), ""
        conditions = [list(self._conditions(SCHEMAS[name], binding=False)) for name in names]
        kinds = [
            kind
            for kind in Kind
            if all(kind in bindable(name) for name in names) and self._chance(0.5)
        ]
        for kind in kinds[:1]:
            parameter = f"$x{len(self.parameters)}"
            for name, own in zip(names, conditions, strict=True):
                own.append(f"{self._one_of(*bindable(name)[kind])} = {parameter}")
            self.parameters[parameter] = kind
        parts = zip(names[1:], conditions[1:], strict=True)
        others = "".join(f" or {name}({', '.join(own)})" for name, own in parts)
        return tuple(conditions[0]), others

    def _timed(self) -> Piece:
        event = self._one_of(*self.events[1:])
        return Piece(f"{event.name} {self._within()[0]}")

    def _negated(self) -> Piece:
        schema = SCHEMAS[self._one_of(*self.primitives, *self.composites)]
        conditions = self._conditions(schema, binding=False)
        return Piece(f"not {schema.name}", conditions, f" {self._window()}")

    def _constraint(self) -> Piece:
        return Piece(self._condition(self._scope()))

    def _let(self) -> Piece:
        name = f"$x{len(self.parameters)}"
        text, kind = self._number(self._scope())
        if self._chance(0.6):
            text, kind = self._aggregate(self._scope())
        self.parameters[name] = kind
        if kind is not Kind.STRING and self._chance(0.3):
            return Piece(f"-2.5 < {name} = {text}")
        return Piece(f"{name} = {text}")

    def _usable(self, defines: str) -> list[str]:
        below = [name for name in self.composites if _level(name) < _level(defines)]
        above = [name for name in self.composites if _level(name) >= _level(defines)]
        pool = [*self.primitives, *self.primitives, *below, *(above if self._chance(0.5) else ())]
        taken = {event.name for event in self.events}
        return [name for name in pool if name not in taken] or ["Z"]


def _common(names: Sequence[str]) -> EventType:
    """The attributes common to these types, of which an event may have any (X2)."""
    first, *others = (SCHEMAS[name] for name in names)
    if not others:
        return first
    shared = [one for one in first.attributes if all(one in other.attributes for other in others)]
    return EventType("|".join(names), tuple(shared))


def _level(name: str) -> int:
    """How high a composite type stands; -1 for a primitive one."""
    return list(COMPOSITE).index(name) if name in COMPOSITE else -1
