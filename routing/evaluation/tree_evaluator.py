"""One broker's part in the evaluation of divided rules: its engine, its forwarder, its marks.

How far types and rules are here follows from what sources and children say (routing.watermarks),
and from the rules here (tree_progress). That a type has ended is told to the father once all that
is needed of it has gone up. Where rules begin anew, engine and forwarder are new: everything that
is needed comes again, and rules whose memory no window bounds go on from their states
(routing.partition.rule_states). A type that nobody publishes or has published is given nothing, and
rules that need it wait.

Law 1: of rules that are pulled (routing.partition.pulls) some types wait below until they are asked
for. Such a type's mark is also bounded by what was answered, and says no more than that all has
come that the rules need which ask here. So where a child has kept events for a rule, and sends them
all from now on, what it has said before of their type counts no more. Smoke is master: Temps of b3
are asked for up to 40 s, and Temp's mark is 40 s.

Law 2: once a rule has been evaluated up to where it ends it is *over*: as if all that it uses had
ended, and nothing waits for it. fire ends at 26 s; once it has been evaluated up to there, Temps of
27 s wait for no Smoke.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MIN, EventBatch
from matcher.single import packed
from routing.deployment import Deployed, install
from routing.evaluation.duties import NO_DUTIES, Duties, duties_of
from routing.evaluation.found import as_found
from routing.evaluation.outbox import Outbox
from routing.evaluation.replay import Replay
from routing.evaluation.skew import JoinedInputs, PulledInputs, SkewLimit, TreeSkew, WaitingInputs
from routing.evaluation.tree_progress import TreeProgress
from routing.messages import Forward
from routing.partition.composites import numbered
from routing.partition.forwarder import Demanded, Forwarder
from routing.partition.fragment_text import tell_fragment
from routing.partition.places import NO_DIVISION, Division as Division
from routing.partition.pulls import Pulls, roles_at
from routing.partition.questions import Answers, AskedSpans
from routing.partition.rule_states import ResumedRule, StateNotes, resume
from routing.serving.slices import rest_of_slice
from routing.watermarks.ends import CLOSED
from routing.watermarks.missing_types import MissingTypes
from routing.watermarks.type_progress import TypeProgress
from routing.watermarks.watermarks import Watermarks
from routing.wire.sizes import batch_bytes
from rules.engine.engine import NOTHING, Detections, Placement
from rules.engine.order.intervals import Intervals
from rules.errors import RuleErrors
from rules.pattern import TIMER

INSTALLED = 16
"""Rules that are installed at once where that is done ahead."""
PACKED_MIN = 8
"""Batches that have come from which on those of one event are packed into columns."""
NOTHING_RESUMED: Mapping[str, ResumedRule] = {}
"""No rule that goes on from a state."""


class TreeEvaluator:
    """Owner of a broker's engine and forwarder while rules are divided."""

    def __init__(
        self, name: str, engine: Intervals, waiting_events_max: int, limit: SkewLimit
    ) -> None:
        self._name = name
        self.engine = engine
        """The engine, until rules begin anew."""
        self.forwarder = Forwarder()
        self._pulls = Pulls()
        self.is_pulling = False
        """Whether any rule is pulled (Law 1)."""
        self._begins_anew = True
        self._ahead: tuple[Intervals, dict[str, Deployed]] | None = None
        """The engine, or the next one, and the rules that were installed in it ahead."""
        self._duties = NO_DUTIES
        """The duties by the division of the rules."""
        self.rules: Mapping[str, Deployed] = {}
        """The rules that are evaluated here."""
        self._to_come: tuple[Division, Duties] | None = None
        """The duties by a division that is to come, worked out ahead."""
        self.missing = MissingTypes(waiting_events_max)
        self._division = NO_DIVISION
        self._fresh: list[EventBatch] = []
        self._late: list[EventBatch] = []
        """Events that have come, and that ``_take_come`` has yet to give to all here."""
        self._is_fed = False
        """Whether the engine was given events since it was last advanced."""
        self._is_anew = True
        """Whether everything is to be looked at, after another plan."""
        self.watermarks = Watermarks()
        self.progress = TreeProgress(self.watermarks, engine, self.forwarder)
        self._ending: frozenset[str] = frozenset()
        """The rules of the tree that end: all that they may see has been published."""
        self._limit = limit
        self.skew = TreeSkew(limit)
        """Rules that wait here while others run ahead."""
        self.outbox = Outbox()
        """Messages for the father."""
        self.replay = Replay()
        """Events of local sources that wait to be sent along the tree."""
        self._clock: int | None = None
        """The clock that ``advance`` was given last."""
        self.has_news = False
        """Whether anything has come that ``advance`` was not called for."""
        self.found: dict[str, tuple[int, int]] = {}
        """By source, so by rule: bytes of composite events found here since the last plan, and in
        how many batches, where that is measured."""
        self.is_measured = False
        self.notes = StateNotes()
        """Composite events of rules here whose memory no window bounds."""
        self._is_full = False
        """Whether they were full when it was looked last."""
        self._resumed: Mapping[str, ResumedRule] = {}
        """Rules that ``follow`` does not let begin at the beginning."""

    @property
    def kept(self) -> int:
        """How many events fragments keep here, be it for others, or until they are asked for."""
        return len(self.forwarder)

    def placement(self, name: str) -> Placement | None:
        """Where the engine evaluates a rule, if it does and knows several places."""
        return self.engine.placement(name) if name in self.rules else None

    @property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """In words, what the fragments here let pass, by rule."""
        return {
            name: list(tell_fragment(self._division.texts.get(name), fragment))
            for name, fragment in sorted(self.forwarder.fragments.items())
        }

    def output_watermark(self, rule: str) -> int:
        """Up to where it is certain that no more of a rule will be found than has been."""
        return self.progress.output_watermarks((rule,))[rule]

    def said_of(self, name: str) -> Mapping[str, int]:
        """The marks of a type, by the child that forwards it, or has yet to answer (Law 1)."""
        return {**self._pulls.awaited(name), **self.watermarks.inputs.by_child(name)}

    def look_again(self) -> None:
        """Look again at what waits: it may wait no longer, by another limit."""
        self.skew.look_again()
        self.has_news = True

    # --- deployment ---

    def begin_anew(self, resumed: Mapping[str, ResumedRule] = NOTHING_RESUMED) -> None:
        """Forget rules, events and what children have said; ``follow`` must come next.

        What was evaluated stays evaluated: the marks that were given are remembered.
        ``resumed``: the rules that go on from the mark of a state.
        """
        self._take_come()
        self._resumed, self.notes = resumed, StateNotes()
        demands = self.forwarder.demands
        if self._ahead is None or self._ahead[0] is self.engine:
            self._ahead = self.engine.fresh(), {}
        self.engine, self.forwarder = self._ahead[0], Forwarder()
        self.progress.forget(self.engine, self.forwarder)
        self.forwarder.want(demands)
        self._begins_anew = True
        self._duties, self.rules = NO_DUTIES, NO_DUTIES.rules
        self.outbox.clear()
        self.replay = Replay()

    def forget_far(self, is_far: Callable[[str, int], bool]) -> bool:
        """Forget how far types have come, by names and times; whether any had come so far."""
        self._take_come()
        return self.progress.forget_far(is_far)

    def want(self, demands: Mapping[str, Demanded]) -> None:
        """Change what the father wants of published events, by the names of types."""
        self._take_come()
        self.forwarder.want(demands)
        self._is_anew = True

    def follow(self, division: Division) -> None:
        """Rules are divided in another way."""
        self._take_come()
        self.progress.settle()
        before, duties = self._duties.rules, self._duties_by(division)
        here = duties.rules
        others = [one for rule, one in here.items() if before.get(rule) is not one]
        new = [one for one in others if before.get(one.rule.name) != one]
        gone = [rule for rule in before if rule not in here]
        for rule in (*gone, *(one.rule.name for one in new if one.rule.name in before)):
            self.engine.remove(rule)
        ahead = self._take_ahead(here)
        self._install([one for one in new if one.rule.name not in ahead], division)
        self._resume(duties, division)
        self.notes.follow(here, {one.rule.name for one in new}, self.engine)
        self._look_at_notes()
        for rule, one in here.items():
            if one.until is not None:
                self.engine.end(rule, one.until)
        self._ending = frozenset(one.rule.name for one in division.rules if one.until is not None)
        self.engine.forget_marks()  # all are named anew: it may be others who bring a type
        self._duties, self.rules = duties, here
        self._division = division
        waiting = here.items() if division.partition.waiting else ()
        self.missing.arrange(
            (one.rule.wiring.used, division.absent_for(rule)) for rule, one in waiting
        )
        since = {one.rule.name: one.since for one in division.rules if one.since is not None}
        self.forwarder.follow(division.partition.fragments_of(self._name), since)
        published = division.published.get(self._name, frozenset())
        stay = here.keys() - {one.rule.name for one in new}
        self.progress.arrange(duties, published, self._together, self.engine.over, stay)
        self._follow_pulls(division)
        self.skew.begin_anew()
        self.outbox.begin_anew()
        self.found = {}
        self.has_news = self._is_anew = self._is_fed = True

    def _duties_by(self, division: Division) -> Duties:
        if self._to_come is None or self._to_come[0] is not division:
            self._to_come = division, duties_of(self._name, division)
        return self._to_come[1]

    def install_ahead(self, division: Division, *, anew: bool) -> Iterator[None]:
        """Install rules that come with a division, before ``follow``, or where rules begin anew
        ``begin_anew``; nothing is evaluated meanwhile. Yields for each rule, behind some of them.
        """
        self._take_ahead({})
        yield from division.derive(self._name)
        duties = self._duties_by(division)
        yield from rest_of_slice(len(division.rules))
        before = {} if anew else self._duties.rules
        new = [one for rule, one in duties.rules.items() if rule not in before]
        engine, installed = self.engine.fresh() if anew else self.engine, dict[str, Deployed]()
        self._ahead = engine, installed
        for first in range(0, len(new), INSTALLED):
            some = new[first : first + INSTALLED]
            try:
                install(engine, some, division.schemas)
            except RuleErrors:
                return  # they do not go with rules that are to be removed first
            installed.update((one.rule.name, one) for one in some)
            yield from [None] * len(some)

    def _take_ahead(self, here: Mapping[str, Deployed]) -> Collection[str]:
        """Give the rules that were installed ahead, and are here; others are removed again."""
        if self._ahead is None:
            return ()
        (engine, installed), self._ahead = self._ahead, None
        if engine is not self.engine:
            return ()
        for name in [name for name, one in installed.items() if here.get(name) != one]:
            engine.remove(name)
            del installed[name]
        return installed

    def _install(self, rules: Sequence[Deployed], division: Division) -> None:
        install(self.engine, rules, division.schemas)

    def _resume(self, duties: Duties, division: Division) -> None:
        """Let rules go on from their states (routing.partition.rule_states)."""
        for name, resumed in self._resumed.items():
            if name in duties.rules:
                rule, rank = duties.rules[name].rule, division.ranks[RULE_SOURCE + name]
                is_used = rule.defines.name in duties.used
                resume(self.engine, rule, resumed, rank if is_used else None)
        self._resumed = {}

    def _follow_pulls(self, division: Division) -> None:
        """Law 1; what has been evaluated does not depend any more on what is asked for."""
        since, marks = dict[str, int | None](), dict[str, int]()
        fragments = self.forwarder.fragments
        if division.partition.pulls:
            since = {one.rule.name: one.since for one in division.rules}
            marks = self.progress.types

        def passed(rule: str) -> int:
            if rule in self._duties.rules:
                mark = self.engine.mark(rule)
            else:
                types = fragments[rule].types
                mark = min((marks.get(name, TIME_MIN) for name in types), default=TIME_MIN)
            begins = since[rule]
            return mark if begins is None else max(mark, begins)

        children = sorted(c for c, father in division.fathers.items() if father == self._name)
        roles = roles_at(self._name, children, division.partition, passed)
        self.forwarder.close()
        self._pulls.follow(roles, self._front_of_masters)
        self.is_pulling = bool(self._pulls)
        self._begins_anew = False

    @property
    def _front_of_masters(self) -> int:
        """Up to where masters may have come."""
        return TIME_MIN if self._begins_anew else self.progress.front

    # --- inputs ---

    def push(self, batches: Iterable[EventBatch], *, fresh: bool = True) -> None:
        """Take events in, of local sources or from a child; ``fresh`` as in Forward."""
        come = self._fresh if fresh else self._late
        for batch in batches:
            if len(batch):
                come.append(batch)
                self.has_news = True

    def push_own(self, batches: Sequence[EventBatch]) -> bool:
        """Take events of local sources in, behind those that wait; whether none does."""
        if self.replay:
            self.replay.add(batches)
            return False
        self.push(batches)
        return True

    def take_slice(self) -> Sequence[Sequence[EventBatch]]:
        """Take in the next slice of what waits; gives it in parts, if it is fresh."""
        parts, is_fresh = self.replay.take()
        for batches in parts:
            self.push(batches, fresh=is_fresh)
        return parts if is_fresh else ()

    def _take_come(self) -> None:
        """Give what has come to engine, fragments and pulls; many that came one by one, at once."""
        missing, forwarder = self.missing, self.forwarder
        for come, fresh in ((self._fresh, True), (self._late, False)):
            for batch in packed(come) if len(come) >= PACKED_MIN else come:
                name = batch.type.name
                self.progress.take(batch)
                if name in self._duties.used:
                    self.engine.push(batch)
                    self._is_fed = True
                if name in missing.waiting:
                    missing.count(name, len(batch))
                if not forwarder.is_idle:
                    forwarder.push(batch, fresh=fresh)
                if self.is_pulling:
                    self._pulls.see(batch)
            come.clear()

    def take(self, child: str, message: Forward, now: float) -> None:
        """Take in what a child has sent; ``now`` in seconds."""
        batches, fresh = message.batches, message.fresh
        if fresh:
            self.push(batches[:fresh])
        if fresh < len(batches):
            self.push(batches[fresh:], fresh=False)
        if self.watermarks.inputs.take(child, message.marks, now):
            self.has_news = True
        if message.answers:
            self._pulls.take(child, message.answers)
            self.has_news = True

    def awake(self, asked: AskedSpans) -> None:
        """The father asks (Law 1)."""
        self._take_come()
        self._pulls.hear(asked)
        for rule, spans, horizon in asked:
            self.forwarder.ask(rule, spans, horizon)
        self.has_news = True

    def hear_awaited(self, types: Iterable[tuple[str, int]]) -> None:
        """Hear how far that has come which waits for masters of these types (Law 1)."""
        for name, until in types:
            if self._pulls.want_horizons(name):
                self.watermarks.hear_kept(name, until)
                self.has_news = True

    # --- evaluation ---

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> Detections | None:
        """Evaluate what the marks allow; None when nothing has changed.

        ``own``: the marks of the types that local sources publish, CLOSED for those that they do
        not publish any more; what waits to be sent again bounds them. ``clock``: the mark of Timer;
        None where the clock does not count. ``now``: the host's time, in microseconds.
        """
        own = self.replay.bounded(own)
        if not (self.watermarks.inputs.hear_own(own) or clock != self._clock or self.has_news):
            return None
        self._clock, self.has_news = clock, False
        self._take_come()
        is_anew, self._is_anew = self._is_anew, False
        progress, watermarks = self.progress, self.watermarks
        moved = self._hear(is_anew=is_anew)
        detections = self._evaluate(moved, clock) if self._duties.rules else NOTHING
        if self._ending and watermarks.note_over(self.engine.over):
            is_anew, moved = True, set(watermarks.inputs.types)
        if detections is not NOTHING:
            self._take_found(detections)
        ended = watermarks.ended_types
        changed = watermarks.end(moved, is_timed=clock is not None)
        progress.rise(moved, changed, is_anew=is_anew)
        if not self.forwarder.is_idle:
            self._forward(moved, is_anew=is_anew or watermarks.ended_types != ended)
        if progress.has_gone_far or self.skew.is_new or self.skew.lagging:
            self.skew.look(self._inputs, progress, self._waits)
        return detections

    def _hear(self, *, is_anew: bool) -> set[TypeProgress]:
        """Take in what is said; gives the types that have another mark by that (Law 1)."""
        watermarks, pulls, inputs = self.watermarks, self._pulls, self.watermarks.inputs
        moved = inputs.hear()
        if self.is_pulling:
            pulls.learn({one.name: one.told for one in moved})
            inputs.bound(pulls.take_limits(), moved)
        if is_anew:
            moved = set(inputs.types)
        if inputs.closed or watermarks.ended_types:
            watermarks.look_beyond(moved, is_anew=is_anew)
        if self.is_pulling:
            pulls.keep(watermarks.beyond)
        return moved

    def _waits(self, rule: str) -> bool:
        """Whether a rule of the tree waits for types that nobody publishes or has published."""
        return bool(self._division.absent_for(rule))

    @property
    def _inputs(self) -> Iterator[WaitingInputs]:
        """Inputs that wait for one another here (skew), but for rules that end."""
        for rule, used, since in self._duties.waiting:
            yield JoinedInputs(rule, used - {TIMER.name}, since)
        for name, evaluation in self.forwarder.evaluations.items():
            fragment, buffer = evaluation.fragment, evaluation.buffer
            if name in self._ending:
                continue
            if evaluation.binds:
                yield JoinedInputs(name, evaluation.binds, evaluation.since)
            if buffer is not None and fragment.pull is not None:
                yield PulledInputs(name, fragment.kept, buffer, fragment.pull)

    @property
    def _together(self) -> Iterator[frozenset[str]]:
        """The types that fragments look at together, or keep for one another."""
        for one in self.forwarder.evaluations.values():
            yield one.binds
            pull = one.fragment.pull
            if pull is not None:
                yield pull.slaves | {pull.master.type.name}

    def _take_found(self, detections: Detections) -> None:
        """Give what was found to whom it concerns here."""
        notes = self.notes
        for batch in detections.batches:
            if notes.rules:
                notes.take(batch)
            for source in batch.ids.source.values if self.is_measured else ():
                size, batches = self.found.get(source, (0, 0))
                self.found[source] = size + batch_bytes(batch), batches + 1
            self.progress.take(batch, is_found=True)
            if not self.forwarder.is_idle and self.forwarder.looks_at(batch.type.name):
                self.forwarder.push(numbered(batch, self._division.ranks))
        if notes.rules:
            self._look_at_notes()

    @property
    def full_types(self) -> Collection[str]:
        """The types that rules define which are to find no more before states are told
        (routing.partition.rule_states, Law 4).
        """
        if not self._is_full:
            return ()
        return {self.rules[name].rule.defines.name for name in self.notes.rules}

    def note_told(self) -> None:
        """The states of rules have been told."""
        self.notes.settle()
        self._look_at_notes()

    def _look_at_notes(self) -> None:
        if self.notes.are_full != self._is_full:
            self._is_full = not self._is_full
            self._limit.has_news = True

    def _evaluate(self, moved: set[TypeProgress], clock: int | None) -> Detections:
        """Give the engine the marks; adds Timer to the types that have moved, if it has."""
        marks = self.watermarks.engine_marks(moved, clock)
        if not (moved or self._is_fed):
            return NOTHING
        self._is_fed = False
        found = self.engine.advance(marks)
        return found if found is NOTHING else as_found(found)

    def take_asked(self) -> dict[str, AskedSpans]:
        """Give the questions to ask (Law 1), by child."""
        return self._pulls.take_asked()

    def _forward(self, moved: Iterable[TypeProgress], *, is_anew: bool) -> None:
        """Raise the marks of the types that have moved; ``is_anew``: all are to be told."""
        forwarder, progress, ends = self.forwarder, self.progress, self.watermarks.ended_types
        forwarded = forwarder.advance({one.name: one.here for one in moved})
        up = forwarder.marks if is_anew else forwarded.marks
        if ends:
            over = [name for name in up if name in ends and forwarder.binding(name) <= ends]
            up = {**up, **dict.fromkeys(over, CLOSED)}
        answers: Answers = ()
        if forwarder.is_asked:
            answers = forwarder.answers(progress.open_mark, self._pulls.answered)
        self.outbox.post(forwarded, self.outbox.news(up), answers)
