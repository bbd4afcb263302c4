"""Replay starts: from when on rules are evaluated once more, and how far back they see from there.

Law 1: a rule has to be right from its resume point on, and as far back as the rules above it reach
from where they have to be right. From there it sees as far as it reaches itself with each type;
earlier events cannot matter. So every type that rules use has a *horizon*. fire is due from 40 s,
and looks for Temps in the 5 min before each Smoke: Temps before -260 s do not matter, nor Smokes
before 40 s.

Law 2: what no window bounds (consumption, cycles) goes on from the mark of its state (rule_states),
if all that is needed of it lies behind that; else it has to be right from the beginning, as have
all that such rules use. A rule consumes its Temps, and its state is known up to 30 s: due from
40 s, it is evaluated from there on, and sees Temps from -270 s on. Without a state which Temps are
left at 40 s follows from all before.

Law 3: nothing before the instant from which a rule holds matters to it; and nothing at all to one
that ends before it has to be right.

Rules of one wiring that reach as far as each other, and do not end, are *alike* and traced as one.
Each of 10,000 such rules costs one look-up: from when on it has to be right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress, repeat

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, Int64s
from routing.deployment import Deployed
from routing.partition.derivation import reach_of, reaches_of
from routing.partition.placement import is_unbounded
from routing.partition.rule_states import groups_of
from rules.checking.dependencies import arrange
from rules.pattern import TIMER, Rule, Wiring

WITHOUT_STATES: Mapping[str, int] = {}
"""The marks of no states."""


@lru_cache(maxsize=65_536)
def _reaches(rule: Rule, *, has_state: bool) -> tuple[tuple[str, int], ...]:
    """How far a rule sees from where it has to be right, by type. A state is of all that came
    before its mark, whatever a composite event depends on.
    """
    if has_state:
        return tuple((one.name, reach_of(rule)) for one in rule.used_types)
    return tuple(reaches_of(rule).items())


@lru_cache(maxsize=65_536)
def _kind(wiring: Wiring, reaches: tuple[tuple[str, int], ...]) -> object:
    """One value for all rules of a wiring that reach as far as each other."""
    return object()


@dataclass(slots=True, eq=False)
class _Alike:
    """Rules that are traced as one, each of which may have a state of its own; or one rule alone,
    that has an end or goes on from one mark with a ``group``.
    """

    rule: Rule
    until: int
    has_state: bool
    group: Collection[str]
    names: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)


class _Arrangement:
    """Rules by what they have alike, which does not change while they are the same. ``kinds``: of
    the arrangement before, the rules by name, each with its kind.
    """

    def __init__(self, rules: Sequence[Deployed], kinds: Mapping[str, tuple[Rule, object]]) -> None:
        # Together, since a cycle may lead over rules that were deployed apart.
        arranged = arrange([one.rule for one in rules]).rules
        self.groups = groups_of(arranged)
        self.kinds: dict[str, tuple[Rule, object]] = {}
        found: dict[object, _Alike] = {}
        for one, rule in zip(rules, arranged, strict=True):
            name, wiring, group = rule.name, rule.wiring, self.groups.get(rule.name, ())
            is_alone = one.until is not None or len(group) > 1 or wiring.defined in wiring.used
            known = kinds.get(name)
            if known is None or known[0] is not rule:
                known = rule, _kind(wiring, _reaches(rule, has_state=bool(rule.consuming)))
            key = name if is_alone else known[1]
            alike = found.get(key)
            if alike is None:
                alike = _Alike(rule, one.end, bool(group), group if is_alone else ())
                found[key] = alike
            self.kinds[name] = known
            alike.names.append(name)
            alike.begins.append(one.begin)
        self.alike = list(found.values())
        self.alone = {one.names[0]: one for one in self.alike if one.group}
        self.defining: dict[str, list[_Alike]] = {}
        for alike in self.alike:
            self.defining.setdefault(alike.rule.defines.name, []).append(alike)


_recent: deque[tuple[Sequence[Deployed], _Arrangement]] = deque(maxlen=8)
"""Of the last rules: each checkpoint asks for the same ones, which are one tuple, several times."""


def _arrangement_of(rules: Sequence[Deployed]) -> _Arrangement:
    for known, arrangement in list(_recent):
        if known is rules:
            return arrangement
    arrangement = _Arrangement(rules, _recent[-1][1].kinds if _recent else {})
    if isinstance(rules, tuple):
        _recent.append((rules, arrangement))
    return arrangement


def state_groups(rules: Sequence[Deployed]) -> Mapping[str, Collection[str]]:
    """By the name of each rule that no window bounds, the rules that go on with it from one mark
    (rule_states).
    """
    return _arrangement_of(rules).groups


@dataclass(frozen=True, slots=True)
class ReplayStarts:
    """From when on rules are evaluated once more, by name.

    ``starts``: how far back those see that have a state or an end; ``marks``: where those go on
    that no window bounds, if they do not begin at the beginning; ``horizons``: for each type that
    rules use, the time before which no event is needed any more.
    """

    starts: Mapping[str, int]
    marks: Mapping[str, int]
    horizons: Mapping[str, int]


def replay_starts(
    rules: Sequence[Deployed],
    due: Mapping[str, int],
    states: Mapping[str, int] | None = WITHOUT_STATES,
) -> ReplayStarts:
    """The replay starts of rules; nothing of those of which nothing is needed any more.

    ``states``: the marks of the states that there are; None: wherever one is needed there is one.
    """
    return _Tracing(_arrangement_of(rules), due, states).traced()


class _Tracing:
    """Traces what is needed down from the rules to what they use. Arrays are int64, an entry for
    each of the rules that are alike.
    """

    def __init__(
        self, arrangement: _Arrangement, due: Mapping[str, int], states: Mapping[str, int] | None
    ) -> None:
        self._arrangement, self._due, self._states = arrangement, due, states
        self._needed = dict.fromkeys(arrangement.alike, TIME_MAX)
        """From when on rules have to be right for those above them."""
        self._seen: dict[_Alike, Mapping[str, Int64s]] = {}
        """By type, how far back."""
        self._marks: dict[_Alike, Int64s] = {}

    def traced(self) -> ReplayStarts:
        """The replay starts."""
        alone, waiting = self._arrangement.alone, list(self._arrangement.alike)
        least: dict[_Alike, Mapping[str, int]] = {}
        while waiting:
            alike = waiting.pop()
            if self._is_over(alike):
                continue
            seen, within = self._sight(alike)
            self._seen[alike] = seen
            starts = {name: int(one.min()) for name, one in seen.items()}
            if least.get(alike) == starts:
                continue
            least[alike] = starts
            for used, start in starts.items():
                for below in self._arrangement.defining.get(used, ()):
                    if below.names[0] not in within and start < self._needed[below]:
                        self._needed[below] = start
                        waiting += (below, *(alone[one] for one in below.group))
        horizons = dict[str, int]()
        for of_alike in least.values():
            for name, start in of_alike.items():
                horizons[name] = min(start, horizons.get(name, TIME_MAX))
        horizons.pop(TIMER.name, None)
        have_one = [one for one in self._seen if one.has_state or one.until < TIME_MAX]
        earliest = {one: np.minimum.reduce([*self._seen[one].values()]) for one in have_one}
        return ReplayStarts(_by_name(earliest), _by_name(self._marks, TIME_MIN), horizons)

    def _right(self, alike: _Alike) -> Int64s:
        """From when on each of the rules has to be right."""
        right = _of_names(alike.names, self._due)
        return np.minimum(right, self._needed[alike])

    def _is_over(self, alike: _Alike) -> bool:
        return alike.until < TIME_MAX and bool(self._right(alike)[0] >= alike.until)

    def _sight(self, alike: _Alike) -> tuple[Mapping[str, Int64s], Collection[str]]:
        """How far back rules see, by type, and the rules whose states they have of that."""
        mark, within = self._right(alike), alike.group
        if alike.has_state:
            resumed = self._marks[alike] = self._resumed(alike, mark)
            is_resumed = resumed > TIME_MIN
            if not is_resumed.all():
                within = ()
            mark = np.where(is_resumed | is_unbounded(alike.rule), resumed, mark)
        begins = np.array(alike.begins, np.int64)
        seen = {}
        for used, far in _reaches(alike.rule, has_state=alike.has_state):
            start = np.maximum(mark, TIME_MIN + far) - far
            seen[used] = np.where(mark > TIME_MIN, np.maximum(start, begins), begins)
        return seen, within

    def _resumed(self, alike: _Alike, right: Int64s) -> Int64s:
        """Where rules go on that have states; TIME_MIN for the beginning."""
        if alike.group:
            return np.array([self._mark_of(alike.group)], np.int64)
        if self._states is None:
            return right
        known = _of_names(alike.names, self._states)
        return np.where(known <= right, known, TIME_MIN)

    def _mark_of(self, group: Collection[str]) -> int:
        """Where the rules of a group go on; TIME_MIN for the beginning."""
        rules = [self._arrangement.alone[one] for one in group]
        needed = min([int(self._right(one)[0]) for one in rules if not self._is_over(one)])
        if self._states is None:
            return needed
        known = min(self._known(one, self._states) for one in rules)
        return known if known <= needed else TIME_MIN

    def _known(self, alike: _Alike, states: Mapping[str, int]) -> int:
        """Up to when a rule's state is known; one that has ended yields nothing after its end."""
        mark = states.get(alike.names[0], TIME_MIN)
        return TIME_MAX if mark >= alike.until else mark


def _of_names(names: Sequence[str], times: Mapping[str, int]) -> Int64s:
    """int64[n]: the time of each name; TIME_MIN without one."""
    return np.fromiter(map(times.get, names, repeat(TIME_MIN)), np.int64, len(names))


def _by_name(times: Mapping[_Alike, Int64s], beyond: int = TIME_MIN - 1) -> Mapping[str, int]:
    """The times of rules that lie beyond another one."""
    found = dict[str, int]()
    for alike, all_ in times.items():
        are_beyond = all_ > beyond
        found.update(zip(compress(alike.names, are_beyond), all_[are_beyond].tolist(), strict=True))
    return found
