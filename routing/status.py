"""What a node tells of itself: plain data, ready for JSON (docs/protocol.md, Status).

A rule is *waiting* while a type that it needs never had an advertiser; *stalled* when events wait
for evaluation because a source's link is lost, or because a source has not moved its promise for
STALLED_AFTER_S; *running* otherwise. ``held_by`` names the sources that its mark stands at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from matcher.model import TIME_MAX, TIME_MIN
from routing.advertisements import Advertisements, KnownType
from routing.deployment import Deployed, Deployments, Ended
from routing.detection import Detection
from routing.sinks import Sink, Sinks
from routing.sources import Source, Sources, Standing
from rules.pattern import TIMER

STALLED_AFTER_S = 5.0
"""Seconds without a new promise after which a live source is said to stall its rules."""

Facts: TypeAlias = dict[str, Any]


def time_or_none(mark: int | None) -> int | None:
    """A mark as it is shown: None for none and for those of before and after everything."""
    return None if mark in (None, TIME_MIN, TIME_MAX) else mark


def source_facts(source: Source) -> Facts:
    """One source."""
    return {
        "name": source.name,
        "standing": source.standing.value,
        "types": sorted(source.floors),
        "last_sequence": source.last_sequence,
        "promise": time_or_none(source.promise),
        "latest": source.front,
        "events": source.events,
        "late": source.late,
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
            {"number": one.number, "filter": one.text, "waits": one.filter is None}
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


def ended_facts(ended: Ended) -> Facts:
    """One rule that was removed or replaced."""
    deployed = ended.deployed
    return {
        "name": deployed.rule.name,
        "since": deployed.since,
        "until": time_or_none(ended.until),
        "version": deployed.version,
    }


class Overview:
    """Reads the parts of a node, and changes none of them. ``now`` is in seconds."""

    def __init__(
        self,
        detection: Detection,
        deployments: Deployments,
        advertisements: Advertisements,
        sources: Sources,
        sinks: Sinks,
    ) -> None:
        self._detection = detection
        self._deployments = deployments
        self._advertisements = advertisements
        self._sources = sources
        self._sinks = sinks

    def facts(self, now: float) -> Facts:
        """Sources, types, rules and sinks."""
        given = self._detection.watermarks.given
        return {
            "sources": [source_facts(source) for source in self._sources],
            "types": [
                type_facts(known, given.get(known.schema.name)) for known in self._advertisements
            ],
            "rules": self.rules(now),
            "sinks": [sink_facts(sink) for sink in self._sinks],
        }

    def rules(self, now: float) -> list[Facts]:
        """Every rule in force, in their order."""
        marks = self._detection.marks
        return [
            self.rule(deployed, marks[deployed.rule.name], now)
            for deployed in self._deployments.rules
        ]

    def rule(self, deployed: Deployed, mark: int, now: float) -> Facts:
        """One rule: what it is, and whether it runs."""
        needs = self._deployments.needs(deployed.rule.name)
        absent = sorted(one for one in needs if self._detection.watermarks.is_absent(one))
        without = sorted(one for one in needs if self._is_given_up(one))
        holders = [] if absent else self._holders(needs)
        stalled = self._pending(needs, mark) and any(_stalls(one, now) for one in holders)
        facts = {
            "name": deployed.rule.name,
            "type": deployed.rule.defines.name,
            "since": deployed.since,
            "version": deployed.version,
            "mark": time_or_none(mark),
            "state": "waiting" if absent else "stalled" if stalled else "running",
            "waits_for": absent,
            "without": without,
            "held_by": [
                {
                    "source": source.name,
                    "standing": source.standing.value,
                    "promise": time_or_none(source.promise),
                }
                for source in holders
            ],
        }
        return {**facts, "says": _describe(facts)}

    def _is_given_up(self, name: str) -> bool:
        known = self._advertisements.find(name)
        return known is not None and known.given_up and not known.was_advertised

    def _holders(self, needs: Iterable[str]) -> list[Source]:
        """The open sources with the least mark, by name."""
        marks: dict[str, tuple[int, Source]] = {}
        for name in sorted(set(needs) - {TIMER.name}):
            for source in self._advertisements[name].open_advertisers:
                known = marks.get(source.name, (TIME_MAX, source))
                marks[source.name] = min(known[0], source.mark(name)), source
        least = min((mark for mark, _ in marks.values()), default=TIME_MAX)
        return [source for _, (mark, source) in sorted(marks.items()) if mark == least]

    def _pending(self, needs: Iterable[str], mark: int) -> bool:
        """Whether events wait for a rule's mark."""
        found = [self._advertisements.find(name) for name in needs]
        fronts = [one.front for one in found if one is not None and one.front is not None]
        return any(front >= mark for front in fronts)


def _stalls(source: Source, now: float) -> bool:
    return source.standing is Standing.LOST or now - source.promised_at >= STALLED_AFTER_S


def _describe(facts: Facts) -> str:
    """A rule's state in words."""
    if facts["state"] == "waiting":
        return f"waiting for types: {', '.join(facts['waits_for'])}"
    if facts["state"] == "stalled":
        holders = ", ".join(f"{one['source']} ({one['standing']})" for one in facts["held_by"])
        mark = facts["mark"]
        return f"stalled by {holders} at {'no mark' if mark is None else f'{mark} us'}"
    if facts["without"]:
        return f"running without {', '.join(facts['without'])}"
    return "running"
