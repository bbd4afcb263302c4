"""Questions of a node to those below for rules that are pulled, and the answers
(thesis 7.3.7, 7.3.8; docs/reproduction/distribution.md).

The node that sees all masters of a rule *asks*: the one that evaluates the rule, and those below it
whose fragments join the master with others. It asks as soon as a master comes. Every other node
*passes on* what it is asked for. Below are the children that keep something of the rule.

Law 1: a node that asks has all that it needs of a slave type up to the mark of the masters, or to
where an open span begins or has been answered (asking), whichever is least. Where no span is open
nothing has to be said, however far time goes on. Example: no Smoke has come, and it is complete to
60 s: so, for this rule, is Temp, though nobody has sent any.

Law 2: a master may come behind its own mark, when it has waited below for another event. It
counts for instants from the mark on only, and what it is asked for with is no further behind than
the rule reaches. So much is still there: the horizon is that far behind the mark. Who has asked
this node, though, is told nothing beyond that master until it is answered: it may have asked for
the very same.

Law 3: nothing waits in a circle. The marks of masters are those of what is sent unasked, and
answers depend on nothing but what lies below.

Law 4: where rules are divided anew, while nothing is under way, asking begins anew too: for a
stretch of time that may hold masters, as far back as the rule may still look. So another master
holds for all instants that have not been evaluated; what was one before waits from then on, and has
been sent up to there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat

from matcher.model import TIME_MAX, TIME_MIN, EventBatch, Int64s
from routing.partition.masters import Pull
from routing.partition.placement import Partition
from routing.partition.predicate_index import PredicateIndex
from routing.partition.questions import (
    ANY,
    Answers,
    AskedSpans,
    MasterSpan,
    OpenSpans,
    Spans,
    Values,
    starting,
    united,
)
from routing.partition.values import values_of


@dataclass(slots=True, eq=False)
class _Pulled:
    """One rule at one node; see PullRole. ``passed`` is the mark of the masters where it asks,
    ``limit`` what was last found of its types.
    """

    name: str
    pull: Pull
    asks: bool
    below: Mapping[str, frozenset[str]]
    told: dict[str, OpenSpans] = field(default_factory=dict)
    new: list[MasterSpan] = field(default_factory=list)
    passed: int = TIME_MIN
    limit: int | None = None
    horizon: int = TIME_MIN
    told_horizon: int = TIME_MIN
    is_horizon_wanted: bool = False
    _mark: int | None = None
    _answered: int | None = None

    @property
    def types(self) -> frozenset[str]:
        """The types of which some wait below."""
        return frozenset[str]().union(*self.below.values())

    @property
    def mark(self) -> int:
        """Up to where those below have answered, and have been asked at all."""
        if self._mark is None:
            unasked = (span.mark for span in self.new)
            told = (one.mark for one in self.told.values())
            self._mark = min((*unasked, *told), default=TIME_MAX)
        return self._mark

    @property
    def answered(self) -> int:
        """The same, late masters included (Law 2)."""
        if self._answered is None:
            unasked = (span.first for span in self.new)
            told = (one.answered for one in self.told.values())
            self._answered = min((*unasked, *told), default=TIME_MAX)
        return self._answered

    def touch(self) -> None:
        """Something was asked or answered: the marks are others."""
        self._mark = self._answered = None


@dataclass(frozen=True, slots=True)
class PullRole:
    """A node's part in a rule that is pulled: whether it ``asks``, else it passes on what it is
    asked for, and the children that keep something of the rule, with the types.

    ``start``: a node that asks takes all times from then to its front for masters (Law 4).
    """

    pull: Pull
    asks: bool
    below: Mapping[str, frozenset[str]]
    start: int = TIME_MIN


def roles_at(
    node: str,
    children: Iterable[str],
    partition: Partition,
    passed: Callable[[str], int] = lambda rule: TIME_MIN,
) -> dict[str, PullRole]:
    """A node's part in all rules that are pulled.

    ``passed``: up to where a rule, or the node's fragment of it, has been evaluated there.
    """
    roles = {}
    for rule, pull in sorted(partition.pulls.items()):
        below = {
            child: fragment.kept
            for child in children
            if (fragment := partition.fragments_of(child).get(rule)) and fragment.kept
        }
        if below:
            own = partition.fragments_of(node).get(rule)
            asks = partition.places[rule] == node if own is None else own.asks
            roles[rule] = PullRole(pull, asks, below, max(passed(rule) - pull.reach, TIME_MIN))
    return roles


class Pulls:
    """Owner of what one node has asked for in one tree, and of what was answered."""

    def __init__(self) -> None:
        self._rules: dict[str, _Pulled] = {}
        self._indices: dict[str, PredicateIndex] = {}
        self._waiting: dict[str, list[_Pulled]] = {}
        """The rules that ask, by the types of their masters."""
        self._limited: dict[str, list[_Pulled]] = {}
        """The same by the types that wait below."""
        self._limits: dict[str, int] = {}
        self._touched: set[_Pulled] = set()
        """The rules that ask and may have another limit."""
        self._risen: set[_Pulled] = set()
        """Rules of which ``keep`` has to look at the masters."""
        self._pending: set[_Pulled] = set()
        """The rules of which ``take_asked`` may have something to say."""

    def __bool__(self) -> bool:
        """Whether any rule is pulled."""
        return bool(self._rules)

    def follow(self, roles: Mapping[str, PullRole], front: int) -> None:
        """Rules are divided in another way (Law 4). ``front``: the greatest time of an event."""
        self._rules = {}
        for name, role in sorted(roles.items()):
            one = _Pulled(name, role.pull, role.asks, role.below)
            one.told = {
                child: OpenSpans(role.pull.after(names))
                for child, names in sorted(role.below.items())
            }
            if role.asks and TIME_MIN < front >= role.start:
                one.new += starting([(role.start, front, ANY)])
            self._rules[name] = one
        self._waiting, self._limited, self._limits = {}, {}, {}
        self._pending = set(self._rules.values())
        self._touched = {one for one in self._pending if one.asks}
        self._risen = set(self._touched)
        for one in self._rules.values():
            if one.asks:
                self._waiting.setdefault(one.pull.master.type.name, []).append(one)
                for type_name in one.types:
                    self._limited.setdefault(type_name, []).append(one)
        self._indices = {
            name: PredicateIndex(dict.fromkeys(one.pull.master for one in waiting))
            for name, waiting in self._waiting.items()
        }

    @property
    def asks(self) -> bool:
        """Whether anything is asked for from here."""
        return any(one.asks for one in self._rules.values())

    def want_horizons(self, name: str) -> bool:
        """Note that those below want to know what they can forget of events kept for masters of a
        type; whether this node asks for any of that.
        """
        asking = self._waiting.get(name, ())
        for one in asking:
            one.is_horizon_wanted = True
            self._pending.add(one)
        return bool(asking)

    # --- what has to be asked for ---

    def see(self, batch: EventBatch) -> None:
        """Events have come here: masters among them are to be asked for."""
        index = self._indices.get(batch.type.name)
        if index is None:
            return
        for predicate, places in index.sift(batch):
            for one in self._waiting[batch.type.name]:
                if one.pull.master == predicate:
                    one.new += (
                        MasterSpan(first, last, max(first, one.passed), values)
                        for first, last, values in _masters(batch, places, one.pull, one.horizon)
                    )
                    self._touch(one)

    def hear(self, asked: AskedSpans) -> None:
        """The father asks."""
        for name, spans, horizon in asked:
            one = self._rules.get(name)
            if one is not None and not one.asks:
                one.new += starting(spans)
                one.horizon = max(horizon, one.horizon)
                self._touch(one)

    def _touch(self, one: _Pulled) -> None:
        """Something has to be asked."""
        one.touch()
        self._pending.add(one)
        if one.asks:
            self._touched.add(one)

    def learn(self, marks: Mapping[str, int]) -> None:
        """Up to where types have come that are sent unasked (Law 3); TIME_MAX for those of which
        nothing more will come. Those that are not named are where they were.
        """
        for name in marks.keys() & self._waiting.keys():
            for one in self._waiting[name]:
                if marks[name] > one.passed:
                    one.passed = marks[name]
                    self._touched.add(one)
                    self._risen.add(one)

    def keep(self, beyond_of: Callable[[str], int] = lambda name: TIME_MAX) -> None:
        """Let those below forget what is further behind the masters than the rule reaches. Where
        no more of these come, a new source of their type would begin ``beyond_of`` it.
        """
        risen, self._risen = self._risen, set()
        for one in risen:
            beyond = beyond_of(one.pull.master.type.name)
            horizon = min(one.passed, beyond) - one.pull.reach
            if horizon > one.horizon:
                one.horizon = horizon
                self._pending.add(one)
            if one.passed > beyond:
                self._risen.add(one)

    def take_asked(self) -> dict[str, AskedSpans]:
        """The spans to ask for, by child."""
        if not self._pending:
            return {}
        found: dict[str, list[tuple[str, Spans, int]]] = {}
        pending, self._pending = self._pending, set()
        for one in sorted(pending, key=lambda one: one.name):
            if not (one.new or _is_due(one)):
                continue
            one.is_horizon_wanted = one.is_horizon_wanted and one.horizon == TIME_MIN
            spans, one.new = united(one.new, one.pull.slack), []
            one.told_horizon = one.horizon
            one.touch()
            for child, told in one.told.items():
                told.add(spans)
                asked = tuple((first, last, values) for first, last, _, values in spans)
                found.setdefault(child, []).append((one.name, asked, one.horizon))
        return {child: tuple(entries) for child, entries in found.items()}

    # --- what is answered ---

    def take(self, child: str, answers: Answers) -> None:
        """A child has answered."""
        for name, number, mark in answers:
            one = self._rules.get(name)
            if one is not None and child in one.told:
                one.told[child].answer(number, mark)
                one.touch()
                if one.asks:
                    self._touched.add(one)

    @property
    def limits(self) -> Mapping[str, int]:
        """Types of which some wait below until this node asks, and up to where it has all of them
        that it needs (Law 1).
        """
        self.take_limits()
        return self._limits

    def take_limits(self) -> Mapping[str, int]:
        """Limits that are others than when this was last asked."""
        moved: set[str] = set()
        for one in self._touched:
            limit = min(one.passed, one.mark)
            if limit != one.limit:
                one.limit = limit
                moved |= one.types
        self._touched.clear()
        news = {}
        for name in moved:
            least = min(one.limit for one in self._limited[name] if one.limit is not None)
            if least != self._limits.get(name):
                self._limits[name] = news[name] = least
        return news

    def awaited(self, name: str) -> dict[str, int]:
        """The children that have yet to answer for a type, and up to where they have."""
        found: dict[str, int] = {}
        for one in self._rules.values():
            for child, told in one.told.items():
                if len(told) and name in one.below[child]:
                    found[child] = min(told.mark, found.get(child, TIME_MAX))
        return found

    def answered(self, rule: str) -> int:
        """Up to where those below have answered what was asked for; TIME_MAX when nothing is open.

        What has come and was not asked for yet, because ``take_asked`` has yet to say so, is open.
        """
        one = self._rules.get(rule)
        return TIME_MAX if one is None else one.answered


def _masters(batch: EventBatch, places: Int64s, pull: Pull, since: int) -> Spans:
    """The times of masters from ``since`` on, and the values that what is asked for must be equal
    to; those that follow one another closely are one, since many come at once when they are sent
    again.
    """
    places = places[batch.time[places] >= since]
    columns = [values_of(batch, attribute, places) for attribute in pull.values]
    spans, slack = [], pull.slack
    last: dict[Values, tuple[int, int]] = {}
    kinds: Iterable[Values] = zip(*columns, strict=True) if columns else repeat(ANY)
    for time, values in zip(batch.time[places].tolist(), kinds, strict=False):
        begin, end = last.get(values, (time, time))
        if not begin <= time <= end + slack:
            spans.append((begin, end, values))
            begin = end = time
        last[values] = begin, max(time, end)
    return (*spans, *((*span, values) for values, span in last.items()))


def _is_due(one: _Pulled) -> bool:
    """Whether those below have to be told that time goes on, so that they can forget."""
    if not one.asks:
        return one.horizon > one.told_horizon
    if one.is_horizon_wanted:
        return one.horizon > TIME_MIN
    if one.told_horizon == TIME_MIN:  # they have just begun, and have nothing yet
        one.told_horizon = one.horizon
    return one.horizon - one.pull.reach >= one.told_horizon
