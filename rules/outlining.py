"""The outline of a rule: what others have to know of it who do not evaluate it.

Law 1: it says which type the rule defines and which it uses, which of these are terminators (there
may be several, tesla.md X1 and X2), how far apart are the events that the rule sees at once, and
whether it consumes. So whatever follows from who needs what, and from how far back (ranks and
cycles, S12; marks, horizons, trees), follows from an outline as from the rule: an outline is read
as a rule itself, which negates what the other uses in any way. It finds something else, and nobody
evaluates it.

Law 2: it bears the digest of the rule's text, by which it stands for that text and no other.

Law 3: where nobody in reach has the text, the outline says so (``bereft``). Such a rule is known,
and can end or be replaced, but it is evaluated nowhere.

``~ 398f27825734e26d 300000000 Fire Smoke < Temp`` is the outline of a rule that defines Fire, is
terminated by Smoke, and uses Temp at most five minutes before; ``300000000!`` if it consumes, and
``?`` at the end by Law 3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from matcher.model import EventType
from rules.errors import Problem, RuleErrors
from rules.pattern import TIMER, Clause, Negated, Policy, Rule, Selected, uses_of
from rules.terms import TERMINATOR, Within

_MARK = "~ "
_DIGITS = 16
_BEREFT = " ?"
_OUTLINE = re.compile(
    rf"{_MARK}[0-9a-f]{{{_DIGITS}}} ([0-9]{{1,30}})(!?) (\S+) (\S+(?: \S+)*) "
    r"<((?: [^\s?]\S*)*)(?: \?)?"
)


def is_outline(text: str) -> bool:
    """Whether a text is an outline, and not that of a whole rule."""
    return text.startswith(_MARK)


def is_bereft(text: str) -> bool:
    """Whether a text is the outline of a rule whose text nobody in reach has (Law 3)."""
    return is_outline(text) and text.endswith(_BEREFT)


def bereft(outline: str) -> str:
    """An outline that says so."""
    return outline if is_bereft(outline) else outline + _BEREFT


@lru_cache(maxsize=4_096)
def digest_of_text(text: str) -> str:
    """What tells a rule's text, or its outline, from those of other rules: 16 digits."""
    if is_outline(text):
        return text[len(_MARK) : len(_MARK) + _DIGITS]
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def outline_of(rule: Rule, reach: int) -> str:
    """The outline of a rule, which sees events at most ``reach`` microseconds apart."""
    if is_outline(rule.text):
        return rule.text
    uses = {
        quote(use.type.name): None  # which may have blanks
        for use in uses_of(rule)
        if rule.together is None or not isinstance(use, Selected)
    }
    opening = " ".join(quote(one.name) for one in rule.opening)
    far = f"{reach}!" if rule.consuming else f"{reach}"
    words = (digest_of_text(rule.text), far, quote(rule.defines.name), opening, "<", *uses)
    return _MARK + " ".join(words)


def names_of(outline: str) -> tuple[str, ...]:
    """The words of an outline, the names of the types that it speaks of among them."""
    return tuple(dict.fromkeys(map(unquote, outline.split())))


def read_outline(text: str, name: str, known: Mapping[str, EventType]) -> Rule:
    """An outline as a rule of this name (Law 1). RuleErrors for what is none, or speaks of types
    that are not known.
    """
    found = _OUTLINE.fullmatch(text)
    if found is None:
        raise RuleErrors([Problem(f"expected the outline of a rule, found {text[:80]!r}")])
    far, consumes, defines, opening, uses = found.groups()
    schemas = {**known, TIMER.name: TIMER}
    defines = unquote(defines)
    opened, used = [[*map(unquote, words.split())] for words in (opening, uses)]
    unknown = {defines, *opened, *used} - schemas.keys()
    if unknown:
        raise RuleErrors([Problem(f"event {one} is not known") for one in sorted(unknown)])
    if defines == TIMER.name or defines in opened:
        raise RuleErrors([Problem(f"{defines} is defined by what it would define: {text[:80]!r}")])
    first, *others = (schemas[one] for one in opened)
    # Of events that come together, the first may itself be so far behind the last.
    window = Within(0 if others else int(far), TERMINATOR)
    clauses: list[Clause] = [
        Selected(number, one, Policy.EACH, 0, (), window, False)
        for number, one in enumerate(others, 1)
    ]
    clauses += (Negated(schemas[one], (), window, False) for one in used)
    return Rule(
        name=name,
        defines=schemas[defines],
        terminator=first,
        conditions=(),
        clauses=tuple(clauses),
        values=(),
        consuming=(0,) if consumes else (),
        event_names=tuple(opened),
        slots=(),
        text=text,
        together=int(far) if others else None,
    )
