"""Claims of rules on memory, estimated when they are deployed.

A rule keeps the events of each type that it uses for as long as its windows reach: so many a
second as have been measured of the type so far, over the times that they bear, and so many bytes
each. Temp with 1,000 events/s of 48 bytes, ``within 5 min``: 14,400,000 bytes. What is not known
yet, a type of which nothing has come here, claims nothing; nor do composite events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from matcher.model import MICROSECONDS, EventType
from routing.errors import Refusal
from routing.messages import Code, Rights
from routing.serving.advertisements import Advertisements, KnownType
from rules.pattern import Rule
from rules.planning.depths import depths_of
from rules.planning.variants import variants

CELL_BYTES = 8
ROW_CELLS = 3
"""Cells of an event beside its attributes: its time, its id and its place in an index."""


class Claim(NamedTuple):
    """The claim of a rule by the events of one type."""

    type_name: str
    rate: float
    seconds: float
    bytes: int

    def __str__(self) -> str:
        return f"{self.type_name}: {self.rate:,.0f} events/s over {self.seconds:,.0f} s"


def check_claims(rights: Rights, rule: Rule, advertisements: Advertisements) -> None:
    """Raise Refusal for a rule that would claim more memory than a rule of the user may."""
    if rights.limits.rule_bytes_max is None:
        return
    claims = list(claims_of(rule, advertisements))
    claimed = sum(claim.bytes for claim in claims)
    if claimed > rights.limits.rule_bytes_max:
        most = ", ".join(map(str, sorted(claims, key=lambda one: -one.bytes)[:3]))
        what = f"a rule, {rule.name}, that would keep about {claimed:,} bytes ({most})"
        raise Refusal(Code.LIMIT, rights.beyond(what, "rule_bytes_max"))


def claims_of(rule: Rule, advertisements: Advertisements) -> Iterator[Claim]:
    """The claims of a rule, type by type."""
    reaches: dict[str, int] = {}
    for ordinary in variants(rule):
        for use, reach in depths_of(ordinary):
            reaches[use.type.name] = max(reach, reaches.get(use.type.name, 0))
    for name, reach in reaches.items():
        known = advertisements.find(name)
        rate = 0.0 if known is None else rate_of(known)
        if known is not None and rate > 0:
            seconds = reach / MICROSECONDS
            yield Claim(name, rate, seconds, round(rate * seconds * row_bytes(known.schema)))


def rate_of(known: KnownType) -> float:
    """The events of a type for each second of event time, as far as they have come here."""
    if known.begin is None or known.front is None or known.front <= known.begin:
        return 0.0
    return known.events * MICROSECONDS / (known.front - known.begin)


def row_bytes(schema: EventType) -> int:
    """The bytes that an engine keeps of an event."""
    return CELL_BYTES * (ROW_CELLS + len(schema.attributes))
