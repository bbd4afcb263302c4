"""Status of a node: plain data, ready for JSON (protocol.md section 7).

A rule is *waiting* while a type that it needs never had an advertiser; *stalled* when events wait
for evaluation because a source's link is lost, or because a source has not moved its promise for
STALLED_AFTER_S; *running* otherwise. ``held_by`` names the sources that its mark stands at, and the
types by which they hold it. In a network a rule that another broker evaluates is *elsewhere*,
unless it waits, which all know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import msgspec

from matcher.model import EventType
from routing.delivery.sink import Sink
from routing.deployment import Deployed
from routing.serving.advertisements import KnownType
from routing.serving.link import Link
from routing.serving.sources import FAR, Source, SourceState

STALLED_AFTER_S = 5.0
"""Seconds without a new promise after which a live source is said to stall its rules."""

UNKNOWN = "?"
"""In place of the name of a root that is not known yet, and of a broker that is not known here."""
ORIGINS_TOLD = 3
"""In words: so many brokers beyond another, and so many of each one's sources and rules."""

STATUS_BYTES_MAX = 2**24
LISTS = "clients", "sources", "sinks", "types", "former_types", "rules", "durable"
"""Lists that users make as long as they like."""

_encode = msgspec.msgpack.Encoder().encode
Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Holder:
    """The source or broker that holds a rule's mark where it is, and its types.

    ``broker``: where that is, in a network; "" for here. ``name`` "": whoever is there.
    ``stalls``: whether that has been so for too long.
    """

    name: str
    types: tuple[str, ...]
    standing: str
    promise: int
    stalls: bool
    broker: str = ""

    @property
    def facts(self) -> Facts:
        """As it is shown."""
        return {
            "source": self.name or None,
            "broker": self.broker or None,
            "types": list(self.types),
            "standing": self.standing,
            "promise": time_or_none(self.promise),
        }


def fitted(facts: Facts) -> Facts:
    """Facts that fit into a message: of the longest list the longer half of its entries is left
    out, and counted in ``left_out``, until they do. So nobody's names keep others from a status.
    """
    left_out: dict[str, int] = {}
    if len(_encode([facts[key] for key in LISTS])) <= STATUS_BYTES_MAX:
        return {**facts, "left_out": left_out}
    sizes = {key: [len(_encode(one)) for one in facts[key]] for key in LISTS}
    while sum(map(sum, sizes.values())) > STATUS_BYTES_MAX:
        key = max(LISTS, key=lambda key: sum(sizes[key]))
        count = len(sizes[key]) // 2
        kept = sorted(sorted(range(len(sizes[key])), key=sizes[key].__getitem__)[:count])
        left_out[key] = left_out.get(key, 0) + len(sizes[key]) - count
        facts = {**facts, key: [facts[key][place] for place in kept]}
        sizes[key] = [sizes[key][place] for place in kept]
    return {**facts, "left_out": left_out}


def time_or_none(mark: int | None) -> int | None:
    """A mark as it is shown: None for none and for those of before and after everything."""
    return None if mark is None or not -FAR < mark < FAR else mark


def begin_facts(source: Source, types: Iterable[EventType]) -> Facts:
    """The facts that a source is told of its types: before when their events are late from
    the start.
    """
    return {"from": {one.name: time_or_none(source.floors[one.name]) for one in types}}


def client_facts(link: Link, now: float) -> Facts:
    """One client."""
    return {
        "name": link.name,
        "number": link.number,
        "user": link.rights.user or None,
        "connected_s": round(now - link.joined_at, 3),
    }


def source_facts(source: Source) -> Facts:
    """One source."""
    return {
        "name": source.name,
        "home": source.home or None,
        "standing": source.standing.value,
        "closed_by": source.closed_by,
        "types": sorted(source.floors),
        "last_sequence": source.last_sequence,
        "promise": time_or_none(source.promise),
        "latest": source.front,
        "events": source.events,
        "late": source.late,
        "ahead": source.ahead,
        "duplicates": source.duplicates,
        "rejected": source.rejected,
        "withheld": source.withheld,
    }


def type_facts(known: KnownType, given: Mapping[str, int], found: Mapping[str, int]) -> Facts:
    """One event type; ``given``: marks that the engine was given, ``found``: how many composite
    events were found here, both by type.
    """
    name = known.schema.name
    return {
        "name": name,
        "schema": str(known.schema),
        "sources": sorted(known.advertisers),
        "mark": time_or_none(known.mark if known.mark is not None else given.get(name)),
        "latest": known.front,
        "events": known.events + found.get(name, 0),
        "late": known.late,
        "rules": known.mentions,
    }


def sink_facts(sink: Sink) -> Facts:
    """One sink."""
    return {
        "name": sink.name,
        "subscriptions": [
            {
                "number": one.number,
                "filter": f"{one.text:.200}",
                "waits": one.filter is None,
                "paused": one.problem,
            }
            for one in sink.interests
        ],
        "when_full": sink.when_full.value,
        "limit": sink.limit,
        "queued": sink.queued,
        "held": sink.held.events,
        "credit": sink.credit,
        "delivered": sink.delivered,
        "dropped": sink.dropped,
    }


