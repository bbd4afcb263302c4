"""Pull buffer: events of a rule's slave types, kept until they are asked for (thesis 7.3.7).

Law 1: an event is let through once it lies in a window around a span of masters that was asked for,
be it there already or still to come, and has the values that must be equal to theirs. Example: the
master is Smoke, the slave Temp within 10 s before it: once Smoke of 40 s in room a is asked for,
Temps of room a from 30 to 40 s pass.

Law 2: nobody will ask for windows of masters that are earlier than the *horizon*. What lies in none
that may still be asked for can be forgotten, and nothing else. Example: with the horizon at 50 s,
Temps before 40 s can.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, Bools, Int64s
from routing.partition.history import Stored
from routing.partition.masters import Around, Pull
from routing.partition.questions import ANY, MasterSpan, OpenSpans, Spans, Values, starting
from routing.partition.values import values_of

DROPPED_MIN = 64
"""Windows that are there before any are looked through for those that have passed."""


class Windows:
    """Stretches of time, in order and apart from one another, both ends included."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: int, end: int) -> None:
        """Add one, which becomes one with those that it meets."""
        first, behind = self._between(start, end)
        if first < behind:
            start, end = min(start, self._starts[first]), max(end, self._ends[behind - 1])
        self._starts[first:behind], self._ends[first:behind] = [start], [end]

    def drop(self, time: int) -> None:
        """Drop those that have ended before a time."""
        ended = bisect_left(self._ends, time)
        del self._starts[:ended], self._ends[:ended]

    @property
    def span(self) -> tuple[int, int]:
        """The start of the first and the end of the last."""
        return self._starts[0], self._ends[-1]

    def hold(self, times: Int64s) -> Bools:
        """bool[n]: which times lie in one of them."""
        if len(times) == 1:  # common
            first, behind = self._between(int(times[0]), int(times[0]))
            return np.array((first < behind,))
        first, behind = self._between(int(times.min()), int(times.max()))
        if first == behind:
            return np.zeros(len(times), np.bool_)
        starts, ends = np.array(self._starts[first:behind]), np.array(self._ends[first:behind])
        place = np.searchsorted(starts, times, side="right") - 1
        found: Bools = (place >= 0) & (times <= ends[np.maximum(place, 0)])
        return found

    def _between(self, earliest: int, latest: int) -> tuple[int, int]:
        """The first that meets this time, and the one behind the last."""
        return bisect_left(self._ends, earliest), bisect_right(self._starts, latest)


