"""Status of a node: plain data, ready for JSON (protocol.md section 7).

A rule is *waiting* while a type that it needs never had an advertiser; *stalled* when events wait
for evaluation because a source's link is lost, or because a source has not moved its promise for
STALLED_AFTER_S; *running* otherwise. ``held_by`` names the sources that its mark stands at, and the
types by which they hold it. In a network a rule that another broker evaluates is *elsewhere*,
unless it waits, which all know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matcher.model import TIME_MAX, EventType
from routing.delivery.sinks import Sink
from routing.serving.advertisements import KnownType
from routing.serving.deployment import Deployed
from routing.serving.evaluator import Evaluator
from routing.serving.link import Link
from routing.serving.sources import FAR, Source, SourceState
from routing.serving.tables import Tables
from rules.engine.engine import Placement

STALLED_AFTER_S = 5.0
"""Seconds without a new promise after which a live source is said to stall its rules."""

UNKNOWN = "?"
"""In place of the name of a root that is not known yet, and of a broker that is not known here."""
ORIGINS_TOLD = 3
"""In words: so many brokers beyond another, and so many of each one's sources and rules."""

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
        "user": link.rights.user or None,
        "connected_s": round(now - link.joined_at, 3),
    }


def source_facts(source: Source) -> Facts:
    """One source."""
    return {
        "name": source.name,
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


def type_facts(known: KnownType, given: int | None) -> Facts:
    """One event type."""
    return {
        "name": known.schema.name,
        "schema": str(known.schema),
        "sources": sorted(known.advertisers),
        "mark": time_or_none(known.mark if known.mark is not None else given),
        "latest": known.front,
        "events": known.events,
        "rules": known.mentions,
    }


def sink_facts(sink: Sink) -> Facts:
    """One sink."""
    return {
        "name": sink.name,
        "subscriptions": [
            {
                "number": one.number,
                "filter": one.text,
                "waits": one.filter is None,
                "paused": one.problem,
            }
            for one in sink.interests
        ],
        "when_full": sink.when_full.value,
        "limit": sink.limit,
        "queued": sink.queued,
        "held": sink.held,
        "credit": sink.credit,
        "delivered": sink.delivered,
        "dropped": sink.dropped,
    }


def ended_facts(ended: Deployed) -> Facts:
    """One rule that was removed or replaced."""
    return {
        "name": ended.name,
        "since": ended.since,
        "until": time_or_none(ended.end),
        "version": ended.version,
    }


class Overview(ABC):
    """Reads the parts of a node, and changes none of them. ``now`` is in seconds."""

    def __init__(
        self,
        detection: Evaluator,
        tables: Tables,
    ) -> None:
        self._detection = detection
        self._deployments = tables.deployments
        self._advertisements = tables.advertisements
        self._sources = tables.sources
        self._sinks = tables.sinks

    def facts(self, now: float) -> Facts:
        """Sources, types, rules and sinks."""
        given = self._detection.given
        return {
            "sources": [source_facts(source) for source in self._sources],
            "types": [
                type_facts(known, given.get(known.schema.name)) for known in self._advertisements
            ],
            "rules": self.rules_in_force(now),
            "sinks": [{**sink_facts(sink), "ended": self._has_ended(sink)} for sink in self._sinks],
            "matching": list(self.matched),
        }

    @property
    def filters(self) -> Iterator[tuple[str, str]]:
        """The filters that this broker knows of, each with its type's name."""
        for sink in self._sinks:
            for one in sink.interests:
                yield one.type_name, one.text

    @property
    def matched(self) -> Iterator[Facts]:
        """How subscriptions to a type are matched, where they are many; for this broker's sinks."""
        for name, facts in self._sinks.matched:
            yield {"type": name, "to": None, **facts}

    def rules_in_force(self, now: float) -> list[Facts]:
        """The facts of all rules in force, with what each has cost here, and takes."""
        costs, footprints = self._detection.costs, self._detection.footprints
        deployed = list(self._deployments.in_force)
        return [
            {**facts, "cost": costs.get(one.rule.name), "memory": footprints.get(one.rule.name)}
            for one, facts in zip(deployed, self.rules(deployed, now), strict=True)
        ]

    def rules(self, deployed: Iterable[Deployed], now: float) -> list[Facts]:
        """The facts of these rules, which are in force. Before one holds there is nothing of it."""
        reached = self._detection.reached
        return [self.rule(one, max(reached(one.rule.name), one.begin), now) for one in deployed]

    def rule(self, deployed: Deployed, mark: int, now: float) -> Facts:
        """One rule: what it is, and whether it runs."""
        place = self.place(deployed)
        absent = self.absent(deployed)
        holders = [] if place or absent else self.holders(deployed, now)
        stalled = any(one.stalls for one in holders) and self.pending(deployed, mark)
        state = "waiting" if absent else "elsewhere" if place else "running"
        needs = self._deployments.needs(deployed.rule.name)
        placement = None if place or absent else self.placement(deployed)
        facts = {
            "name": deployed.name,
            "type": deployed.rule.defines.name,
            "since": deployed.since,
            "version": deployed.version,
            "owner": deployed.owner or None,
            "mark": time_or_none(mark),
            "state": "stalled" if stalled else state,
            "place": place or None,
            "waits_for": absent,
            "without": sorted(one for one in needs if self._is_given_up(one)),
            "held_by": [one.facts for one in holders],
            "evaluated_on": None if placement is None else placement.device,
            "evaluated_why": None if placement is None else placement.reason or None,
        }
        return self.said(facts)

    @staticmethod
    def said(facts: Facts) -> Facts:
        """A rule's facts, and its state in words."""
        return {**facts, "says": _describe(facts)}

    # --- what the division of the rules says ---

    @abstractmethod
    def place(self, deployed: Deployed) -> str:
        """The broker that evaluates a rule; "" for this one."""

    @abstractmethod
    def placement(self, deployed: Deployed) -> Placement | None:
        """On which device a rule is evaluated here, where there is more than one."""

    @abstractmethod
    def holders(self, deployed: Deployed, now: float) -> list[Holder]:
        """The sources and brokers with the least mark, by name."""

    @abstractmethod
    def pending(self, deployed: Deployed, mark: int) -> bool:
        """Whether events wait for a rule's mark."""

    def absent(self, deployed: Deployed) -> list[str]:
        """The types that a rule waits for, since nobody has advertised them."""
        needs = self._deployments.needs(deployed.rule.name)
        return sorted(one for one in needs if self._detection.is_absent(one))

    def _is_given_up(self, name: str) -> bool:
        known = self._advertisements.find(name)
        return known is not None and known.given_up and not known.was_advertised

    def _has_ended(self, sink: Sink) -> bool:
        """Whether a sink has subscribed to composite events, and no more of them can come."""
        rules = [
            rule for one in sink.interests for rule in self._deployments.defining(one.type_name)
        ]
        return bool(rules) and all(self._detection.complete_to(one) == TIME_MAX for one in rules)


def source_holder(source: Source, types: Iterable[str], now: float) -> Holder:
    """A source that holds a mark by these types."""
    stalls = source.standing is SourceState.LOST or now - source.promised_at >= STALLED_AFTER_S
    return Holder(source.name, tuple(types), source.standing.value, source.promise, stalls)


def _describe(facts: Facts) -> str:
    """A rule's state in words."""
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
