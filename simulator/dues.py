"""The events that a sink is due of those the oracle finds: it may come late, turn to other things,
or leave.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MIN, Event, EventBatch
from simulator.clients import Sink, Wish
from simulator.network import Network
from simulator.oracle import Answer, Oracle, delivered
from simulator.scenario import Scenario

Keys: TypeAlias = Set[tuple[str, str]]
"""Sources and ids of events."""


def due(network: Network, sink: Sink, oracle: Oracle, got: Answer) -> Answer:
    """The answer of events that must have come to it, and of those that came and might.

    What is published, or found, before a subscription is in force may come or not, and so may what
    is under way when it is given up. All between is due. However often a sink turns, nothing comes
    twice; where nothing goes wrong nothing comes from long before it was asked for. A rule from a
    past instant finds its events behind others: p0 holds from 5 s and comes at 20 s, and a sink
    that leaves when it has Fires of 21 s may have those of p0 up to 7 s.
    """
    expected = oracle.answer({wish.text for wish in sink.wishes.values()} or sink.filters)
    if not _turns(sink):
        return _due_by_all(network, sink, expected, got)
    by_wish = _due_by_wish(network, sink, oracle)
    keys = set().union(_keys_of(got), *by_wish.values())
    return _among(expected, keys)


def misnumbered(network: Network, sink: Sink, oracle: Oracle) -> Iterator[str]:
    """The first delivery with wrong numbers. An event bears the numbers of the subscriptions that
    it satisfies, of those that it is due for; of others that it satisfies only while they are asked
    for or given up.
    """
    by_wish = _due_by_wish(network, sink, oracle) if _turns(sink) else {}
    way_s, all_speak_s = _way_s(network), _all_speak_s(network)
    for one in sink.arrivals:
        pairs = zip(one.delivery.batches, one.delivery.subscriptions, strict=True)
        for batch, told in pairs:
            numbers = set(told)
            wrong = numbers - sink.wishes.keys()
            for number, wish in sink.wishes.items():
                mask = oracle.mask(batch, wish.text)
                if number in numbers:
                    is_asked = wish.asked_at <= one.moment <= wish.ended_at
                    since_s = wish.asked_at - way_s
                    is_new = since_s < all_speak_s or batch.time.min() >= since_s * MICROSECONDS
                    may_be = is_asked and bool(mask.all()) and bool(is_new)
                else:
                    must = _must(batch, by_wish.get(number))
                    may_be = one.moment > wish.left_at or not any(mask[place] for place in must)
                if not may_be:
                    wrong.add(number)
            if wrong:
                what = f"{batch.type.name} came for subscriptions {sorted(numbers)}"
                yield f"{what}, which is wrong of {sorted(wrong)}"
                return


def _must(batch: EventBatch, keys: Keys | None) -> Sequence[int]:
    """The places of those of its events that are due; None: all."""
    if keys is None:
        return range(len(batch))
    return [place for place, one in enumerate(batch.events()) if (one.source, one.id) in keys]


def _turns(sink: Sink) -> bool:
    """Whether it has asked for anything but at its beginning, or given anything up."""
    wishes = sink.wishes.values()
    begun_at = min((wish.asked_at for wish in wishes), default=0.0)
    return any(wish.asked_at != begun_at or wish.left_at != math.inf for wish in wishes)


def _due_by_all(network: Network, sink: Sink, expected: Answer, got: Answer) -> Answer:
    """The events that are due for all that the sink wants together. What one that has left got may
    end anywhere.
    """
    if sink.confirmed_at is None and not sink.has_left:
        return expected
    confirmed_at = math.inf if sink.confirmed_at is None else sink.confirmed_at
    begins = _begins(network, confirmed_at)
    found_from = max(begins.values(), default=0.0)
    last_found = _LastFound(network, got)

    def is_due(event: Event) -> bool:
        if event.source in begins:
            return event.time >= begins[event.source] and not sink.has_left
        is_over = sink.has_left and event.time >= last_found.of(event.source)
        return event.time >= found_from and not is_over

    events = (*expected.composite, *expected.published)
    keys = {(one.source, one.id) for one in events if is_due(one)}
    return _among(expected, keys | _keys_of(got))


def _due_by_wish(network: Network, sink: Sink, oracle: Oracle) -> Mapping[int, Keys]:
    """The keys of the events that are due, by the number of a subscription."""
    return {
        number: {(one.source, one.id) for one in _due_for(network, sink, wish, oracle)}
        for number, wish in sink.wishes.items()
    }


def _due_for(network: Network, sink: Sink, wish: Wish, oracle: Oracle) -> Iterator[Event]:
    begins = _begins(network, wish.confirmed_at)
    found_from = max(begins.values(), default=0.0)
    is_left = sink.has_left or wish.left_at != math.inf
    surely_before = -math.inf
    if wish.left_at != math.inf:
        surely_before = (wish.left_at - _way_s(network)) * MICROSECONDS
    came = delivered(one for one in sink.arrivals if one.moment < wish.left_at)
    last_found = _LastFound(network, came)
    last_of: dict[str, int] = {}
    for one in came.published:
        last_of[one.source] = max(one.time, last_of.get(one.source, one.time))
    answer = oracle.answer([wish.text])
    for one in (*answer.composite, *answer.published):
        last: float
        if one.source.startswith(RULE_SOURCE):
            begin, last = found_from, last_found.of(one.source)
        else:
            begin, last = begins.get(one.source, math.inf), last_of.get(one.source, TIME_MIN)
            last = last if sink.has_left else max(last, surely_before)
        if one.time >= begin and not (is_left and one.time >= last):
            yield one


class _LastFound:
    """The times of the last composite events that came: of rules from past instants apart."""

    def __init__(self, network: Network, came: Answer) -> None:
        past = {RULE_SOURCE + name for name, _ in network.book.past}
        self._of_all = max((one.time for one in came.composite), default=TIME_MIN)
        self._of_past = dict.fromkeys(past, TIME_MIN)
        for one in came.composite:
            if one.source in past:
                self._of_past[one.source] = max(one.time, self._of_past[one.source])

    def of(self, source: str) -> int:
        """The time up to which all came that a rule's source found."""
        return self._of_past.get(source, self._of_all)


