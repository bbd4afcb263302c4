"""One broker's part in the evaluation of divided rules: its engine, its forwarder, its marks (4.4).

Law 1: the mark of a type is the least of those who say something of it here: the local sources,
each child that forwards it (routing.network.stations.said), and the rules evaluated here that
define it.

Law 2: a type that nobody publishes any more holds nothing up and runs ahead of nothing (see
routing.serving.watermark): it has the mark of the type that is furthest, or lies just beyond the
last event. That it has ended is told to the father once all that is needed of it has gone up.

Law 3: a type that nobody publishes or has published is given nothing; rules here that need it,
perhaps through others, wait (missing). Given up, it counts as one that nobody publishes any more.

Law 4: where rules begin anew, engine and forwarder are new: everything that is needed comes again.

Law 5: of rules that are pulled (routing.partition.pulls) some types wait below until they are asked
for. Such a type's mark is also bounded by what was answered, and says no more than that all has
come that the rules need which ask here. So where a child has kept events for a rule, and sends them
all from now on, what it has said before of their type counts no more.

Law 6: after an input only what it may have changed is looked at: the types of which somebody has
said something else, and the rules that use them. After another plan that is everything.

Law 7: what sinks are told of a rule, here and elsewhere, is its outlook, which may lie beyond its
mark (outlook).

Law 8: a rule that has ended and lingers (routing.network.brokers.lingering) is evaluated up to its
end. From there on it is as if all that it uses had ended, and nothing waits for it. Where the rule
was evaluated before its end, that has been done already, unless rules begin anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.delivery.joining import joined, with_batches
from routing.messages import Forward
from routing.network.stations.duties import NO_DUTIES, duties_of
from routing.network.stations.lingering import Lingering
from routing.network.stations.missing import Missing
from routing.network.stations.said import Said
from routing.network.tables.ends import Ends
from routing.network.tables.outbox import Outbox
from routing.network.tables.outlook import Outlook
from routing.network.tables.router import CLOSED
from routing.network.ways.places import Division as Division
from routing.network.ways.sizes import batch_bytes
from routing.order import greatest_time
from routing.partition.asking import Answers, Asked
from routing.partition.composites import numbered
from routing.partition.forwarder import Demanded, Forwarder
from routing.partition.predicates import Predicate
from routing.partition.pulls import Pulls, roles_at
from routing.partition.telling import tell_fragment
from routing.serving.deployment import Deployed
from routing.serving.ended import told_causes
from rules.engine.engine import NOTHING, Detections, Detector
from rules.pattern import TIMER, RuleSet


class Station:
    """Owner of a broker's engine and forwarder while rules are divided."""

    def __init__(self, name: str, engine: Detector, waiting_events_max: int) -> None:
        self._name = name
        self._engine = engine
        self._forwarder = Forwarder()
        self._pulls = Pulls()
        self.is_pulling = False
        """Whether any rule is pulled (Law 5)."""
        self._begins_anew = True
        self._duties = NO_DUTIES
        """What follows from the division of the rules."""
        self.missing = Missing(waiting_events_max)
        self._outlook = Outlook()
        self._rule_marks: dict[str, int] = {}
        """The marks of the rules here since they were last advanced, for who asks after that."""
        self._said = Said()
        self._marks: dict[str, int] = {}
        self._here: dict[str, int] = {}
        """The marks of types as of now; those of ``_marks`` never go back."""
        self._front = self._beyond = TIME_MIN
        self._timer = TIME_MIN
        self._is_fed = False
        """Whether the engine was given events since it was last advanced."""
        self._is_anew = True
        """Whether everything is to be looked at (Law 6)."""
        self._lingering = Lingering()
        self.news: Sequence[str] = ()
        """The rules here that have another outlook since the last ``advance``, or have ended, or
        have not any more; all, after another plan."""
        self._ends = Ends()
        self.outbox = Outbox()
        """What is to be sent to the father."""
        self._own: Mapping[str, int] = {}
        self._clock: int | None = None
        """What ``advance`` was given last."""
        self.has_news = False
        """Whether anything has come that ``advance`` was not called for."""
        self.found: dict[str, tuple[int, int]] = {}
        """By source, so by rule: bytes of composite events found here since the last plan, and in
        how many batches."""
        self._awaited: dict[str, int] = {}
        """For which types events waited when it was last asked, and up to when."""

    @property
    def duplicates(self) -> int:
        """Events that the engine dropped as repeats (E1)."""
        return self._engine.duplicates

    @property
    def memory(self) -> Mapping[str, int]:
        """How much the engine keeps, by name."""
        return self._engine.memory()

    @property
    def parts(self) -> Sequence[int]:
        """How many rules each part of the engine evaluates."""
        return [len(names) for names in self._engine.parts]

    @property
    def rules(self) -> Mapping[str, Deployed]:
        """The rules that are evaluated here."""
        return self._duties.rules

    @property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """In words, what the fragments here let pass, by rule."""
        return {
            name: list(tell_fragment(self._duties.texts.get(name), fragment))
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
        return self._lingering.mark(rule, self._engine) if mark is None else mark

    def outlook(self, rule: str) -> int:
        """Up to where it is certain that no more of a rule will be found than has been."""
        outlook = self._outlook.marks.get(rule)
        return self.mark(rule) if outlook is None else outlook

    def said_of(self, name: str) -> Mapping[str, int]:
        """The marks of a type, by the child that forwards it, or has yet to answer (Law 5)."""
        tables = self._said.children
        said = {child: marks[name] for child, marks in tables.items() if name in marks}
        return {**self._pulls.awaited(name), **said}

    def has_ended(self, rule: str) -> bool:
        """Whether nobody publishes anything any more that a rule evaluated here uses."""
        return rule in self._ends.rules

    # --- deployment ---

    def begin_anew(self) -> None:
        """Forget rules, events and what children have said (Law 4); ``follow`` must come next.

        What was evaluated stays evaluated: the marks that were given are remembered.
        """
        wanted, demands = self._forwarder.wanted, self._forwarder.demands
        self._engine = self._engine.fresh()
        self._lingering.forget()
        self._rule_marks.clear()
        self._outlook.forget()
        self._forwarder = Forwarder()
        self._forwarder.want(wanted, demands)
        self._begins_anew = True
        self._duties = NO_DUTIES
        self._said.forget()
        self.outbox.clear()

    def want(
        self, predicates: Mapping[str, tuple[Predicate, ...]], demands: Mapping[str, Demanded]
    ) -> None:
        """What the father wants of published events has changed; by the names of types."""
        self._forwarder.want(predicates, demands)
        self._is_anew = True

    def give_up(self, names: Iterable[str]) -> None:
        """Rules wait for these types no longer."""
        if self.missing.give_up(names):
            self.has_news = self._is_anew = True
            self._said.give_up(self.missing.given_up & self._duties.used)

    def follow(self, division: Division) -> None:
        """Rules are divided in another way."""
        before, duties = self._duties.rules, duties_of(self._name, division)
        lingering = self._lingering
        here = duties.rules
        for gone in [rule for rule, was in before.items() if here.get(rule) != was]:
            if gone not in lingering:
                self._engine.remove(gone)
        new = [one for rule, one in here.items() if before.get(rule) != one]
        names = [one.rule.name for one in new]
        lingering.follow(division.rules, here, names, anew=self._begins_anew)
        self._install([one for one in new if one.rule.name not in lingering], division)
        for child, released in duties.released(self._duties):
            self._said.doubt(child, released)
        self._duties = duties
        self.missing.arrange(here.values(), division)
        self._rule_marks.clear()
        self._outlook.arrange({name: one.rule for name, one in here.items()})
        self._ends.arrange(lingering.uses(duties.uses), duties.defining)
        since = {one.rule.name: one.since for one in division.rules if one.since is not None}
        self._forwarder.follow(division.partition.fragments.get(self._name, {}), since)
        published = division.published.get(self._name, frozenset())
        self._said.arrange(published, self.missing.given_up & duties.used, duties.expected)
        self._follow_pulls(division)
        self.outbox.begin_anew()
        self.found = {}
        self.has_news = self._is_anew = self._is_fed = True

    def _install(self, rules: Sequence[Deployed], division: Division) -> None:
        for since, version in dict.fromkeys((one.since, one.version) for one in rules):
            own = tuple(one.rule for one in rules if (one.since, one.version) == (since, version))
            self._engine.deploy(RuleSet(own, division.schemas), since=since, version=version)

    def _follow_pulls(self, division: Division) -> None:
        """Law 5; what has been evaluated does not depend any more on what is asked for."""
        since = {one.rule.name: one.since for one in division.rules}
        fragments = self._forwarder.fragments

        def passed(rule: str) -> int:
            if rule in self._duties.rules:
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
        self.is_pulling = bool(self._pulls)
        self._begins_anew = False

    @property
    def _front_of_masters(self) -> int:
        """Up to where masters may have come."""
        return TIME_MIN if self._begins_anew else self._front

    # --- inputs ---

    def push(self, batches: Iterable[EventBatch], *, fresh: bool = True) -> None:
        """Take events in, of local sources or from a child; ``fresh`` as in Forward."""
        used, missing = self._duties.used, self.missing
        for batch in batches:
            if len(batch):
                name = batch.type.name
                self._front = max(self._front, greatest_time(batch))
                if name in used:
                    self._engine.push(batch)
                    self._outlook.see(batch)
                    self._is_fed = True
                if name in missing.waiting:
                    missing.count(name, len(batch))
                self._forwarder.push(batch, fresh=fresh)
                if self.is_pulling:
                    self._pulls.see(batch)
                self.has_news = True

    def take(self, child: str, message: Forward) -> None:
        """Take in what a child has sent."""
        if message.batches:
            self.push(message.batches[: message.fresh])
            self.push(message.batches[message.fresh :], fresh=False)
        if self._said.take(child, message.marks):
            self.has_news = True
        if message.answers:
            self._pulls.take(child, message.answers)
            self.has_news = True

    def awake(self, asked: Asked) -> None:
        """The father asks (Law 5)."""
        self._pulls.hear(asked)
        for rule, spans, horizon in asked:
            self._forwarder.ask(rule, spans, horizon)
        self.has_news = True

    # --- evaluation ---

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> Detections | None:
        """Evaluate what the marks allow; None when nothing has changed.

        ``own``: the marks of the types that local sources publish, CLOSED for those that they do
        not publish any more. ``clock``: the mark of Timer; None where the clock does not count.
        ``now``: the host's time, in microseconds.
        """
        is_same = clock == self._clock and (own is self._own or own == self._own)
        if is_same and not self.has_news:
            return None
        self._own, self._clock, self.has_news = own, clock, False
        is_anew, self._is_anew = self._is_anew, False
        moved = self._hear(own, is_anew=is_anew)
        detections = self._evaluate(moved, clock) if self._duties.rules else NOTHING
        while self._lingering.is_pending and self._finish():
            is_anew, moved = True, set(self._said.marks)
            detections = joined((detections, self._engine.advance({})))
        if detections.batches:
            if self._lingering.have_been:
                detections = with_batches(detections, told_causes(detections.batches))
            self._note_found(detections)
            for batch in detections.batches:
                if self._forwarder.looks_at(batch.type.name):
                    self._forwarder.push(numbered(batch, self._duties.ranks))
        ended = self._ends.types
        changed = self._ends.look(self._said, moved, is_timed=clock is not None)
        self._raise(moved, changed, is_anew=is_anew)
        self._forward(moved, is_anew=is_anew or self._ends.types != ended)
        return detections

    def _finish(self) -> bool:
        """Whether rules that linger have come to their ends by now (Law 8)."""
        duties, lingering = self._duties, self._lingering
        if not lingering.finish(self._engine):
            return False
        self._ends.arrange(lingering.uses(duties.uses), duties.defining)
        return True

    def _note_found(self, detections: Detections) -> None:
        for batch in detections.batches:
            for source in batch.ids.source.values:
                size, batches = self.found.get(source, (0, 0))
                self.found[source] = size + batch_bytes(batch), batches + 1
            self._outlook.see(batch)

    def _hear(self, own: Mapping[str, int], *, is_anew: bool) -> set[str]:
        """Take in what is said; gives the types that have another mark by that (Laws 1, 2, 5)."""
        said = self._said
        moved = said.hear(own)
        pulls = self._pulls if self.is_pulling else None
        if pulls is not None:
            pulls.learn({name: said.told[name] for name in moved})
            said.bound(pulls.take_limits(), moved)
        if is_anew:
            moved = set(said.marks)
        beyond = max(said.furthest, self._front + 1 if self._front > TIME_MIN else TIME_MIN)
        if beyond != self._beyond:
            self._beyond = beyond
            moved |= said.closed
            moved |= self._ends.types
        if pulls is not None:
            pulls.keep(beyond)
        return moved

    def _given(self, name: str) -> int:
        """The mark of a type, but for the rules here (Law 2)."""
        mark = self._said.marks.get(name, TIME_MIN)
        return self._beyond if mark == CLOSED else mark

    def _evaluate(self, moved: set[str], clock: int | None) -> Detections:
        """Give the engine the marks; adds Timer to the types that have moved, if it has."""
        marks = {name: self._given(name) for name in moved if name in self._said.marks}
        if TIMER.name in self._duties.users:
            timer = self._without_clock() if clock is None else clock
            if timer != self._timer:
                self._timer = timer
                moved.add(TIMER.name)
            marks[TIMER.name] = timer
        if not (moved or self._is_fed):
            return NOTHING
        self._is_fed = False
        return self._engine.advance(marks)

    def _raise(self, moved: set[str], changed: Collection[str], *, is_anew: bool) -> None:
        """Work out the marks of rules, and of types with them; adds those types to ``moved``.

        ``changed``: rules that have ended, or have not any more.
        """
        if is_anew:
            self._here = {}
            moved.update(self._duties.defining, self._ends.types)
        rules, marks = self._duties.rules, self._rule_marks
        touched = rules if is_anew else self._touched_by(moved)
        risen: set[str] = set()
        for rule in touched:
            mark = self._lingering.mark(rule, self._engine)
            if mark != marks.get(rule):
                marks[rule] = mark
                risen.add(rule)
                moved.add(rules[rule].rule.defines.name)
        moved.discard(TIMER.name)
        for name in moved:
            mark = self._here[name] = self._mark_here(name)
            # What nobody publishes any more and no rule has used may begin anew at any time.
            if name not in self._said.closed or self._is_used(name):
                self._marks[name] = max(mark, self._marks.get(name, TIME_MIN))
        outlook, news = self._outlook, set(rules if is_anew else changed)
        for rule in rules if is_anew else outlook.concerned(risen, moved):
            if outlook.rise(rule, marks[rule], self._here):
                news.add(rule)
        self.news = sorted(news)

    def _touched_by(self, moved: Iterable[str]) -> Collection[str]:
        """The rules here whose marks may move with those of these types."""
        if not self._duties.users:
            return ()
        return {rule for name in moved for rule in self._duties.users.get(name, ())}

    def _mark_here(self, name: str) -> int:
        """The mark of a type, the rules here included (Laws 1 and 2)."""
        said = self._said.marks.get(name)
        mark = TIME_MAX if said is None else self._beyond if said == CLOSED else said
        rules = self._duties.defining.get(name)
        if rules is not None:
            running = self._lingering.running(rules)
            if not running and said is None:
                mark = self._beyond
            for rule in running:
                mark = min(mark, self._rule_marks[rule])
        return max(mark, self._beyond) if name in self._ends.types else mark

    def _is_used(self, name: str) -> bool:
        """Whether a rule that is evaluated here, or a fragment, has looked at events of a type."""
        return self._forwarder.looks_at(name) or name in self._duties.used

    def take_awaited(self) -> dict[str, int]:
        """Up to when events have waited for types that rules here use, since it was last asked."""
        before = self._awaited.items()
        waited = {name: front for name, front in before if self._here.get(name, CLOSED) <= front}
        self._awaited = {
            name: self._front
            for name in self._duties.used
            if self._here.get(name, CLOSED) <= self._front
        }
        return waited

    def take_asked(self) -> dict[str, Asked]:
        """What is to be asked for (Law 5), by child."""
        return self._pulls.take_asked()

    def _without_clock(self) -> int:
        """The mark of Timer where the clock does not count: as far as rules that need it are."""
        found = [
            min((self._given(name) for name in uses - {TIMER.name}), default=TIME_MIN)
            for uses in self._duties.uses.values()
            if TIMER.name in uses
        ]
        return max(found, default=TIME_MIN)

    def _forward(self, moved: Iterable[str], *, is_anew: bool) -> None:
        """Raise the marks of the types that have moved; ``is_anew``: all are to be told."""
        forwarder, ended = self._forwarder, self._ends.types
        if forwarder.is_idle:
            return
        forwarded = forwarder.advance({name: self._here[name] for name in moved})
        up = forwarder.marks if is_anew else forwarded.marks
        over = [name for name in up if name in ended and forwarder.binding(name) <= ended]
        if over:
            up = {**up, **dict.fromkeys(over, CLOSED)}
        answers: Answers = ()
        if forwarder.is_asked:
            here = {**self._here, **dict.fromkeys(ended, CLOSED)}
            answers = forwarder.answers(here, self._pulls.mark)
        self.outbox.post(forwarded, self.outbox.news(up), answers)
