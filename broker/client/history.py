"""The past of a subscription, and the seam between it and the present.

Where last values alone are asked for (broker.client.last_values), the past is read as well, and
these are given in its place, once it has come to its end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import numpy as np

from broker.client.last_values import LastValues
from broker.client.logs import NetworkLogs
from broker.client.manager import RuleManager
from broker.client.past import Past, rules_of
from broker.client.start import Start, start_time
from broker.errors import BrokerError, RefusedError
from broker.store.ordered import Ordered, Step, Wanted
from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, Bools, EventBatch
from routing.delivery.delivery_batch import places_of
from routing.delivery.remainder import left_of
from routing.messages import Code, Delivery
from routing.permission import EVERY_TYPE
from rules.errors import RuleErrors

ROUNDS_MAX = 20
"""Rounds before the subscription begins, however fast the logs grow."""
FEW = 64
"""Entries that are few enough to be left to the last round."""


class History:
    """The past of a subscription to ``filters`` from ``start`` (microseconds) on; ``last``: of it
    the last event by the values of each of these attributes alone.

    RefusedError where a broker has no log, keeps it no more or does not let it be read, and where
    rules are changed meanwhile.

    The past is read before the subscription begins, round by round, until little is left; then the
    subscription begins, and what the logs have got by then is read once more. So nothing waits at
    the broker while years are read, and nothing falls between.
    """

    def __init__(
        self, manager: RuleManager, filters: Sequence[str], start: int, last: Sequence[str] = ()
    ) -> None:
        self._manager = manager
        self._filters = filters
        try:
            names = {type_in(one) for one in filters}
        except RuleErrors as errors:
            raise RefusedError(str(errors), Code.BAD_FILTER.value) from None
        rules, schemas = rules_of(manager, names)
        self._rules = rules
        self._past = Past(filters, rules, schemas, start)
        used = {schema.name for one in rules for schema in one.rule.used_types}
        types = None if EVERY_TYPE in names else frozenset(names | used)
        self._logs = NetworkLogs(manager, Wanted(types, self._past.since))
        self._numbers: dict[tuple[str, str], int] = {}
        """By type and source, the number of the last event that was read."""
        self._last = LastValues(last) if last else None
        self._is_over = False

    def before(self) -> Iterator[Delivery]:
        """Events from before the subscription begins."""
        for _ in range(ROUNDS_MAX):
            entries = yield from self._round()
            if entries <= FEW:
                return

    def rest(self) -> Iterator[Delivery]:
        """The rest, once the subscription has begun; nothing of this comes again by ``news``."""
        rules, _ = rules_of(self._manager, map(type_in, self._filters))
        if rules != self._rules:
            raise BrokerError("rules were changed while the past was read: subscribe again")
        yield from self._round()
        if self._last is not None:
            yield from self._last.given()
        self._is_over = True
        self.close()

    def check_over(self) -> None:
        """Raise BrokerError where it was broken off: behind it there would be a gap."""
        if not self._is_over:
            raise BrokerError("the past was not read to its end: subscribe again")

    def close(self) -> None:
        """Let go of the link by which logs are read."""
        self._manager.close()

    def _round(self) -> Generator[Delivery, None, int]:
        """Read what the logs have got; gives how many entries that was."""
        self._logs.look()
        ordered = Ordered(self._logs.all, self._logs.wanted)
        ordered.traces = self._past.traces
        for step in ordered.steps():
            for batch in step.batches:
                self._note(batch)
            yield from self._given(step)
        yield from self._given(Step((), np.empty(0, np.int64), TIME_MAX))
        return len(ordered)

    def _given(self, step: Step) -> Iterator[Delivery]:
        for delivery in self._past.take(step, self._logs.marks):
            if self._last is None:
                yield delivery
            else:
                self._last.take(delivery)

    def _note(self, batch: EventBatch) -> None:
        sources = batch.ids.source
        for code, source in enumerate(sources.values):
            numbers = batch.ids.sequence[sources.codes == code]
            if len(numbers):
                key = batch.type.name, source
                self._numbers[key] = max(int(numbers.max()), self._numbers.get(key, 0))

    def news(self, delivery: Delivery) -> Delivery | None:
        """A delivery of the subscription without what was given before; None for none. Of a source
        that are the events up to a number, of a rule those before a time. s1's Temps up to number
        41 are in the logs, and fire was found up to 40 s: of Temps 40 to 43, and Fires of 38 s and
        41 s, it gives Temps 42 and 43, and the Fire of 41 s.
        """
        if delivery.late:
            return delivery  # what is late is in no log
        is_new = np.concatenate([self._is_new(batch) for batch in delivery.batches])
        return left_of(delivery, is_new[places_of(delivery)])

    def _is_new(self, batch: EventBatch) -> Bools:
        sources = batch.ids.source
        if batch.is_composite:
            reached = self._past.reached
            names = [one.removeprefix(RULE_SOURCE) for one in sources.values]
            times = np.array([reached.get(name, TIME_MIN) for name in names], np.int64)
            is_new: Bools = batch.time >= times[sources.codes]
        else:
            keys = [(batch.type.name, one) for one in sources.values]
            last = np.array([self._numbers.get(key, 0) for key in keys], np.int64)
            is_new = batch.ids.sequence > last[sources.codes]
        return is_new


def history_of(
    manager: RuleManager,
    filters: Sequence[str],
    start: Start,
    durable: str,
    last: Sequence[str] = (),
) -> History | None:
    """The past that a subscription is to give first; None where it is to give none, or a durable
    one has: for that the past counts as dealt with once an event behind it is acknowledged.
    ValueError for a ``start`` that is none.
    """
    begin = start_time(start)
    if begin is None or not filters:
        return None
    known = [one for one in manager.durables() if one["name"] == durable] if durable else ()
    if any(one.get("acknowledged") or one.get("beyond") for one in known):
        return None
    return History(manager, filters, begin, last)


def type_in(text: str) -> str:
    """The name of the type that a filter asks for, ``*`` for all."""
    from rules.syntax.parser import parse_filter  # for who asks for the past alone

    return EVERY_TYPE if text.strip() == EVERY_TYPE else parse_filter(text).type.text
