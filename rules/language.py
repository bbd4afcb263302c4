"""From text to checked rules in one step, with all that is wrong at any stage in one report."""

from __future__ import annotations

from collections.abc import Mapping

from matcher.model import EventType
from rules.checker import check_reading
from rules.parser import read
from rules.pattern import RuleSet


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