def user_facts(
    work_s: Mapping[str, float],
    connections: Iterable[str],
    subscriptions: Iterable[str],
    rules: Iterable[Facts],
) -> list[Facts]:
    """The users who have done something here: the seconds that their messages have taken, what they
    hold, and what their rules cost. ``connections``, ``subscriptions``: whose each of them is.
    """
    owned = [rule for rule in rules if rule["owner"]]
    counts = Counter(connections), Counter(subscriptions), Counter(one["owner"] for one in owned)
    costs: Counter[str] = Counter()
    for rule in owned:
        costs[rule["owner"]] += rule["cost"] or 0
    names = {name for names in (work_s, *counts) for name in names if name}
    return [
        {
            "name": name,
            "work_s": round(work_s.get(name, 0.0), 3),
            "connections": counts[0][name],
            "subscriptions": counts[1][name],
            "rules": counts[2][name],
            "cost": costs[name],
        }
        for name in sorted(names)
    ]


def ended_facts(ended: Deployed) -> Facts:
    """One rule that was removed or replaced."""
    return {
        "name": ended.name,
        "since": ended.since,
        "until": time_or_none(ended.end),
        "version": ended.version,
    }


class StatusReader(Protocol):
    """Reader of a broker, as part of a network, be it one of one (network.evaluation.overview): of
    what clients are told of sources, types, rules and sinks. ``now`` is in seconds.
    """

    @property
    def filters(self) -> Iterator[tuple[str, str]]:
        """The filters that the broker knows of, each with its type's name."""

    def facts(self, now: float) -> Facts:
        """Sources, types, rules and sinks."""

    def rules_in_force(self, now: float) -> list[Facts]:
        """The facts of all rules in force, with what each has cost here, and takes."""

    def rules(self, deployed: Iterable[Deployed], now: float) -> list[Facts]:
        """The facts of these rules, which are in force."""

    def absent(self, deployed: Deployed) -> list[str]:
        """The types that a rule waits for, since nobody has advertised them."""


def source_holder(source: Source, types: Iterable[str], now: float) -> Holder:
    """A source that holds a mark by these types."""
    stalls = source.standing is SourceState.LOST or now - source.promised_at >= STALLED_AFTER_S
    return Holder(source.name, tuple(types), source.standing.value, source.promise, stalls)


def joined_holders(holders: Iterable[Holder]) -> list[Holder]:
    """One for each source and broker, with all of its types."""
    found: dict[tuple[str, str], Holder] = {}
    for one in holders:
        key = one.broker, one.name
        if key in found:
            one = replace(one, types=(*found[key].types, *one.types))
        found[key] = one
    return [found[key] for key in sorted(found)]


def described(facts: Facts) -> Facts:
    """A rule's facts, and its state in words."""
    return {**facts, "says": _describe(facts)}


def _describe(facts: Facts) -> str:
    if facts["place"] == UNKNOWN:
        return "evaluated as soon as a plan says where"
    if facts["state"] == "elsewhere":
        return f"evaluated by broker {facts['place']}"
    if facts["state"] == "idle":
        return "idle: nobody has subscribed to what it defines"
    if facts["state"] == "waiting":
        return f"waiting for types: {', '.join(facts['waits_for'])}"
    if facts["state"] == "stalled":
        holders = ", ".join(map(_told, facts["held_by"]))
        mark = facts["mark"]
        return f"stalled by {holders} at {'no mark' if mark is None else f'{mark} us'}"
    if facts["without"]:
        return f"running without {', '.join(facts['without'])}"
    return "running"


def _told(holder: Facts) -> str:
    types = ", ".join(holder["types"])
    if holder["standing"] == "gone":
        return f"{types} of clients that may come back"
    if holder["source"] is None:
        origins = holder.get("origins")
        beyond = f" ({origins_text(origins)})" if origins else ""
        return f"{types} from broker {holder['broker']}{beyond}"
    return f"{types} of {holder['source']} ({holder['standing']})"


def origins_text(origins: Sequence[Facts]) -> str:
    """In words, who beyond a broker below may hold what it forwards."""
    told = [_origin(one) for one in origins[:ORIGINS_TOLD]]
    more = len(origins) - ORIGINS_TOLD
    return " or ".join([*told, f"{more} brokers more"] if more > 0 else told)


def _origin(origin: Facts) -> str:
    rules = [f"rule {name}" for name in origin["rules"]]
    names = [*origin["sources"], *rules] or ["a source"]
    told = names[:ORIGINS_TOLD]
    more = len(names) - ORIGINS_TOLD
    return f"{' or '.join([*told, f'{more} more'] if more > 0 else told)} at {origin['broker']}"
