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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from matcher.model import TIME_MAX, TIME_MIN
from routing.deployment import Deployed
from routing.partition.derivation import reach_of, reaches_of
from routing.partition.placement import is_unbounded
from routing.partition.rule_states import groups_of
from rules.checking.dependencies import arrange
from rules.pattern import TIMER, Rule

WITHOUT_STATES: Mapping[str, int] = {}
"""The marks of no states."""


@lru_cache(maxsize=65_536)
def _reach(rule: Rule) -> int:
    return reach_of(rule)


@lru_cache(maxsize=65_536)
def _reaches(rule: Rule) -> Mapping[str, int]:
    found: Mapping[str, int] = reaches_of(rule)
    return found


@lru_cache(maxsize=8)
def _arranged(
    rules: tuple[Rule, ...],
) -> tuple[Mapping[str, Rule], Mapping[str, Collection[str]]]:
    """The rules by name, arranged together, since a cycle may lead over rules that were deployed
    apart; and the groups of those that no window bounds.
    """
    arranged = arrange(rules).rules
    return {rule.name: rule for rule in arranged}, groups_of(arranged)


@dataclass(frozen=True, slots=True)
class ReplayStarts:
    """From when on rules are evaluated once more, by name.

    ``starts``: how far back each sees; ``marks``: where those go on that no window bounds, if they
    do not begin at the beginning; ``horizons``: for each type that they use, the time before which
    no event is needed any more.
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
    return _Tracing(rules, due, states).traced()


class _Tracing:
    """Traces what is needed down from the rules to what they use."""

    def __init__(
        self, rules: Sequence[Deployed], due: Mapping[str, int], states: Mapping[str, int] | None
    ) -> None:
        self._right = {one.rule.name: due.get(one.rule.name, TIME_MIN) for one in rules}
        self._states = states
        self._by_name, self._groups = _arranged(tuple(one.rule for one in rules))
        self._since = {one.rule.name: one.since for one in rules if one.since is not None}
        self._until = {one.rule.name: one.until for one in rules if one.until is not None}
        self._defining: dict[str, list[str]] = {}
        for one in rules:
            self._defining.setdefault(one.rule.defines.name, []).append(one.rule.name)
        self._seen: dict[str, Mapping[str, int]] = {}
        """By rule and by type, how far back."""
        self._marks: dict[str, int] = {}

    def traced(self) -> ReplayStarts:
        """The replay starts."""
        waiting = list(self._by_name)
        while waiting:
            name = waiting.pop()
            if self._is_over(name):
                continue
            seen, within = self._sight(name)
            if self._seen.get(name) == seen:
                continue
            self._seen[name] = seen
            for used, start in seen.items():
                for below in self._defining.get(used, ()):
                    if below not in within and start < self._right[below]:
                        self._right[below] = start
                        waiting += (below, *self._groups.get(below, ()))
        starts = {name: min(seen.values()) for name, seen in self._seen.items()}
        marks = {name: mark for name, mark in self._marks.items() if mark > TIME_MIN}
        return ReplayStarts(starts, marks, self._horizons())

    def _horizons(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for seen in self._seen.values():
            for name, start in seen.items():
                found[name] = min(start, found.get(name, TIME_MAX))
        found.pop(TIMER.name, None)
        return found

    def _is_over(self, name: str) -> bool:
        return name in self._until and self._right[name] >= self._until[name]

    def _sight(self, name: str) -> tuple[Mapping[str, int], Collection[str]]:
        """How far back a rule sees, by type, and the rules whose states it has of that."""
        rule, group = self._by_name[name], self._groups.get(name)
        mark = self._right[name]
        within: Collection[str] = ()
        if group is not None:
            self._marks[name] = resumed = self._mark_of(group)
            if resumed > TIME_MIN:
                mark, within = resumed, group
            elif is_unbounded(rule):
                mark = TIME_MIN
        since = self._since.get(name, TIME_MIN)
        if mark > TIME_MIN and group is None:
            return {used: max(mark - far, since) for used, far in _reaches(rule).items()}, within
        # A state is of all that came before its mark, whatever a composite event depends on. And
        # how far a rule reaches takes long to work out the first time.
        start = max(mark - _reach(rule), since) if mark > TIME_MIN else since
        return {one.name: start for one in rule.used_types}, within

    def _mark_of(self, group: Collection[str]) -> int:
        """Where the rules of a group go on; TIME_MIN for the beginning."""
        needed = min([self._right[one] for one in group if not self._is_over(one)])
        if self._states is None:
            return needed
        known = min(self._known(one, self._states) for one in group)
        return known if known <= needed else TIME_MIN

    def _known(self, name: str, states: Mapping[str, int]) -> int:
        """Up to when a rule's state is known; one that has ended yields nothing after its end."""
        mark = states.get(name, TIME_MIN)
        return TIME_MAX if mark >= self._until.get(name, TIME_MAX) else mark


def horizons(
    rules: Sequence[Deployed],
    due: Mapping[str, int],
    states: Mapping[str, int] = WITHOUT_STATES,
) -> Mapping[str, int]:
    """For each type that rules use, the time before which no event is needed any more.

    ``states`` as in replay_starts.
    """
    return replay_starts(rules, due, states).horizons
