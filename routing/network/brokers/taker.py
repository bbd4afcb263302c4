"""The taker of durable sinks from brokers that drain (giver, which has the steps).

Law 1: nothing of a sink is this broker's before COMMIT: records of its queue are in the store, what
it wants is gathered, and a broker that is killed then has no durable sink of that name. With COMMIT
it is, in one transaction: the record of the sink, what has been gathered, and which events the
former broker had. So whether a hand-over has happened is known by this broker's store, and by it
alone: who gives asks, with the number of the attempt.

Law 2: a step that is not the next one of an attempt ends that, and so does another tree; the giver,
who hears that it is not known here, begins again. What has come to the giver in a tree, and is
wanted here, has come here, too, before the COMMIT that is sent in that tree: each event has passed
the broker at which the ways to the two part, and the COMMIT has passed it later. So what the giver
had can be known here as what this broker has had, for all its sinks.

Law 3: what is gathered has a bound, that of the longest queue (``queue_events_max``), beyond which
it is dropped; and so is a sink that its broker does not give any more. Either way the giver hears
it with its next step at the latest, and begins again. b5 is out of reach, so no checkpoint tells
b3 that it has all of billing: a million Temps later it refuses billing, which stays at b2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec

from matcher.model import TIME_MAX, TIME_MIN
from routing.delivery.arriving_sink import ArrivingSink
from routing.delivery.deduplicator import Deduplicator
from routing.durability.records import DURABLE, DurableRecord, durables_in, last_in, queue_kind
from routing.errors import Refusal
from routing.messages import Code, Confirmed, HandOver, HandOverStep, Refused
from routing.network.brokers.checkpoints import Checkpoints
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.journal import Journal
from routing.network.brokers.restart import recalled
from routing.network.brokers.subscription_sync import SubscriptionSync
from routing.storage import Clear, Delete, Put

STEP_S = 0.1
"""Seconds after which it is looked again what can be done."""
AnswerStep = Callable[[Confirmed | Refused], None]
BEGUN = "from"
"""In the answer to BEGIN: the time up to which composite events have to be queued at the giver."""


@dataclass(slots=True, eq=False)
class _Coming:
    """A sink on its way: who gives it, the records that have come, with their last numbers and
    sizes by key, and the ids of events that the giver had.
    """

    home: str
    attempt: int
    records: dict[str, tuple[int, int]] = field(default_factory=dict)
    after: str = ""
    ids: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    sink: ArrivingSink | None = None
    refuse: Callable[[Refusal], None] = lambda refusal: None
    """Refuses BEGIN, while that is not answered."""
    epoch: tuple[str, int] | None = None
    """The tree in which what it wants is in force; None before."""


@dataclass(eq=False)
class Taker:
    """The durable sinks that are on their way to this broker."""

    _context: BrokerContext
    _subscription_sync: SubscriptionSync
    _checkpoints: Checkpoints
    _deduplicator: Deduplicator
    journal: Journal | None = None
    """None without a store."""
    is_closed: bool = False
    """Whether it takes none: it drains itself."""
    due_at: float | None = None
    """When it is looked again at what is coming; None while nothing is."""
    _coming: dict[str, _Coming] = field(default_factory=dict)

    def handle_timer(self) -> None:
        """Drop what has no end (Law 3), and have a checkpoint taken where nothing else has anybody
        look whether one is due.
        """
        for name, coming in list(self._coming.items()):
            if (problem := self._problem_of(name, coming)) is not None:
                self._drop(name)
                coming.refuse(Refusal(Code.LIMIT, problem))
        self.due_at = self._context.moment.now + STEP_S if self._coming else None
        if self._context.detection.is_at_work:
            self._checkpoints.look_at_replay_buffer()

    def _problem_of(self, name: str, coming: _Coming) -> str | None:
        """Why a sink does not come any more; None where it does."""
        assert self.journal is not None
        if name not in self.journal.elsewhere:
            return f"broker {coming.home!r} has no durable sink {name!r}"
        sink, most = coming.sink, self._context.config.queue_events_max
        if sink is not None and sink.events > most:
            return f"{most} events have come before durable sink {name!r} has (queue_events_max)"
        return None

    def change_tree(self) -> None:
        """The tree is another (Law 2)."""
        for name in list(self._coming):
            self._drop(name)

    def take(self, home: str, step: HandOver, answer: AnswerStep) -> None:
        """Take in a step of a broker, and answer it."""
        try:
            self._take(home, step, answer)
        except Refusal as refusal:
            self._drop(step.sink)
            answer(_refused(step, refusal))

    def _take(self, home: str, step: HandOver, answer: AnswerStep) -> None:
        own = self._context.name
        if self.journal is None:
            raise Refusal(Code.NO_STORE, f"broker {own!r} keeps nothing (--data)")
        done = partial(answer, Confirmed(step.request))
        known = self.journal.durables.get(step.sink)
        if known is not None and known.origin == (home, step.attempt):
            self._context.outlet.once_kept(done)
            return
        coming = self._next(home, step)
        if step.step is HandOverStep.RECORDS:
            self._keep(self.journal, coming, step)
            self._context.outlet.once_kept(done)
        elif step.step is HandOverStep.BEGIN:
            self._begin(coming, step, answer)
        else:
            self._commit(self.journal, coming, step)
            self._context.outlet.once_kept(done)

    def _next(self, home: str, step: HandOver) -> _Coming:
        """The sink on its way, of which this is the next step, or the first one."""
        name, coming = step.sink, self._coming.get(step.sink)
        is_last = step.step in (HandOverStep.COMMIT, HandOverStep.ASK)
        if coming is not None and (coming.home, coming.attempt) == (home, step.attempt):
            if step.after == coming.after and step.step is not HandOverStep.ASK:
                return coming
        elif not step.after and not is_last:
            assert self.journal is not None
            if self.is_closed or name in self.journal.durables:
                reason = "drains" if self.is_closed else f"has a durable sink {name!r}"
                raise Refusal(Code.IN_USE, f"broker {self._context.name!r} {reason}")
            self._drop(name)
            coming = self._coming[name] = _Coming(home, step.attempt)
            self.journal.change(Clear(queue_kind(name)))
            self.due_at = self._context.moment.now + STEP_S
            return coming
        raise Refusal(Code.UNKNOWN, f"durable sink {name!r} is not on its way here")

    def _drop(self, name: str) -> None:
        """Forget a sink that is on its way."""
        coming = self._coming.pop(name, None)
        if coming is None:
            return
        assert self.journal is not None
        self.journal.durables.coming.discard(name)
        if name not in self.journal.durables:  # else one was made here meanwhile
            self.journal.change(Clear(queue_kind(name)))
        if coming.sink is not None:
            self._context.sinks.remove(coming.sink.peer)
            self._context.service.follow()

    def _keep(self, journal: Journal, coming: _Coming, step: HandOver) -> None:
        """Keep records of its queue."""
        coming.ids += step.ids
        for key, value in step.queued:
            journal.change(Put(queue_kind(step.sink), key, value))
            coming.records[key] = _last_in(value), len(value)
            coming.after = key

    def _begin(self, coming: _Coming, step: HandOver, answer: AnswerStep) -> None:
        """Gather what it wants; the answer follows when that is in force everywhere, and the marks
        are known of what it will not bring.
        """
        context, record = self._context, _record_of(step)
        coming.refuse = lambda refusal: answer(_refused(step, refusal))
        coming.sink = sink = ArrivingSink(step.sink)
        assert self.journal is not None
        self.journal.durables.coming.add(step.sink)
        for number, text in record.filters:
            schemas, rights = context.advertisements.schemas, record.rights
            context.sinks.add(sink, number, text, schemas, again=True, rights=rights)
        context.service.follow()

        def answer_when_begun() -> None:
            if self._coming.get(step.sink) is coming:
                coming.epoch = context.router.epoch
                coming.refuse = lambda refusal: None
                answer(Confirmed(step.request, {BEGUN: self._begins_at(sink)}))

        marks = self._checkpoints
        self._subscription_sync.once_in_force(lambda: marks.once_passed(answer_when_begun))

    def _begins_at(self, sink: ArrivingSink) -> int:
        """The time from which on all composite events that it wants come."""
        detection = self._context.detection
        marks = [
            detection.reached(one.rule.name) if mark == TIME_MAX else mark
            for one in sink.rules
            for mark in (detection.complete_to((one,)),)
        ]
        return max(marks, default=TIME_MIN)

    def _commit(self, journal: Journal, coming: _Coming, step: HandOver) -> None:
        """The sink is this broker's from now on (Law 1)."""
        context, epoch = self._context, (step.root, step.epoch)
        if coming.sink is None or not coming.epoch == epoch == context.router.epoch:
            raise Refusal(Code.UNKNOWN, "the network has changed meanwhile")
        record = _record_of(step)
        kind, left = queue_kind(step.sink), 0
        for key, (last, size) in coming.records.items():
            if last <= record.acknowledged:
                journal.change(Delete(kind, key))
            else:
                left += size
        del self._coming[step.sink]
        journal.durables.coming.discard(step.sink)
        context.sinks.remove(coming.sink.peer)
        record = msgspec.structs.replace(record, size=left)
        sink = recalled(journal.durables, step.sink, record, context.advertisements.schemas)
        sink.kept = record.acknowledged  # until the store has it here
        sink.origin = coming.home, coming.attempt
        known = Deduplicator(ids_max=UNBOUNDED, names_max=UNBOUNDED)
        known.recall(dict(step.numbers), coming.ids)
        known.begin_anew()
        self._deduplicator.watch()
        self._deduplicator.join(dict(step.numbers), coming.ids)
        sink.mark = context.detection.complete_to(sink.rules)
        coming.sink.pass_on(sink, known, context.sinks)
        sink.note()
        context.service.follow()
        context.sinks.touch(sink)
        context.outlet.log("info", "durable sink taken over", name=sink.name, giver=coming.home)


UNBOUNDED = 2**62
"""Names or ids: no bound."""


def _refused(step: HandOver, refusal: Refusal) -> Refused:
    return Refused(step.request, refusal.code, str(refusal))


def _record_of(step: HandOver) -> DurableRecord:
    try:
        return durables_in({DURABLE: {step.sink: step.record}})[step.sink]
    except msgspec.DecodeError as error:
        raise Refusal(Code.BAD_EVENT, f"no record of a durable sink: {error}") from None


def _last_in(value: bytes) -> int:
    try:
        return last_in(value)
    except msgspec.DecodeError as error:
        raise Refusal(Code.BAD_EVENT, f"no record of a queue: {error}") from None
