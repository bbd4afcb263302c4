"""The giver of durable sinks to other brokers, as one that drains does.

Law 1: a sink goes in steps, each of which the other broker confirms (messages.HandOver): the
records of its queue, as the store has them; BEGIN, from which on the other one gathers what the
sink wants, as for a subscription of its own; what has been queued meanwhile; COMMIT, by which the
sink is the other one's. Clients go on until there is little left. billing has a million Fires at
b2: b3 keeps them first, then it subscribes to Fire, then it gets the last hundred.

Law 2: before COMMIT is sent it is kept here that it will be: from there on nothing of the sink
leaves here, no client is let in, and until COMMIT nothing is dropped, while it goes on queueing. If
the other broker has it, it is forgotten here; if that says that it has not, and so never will by
this attempt, it is here as before. b2 is killed after COMMIT: started again, it asks b3, and
forgets billing, or goes on with it, with all Fires that came meanwhile.

Law 3: nothing is lost between the two. What was published before the subscription of the other was
in force has come here, for its confirmation has passed the same way behind it; composite events are
queued here up to a time from which on all of them come to the other one. What both have had the
other leaves out: published events by their numbers or ids, composite ones by that time (taker).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from matcher.model import MICROSECONDS, TIME_MAX
from routing.delivery.deduplicator import Deduplicator
from routing.delivery.durable import NOBODY, DurableSink
from routing.durability.records import durable_record, number_key
from routing.errors import Refusal
from routing.messages import Code, Confirmed, HandOver, HandOverStep, LogPart, Refused
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.checkpoints import Checkpoints
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.journal import Journal
from routing.network.brokers.taker import BEGUN, STEP_S

RETRY_S = 1.0
"""Seconds after which it is looked again where no broker takes any."""
IDS_AT_ONCE = 10_000
"""Ids of one step."""


class _Stage(enum.Enum):
    """How far a hand-over has come."""

    QUEUE = "queue"  # the queue is sent, as far as there is any
    BEGIN = "begin"  # the other broker is asked to gather what comes
    WAIT = "wait"  # it does; composite events are to be queued here up to where it began
    REST = "rest"  # the rest is sent, then COMMIT; nothing leaves here
    ASK = "ask"  # nobody knows whether COMMIT has come


@dataclass(slots=True, eq=False)
class _Gift:
    """A sink on its way: to whom, and by which attempt."""

    sink: DurableSink
    heir: str
    attempt: int
    stage: _Stage = _Stage.QUEUE
    is_open: bool = False
    """Whether the other broker takes it."""
    after: str = ""
    """The key of the last record that was sent."""
    wanted: object = None
    """The filters and rights by which the other broker was asked to gather."""
    begun: int = 0
    """The answer to BEGIN."""
    awaits_marks: bool = False
    """Whether a checkpoint is to come."""
    epoch: tuple[str, int] | None = None
    """The tree in which it was given."""
    last: int = 0
    """The number of the last event that is to be sent."""
    record: bytes = b""
    numbers: tuple[tuple[str, int], ...] = ()
    ids: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """As they were when the sink was given up (Law 2)."""


@dataclass(eq=False)
class Giver:
    """The durable sink that is on its way from this broker to another one. ``send`` sends a step;
    Refusal where it cannot.
    """

    _context: BrokerContext
    _agreed: Agreed
    _deduplicator: Deduplicator
    _checkpoints: Checkpoints
    _send: Callable[[HandOver], None]
    journal: Journal | None = None
    """None without a store."""
    is_wanted: bool = False
    """Whether all sinks are to go: the broker drains."""
    due_at: float | None = None
    """When it is looked again what can be done; None while nothing is to be."""
    _gift: _Gift | None = None
    _awaits: bool = False
    """Whether an answer is awaited, or the store."""
    _refused: dict[str, str] = field(default_factory=dict)
    """Brokers that take none, and why, until all have been asked."""
    problem: str = ""
    """Why no broker takes any; "" where one does, or may."""

    def begin(self) -> None:
        """Give all sinks away."""
        self.is_wanted = True
        self._look_soon()

    def recall(self) -> None:
        """See what became of sinks that were on their way when the broker ended."""
        self._look_soon()

    def _look_soon(self) -> None:
        if self.due_at is None and self.journal is not None and any(self.journal.durables):
            self.due_at = self._context.moment.now

    def handle_timer(self) -> None:
        """Do what can be done."""
        self.due_at = None
        self._forget_removed()
        if self._gift is None:
            self._gift = self._choose()
        if self._gift is not None and not self._awaits:
            self._go_on(self._gift)
        if self._gift is not None or self._has_more:
            pause_s = RETRY_S if self._gift is None else STEP_S
            self.due_at = self._context.moment.now + pause_s

    def _forget_removed(self) -> None:
        """Let go of a sink that was removed on its way: the other broker has none of it before
        COMMIT, and afterwards it cannot be removed here; and of one that is to stay, since the
        other broker does not come back.
        """
        gift, journal = self._gift, self.journal
        if gift is None or journal is None:
            return
        is_kept = gift.stage in (_Stage.REST, _Stage.ASK) and gift.sink.heir == NOBODY
        if is_kept or journal.durables.get(gift.sink.name) is not gift.sink:
            self._gift, self._awaits = None, False

    @property
    def _has_more(self) -> bool:
        assert self.journal is not None
        return any(self.is_wanted or one.heir != NOBODY for one in self.journal.durables)

    def _choose(self) -> _Gift | None:
        """The next sink, and who is to have it: first one whose COMMIT was sent."""
        assert self.journal is not None
        sinks = sorted(self.journal.durables, key=lambda one: (one.heir == NOBODY, one.name))
        if sinks and sinks[0].heir != NOBODY:
            return _Gift(sinks[0], *sinks[0].heir, stage=_Stage.ASK)
        heir = self._choose_heir() if sinks and self.is_wanted else None
        if heir is None:
            return None
        attempt = round(self._context.moment.now * MICROSECONDS)
        return _Gift(sinks[0], heir, attempt, last=sinks[0].last)

    def _choose_heir(self) -> str | None:
        plan = self._agreed.plan if self._agreed.is_planned else None
        names = [] if plan is None else [name for name, _, _ in plan.nodes]
        others = sorted({*names} - {self._context.name})
        left = [name for name in others if name not in self._refused]
        if others and not left:
            self.problem = "; ".join(self._refused[name] for name in others)
            self._refused.clear()
        return left[0] if left else None

    # --- steps ---

    def _go_on(self, gift: _Gift) -> None:
        if gift.stage is _Stage.WAIT and self._is_another(gift):
            self._fail(gift, Code.SILENT, "the network, or what the sink wants, has changed")
            return
        if gift.stage is _Stage.QUEUE:
            self._send_records(gift)
        if gift.stage is _Stage.BEGIN:
            gift.wanted = _wanted(gift.sink)
            self._say(gift, HandOverStep.BEGIN, record=self._record(gift.sink))
        elif gift.stage is _Stage.WAIT and self._may_commit(gift):
            self._give_up(gift)
        elif gift.stage is _Stage.WAIT:
            self._ask_for_marks(gift)
        elif gift.stage is _Stage.REST:
            self._send_rest(gift)
        elif gift.stage is _Stage.ASK:
            self._say(gift, HandOverStep.ASK)

    def _record(self, sink: DurableSink) -> bytes:
        assert self.journal is not None
        return durable_record(sink, self.journal.complete_to(sink)).value

    def _send_records(self, gift: _Gift) -> None:
        """Send the next records of the queue, as it was when they were begun with; where there is
        none go on with BEGIN.
        """
        assert self.journal is not None
        if not gift.is_open:
            self._say(gift, HandOverStep.RECORDS)
            return
        found = self.journal.records_after(gift.sink.name, gift.after)
        found = [one for one in found if one[0] <= number_key(gift.last)]
        if found:
            after, gift.after = gift.after, found[-1][0]
            self._say(gift, HandOverStep.RECORDS, after=after, queued=tuple(found))
        elif gift.stage is _Stage.QUEUE:
            gift.stage = _Stage.BEGIN

    def _is_another(self, gift: _Gift) -> bool:
        """Whether the other broker gathers in another tree, or not what is wanted now."""
        return gift.epoch != self._context.router.epoch or gift.wanted != _wanted(gift.sink)

    def _may_commit(self, gift: _Gift) -> bool:
        """Whether all that the other broker does not gather is queued here (Law 3)."""
        assert self.journal is not None
        sink, detection = gift.sink, self._context.detection
        if detection.is_held or not sink.is_told:
            return False
        least = detection.complete_to(sink.rules)
        return least == TIME_MAX or self.journal.complete_to(sink) >= gift.begun

    def _ask_for_marks(self, gift: _Gift) -> None:
        """Have a checkpoint taken: while nothing is found nothing else brings marks here."""

        def go_on() -> None:
            gift.awaits_marks = False

        if not gift.awaits_marks:
            gift.awaits_marks = True
            self._checkpoints.once_passed(go_on)
        if self._context.detection.is_at_work:
            self._checkpoints.look_at_replay_buffer()

    def _give_up(self, gift: _Gift) -> None:
        """Let nothing more of the sink leave, and have that kept (Law 2)."""
        sink, context = gift.sink, self._context
        for peer in list(sink.attached):
            reason = f"the durable sink {sink.name!r} goes to broker {gift.heir}"
            context.service.expel(peer, Code.LEAVING, reason)
        sink.heir, sink.keeps_all = (gift.heir, gift.attempt), True
        sink.note()
        gift.last, gift.record = sink.last, self._record(sink)
        numbers, ids = self._had()
        gift.numbers, gift.ids = tuple(sorted(numbers.items())), _in_parts(ids)
        gift.stage, self._awaits = _Stage.REST, True

        def go_on() -> None:
            self._awaits = False
            if gift is self._gift:
                self._go_on(gift)

        context.outlet.once_kept(go_on)

    def _had(self) -> tuple[Mapping[str, int], Sequence[tuple[str, Sequence[str]]]]:
        """Published events that have come for sinks here: the greatest number of each source, and
        ids. Of own sources' events, which have all gone by now, any may be sent again, as long as
        their numbers are remembered, or they are kept.
        """
        known, ids = self._deduplicator.known
        numbers = dict(known)
        for source in self._context.sources:
            numbers[source.name] = max(source.last_sequence, numbers.get(source.name, 0))
        for batch in chain.from_iterable(self._context.detection.replay_buffer):
            of = batch.ids
            if of.text is None:
                continue
            texts = of.text.tolist()
            for code, name in enumerate(of.source.values):
                own = np.flatnonzero(of.source.codes == code)
                ids = [*ids, (name, [texts[place] for place in own.tolist()])]
        return numbers, ids

    def _send_rest(self, gift: _Gift) -> None:
        """Send what is left of the queue, the ids, and then COMMIT."""
        self._send_records(gift)
        if self._awaits:
            return
        if gift.ids:
            source, texts = gift.ids.pop()
            self._say(gift, HandOverStep.RECORDS, ids=((source, texts),))
            return
        self._say(gift, HandOverStep.COMMIT, record=gift.record, numbers=gift.numbers)
        self._let_drop(gift.sink)

    def _say(
        self,
        gift: _Gift,
        step: HandOverStep,
        *,
        after: str | None = None,
        queued: tuple[tuple[str, bytes], ...] = (),
        record: bytes = b"",
        numbers: tuple[tuple[str, int], ...] = (),
        ids: tuple[tuple[str, tuple[str, ...]], ...] = (),
    ) -> None:
        after = gift.after if after is None else after
        said = gift.heir, gift.sink.name, gift.attempt, step, after, queued, record, numbers, ids
        try:
            self._send(HandOver(0, *said, *(gift.epoch or ("", 0))))
        except Refusal as refusal:
            self._fail(gift, refusal.code, str(refusal))
        else:
            self._awaits = True

    # --- answers ---

    def hear(self, step: HandOver, answer: Confirmed | LogPart | Refused | None) -> None:
        """The other broker has answered a step, or will not: the tree is another."""
        self._forget_removed()
        gift = self._gift
        if gift is None or gift.attempt != step.attempt or gift.sink.name != step.sink:
            return
        assert not isinstance(answer, LogPart)
        self._awaits = False
        if answer is None:
            self._fail(gift, Code.SILENT, "the network has changed")
        elif isinstance(answer, Refused):
            self._fail(gift, answer.code, answer.reason)
        elif step.step in (HandOverStep.COMMIT, HandOverStep.ASK):
            self._hear_taken(gift)
        elif step.step is HandOverStep.BEGIN:
            gift.begun, gift.stage = answer.detail[BEGUN], _Stage.WAIT
            gift.epoch, self.problem = self._context.router.epoch, ""
        else:
            gift.is_open = True
            self._go_on(gift)

    def _hear_taken(self, gift: _Gift) -> None:
        """The other broker has the sink. It is forgotten here once that has told all so: whoever
        hears first that it is here no longer would begin another one of its name for a client.
        """
        assert self.journal is not None
        if gift.sink.name in self.journal.elsewhere:
            self._end(gift)
        else:
            gift.stage = _Stage.ASK

    def _fail(self, gift: _Gift, code: Code, reason: str) -> None:
        """A step was refused, or is lost."""
        sink = gift.sink
        self._let_drop(sink)
        if sink.heir == NOBODY:
            if code is not Code.SILENT and gift.stage in (_Stage.QUEUE, _Stage.BEGIN):
                self._refused[gift.heir] = reason
            self._gift = None
        elif self._is_beyond(gift):
            self._end(gift)
        elif code is not Code.UNKNOWN:
            gift.stage = _Stage.ASK
        else:
            sink.heir, self._gift = NOBODY, None
            sink.note()

    def _let_drop(self, sink: DurableSink) -> None:
        """Drop again what exceeds the bounds of a sink: its heir has all of it, or nothing."""
        sink.keeps_all = False
        self._context.sinks.touch(sink)

    def _is_beyond(self, gift: _Gift) -> bool:
        """Whether who has had the sink has given it to another broker by now."""
        assert self.journal is not None
        return self.journal.elsewhere.get(gift.sink.name, gift.heir) != gift.heir

    def _end(self, gift: _Gift) -> None:
        """The sink is the other broker's."""
        assert self.journal is not None
        self._gift = None
        self.journal.durables.give_up(gift.sink)
        self._context.service.follow()
        fields = {"name": gift.sink.name, "to": gift.heir}
        self._context.outlet.log("info", "durable sink handed over", **fields)


def _wanted(sink: DurableSink) -> object:
    """The filters of a sink, and the rights that it has them by."""
    return tuple(sink.filters), sink.rights


def _in_parts(ids: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, tuple[str, ...]]]:
    """Ids by source, some at a time."""
    return [
        (source, tuple(texts[at : at + IDS_AT_ONCE]))
        for source, texts in ids
        for at in range(0, len(texts), IDS_AT_ONCE)
    ]
