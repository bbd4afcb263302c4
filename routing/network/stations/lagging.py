"""Which rules at one broker wait while what they need beside runs ahead (architecture.md 4.2).

Law 1: of a rule that is evaluated here, or whose fragment looks at several types together, what
comes is kept until the slowest of these types has come as far. What a fragment keeps until it is
asked for (7.3.7) is kept until the masters have come as far. A rule *lags* once others are more
than ``lead_max_s`` beyond that. From then on their sources are to wait whenever they are so far
ahead (holding): nothing that waits here grows without a bound.

Law 2: types that nobody publishes, or nobody any more, hold up nothing (progress, Law 2), and
nothing here depends on the clock. Where masters wait to be asked for, nobody here knows whether
there are any. So who asks is told how far what is kept has come, each quarter of the lead, and says
from when on it may still ask; if there are no masters any more, that is as far (awaiting, Law 4).

Law 3: a station looks when what has come is a quarter further than when it last looked, and once
rules have lagged. How far these have come is told in steps of an eighth, so that few words are made
of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from matcher.model import TIME_MIN
from routing.network.stations.progress import Progress
from routing.network.tables.router import CLOSED
from routing.partition.gate import Gate
from routing.partition.pulling import Pull


class Company(Protocol):
    """Types that wait for one another, or for masters, for the sake of one rule."""

    @property
    def rule(self) -> str:
        """The rule."""
        ...

    @property
    def types(self) -> frozenset[str]:
        """The types."""
        ...

    def come_to(self, progress: Progress) -> int | None:
        """What they wait for has come so far, TIME_MIN for nowhere; None if it does not come."""
        ...


@dataclass(frozen=True, slots=True)
class Together:
    """Types that are looked at together."""

    rule: str
    types: frozenset[str]

    def come_to(self, progress: Progress) -> int | None:
        """As Company: the slowest of them."""
        return min(progress.marks_of(self.types), default=None)


@dataclass(frozen=True, slots=True)
class Kept:
    """Types that wait behind a gate for masters."""

    rule: str
    types: frozenset[str]
    gate: Gate
    pull: Pull

    def come_to(self, progress: Progress) -> int:
        """As Company: masters are as far beyond the horizon as the rule reaches, and come as far
        again before a new one is told of itself (pulls).
        """
        return max(self.gate.horizon, progress.begun) + 2 * self.pull.reach


class Lags:
    """The rules that lag at one broker, in all of its trees."""

    def __init__(self, lead_max_us: int) -> None:
        self.lead_max_us = lead_max_us
        self.has_news = False
        """Whether others lag, or have come further, or more is kept, since this was last unset."""
        self._found: dict[Lagging, Mapping[str, int]] = {}
        self._kept: dict[str, int] = {}

    def configure(self, lead_max_us: int) -> None:
        """Take over how far sources may run ahead."""
        self.lead_max_us = lead_max_us
        self.has_news = True

    def come_to(self) -> Mapping[str, int]:
        """By rule that lags, up to where it has come."""
        found: dict[str, int] = {}
        for lags in self._found.values():
            for rule, time in lags.items():
                found[rule] = min(time, found.get(rule, time))
        return found

    def note(self, where: Lagging, lags: Mapping[str, int]) -> None:
        """Up to where the rules have come that lag there."""
        if lags != self._found.get(where, {}):
            self._found.pop(where, None)
            if lags:
                self._found[where] = lags
            self.has_news = True

    def note_kept(self, master: str, until: int) -> None:
        """What is kept for masters of a type has come so far."""
        self._kept[master] = max(until, self._kept.get(master, until))
        self.has_news = True

    def take_kept(self) -> Mapping[str, int]:
        """That, by the types of masters, since it was last asked."""
        kept, self._kept = self._kept, {}
        return kept

    def keep(self, standing: Iterable[Lagging]) -> None:
        """There is another plan, with these stations: what lags there does so until they look."""
        found = {one: self._found[one] for one in standing if one in self._found}
        self.has_news = self.has_news or len(found) < len(self._found)
        self._found = found
        self._kept.clear()


class Lagging:
    """Looks how far apart types are at one station."""

    def __init__(self, lags: Lags) -> None:
        self._lags = lags
        self._lagging: list[Company] = []
        """What has lagged, by the plan that there is."""
        self._lagged: frozenset[str] = frozenset()
        """The rules that have lagged before that, until this has looked again."""
        self._all_from = TIME_MIN
        """How far what has come is to be before this looks at all again."""
        self.due_from = TIME_MIN
        """The same before it looks at anything; TIME_MIN: always (Law 3)."""

    def begin_anew(self) -> None:
        """Rules are divided in another way."""
        self._lagged = self._lagged.union(one.rule for one in self._lagging)
        self._lagging = []
        self.look_again()

    def look_again(self) -> None:
        """Look at all as soon as anything comes."""
        self._all_from = self.due_from = TIME_MIN

    def look(self, companies: Iterable[Company], progress: Progress) -> None:
        """See which rules lag by now, and how far those have come that do or did."""
        if progress.furthest >= self._all_from:
            self._all_from = progress.furthest + self._lags.lead_max_us // 4
            self._look_at_all(companies, progress)
        step = max(self._lags.lead_max_us // 8, 1)
        found: dict[str, int] = {}
        for one in self._lagging:
            come_to = _come_to(one, progress)
            if come_to is not None:
                time = come_to // step * step
                found[one.rule] = min(time, found.get(one.rule, time))
        self._lags.note(self, found)
        self.due_from = TIME_MIN if self._lagging else self._all_from

    def _look_at_all(self, companies: Iterable[Company], progress: Progress) -> None:
        lead = self._lags.lead_max_us
        for one in companies:
            furthest = max(progress.marks_of(one.types), default=TIME_MIN)
            come_to = _come_to(one, progress)
            ahead = 0 if come_to is None else furthest - come_to
            if (ahead > lead or one.rule in self._lagged) and one not in self._lagging:
                self._lagging.append(one)
            if ahead > lead // 4 and isinstance(one, Kept):
                self._lags.note_kept(one.pull.master.type.name, furthest)
        self._lagged = frozenset()


def _come_to(company: Company, progress: Progress) -> int | None:
    """What it waits for has come so far; if nowhere yet, where others were at first. None if it
    does not come, or nothing has come at all.
    """
    found = company.come_to(progress)
    if found == TIME_MIN:
        found = progress.begun
    return None if found is None or found >= CLOSED else found