def _way_s(network: Network) -> float:
    """How long what is published may be under way, tree pauses and all; inf where that depends on
    what goes wrong, on what brokers cost, or on sources that wait.
    """
    scenario = network.scenario
    costs = scenario.message_cost_s, scenario.byte_cost_s, scenario.processing
    is_narrow = scenario.source_lead_max_s is not None or scenario.publish_credit is not None
    is_restless = scenario.changes or any(source.moves for source in network.sources)
    if scenario.faults or any(costs) or is_narrow or is_restless:
        return math.inf
    return quiet_way_s(scenario)


def quiet_way_s(scenario: Scenario) -> float:
    """The same where nothing of that is so, or counts."""
    return 1.0 + 10 * sum(link.quality.delay_s for link in scenario.links)


def _all_speak_s(network: Network) -> float:
    """From when on no rule waits for a source that has said nothing yet; inf where some come late,
    and bring what is long past.
    """
    if any(network.comes_s(source.name) is not None for source in network.sources):
        return math.inf
    return max((one.least_time for _, one in network.recordings), default=0) / MICROSECONDS


def _begins(network: Network, confirmed_at: float) -> Mapping[str, float]:
    """By source, from which times on it publishes once a subscription is in force: where its clock
    is ahead, and messages are lost, what is from before that may come later.
    """
    return {
        source.name: (confirmed_at + network.ahead_s(source.name)) * MICROSECONDS
        for source in network.sources
    }


def _keys_of(answer: Answer) -> Keys:
    return {(one.source, one.id) for one in (*answer.composite, *answer.published)}


def _among(answer: Answer, keys: Keys) -> Answer:
    composite, published = (
        tuple(one for one in events if (one.source, one.id) in keys)
        for events in (answer.composite, answer.published)
    )
    return Answer(composite, published)
