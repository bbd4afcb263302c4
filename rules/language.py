"""From text to checked rules in one step, with all that is wrong at any stage in one report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matcher.model import EventType
from rules.checking.checker import check_reading, checking_reading
from rules.checking.schemas import Said, made
from rules.errors import RuleErrors
from rules.pattern import RuleSet
from rules.syntax import ast
from rules.syntax.parser import read, reading

_LOADED_MAX = 2
_loaded: dict[tuple[str, str], tuple[Mapping[str, EventType], RuleSet]] = {}
"""By text and file, the types that were known when it was loaded ahead, and its rules."""


def load(
    text: str, *, file: str = "<rules>", known: Mapping[str, EventType] | None = None
) -> RuleSet:
    """The checked rules of a text; ``known`` holds types that others have declared.

    Raises RuleErrors with every problem of the text, errors of syntax and of meaning alike.

    >>> checked = load("event A(x: int) define B(y) from A(x > 3) where y = A.x / 2")
    >>> print(checked.schemas["B"])
    B(y: float)
    """
    kept = _loaded.pop((text, file), None)
    if kept is not None and kept[0] == (known or {}):
        return kept[1]
    found = read(text, file=file)
    return check_reading(found.file, known or {}, found.problems, found.lost)


def load_ahead(text: str, *, file: str, known: Mapping[str, EventType]) -> Iterator[None]:
    """Load a text by and by for who loads it soon, when the same is known; yields behind each rule
    that is read, or checked. What is wrong with it is said then.
    """
    found = yield from reading(text, file=file)
    try:
        rules = yield from checking_reading(found.file, known, found.problems, found.lost)
    except RuleErrors:
        return
    _loaded[text, file] = known, rules
    for one in tuple(_loaded)[:-_LOADED_MAX]:
        _loaded.pop(one, None)


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
