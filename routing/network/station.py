"""One broker's part in the evaluation of divided rules: its engine, its forwarder, its marks (4.4).

Law 1: the mark of a type is the least of those who say something of it here: the local sources,
each child that forwards it, and the rules evaluated here that define it. A child that is expected
to forward a type and has not said anything yet holds it at the beginning.

Law 2: a type that nobody publishes any more holds nothing up and runs ahead of nothing (see
routing.watermark): it has the mark of the type that is furthest, or lies just beyond the last
event. That it has ended is told to the father once all that is needed of it has gone up.

Law 3: a type that nobody publishes or has published is given nothing; rules here that need it,
perhaps through others, wait. Once more than ``waiting_events_max`` events have come for them, the
root is asked to give the type up; given up, it counts as one that nobody publishes any more.

Law 4: where rules begin anew, engine and forwarder are new: everything that is needed comes again.

Law 5: of rules that are pulled (routing.partition.pulls) some types wait below until they are asked
for. Such a type's mark is also bounded by what was answered.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType
from routing.deployment import Deployed
from routing.messages import Forward
from routing.network.recovery import Times
from routing.network.router import CLOSED
from routing.network.sizes import batch_bytes
from routing.order import greatest_time
from routing.partition.asking import Answers, Asked
from routing.partition.composites import numbered
from routing.partition.forwarder import Demanded, Forwarded, Forwarder
from routing.partition.placement import Partition, Tree, tree_of
from routing.partition.predicates import Predicate
from routing.partition.pulls import Pulls, roles_at
from routing.partition.telling import tell_fragment
from rules.engine.engine import Detections, Detector
from rules.pattern import TIMER, Rule, RuleSet

BATCHES_AT_ONCE, EVENTS_AT_ONCE = 1_000, 65_536
"""Batches, and events beyond which no more batches are added, in one message."""


@dataclass(frozen=True, slots=True)
class Division:
    """How the rules in force are divided over a tree: the same value at every broker of it.

    ``fathers``: of every broker but the root; ``published``: the types that each broker's sources
    publish.
    """

    partition: Partition
    fathers: Mapping[str, str]
    published: Mapping[str, frozenset[str]]
    rules: tuple[Deployed, ...]
    schemas: Mapping[str, EventType]

    def tree(self, root: str) -> Tree:
        """The tree, of which this is the root."""
        return tree_of(root, self.fathers)

    def absent_for(self, name: str) -> frozenset[str]:
        """The types that nobody advertises and that a rule needs, perhaps through others."""
        defining: dict[str, list[Rule]] = {}
        for one in self.rules:
            defining.setdefault(one.rule.defines.name, []).append(one.rule)
        found: set[str] = set()
        waiting = [one.rule for one in self.rules if one.rule.name == name]
        seen = {name}
        while waiting:
            rule = waiting.pop()
            found |= self.partition.waiting.get(rule.name, frozenset())
            below = [one for used in rule.used_types for one in defining.get(used.name, ())]
            waiting += [one for one in below if one.name not in seen]
            seen.update(one.name for one in below)
        return frozenset(found)


class Station:
    """Owner of a broker's engine and forwarder while rules are divided."""

    def __init__(self, name: str, engine: Detector, waiting_events_max: int) -> None:
        self._name = name
        self._engine = engine
        self._waiting_events_max = waiting_events_max
        self._forwarder = Forwarder()
        self._pulls = Pulls()
        self._begins_anew = True
        self._rules: dict[str, Deployed] = {}
        self._texts: dict[str, Rule] = {}
        """All rules, by name."""
        self._rule_marks: dict[str, int] = {}
        """The marks of the rules here since they were last advanced, for who asks after that."""
        self._uses: dict[str, frozenset[str]] = {}
        """The types that each rule here uses."""
        self._looked_at: tuple[frozenset[str], bool] | None = None
        """For which types ends were looked for last, and whether the clock counted."""
        self._used: frozenset[str] = frozenset()
        """The types that rules here use."""
        self._published: frozenset[str] = frozenset()
        self._children: dict[str, dict[str, int]] = {}
        """The marks of types, by the child that forwards them."""
        self._ranks: Mapping[str, int] = {}
        self._marks: dict[str, int] = {}
        self._front = TIME_MIN
        self._ended: frozenset[str] = frozenset()
        """The types of which nothing more will be here."""
        self._over: frozenset[str] = frozenset()
        """The rules all of whose types have ended."""
        self._told: dict[str, int] = {}
        self._outbox: list[Forward] = []
        self._inputs: tuple[Mapping[str, int], int | None] = {}, None
        self._has_news = False
        self.found: dict[str, tuple[int, int]] = {}
        """By source, so by rule: bytes of composite events found here since the last plan, and in
        how many batches."""
        self._waiting: dict[str, int] = {}
        """The types that rules here wait with (Law 3), and how many events of each have come."""
        self._absent: frozenset[str] = frozenset()
        self._given_up: frozenset[str] = frozenset()

    @property
    def duplicates(self) -> int:
        """Events that the engine dropped as repeats (E1)."""
        return self._engine.duplicates

    @property
    def parts(self) -> Sequence[int]:
        """How many rules each part of the engine evaluates."""
        return [len(names) for names in self._engine.parts]

    @property
    def rules(self) -> Mapping[str, Deployed]:
        """The rules that are evaluated here."""
        return self._rules

    @property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """In words, what the fragments here let pass, by rule."""
        return {
            name: list(tell_fragment(self._texts.get(name), fragment))
            for name, fragment in sorted(self._forwarder.fragments.items())
        }

    @property
    def front(self) -> int:
        """The greatest time of an event that is or was here; TIME_MIN for none."""
        return self._front

    @property
    def type_marks(self) -> Mapping[str, int]:
        """The marks that were given to engine and forwarder."""
        return self._marks

    def mark(self, rule: str) -> int:
        """Up to where a rule has been evaluated here; KeyError for one that is not."""
        mark = self._rule_marks.get(rule)
        return self._engine.mark(rule) if mark is None else mark

    def said_of(self, name: str) -> Mapping[str, int]:
        """The marks of a type, by the child that forwards it, or has yet to answer (Law 5)."""
        said = {child: marks[name] for child, marks in self._children.items() if name in marks}
        return {**self._pulls.awaited(name), **said}

    def has_ended(self, rule: str) -> bool:
        """Whether nobody publishes anything any more that a rule evaluated here uses."""
        return rule in self._over

    # --- deployment ---

    def begin_anew(self) -> None:
        """Forget rules, events and what children have said (Law 4); ``follow`` must come next.

        What was evaluated stays evaluated: the marks that were given are remembered.
        """
        wanted, demands = self._forwarder.wanted, self._forwarder.demands
        self._engine = self._engine.fresh()
        self._rule_marks.clear()
        self._forwarder = Forwarder()
        self._forwarder.want(wanted, demands)
        self._begins_anew = True
        self._rules = {}
        self._children = {}
        self._outbox.clear()

    def want(self, predicates: Iterable[Predicate], demands: Mapping[str, Demanded]) -> None:
        """What the father wants of published events has changed."""
        self._forwarder.want(predicates, demands)

    def give_up(self, names: Iterable[str]) -> None:
        """Rules wait for these types no longer."""
        given_up = frozenset(names)
        if given_up != self._given_up:
            self._given_up, self._has_news = given_up, True

    def follow(self, division: Division) -> None:
        """Rules are divided in another way."""
        places, name = division.partition.places, self._name
        here = {one.rule.name: one for one in division.rules if places[one.rule.name] == name}
        for gone in [rule for rule, was in self._rules.items() if here.get(rule) != was]:
            self._engine.remove(gone)
            del self._rules[gone]
        self._install([one for rule, one in here.items() if rule not in self._rules], division)
        self._rule_marks.clear()
        self._rules = here
        self._absent = frozenset[str]().union(*map(division.absent_for, here))
        self._waiting = {
            used.name: self._waiting.get(used.name, 0)
            for one in here.values()
            if division.absent_for(one.rule.name)
            for used in one.rule.used_types
        }
        self._texts = {one.rule.name: one.rule for one in division.rules}
        self._uses = {
            rule: frozenset(used.name for used in one.rule.used_types) for rule, one in here.items()
        }
        self._used = frozenset().union(*self._uses.values()) - {TIMER.name}
        self._looked_at = None
        in_order = sorted(division.rules, key=lambda one: one.place)
        self._ranks = {RULE_SOURCE + one.rule.name: rank for rank, one in enumerate(in_order)}
        self._published = division.published.get(name, frozenset())
        self._deploy_fragments(division.partition)
        self._expect(division)
        self._follow_pulls(division)
        self._told = {}
        self.found = {}
        self._has_news = True

    def _install(self, rules: Sequence[Deployed], division: Division) -> None:
        for since, version in dict.fromkeys((one.since, one.version) for one in rules):
            own = tuple(one.rule for one in rules if (one.since, one.version) == (since, version))
            self._engine.deploy(RuleSet(own, division.schemas), since=since, version=version)

    def _deploy_fragments(self, partition: Partition) -> None:
        forwarder, fragments = self._forwarder, partition.fragments.get(self._name, {})
        for gone in sorted(forwarder.fragments.keys() - fragments.keys()):
            forwarder.remove(gone)
        for rule, fragment in sorted(fragments.items()):
            if forwarder.fragments.get(rule) != fragment:
                forwarder.deploy(rule, fragment)

    def _expect(self, division: Division) -> None:
        """Law 1: which children forward what. What one has said stays said, but for an end."""
        before, self._children = self._children, {}
        for child, father in sorted(division.fathers.items()):
            fragments = division.partition.fragments.get(child, {})
            if father != self._name or not fragments:
                continue
            names = sorted({name for one in fragments.values() for name in one.pushed})
            said = before.get(child, {})
            # What has ended may begin anew with this division; if not, the child says so again.
            self._children[child] = {
                name: mark if (mark := said.get(name, TIME_MIN)) != CLOSED else TIME_MIN
                for name in names
            }

    def _follow_pulls(self, division: Division) -> None:
        """Law 5; what has been evaluated does not depend any more on what is asked for."""
        since = {one.rule.name: one.since for one in division.rules}
        fragments = self._forwarder.fragments

        def passed(rule: str) -> int:
            if rule in self._rules:
                mark = self._engine.mark(rule)
            else:
                types = fragments[rule].types
                mark = min((self._marks.get(name, TIME_MIN) for name in types), default=TIME_MIN)
            begins = since[rule]
            return mark if begins is None else max(mark, begins)

        children = sorted(c for c, father in division.fathers.items() if father == self._name)
        roles = roles_at(self._name, children, division.partition, passed)
        self._forwarder.close()
        self._pulls.follow(roles, self._front_of_masters)
        self._begins_anew = False

    @property
    def _front_of_masters(self) -> int:
        """Up to where masters may have come."""
        return TIME_MIN if self._begins_anew else self._front

    # --- inputs ---

    def push(self, batches: Iterable[EventBatch], *, fresh: bool = True) -> None:
        """Take events in, of local sources or from a child; ``fresh`` as in Forward."""
        for batch in batches:
            if len(batch):
                name = batch.type.name
                self._front = max(self._front, greatest_time(batch))
                if name in self._used:
                    self._engine.push(batch)
                if name in self._waiting:
                    self._waiting[name] += len(batch)
                self._forwarder.push(batch, fresh=fresh)
                self._pulls.see(batch)
                self._has_news = True

    def take(self, child: str, message: Forward) -> None:
        """Take in what a child has sent."""
        self.push(message.batches[: message.fresh])
        self.push(message.batches[message.fresh :], fresh=False)
        marks = self._children.get(child, {})
        for name, mark in message.marks:
            if name in marks and mark > marks[name]:
                marks[name] = mark
                self._has_news = True
        if message.answers:
            self._pulls.take(child, message.answers)
            self._has_news = True

    def awake(self, asked: Asked) -> None:
        """The father asks (Law 5)."""
        self._pulls.hear(asked)
        for rule, spans, horizon in asked:
            self._forwarder.ask(rule, spans, horizon)
        self._has_news = True

    # --- evaluation ---

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> Detections | None:
        """Evaluate what the marks allow; None when nothing has changed.

        ``own``: the marks of the types that local sources publish, CLOSED for those that they do
        not publish any more. ``clock``: the mark of Timer; None where the clock does not count.
        ``now``: the host's time, in microseconds.
        """
        if not self._has_news and self._inputs == (own, clock):
            return None
        self._inputs, self._has_news = (own, clock), False
        pushed = self._said(own)
        said = self._bounded(pushed)
        closed = frozenset(name for name, mark in said.items() if mark == CLOSED)
        open_marks = [mark for mark in said.values() if mark != CLOSED]
        beyond = max([*open_marks, self._front + 1 if self._front > TIME_MIN else TIME_MIN])
        marks = {name: beyond if name in closed else mark for name, mark in said.items()}
        self._pulls.keep(beyond)
        timer = clock if clock is not None else self._timer(marks)
        detections = self._engine.advance({**marks, TIMER.name: timer})
        self._note_found(detections)
        for batch in detections.batches:
            if self._forwarder.looks_at(batch.type.name):
                self._forwarder.push(numbered(batch, self._ranks))
        if (closed, clock is not None) != self._looked_at:
            self._looked_at = closed, clock is not None
            self._look_for_ends(said, is_timed=clock is not None)
        for rule in self._rules:
            name, mark = self._rules[rule].rule.defines.name, self._engine.mark(rule)
            self._rule_marks[rule] = mark
            marks[name] = min(marks.get(name, TIME_MAX), mark)
        for name in self._ended:
            marks[name] = max(marks.get(name, beyond), beyond)
        for name, mark in marks.items():
            # What nobody publishes any more and no rule has used may begin anew at any time.
            if name not in closed or self._is_used(name):
                self._marks[name] = max(mark, self._marks.get(name, TIME_MIN))
        self._forward(marks, {**marks, **dict.fromkeys(self._ended, CLOSED)})
        return detections

    def _note_found(self, detections: Detections) -> None:
        for batch in detections.batches:
            for source in batch.ids.source.values:
                size, batches = self.found.get(source, (0, 0))
                self.found[source] = size + batch_bytes(batch), batches + 1

    def _is_used(self, name: str) -> bool:
        """Whether a rule that is evaluated here, or a fragment, has looked at events of a type."""
        return self._forwarder.looks_at(name) or name in self._used

    def take_hopeless(self) -> tuple[str, ...]:
        """The types to be given up, each once (Law 3)."""
        waited_for = self._absent - self._given_up
        if not waited_for or sum(self._waiting.values()) <= self._waiting_events_max:
            return ()
        self._absent &= self._given_up
        return tuple(sorted(waited_for))

    def take_forwards(self) -> list[Forward]:
        """What is to be sent to the father."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def take_asked(self) -> dict[str, Asked]:
        """What is to be asked for (Law 5), by child."""
        return self._pulls.take_asked()

    def _bounded(self, pushed: Mapping[str, int]) -> dict[str, int]:
        """What is said of types, bounded by what was answered (Law 5)."""
        said = dict(pushed)
        self._pulls.learn(pushed)
        for name, mark in self._pulls.limits():
            said[name] = min(said.get(name, CLOSED), mark)
        return said

    def _said(self, own: Mapping[str, int]) -> dict[str, int]:
        """Law 1, but for the rules here: by type."""
        said = {name: own.get(name, TIME_MIN) for name in sorted(self._published)}
        said.update((name, CLOSED) for name in sorted(self._given_up) if name in self._used)
        for marks in self._children.values():
            for name, mark in marks.items():
                said[name] = min(said.get(name, CLOSED), mark)
        return said

    def _timer(self, marks: Mapping[str, int]) -> int:
        """Where the clock does not count: as far as the rules that need Timer have come."""
        found = [
            min((marks.get(name, TIME_MIN) for name in uses - {TIMER.name}), default=TIME_MIN)
            for uses in self._uses.values()
            if TIMER.name in uses
        ]
        return max(found, default=TIME_MIN)

    def _look_for_ends(self, said: Mapping[str, int], *, is_timed: bool) -> None:
        """Law 2: of which types neither sources nor rules bring anything more."""
        rules = {name: one.rule for name, one in self._rules.items()}
        names = said.keys() | {rule.defines.name for rule in rules.values()}
        ended = {name for name in names if said.get(name, CLOSED) == CLOSED}
        while True:  # all rules might be over, but for those that are found not to be
            over = {
                name
                for name, rule in rules.items()
                if all(_is_over(used, ended, is_timed) for used in self._uses[name])
            }
            running = {rule.defines.name for name, rule in rules.items() if name not in over}
            if not ended & running:
                break
            ended -= running
        self._ended, self._over = frozenset(ended), frozenset(over)

    def _forward(self, marks: Mapping[str, int], here: Mapping[str, int]) -> None:
        """``here``: the marks, but CLOSED for types of which nothing more will come."""
        fragments = self._forwarder.fragments.values()
        if not (fragments or self._forwarder.wanted or self._forwarder.demands):
            return
        forwarded = self._forwarder.advance(marks)
        up = dict(forwarded.marks)
        for name in up.keys() & self._ended:
            company = [one.binds for one in fragments if name in one.forwards and name in one.binds]
            if all(binds <= self._ended for binds in company):
                up[name] = CLOSED
        news = {
            name: mark for name, mark in sorted(up.items()) if mark > self._told.get(name, TIME_MIN)
        }
        self._told.update(news)
        answers = self._forwarder.answers(here, self._pulls.mark)
        self._post(forwarded, tuple(news.items()), answers)

    def _post(self, forwarded: Forwarded, marks: Times = (), answers: Answers = ()) -> None:
        """Have these events sent to the father, and then the marks and the answers."""
        fresh = len(forwarded.fresh)
        for part in parts_of(forwarded.batches):
            first = min(fresh, len(part))
            self._outbox.append(Forward(part, (), first))
            fresh -= first
        self._outbox += _waited(forwarded)
        if marks or answers:
            last = self._outbox.pop() if forwarded.batches or forwarded.waited else Forward()
            self._outbox.append(replace(last, marks=marks, answers=answers))


def _waited(forwarded: Forwarded) -> Iterator[Forward]:
    came = [times.astype("<i8").tobytes() for _, times in forwarded.waited]
    first = 0
    for part in parts_of(batch for batch, _ in forwarded.waited):
        yield Forward(part, came=b"".join(came[first : first + len(part)]))
        first += len(part)


def parts_of(batches: Iterable[EventBatch]) -> Iterator[tuple[EventBatch, ...]]:
    """Batches in parts that fit into messages."""
    part: list[EventBatch] = []
    events = 0
    for batch in batches:
        part.append(batch)
        events += len(batch)
        if len(part) == BATCHES_AT_ONCE or events >= EVENTS_AT_ONCE:
            yield tuple(part)
            part, events = [], 0
    if part:
        yield tuple(part)


def _is_over(used: str, ended: Container[str], is_timed: bool) -> bool:
    return not is_timed if used == TIMER.name else used in ended
