"""What a node keeps of a rule's slave types until it is asked for (thesis 7.3.7).

Law 1: an event is let through once it lies in a window around a span of masters that was asked for,
be it there already or still to come.

Law 2: nobody will ask for windows of masters that are earlier than the *horizon*. What lies in none
that may still be asked for can be forgotten, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, Bools, Int64s
from routing.partition.asking import OpenSpans, Span, Spans, starting, united
from routing.partition.history import Stored
from routing.partition.pulling import Around, Pull


class Windows:
    """Stretches of time around spans of masters."""

    def __init__(self, spans: Sequence[Span], around: Around) -> None:
        # Of disjoint spans in order the windows' ends are in order too.
        ends = [
            (max(first - around.before, TIME_MIN), min(last + around.after, TIME_MAX))
            for first, last, _ in spans
        ]
        self._starts = np.array([start for start, _ in ends], np.int64)
        self._ends = np.array([end for _, end in ends], np.int64)

    def hold(self, times: Int64s) -> Bools:
        """bool[n]: which times lie in one of the windows, ends included."""
        if not len(self._starts):
            return np.zeros(len(times), np.bool_)
        place = np.searchsorted(self._starts, times, side="right") - 1
        found: Bools = (place >= 0) & (times <= self._ends[np.maximum(place, 0)])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Events of one stored batch, by their places."""

    stored: Stored
    places: Int64s
    times: Int64s
    latest: int


class Gate:
    """What one rule's fragment keeps."""

    def __init__(self, pull: Pull, names: Iterable[str]) -> None:
        kept = set(names)
        self.horizon = TIME_MIN
        self._around = {one.type: one for one in pull.around if one.type in kept}
        self._open = OpenSpans(pull.after(kept))
        self._windows = self._windows_of(())
        self._kept: dict[str, list[_Kept]] = {name: [] for name in self._around}

    @property
    def is_open(self) -> bool:
        """Whether something was asked for that is not answered whole."""
        return len(self._open) > 0

    @property
    def horizons(self) -> Mapping[str, int]:
        """By type: nothing earlier will be asked for (Law 2)."""
        return {
            name: max(TIME_MIN, self.horizon - around.before)
            for name, around in self._around.items()
        }

    def take(self, stored: Stored, places: Int64s) -> None:
        """Take in events that the fragment lets pass but for being asked for."""
        name, times = stored.batch.type.name, stored.batch.time[places]
        asked = self._windows[name].hold(times)
        stored.passing[places[asked]] = True
        if not asked.all():
            self._kept[name].append(_kept(stored, places[~asked], times[~asked]))

    def ask(self, spans: Spans, horizon: int) -> list[Stored]:
        """What lies around these spans of masters is asked for; gives where something passes."""
        self.horizon = max(horizon, self.horizon)
        self._open.add(starting(spans))
        if not spans:
            return []
        self._windows = self._windows_of(self._open.spans)
        return self._release(self._windows_of(starting(spans)))

    def release(self, names: Iterable[str]) -> list[Stored]:
        """Let all pass that is kept of some types."""
        touched = []
        for name in names:
            for one in self._kept.pop(name, ()):
                one.stored.passing[one.places] = True
                touched.append(one.stored)
            self._kept[name] = []
        return touched

    def close(self) -> None:
        """What was asked for will be asked for again, as far as it is needed."""
        self._open = OpenSpans(self._open.after)
        self._windows = self._windows_of(())

    def answer(self, mark: int) -> tuple[int, int] | None:
        """Everything that is kept here has come, and was sent where it was asked for, up to a mark:
        a number and a mark to answer, None when that is no news. Windows that have passed go.
        """
        count = len(self._open)
        if not self._open.answer(self._open.number, mark):
            return None
        if len(self._open) < count:
            self._windows = self._windows_of(self._open.spans)
        return self._open.number, mark

    def forget(self) -> None:
        """Drop what will not be asked for (Law 2)."""
        for name, horizon in self.horizons.items():
            self._kept[name] = [one for one in self._kept[name] if one.latest >= horizon]

    def _release(self, windows: Mapping[str, Windows]) -> list[Stored]:
        touched = []
        for name, kept in self._kept.items():
            left = []
            for one in kept:
                asked = windows[name].hold(one.times)
                if not asked.any():
                    left.append(one)
                    continue
                one.stored.passing[one.places[asked]] = True
                touched.append(one.stored)
                if not asked.all():
                    left.append(_kept(one.stored, one.places[~asked], one.times[~asked]))
            self._kept[name] = left
        return touched

    def _windows_of(self, spans: Iterable[Span]) -> dict[str, Windows]:
        disjoint = united(spans)
        return {name: Windows(disjoint, around) for name, around in self._around.items()}


def _kept(stored: Stored, places: Int64s, times: Int64s) -> _Kept:
    return _Kept(stored, places, times, int(times.max()))
