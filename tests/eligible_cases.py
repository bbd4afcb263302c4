"""Random cases all of whose rules a device takes."""

import re
from dataclasses import replace
from functools import cache
from random import Random

from cases import Case, Deploy, Push, random_events, scheduled
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleText, RuleWriter

import rules
from rules.engine.gpu.eligible import reason_against

TRIES = 300
INELIGIBLE = re.compile(r"\b(?:consuming|Timer|Avg|StdDev|all)\b|\) or [A-Z]\w*\(")
"""Words by which most rules that no device takes are told apart without reading them: those that
consume, use the clock, have means, or terminators in any order or of several types.
"""


def eligible_rule(random: Random, types: list[str], number: int, name: str) -> RuleText | None:
    """A random rule that a device takes."""
    for _ in range(TRIES):
        text = RuleWriter(random, types, []).write(f"r{number}", name)
        if INELIGIBLE.search(str(text)):
            continue
        (rule,) = rules.load(str(text), known=SCHEMAS).rules
        if reason_against(rule) is None and all(one.name in types for one in rule.used_types):
            return text
    return None


@cache
def eligible_case(seed: int) -> Case:
    """A random case all of whose rules a device takes, which few of those drawn are."""
    random = Random(seed)
    types = random.sample(list(PRIMITIVE), random.randint(2, 3))
    names = random.sample(list(COMPOSITE), random.choice((1, 1, 2, 3)))
    drawn = [eligible_rule(random, types, number, name) for number, name in enumerate(names)]
    texts = tuple(text for text in drawn if text is not None)
    events = random_events(random, types, random.randint(10, 36), random.choice((4, 8, 12)))
    return scheduled(random, seed, texts, events) if texts else Case(seed, (), True)


BESIDE = (
    "rule late: define Late(n: int) from Timer(S % 3 = 0) as t\n"
    " and $n = Count({one}() within 3 s from t) and $n > 0 where n = $n",
    "rule low: define Low() from {one}() as a and last {other}() within 2 s from a\n\n"
    "rule high: define High(n: int) from Low() as l\n"
    " and $n = Count({one}() within 4 s from l) where n = $n",
    "rule used: define Used() from {one}() as a and each {other}() as b within 4 s from a\n"
    " consuming b",
)
"""Rules that stay on the processor: over the clock, over one another's events, consuming ones."""


def mixed_case(seed: int) -> Case:
    """The same, with rules beside them that no device takes."""
    case, random = eligible_case(seed), Random(seed)
    pushed = [event.type for step in case.steps if isinstance(step, Push) for event in step.events]
    one, other = random.choices(sorted(set(pushed)) or list(PRIMITIVE), k=2)
    text = "\n\n".join(text.format(one=one, other=other) for text in BESIDE)
    return replace(case, steps=(Deploy((text,)), *case.steps))  # type: ignore[arg-type]
