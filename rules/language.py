"""From text to checked rules in one step, with all that is wrong at any stage in one report."""

from __future__ import annotations

from collections.abc import Mapping

from matcher.model import EventType
from rules.checking.checker import check_reading
from rules.checking.schemas import Said, made
from rules.pattern import RuleSet
from rules.syntax import ast
from rules.syntax.parser import read


def load(
    text: str, *, file: str = "<rules>", known: Mapping[str, EventType] | None = None
) -> RuleSet:
    """The checked rules of a text; ``known`` holds types that others have declared.

    Raises RuleErrors with every problem of the text, errors of syntax and of meaning alike.

    >>> checked = load("event A(x: int) define B(y) from A(x > 3) where y = A.x / 2")
    >>> print(checked.schemas["B"])
    B(y: float)
    """
    reading = read(text, file=file)
    return check_reading(reading.file, known or {}, reading.problems, reading.lost)


def declared_in(file: ast.File) -> Mapping[str, EventType]:
    """The schemas that a rules file spells out, in ``event`` or, with every type, in ``define``."""
    declared: dict[str, EventType] = {}
    for statement in file.statements:
        said = {item.name.text: Said(item.kind, item.optional) for item in statement.attributes}
        known = all(one.kind is not None for one in said.values())
        if known and len(said) == len(statement.attributes):  # the checker speaks of the others
            name = statement.type.text
            declared.setdefault(name, made(name, said.items()))
    return declared
