"""The same random cases where every attribute is optional, some are null, and rules ask for it.

They are made from cases of the small world, so that what a seed stands for without nulls stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random

from msgspec import structs

from matcher.model import Datum, Event
from simulator.fuzzing.world import OPTIONAL, Piece, RuleText

NULLS = 0.2
"""How often an attribute is null."""
ASKED = 0.12
"""How often an event is asked whether an attribute is null."""
ASKING: Mapping[str, str] = {
    "A(v > 1)": "A(v is null)",
    "B(p = 1, f)": "B(p is not null, f)",
    "D(q > 0)": "D((q > 0 or q is null))",
    "X(n > 1)": "X(n is null)",
}
"""Filters of sinks, and what asks for nulls in their places."""
_EVENT = re.compile(r"(\w+)$")


def with_nulls(random: Random, events: Iterable[Event]) -> tuple[Event, ...]:
    """The events, some attributes of them null; equal events stay equal."""
    made: dict[tuple[str, str], Event] = {}
    return tuple(
        made.setdefault((event.source, event.id), structs.replace(event, data=_data(random, event)))
        for event in events
    )


def _data(random: Random, event: Event) -> dict[str, Datum]:
    return {name: None if random.random() < NULLS else one for name, one in event.data.items()}


def asking_for_nulls(random: Random, rule: RuleText) -> RuleText:
    """The rule over types whose attributes are optional, some of its events asked for nulls."""
    pieces = tuple(_asking(random, piece) for piece in rule.pieces)
    return replace(rule, pieces=pieces, optional=True)


def _asking(random: Random, piece: Piece) -> Piece:
    found = _EVENT.search(piece.head)
    schema = OPTIONAL.get(found[1]) if found and piece.tail is not None else None
    if schema is None or not schema.declared or random.random() >= ASKED:
        return piece
    return replace(piece, conditions=(*piece.conditions, asked(random, schema.name)))


def asked(random: Random, name: str) -> str:
    """A condition on events of a type that asks whether an attribute is null."""
    attribute = random.choice(OPTIONAL[name].declared).name
    return random.choice(
        (
            f"{attribute} is null",
            f"{attribute} is not null",
            f"not {attribute} is null",
            f"({attribute} is null or {attribute} = {attribute})",
        )
    )
