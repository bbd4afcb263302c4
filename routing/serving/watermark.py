"""Up to which instant the engine may evaluate (protocol.md section 4, tesla.md S14).

Law 1: a mark given to the engine is never taken back. A source that joins therefore takes the given
marks of its types over as floors: what it publishes before them is late. Where events have the
times at which they come (``ordering = "arrival"``) their own say nothing about marks, and there is
no floor. Only a type that no rule needs any more has no given mark: one that comes from rules
alone, since others were deployed, would hold these up for ever; and where the rules are gone that
were evaluated, what is earlier is late for nobody. Example: a rule over Temp was evaluated up to 40
s; a second station joins: its readings before 40 s are late.

Law 2: an open type is given its mark. A type whose sources have all closed must hold nothing up,
and must not run ahead of what it belongs to either, or a source that comes later could publish
nothing: it is given the mark of the rules that need it. Where all types of a rule have closed, that
is just beyond the last event, and the rule has no more to say until a source joins. Example: a rule
needs Smoke, whose only source has closed, and Temp, which has come to 40 s: Smoke is given 40 s.

Law 3: a type that never had an advertiser is given nothing; the rules that need it wait, until
``waiting_events_max`` events of their other types are kept for them. Then they give the type up:
from there on it counts as one whose sources have all closed.

Law 4: ``Timer`` (S13) has the mark of the clock where the host's ``now`` is one, else it counts
as closed. It is given at whole seconds only, when something can tick.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from matcher.model import MICROSECONDS, TIME_MIN
from routing.config import NodeConfig, Ordering
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployments
from rules.pattern import TIMER


class Watermarks:
    """The marks that were given to the engine, by type."""

    def __init__(
        self, config: NodeConfig, advertisements: Advertisements, deployments: Deployments
    ) -> None:
        self._config = config
        self._advertisements = advertisements
        self._deployments = deployments
        self._given: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._ended: set[frozenset[str]] = set()
        self._kept: dict[frozenset[str], int] = {}
        """How many events are kept for the groups that wait (Law 3)."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self._config = config

    @property
    def given(self) -> Mapping[str, int]:
        """The marks given so far."""
        return self._given

    @property
    def ticks(self) -> bool:
        """Whether a rule needs ``Timer`` and the clock drives it."""
        return self._deployments.need_clock and self._config.wall_clock

    def has_ended(self, group: frozenset[str]) -> bool:
        """Whether all types that a rule needs have closed, so that nobody waits for it (Law 2)."""
        return group in self._ended

    def touch(self, names: Iterable[str]) -> None:
        """Something about these types has changed: events, promises, advertisers, rules."""
        self._dirty.update(names)

    def refresh(self, now: float) -> bool:
        """Work out what changed; whether the engine is to be given ``given`` again."""
        if self.ticks:
            self._dirty.add(TIMER.name)
        if not self._dirty:
            return False
        changed = False
        groups: dict[frozenset[str], None] = {}
        for name in self._dirty:
            own = self._deployments.groups(name)
            if own:
                groups.update(dict.fromkeys(own))
                changed |= self._raise(name, self.mark(name, now))
        for group in groups:
            if group in self._kept and not any(map(self.is_absent, group)):
                del self._kept[group]
            changed |= self._raise_closed(group, now)
        self._dirty.clear()
        return changed

    def mark(self, name: str, now: float) -> int | None:
        """A type's own mark; None when it has none (Laws 2 and 3)."""
        if name == TIMER.name:
            return self._clock(now) if self._config.wall_clock else None
        known = self._advertisements.find(name)
        return None if known is None else known.mark

    def is_absent(self, name: str) -> bool:
        """Whether rules wait for a first advertiser of the type (Law 3)."""
        known = self._advertisements.find(name)
        if known is None:
            return name != TIMER.name
        return not (known.was_advertised or known.given_up)

    def keep(self, name: str, events: int) -> list[str]:
        """Events of a type have come; gives the types that are given up for it (Law 3)."""
        if not self._kept:
            return []
        given_up: list[str] = []
        for group in self._deployments.groups(name):
            if group not in self._kept:
                continue
            self._kept[group] += events
            if self._kept[group] > self._config.waiting_events_max:
                given_up += filter(self.is_absent, sorted(group))
                del self._kept[group]
        for absent in given_up:
            self._advertisements[absent].given_up = True
        self.touch(given_up)
        return given_up

    def group_mark(self, group: Iterable[str], now: float) -> int | None:
        """The mark of the rules with these needs (Law 2); None while they wait (Law 3)."""
        marks, fronts = [], []
        for name in group:
            if self.is_absent(name):
                return None
            mark = self.mark(name, now)
            if mark is not None:
                marks.append(mark)
            elif name != TIMER.name and (front := self._advertisements[name].front) is not None:
                fronts.append(front + 1)
        return min(marks) if marks else max(fronts, default=None)

    def floor(self, name: str, rule_marks: Mapping[str, int]) -> int:
        """The first promise of a source that joins a type (Law 1)."""
        if self._config.ordering is Ordering.ARRIVAL:
            return TIME_MIN
        given = self._given.get(name)
        if given is not None:
            return given
        # Never published before, but perhaps defined by rules, and used by others (S12): those
        # have been evaluated up to their marks, but for what is before they hold.
        users = (
            (one.since, rule_marks[one.rule.name])
            for one in self._deployments.rules
            if any(used.name == name for used in one.rule.used_types)
        )
        evaluated = (mark for since, mark in users if since is None or mark > since)
        return max(evaluated, default=TIME_MIN)

    def _raise_closed(self, group: frozenset[str], now: float) -> bool:
        closed = [name for name in group if self.mark(name, now) is None]
        if not closed and group not in self._ended:
            return False
        mark = self.group_mark(group, now) if closed else None
        changed = [self._raise(name, mark) for name in closed]
        ended = len(closed) == len(group) and not any(map(self.is_absent, group))
        if ended != (group in self._ended):
            (self._ended.add if ended else self._ended.discard)(group)
            changed.append(True)
        return any(changed)

    def forget_groups(self) -> Collection[str]:
        """Rules have changed; every type that one needs is to be touched. Gives the types whose
        marks count no more, of which the engine must forget what it was given (Law 1).
        """
        before, needed = self._given, self._deployments.groups
        self._given = {name: mark for name, mark in before.items() if needed(name)}
        self._ended.clear()
        groups = {
            group for name in self._deployments.needed for group in self._deployments.groups(name)
        }
        self._kept = {
            group: self._kept.get(group, 0) for group in groups if any(map(self.is_absent, group))
        }
        return before.keys() - self._given.keys()

    def _raise(self, name: str, mark: int | None) -> bool:
        if mark is None or mark <= self._given.get(name, TIME_MIN):
            return False
        self._given[name] = mark
        return True

    def _clock(self, now: float) -> int:
        # Just beyond the last whole second: nothing ticks between two of them.
        return math.floor(now - self._config.timer_slack_s) * MICROSECONDS + 1
