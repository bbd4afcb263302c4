"""Random rules and histories to be cut into pieces, and what the oracle makes of the whole.

More than half of the rules are made to have keys, and most consume nothing, so that every way of
cutting has its share.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agreement import row
from cases import Case, Deploy, Push, random_case, random_events
from rule_texts import SCHEMAS, RuleText
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event
from rules.engine import make
from rules.errors import RuleErrors
from rules.pattern import RuleSet

KEYS = {"A": "p", "B": "p", "C": "p", "D": "q", "X": "n", "Y": "n"}
"""The attribute that a rule made to have a key binds it to."""
WAYS = (("key", "time"), ("key", "time"), ("time",), ("time", "key"), ("key",), ())


def keyed(text: RuleText) -> RuleText:
    """The rule with one condition an event, and events of one type bound to one key."""
    pieces = [
        replace(piece, conditions=(*piece.conditions[:1], f"{KEYS[name]} = $key"))
        if (name := piece.head.split()[-1]) in KEYS
        else piece
        for piece in text.pieces
    ]
    where = tuple("n = $key" if one.startswith("n = ") else one for one in text.where)
    return replace(text, pieces=tuple(pieces), where=where)


def is_sound(text: str) -> bool:
    try:
        rules.load(text, known=SCHEMAS)
    except RuleErrors:
        return False
    return True


@dataclass(frozen=True)
class Cut:
    """Rules and events, and how they are to be cut."""

    rules: str
    events: tuple[Event, ...]
    ways: tuple[str, ...]
    parts: int

    @property
    def ruleset(self) -> RuleSet:
        return rules.load(self.rules, known=SCHEMAS)

    @property
    def text(self) -> str:
        """The rules with every type declared."""
        return "\n".join([*(f"event {schema}" for schema in SCHEMAS.values()), self.rules])


def cut_case(seed: int, case_of: Callable[[int], Case] = random_case) -> Cut:
    random = Random(seed)
    case = case_of(seed)
    deployed = [text for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    texts = list({text.name: text for text in deployed}.values())  # some come back
    types = sorted(
        {one.type for step in case.steps if isinstance(step, Push) for one in step.events}
    )
    # Long beside the windows, so that slices of time leave most of it out.
    events = random_events(random, types, random.randint(40, 90), random.choice((20, 60, 120)))
    if random.random() < 0.7:  # what consumes can only be cut by key
        texts = [replace(text, consuming=()) for text in texts]
    text = "\n\n".join(map(str, texts))
    if random.random() < 0.6:
        with_keys = "\n\n".join(map(str, map(keyed, texts)))
        text = with_keys if is_sound(with_keys) else text
    return Cut(text, tuple(events), random.choice(WAYS), random.randint(1, 16))


def found_in_whole(cut: Cut) -> list[Event]:
    engine = make("naive")
    engine.deploy(cut.ruleset)
    for batch in batches(cut.events, SCHEMAS.values()):
        engine.push(batch)
    return list(engine.advance(TIME_MAX).events())


def identity(event: Event) -> tuple[Any, ...]:
    """What an event is sorted by: all but its data."""
    return row(event)[:-1]
