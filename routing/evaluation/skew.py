"""Skew: events that wait at one broker for slow ones (brokers.md section 5).

Of types that are looked at together for a rule, by its evaluation here or by a fragment, what comes
is kept until the slowest who brings one of them has come as far. They *lag* once events have come
that are more than ``lead_max_s`` beyond that. From then on, for as long as they are looked at here,
their sources are to wait whenever they are so far ahead (back_pressure). What a fragment keeps
until it is asked for (7.3.7) is kept until masters have come as far. That lags in the same way, but
its own sources alone are to wait, and only until it is within three quarters of the lead. What
lagged before a plan does so from where it was until those who bring the types have spoken again.
Smokes have come to 90 s, Temps to 20 s, the lead is 60 s: sources of Smoke wait beyond 80 s, after
a plan as well, be it that nobody has spoken of Temp yet.

Types that nobody publishes, or nobody any more, hold up nothing; nor do rules that wait for such
types, be it through others, or that have ended. Nothing here depends on the clock.

Where masters wait to be asked for, who asks is told how far what is kept has come, each quarter of
the lead (pulling). An evaluator looks when events of a type have come that are a quarter
further than when it last looked, and while anything lags. How far that has come is told in steps of
an eighth, so that few words are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from matcher.model import TIME_MIN
from routing.evaluation.tree_progress import TreeProgress
from routing.partition.masters import Pull
from routing.partition.pull_buffer import PullBuffer
from routing.watermarks.ends import CLOSED


@dataclass(frozen=True, slots=True)
class JoinedInputs:
    """Types that are looked at together for a rule that holds from ``since`` on."""

    rule: str
    types: frozenset[str]
    since: int

    def come_to(self, progress: TreeProgress, before: int | None) -> int | None:
        """The slowest of them has come so far; None where none is to come, or nothing has come.
        ``before``: how far it had come by the plan before, where they lagged.
        """
        least = min(progress.marks_of(self.types), default=CLOSED)
        if least == TIME_MIN:
            least = progress.begun(self.types) if before is None else before
        return None if least >= CLOSED else max(least, self.since)


@dataclass(frozen=True, slots=True)
class PulledInputs:
    """Types that wait in a buffer until masters ask for them."""

    rule: str
    types: frozenset[str]
    buffer: PullBuffer
    pull: Pull

    def come_to(self, progress: TreeProgress, before: int | None) -> int | None:
        """Masters have come so far, or further: as far beyond the horizon as the rule reaches, and
        as far again before a new one is told of itself (pulls). None where nothing has come.
        """
        begun = progress.begun(self.types)
        return None if begun >= CLOSED else max(self.buffer.horizon, begun) + 2 * self.pull.reach


WaitingInputs: TypeAlias = JoinedInputs | PulledInputs


class SkewLimit:
    """How far sources may run ahead, and the types that lag at one broker, in all of its trees."""

    def __init__(self, lead_max_us: int) -> None:
        self.lead_max_us = lead_max_us
        self.has_news = False
        """Whether others lag, or have come further, or more is kept, since this was last unset."""
        self._found: dict[TreeSkew, Mapping[str, int]] = {}
        self._kept: dict[str, int] = {}

    def configure(self, lead_max_us: int) -> None:
        """Take over how far sources may run ahead."""
        self.lead_max_us = lead_max_us
        self.has_news = True

    def come_to(self) -> Mapping[str, int]:
        """Types whose sources are to wait, and up to where what they wait for has come."""
        found: dict[str, int] = {}
        for lags in self._found.values():
            for name, time in lags.items():
                found[name] = min(time, found.get(name, time))
        return found

    def note(self, where: TreeSkew, lags: Mapping[str, int]) -> None:
        """The same at one evaluator."""
        if lags != self._found.get(where, {}):
            self._found.pop(where, None)
            if lags:
                self._found[where] = lags
            self.has_news = True

    def note_kept(self, master: str, until: int) -> None:
        """Note how far that has come which is kept for masters of a type."""
        self._kept[master] = max(until, self._kept.get(master, until))
        self.has_news = True

    def take_kept(self) -> Mapping[str, int]:
        """Give the notes since the last call, by the types of masters."""
        kept, self._kept = self._kept, {}
        return kept

    def keep(self, type_progress: Iterable[TreeSkew]) -> None:
        """There is another plan, with these evaluators: what lags there does so until they look,
        and what they have said may be lost.
        """
        found = {}
        for one in type_progress:
            one.look_again()
            if one in self._found:
                found[one] = self._found[one]
        self.has_news = self.has_news or len(found) < len(self._found)
        self._found = found
        self._kept.clear()


class TreeSkew:
    """Looks how far apart at one evaluator is what waits for one another."""

    def __init__(self, limit: SkewLimit) -> None:
        self._limit = limit
        self.lagging: list[WaitingInputs] = []
        """Inputs that have lagged under the present plan."""
        self._come_to: dict[frozenset[str], int] = {}
        """How far the slowest has come of types that, looked at together, have lagged, be it under
        the plan before."""
        self.is_new = True
        """Whether to look at all, whatever has come."""

    def begin_anew(self) -> None:
        """Rules are divided in another way."""
        self.lagging = []
        self.look_again()

    def look_again(self) -> None:
        """Look at all with the next input."""
        self.is_new = True

    def look(
        self, inputs: Iterable[WaitingInputs], progress: TreeProgress, waits: Callable[[str], bool]
    ) -> None:
        """See what lags by now, and how far that has come which does. ``waits``: whether a rule
        waits for types that nobody publishes.
        """
        lead = self._limit.lead_max_us
        if self.is_new or progress.has_gone_far:
            self.is_new = False
            progress.note_looked(lead // 4)
            self._look_at_all(inputs, progress, waits)
        step = max(lead // 8, 1)
        found: dict[str, int] = {}
        before, self._come_to = self._come_to, {}
        for one in list(self.lagging):
            come_to = one.come_to(progress, before.get(one.types))
            if come_to is None:
                continue
            if isinstance(one, JoinedInputs):
                self._come_to[one.types] = min(come_to, self._come_to.get(one.types, come_to))
            elif progress.furthest_of(one.types) - come_to <= lead * 3 // 4:
                self.lagging.remove(one)
                continue
            for name in one.types:
                found[name] = min(come_to // step * step, found.get(name, come_to))
        self._limit.note(self, found)

    def _look_at_all(
        self, inputs: Iterable[WaitingInputs], progress: TreeProgress, waits: Callable[[str], bool]
    ) -> None:
        lead, before = self._limit.lead_max_us, self._come_to
        self._come_to = {}
        for one in inputs:
            lagged = before.get(one.types) if isinstance(one, JoinedInputs) else None
            if lagged is not None:
                self._come_to[one.types] = lagged
            come_to, furthest = one.come_to(progress, lagged), progress.furthest_of(one.types)
            ahead = 0 if come_to is None else furthest - come_to
            is_known = lagged is not None
            if (ahead > lead or is_known) and one not in self.lagging and not waits(one.rule):
                self.lagging.append(one)
            if ahead > lead // 4 and isinstance(one, PulledInputs):
                self._limit.note_kept(one.pull.master.type.name, furthest)
