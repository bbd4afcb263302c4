"""The small world of random cases: a few types, and rules as texts in parts.

Parts of a rule can be left out one by one, so that a case that fails can be made smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matcher.model import EventType

PRIMITIVE: Mapping[str, EventType] = {
    schema.name: schema
    for schema in (
        EventType.of("A", p="int", v="float", s="string"),
        EventType.of("B", p="int", q="int", f="bool"),
        EventType.of("C", v="float", p="int", s="string"),
        EventType.of("D", s="string", q="int", v="float", f="bool"),
    )
}
# A composite type is above those before it: only these may be its terminators.
COMPOSITE: Mapping[str, EventType] = {
    schema.name: schema
    for schema in (
        EventType.of("X", n="int", v="float", s="string"),
        EventType.of("Y", n="int", r="float", f="bool"),
        EventType.of("Z"),
        EventType.of("Spread", d="float"),
    )
}
SCHEMAS: Mapping[str, EventType] = {**PRIMITIVE, **COMPOSITE}
OPTIONAL: Mapping[str, EventType] = {
    name: EventType.of(name, **{one.name: f"{one.kind.value}?" for one in schema.attributes})
    for name, schema in SCHEMAS.items()
}
"""The same types, each attribute of which may be null."""
STRINGS = ("", "a", "b", "ab", "abc", "bc")


@dataclass(frozen=True, slots=True)
class Piece:
    """The terminator or a clause: ``head(conditions)tail``; a constraint is all head.

    ``opens`` for one of the events that come together.
    """

    head: str
    conditions: tuple[str, ...] = ()
    tail: str | None = None
    opens: bool = False

    def __str__(self) -> str:
        if self.tail is None:
            return self.head
        return f"{self.head}({', '.join(self.conditions)}){self.tail}"


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule in parts that can be left out one by one; ``optional``: over those of OPTIONAL."""

    name: str
    defines: str
    pieces: tuple[Piece, ...]
    where: tuple[str, ...]
    consuming: tuple[str, ...]
    together: str = ""
    optional: bool = False

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """The types that the rule speaks of."""
        return OPTIONAL if self.optional else SCHEMAS

    def __str__(self) -> str:
        lines = [f"rule {self.name}:", f"define {self.schemas[self.defines]}"]
        pieces = [str(piece) for piece in self.pieces if not piece.opens]
        if self.together:
            opening = ", ".join(str(piece) for piece in self.pieces if piece.opens)
            pieces.insert(0, f"all {opening} within {self.together}")
        lines.append("from " + "\n and ".join(pieces))
        if self.where:
            lines.append("where " + ", ".join(self.where))
        if self.consuming:
            lines.append("consuming " + ", ".join(self.consuming))
        return "\n".join(lines)
