"""Names that sources may have, and the meaning of the names of parts.

A client named ``flights#part-3`` is a part of the source ``flights`` (``serving.parts``); other
names mean nothing to a broker, but that some are its own.
"""

from __future__ import annotations

import re

from matcher.identity import RULE_SOURCE
from routing.messages.values import NAME_MAX, UNPRINTABLE
from rules.pattern import TIMER

_UNPRINTABLE = re.compile(f"[{UNPRINTABLE}]")
_PART = re.compile(r"(.+)#part-(\d+|hold)")


def whole_of(name: str) -> str | None:
    """The source that a client of this name is a part of; None for one that is whole."""
    found = _PART.fullmatch(name)
    return found[1] if found else None


def part_name(source: str, part: int | None) -> str:
    """The name of a part; None for one that only holds the promise of parts still to come."""
    return f"{source}#part-{'hold' if part is None else part}"


def is_printable(name: str) -> bool:
    """Whether a name shows as it is wherever it is printed."""
    return _UNPRINTABLE.search(name) is None


def name_fault(name: str) -> str:
    """Why no source may be called so, as a sentence; empty if one may."""
    if not 0 < len(name) <= NAME_MAX:
        return f"a name of {len(name)} characters; expected 1 to {NAME_MAX}"
    if name.startswith(("rexmq/", RULE_SOURCE)) or name.partition("/")[0] == TIMER.name.lower():
        return f"the name {name!r} is reserved"
    if not is_printable(name):
        return f"the name {name!r} has characters that cannot be printed"
    return ""