class WindowsByKey:
    """The windows in which events of a type are asked for, by the values that they must have.

    Windows of masters that follow one another are one. So what is asked for costs what is new of
    it, however much of it waits for an answer.
    """

    def __init__(self, around: Around, slack: int = 0) -> None:
        """``slack``: how long after its end a window is kept, in microseconds."""
        self._around = around
        self._slack = slack
        self.by_key: dict[Values, Windows] = {}
        self._grown = self._left = 0
        """Spans that were added since the last ended windows were dropped, and what was left."""

    def add(self, spans: Iterable[MasterSpan]) -> None:
        """Add the windows around these spans of masters."""
        around = self._around
        for first, last, _, values in spans:
            key = tuple(values[place] for _, place in around.keys) if values else ANY
            windows = self.by_key.get(key)
            if windows is None:
                windows = self.by_key[key] = Windows()
            start, end = max(first - around.before, TIME_MIN), min(last + around.after, TIME_MAX)
            windows.add(start, end)
            self._grown += 1

    def drop(self, mark: int) -> None:
        """Everything up to a mark has come: windows that have passed go, once they are many."""
        if self._grown <= self._left + DROPPED_MIN:
            return
        for key, windows in list(self.by_key.items()):
            windows.drop(mark - self._slack)
            if not windows:
                del self.by_key[key]
        self._grown, self._left = 0, sum(map(len, self.by_key.values()))

    def span(self, key: Values) -> tuple[int, int]:
        """A time in which all lies that is asked for of events with these values; of such there
        are windows.
        """
        spans = [windows.span for windows in self._of(key)]
        return min([first for first, _ in spans]), max([last for _, last in spans])

    def hold(self, key: Values, times: Int64s) -> Bools:
        """bool[n]: which times of events with these values are asked for."""
        found: Bools | None = None
        for windows in self._of(key):
            held = windows.hold(times)
            found = held if found is None else found | held
        return np.zeros(len(times), np.bool_) if found is None else found

    def _of(self, key: Values) -> list[Windows]:
        own, any_ = self.by_key.get(key), self.by_key.get(ANY)
        return [one for one in ((own,) if key == ANY else (own, any_)) if one]


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Events of one stored batch, by their places."""

    stored: Stored
    places: Int64s
    times: Int64s
    earliest: int
    latest: int


class PullBuffer:
    """The events that one rule's fragment keeps."""

    def __init__(self, pull: Pull, names: Iterable[str]) -> None:
        kept = set(names)
        self.horizon = TIME_MIN
        self._around = {one.type: one for one in pull.around if one.type in kept}
        self._open = OpenSpans(pull.after(kept))
        self._ended = 0
        self._windows = self._no_windows()
        self._kept: dict[str, dict[Values, list[_Kept]]] = {name: {} for name in self._around}
        """By type, and by the values that masters' must be equal to."""

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
        name = stored.batch.type.name
        for key, own in _by_key(stored, places, self._around[name]):
            times = stored.times(own)
            asked = self._windows[name].hold(key, times)
            stored.passing[own[asked]] = True
            if not asked.all():
                kept = self._kept[name].setdefault(key, [])
                kept.append(_kept(stored, own[~asked], times[~asked]))

    def ask(self, spans: Spans, horizon: int) -> list[Stored]:
        """Ask for events around these spans of masters; gives where something passes."""
        self.horizon = max(horizon, self.horizon)
        self._open.add(starting(spans))
        if not spans:
            return []
        asked = self._no_windows()
        for windows in (*self._windows.values(), *asked.values()):
            windows.add(starting(spans))
        return self._release(asked)

    def release(self, names: Iterable[str]) -> list[Stored]:
        """Let all pass that is kept of some types."""
        touched = []
        for name in names:
            for one in _all(self._kept.pop(name, {})):
                one.stored.passing[one.places] = True
                touched.append(one.stored)
            self._kept[name] = {}
        return touched

    def close(self) -> None:
        """Forget what was asked for: it will be asked for again, as far as it is needed."""
        self._open = OpenSpans(self._open.after)
        self._ended = 0
        self._windows = self._no_windows()

    def answer(self, mark: int) -> tuple[int, int] | None:
        """Everything that is kept here has come, and was sent where it was asked for, up to a mark:
        a number and a mark to answer, None when that is no news. Windows that have passed go.
        """
        return (self._open.number, mark) if self._pass(mark) else None

    def end(self, now: int, since: int) -> int | None:
        """Where events have the times at which they come: the number of the last Awakening if it
        was not given yet, since all that came before it is sent by now. No master that came before
        ``since`` will be asked for.
        """
        self._pass(now)
        self.horizon = max(since, self.horizon)
        if self._ended == self._open.number:
            return None
        self._ended = self._open.number
        return self._ended

    def _pass(self, mark: int) -> bool:
        """Everything up to a mark has come; whether that is news for who has asked."""
        count = len(self._open)
        is_news = self._open.answer(self._open.number, mark)
        if len(self._open) < count:
            for windows in self._windows.values():
                windows.drop(mark)
        return is_news

    def forget(self) -> None:
        """Drop what will not be asked for (Law 2)."""
        for name, horizon in self.horizons.items():
            for key, kept in list(self._kept[name].items()):
                left = [one for one in kept if one.latest >= horizon]
                if left:
                    self._kept[name][key] = left
                else:
                    del self._kept[name][key]

    def _release(self, windows: Mapping[str, WindowsByKey]) -> list[Stored]:
        touched: list[Stored] = []
        for name, by_key in self._kept.items():
            asked = windows[name]
            for key in list(by_key) if ANY in asked.by_key else asked.by_key.keys() & by_key.keys():
                near, by_key[key] = _parted(by_key[key], *asked.span(key))
                if near:
                    # All at once: most have few events, or one.
                    found = asked.hold(key, np.concatenate([one.times for one in near]))
                    touched += _let_pass(near, found, by_key[key])
        return touched

    def _no_windows(self) -> dict[str, WindowsByKey]:
        after = self._open.after
        return {
            name: WindowsByKey(around, after - around.after)
            for name, around in self._around.items()
        }


def _by_key(stored: Stored, places: Int64s, around: Around) -> Iterator[tuple[Values, Int64s]]:
    """Places of events of a batch, by the values that masters' must be equal to."""
    if not around.keys:
        yield ANY, places
        return
    found: dict[Values, list[int]] = {}
    columns = [values_of(stored.batch, attribute, places) for attribute, _ in around.keys]
    for place, key in zip(places.tolist(), zip(*columns, strict=True), strict=True):
        found.setdefault(key, []).append(place)
    yield from ((key, np.array(own, np.int64)) for key, own in found.items())


def _all(by_key: Mapping[Values, Iterable[_Kept]]) -> Iterator[_Kept]:
    for kept in by_key.values():
        yield from kept


def _parted(kept: Iterable[_Kept], first: int, last: int) -> tuple[list[_Kept], list[_Kept]]:
    """Kept events of which some may lie in that time, and the others."""
    near, others = list[_Kept](), list[_Kept]()
    for one in kept:
        (near if one.earliest <= last and one.latest >= first else others).append(one)
    return near, others


def _let_pass(near: Sequence[_Kept], found: Bools, left: list[_Kept]) -> Iterator[Stored]:
    """Let those pass that were ``found``, bool[n] for all one after another; what stays is added
    to what is ``left``. Gives where something passes.
    """
    start = 0
    for one in near:
        end = start + len(one.places)
        own = found[start:end]
        count, start = np.count_nonzero(own), end
        if count == len(own):
            one.stored.passing[one.places] = True
        elif count:
            one.stored.passing[one.places[own]] = True
            left.append(_kept(one.stored, one.places[~own], one.times[~own]))
        else:
            left.append(one)
        if count:
            yield one.stored


def _kept(stored: Stored, places: Int64s, times: Int64s) -> _Kept:
    if len(times) == 1:  # common
        time = int(times[0])
        return _Kept(stored, places, times, time, time)
    return _Kept(stored, places, times, int(times.min()), int(times.max()))
