"""Random cases all of whose rules a device takes."""

from random import Random

from cases import Case, random_events, scheduled
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleText, RuleWriter

import rules
from rules.engine.gpu.eligible import reason_against

TRIES = 300


def eligible_rule(random: Random, types: list[str], number: int, name: str) -> RuleText | None:
    """A random rule that a device takes."""
    for _ in range(TRIES):
        text = RuleWriter(random, types, []).write(f"r{number}", name)
        (rule,) = rules.load(str(text), known=SCHEMAS).rules
        if reason_against(rule) is None and all(one.name in types for one in rule.used_types):
            return text
    return None


def eligible_case(seed: int) -> Case:
    """A random case all of whose rules a device takes."""
    random = Random(seed)
    types = random.sample(list(PRIMITIVE), random.randint(2, 3))
    names = random.sample(list(COMPOSITE), random.choice((1, 1, 2, 3)))
    drawn = [eligible_rule(random, types, number, name) for number, name in enumerate(names)]
    texts = tuple(text for text in drawn if text is not None)
    events = random_events(random, types, random.randint(10, 36), random.choice((4, 8, 12)))
    return scheduled(random, seed, texts, events) if texts else Case(seed, (), True)
