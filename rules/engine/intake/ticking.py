"""Ticks of Timers that can matter: those after events (tesla.md S13).

Most rules with a Timer cannot fire where nothing has happened: they select an event, or ask for a
count that is not 0. So they need no ticks but those within their *reach*, the longest sum of
windows from the terminator down, after an event of a type that they use.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Int64s
from rules.engine.oracle.values import NOTHING, Scope, value_of
from rules.engine.order.catalogue import Deployed
from rules.engine.order.timers import period
from rules.pattern import TIMER, UTC, Constraint, Let, Negated, Rule, Selected
from rules.planning.depths import reach_of
from rules.terms import AttributeOf, Expression, Slot, nodes_of
from rules.zones import zone_of

KEPT_MIN = 1_024
"""So many times of a type are kept without looking whether they are needed."""


@dataclass(slots=True, eq=False)
class _Watched:
    """A rule whose terminator is the Timer.

    ``reach`` in microseconds, None where it needs every tick; ``mark``: up to where it has been
    given its ticks; ``latest``: the greatest time of the events before that.
    """

    rule: Rule
    types: frozenset[str]
    reach: int | None
    latest: int
    mark: int = TIME_MIN


class Ticking:
    """Owner of the times of the events that Timers have to tick after.

    Ticks that are made and need not be change nothing. So it is no harm that the times of events
    before a rule's mark are kept as the greatest of them alone, that events which came before the
    rule count as one at the time of the latest, and that those count which the rule's conditions
    exclude.
    """

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}
        self._times: dict[str, array[int]] = {}  # by type, of events that not all marks have passed
        self._kept: dict[str, int] = {}  # how many of these there were after the last look

    def watch(self, one: Deployed, latest: int) -> None:
        """Follow a rule that is new or stands otherwise; ``latest``: the greatest time so far."""
        types, known = one.group - {TIMER.name}, self._watched.get(one.rule.name)
        if known is None or known.rule is not one.rule or known.types != types:
            reach = None if fires_idle(one.rule) else min(TIME_MAX, reach_of(one.rule))
            self._watched[one.rule.name] = _Watched(one.rule, types, reach, latest)
            if reach is not None:
                for name in types:
                    self._times.setdefault(name, array("q"))

    def forget(self, name: str) -> None:
        """Forget a rule, and the types that none of the others looks at."""
        del self._watched[name]
        used = {type_ for one in self._watched.values() for type_ in one.types}
        self._times = {type_: times for type_, times in self._times.items() if type_ in used}

    def assume(self, latest: int) -> None:
        """Take it that events may have been at any time until ``latest``."""
        for one in self._watched.values():
            one.latest = max(one.latest, latest)

    def note(self, type_name: str, times: Int64s) -> None:
        """Note the times of events that come."""
        found = self._times.get(type_name)
        if found is not None:
            found.frombytes(times.astype(np.int64, copy=False).tobytes())

    def note_one(self, type_name: str, time: int) -> None:
        """Note the time of an event that comes alone."""
        found = self._times.get(type_name)
        if found is not None:
            found.append(time)

    def spans(self, name: str, begin: int, end: int, *, every: bool) -> Int64s:
        """The stretches of [begin, end) in which a rule's Timer has to tick, int64[n, 2]: their
        first ticks, ascending, and their ends, excluded. With ``every``, that is all of it. A tick
        is left out only where the rule cannot fire, since every window of it is empty there.
        """
        one = self._watched[name]
        # Elsewhere than in UTC ticks are looked for from each second on.
        step = (period(one.rule) if zone_of(one.rule) == UTC else 1) * MICROSECONDS
        if every or one.reach is None:
            one.latest, one.mark = max(one.latest, end), end
            return _with_ticks(np.array([[begin, end]], np.int64), step)
        times = np.sort(np.concatenate([self._array(type_) for type_ in one.types] or [_NONE]))
        times = times[(times < end) & (times > one.latest)]
        starts = np.concatenate(([begin], times))
        ends = np.minimum(np.concatenate(([one.latest], times)), TIME_MAX - 1 - one.reach)
        ends = np.maximum.accumulate(ends + one.reach + 1)
        first = np.concatenate(([True], starts[1:] > ends[:-1]))
        last = np.concatenate((first[1:], [True]))
        spans = np.stack((starts[first], ends[last]), axis=1)
        one.latest, one.mark = max([one.latest, *times[-1:].tolist()]), end
        return _with_ticks(spans.clip(begin, end), step)

    def release(self) -> None:
        """Forget the times that every rule is beyond, where there have come to be many."""
        for type_, times in self._times.items():
            if len(times) > max(KEPT_MIN, 2 * self._kept.get(type_, 0)):
                users = (one for one in self._watched.values() if type_ in one.types)
                mark = min((one.mark for one in users if one.reach is not None), default=TIME_MAX)
                waiting = self._array(type_)
                waiting = waiting[waiting >= mark]
                self._times[type_] = array("q", waiting.tobytes())
                self._kept[type_] = len(waiting)

    def _array(self, type_name: str) -> Int64s:
        return np.array(self._times.get(type_name, ()), np.int64)


_NONE = np.empty(0, np.int64)


def _with_ticks(spans: Int64s, step: int) -> Int64s:
    """The spans that hold a multiple of ``step``, from the first one on."""
    spans[:, 0] = -(-spans[:, 0] // step) * step
    return spans[spans[:, 0] < spans[:, 1]]


# --- rules where nothing happens ---------------------------------------------------------------


def fires_idle(rule: Rule) -> bool:
    """Whether a rule over a Timer may fire where all its windows are empty. It does not if it
    selects an event, or has a constraint, a parameter or a value that comes out false or undefined
    whatever the Timer's attributes are. Composite events happen when the events that they are made
    of do, unless a Timer terminates those; a rule above such others gets every tick.
    """
    if rule.alternatives or rule.together is not None:
        return True  # not asked: the Timer is only one of several terminators
    scope, unknown = Scope(NOTHING, ()), set[int]()
    for clause in rule.clauses:
        match clause:
            case Selected():
                return False
            case Constraint(condition):
                if _is_known(condition, unknown) and value_of(condition, scope) is not True:
                    return False
            case Let(slot, value):
                if not _is_known(value, unknown):
                    unknown.add(slot)
                elif (found := value_of(value, scope)) is None:
                    return False
                else:
                    scope = scope.with_slot(slot, found)
            case Negated():
                pass  # nothing is what it asks for
    return not any(
        _is_known(value, unknown) and value_of(value, scope) is None for value in rule.values
    )


def _is_known(expression: Expression, unknown: Collection[int]) -> bool:
    """Whether an expression comes out alike at every tick; what aggregates ask of their events
    does not matter, since there are none.
    """
    return not any(
        isinstance(node, AttributeOf) or (isinstance(node, Slot) and node.index in unknown)
        for node in nodes_of(expression)
    )
