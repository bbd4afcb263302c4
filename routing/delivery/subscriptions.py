"""A sink's subscriptions, and the events of a batch that they ask for.

An event that several subscriptions of one sink match is delivered once, with all their numbers.
A subscription to a type that is not known yet waits. What no schema could mend is refused at once
(a parameter, an aggregate, another event); what depends on the schema is checked when the type
appears. It waits again when the type is forgotten. So does one that does not fit the type that it
was confirmed for and that is another now: it is paused, and goes on when it fits again.

A subscription to all types, ``*``, is one to each type that is known, under one number, and to each
that becomes known while it lasts.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from matcher.model import EventBatch, EventType, Int64s
from matcher.single import Single, single_at
from matcher.spelling import spelled
from routing.delivery.delivery_batch import DeliveryBatch, SubscriptionNumbers, order_of
from routing.delivery.selection import BITS_MAX, Pattern
from routing.errors import Refusal
from routing.messages import EVERYTHING, Code, Delivery, Rights
from routing.order import strictly_rises
from routing.permission import EVERY_TYPE, narrowed
from rules.errors import RuleErrors
from rules.planning.sketch import sketch_of
from rules.subscription import Subscription, check_extent, check_filter, parse_subscription, work_of
from rules.syntax.parser import parse_filter

PER_TYPE_MAX = BITS_MAX
"""Subscriptions to one type that are matched one by one: theirs are the bits of one number."""


@dataclass(frozen=True, slots=True)
class Interest:
    """One subscription; ``filter`` is None while it waits: its type is not known, or does not have
    what it asks for (then ``problem`` says why). ``schema``: the type as it was checked against it.
    """

    number: int
    text: str
    type_name: str
    filter: Subscription | None
    schema: EventType | None = None
    problem: str | None = None
    asked: str = ""
    """The text of the client, which its rights may have narrowed."""
    work: int = 0
    """The work that an event is to it (rules.subscription); nothing where it is matched together
    with others.
    """
    payer: str = ""
    """The user who pays for the time of its patterns (rules.patience)."""

    def checked(self, schemas: Mapping[str, EventType]) -> Interest:
        """The same with its filter checked against its type, if that is known.

        Raises Refusal when the filter does not fit the type.
        """
        try:
            return self._fitted(schemas)
        except RuleErrors as errors:
            raise Refusal(Code.BAD_FILTER, str(errors)) from None

    def taken(self, schemas: Mapping[str, EventType]) -> Interest:
        """The same as ``checked``, but paused where the filter does not fit the type. It stays so
        until the type is one that it fits.
        """
        try:
            return self._fitted(schemas)
        except RuleErrors as errors:
            schema = schemas[self.type_name]
            problem = f"{errors.problems[0].message}; the type is {schema} now"
            return replace(self, filter=None, schema=schema, problem=problem)

    def _fitted(self, schemas: Mapping[str, EventType]) -> Interest:
        schema = schemas.get(self.type_name)
        if schema is None:
            return replace(self, filter=None, schema=None, work=self._work())
        found = parse_subscription(self.text, schemas)
        work = 0 if sketch_of(found.conditions, schema).is_whole else self._work()
        found = replace(found, payer=self.payer)
        return replace(self, filter=found, schema=schema, problem=None, work=work)

    def _work(self) -> int:
        return work_of(parse_filter(self.text))


def interest(
    number: int,
    asked: str,
    schemas: Mapping[str, EventType],
    *,
    again: bool = False,
    rights: Rights = EVERYTHING,
) -> Interest:
    """A new subscription; Refusal when its text cannot be a filter, of its type or of any, and
    where the ``rights`` allow none of it. ``again``: it was in force on another link, and is paused
    where it does not fit.
    """
    try:
        check_extent(asked)
        text = narrowed(rights, asked)
        if text.strip() == EVERY_TYPE:
            return Interest(number, EVERY_TYPE, EVERY_TYPE, None)
        name = parse_filter(text).type.text
        if name not in schemas:
            check_filter(text)
    except RuleErrors as errors:
        raise Refusal(Code.BAD_FILTER, str(errors)) from None
    made = Interest(number, text, name, None, asked=asked, payer=rights.user)
    return made.taken(schemas) if again else made.checked(schemas)


def interest_in(number: int, schema: EventType, rights: Rights = EVERYTHING) -> Interest | None:
    """The part of a subscription to all types that asks for this one; None where it is not for
    the subscriber to read.
    """
    try:
        text = narrowed(rights, f"{spelled(schema.name)}()")
    except Refusal:
        return None
    made = Interest(number, text, schema.name, None, asked=EVERY_TYPE, payer=rights.user)
    return made.taken({schema.name: schema})


def fits(text: str, schema: EventType) -> bool:
    """Whether a text is a filter of a type."""
    try:
        interest(0, text, {schema.name: schema})
    except Refusal:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TypeSubscriptions:
    """The checked subscriptions to one type, side by side."""

    numbers: SubscriptionNumbers
    filters: tuple[Subscription, ...]
    everything: bool
    """Whether none of them has conditions."""

    @classmethod
    def of(cls, interests: Sequence[Interest]) -> TypeSubscriptions:
        """Make it of those ``interests`` whose type is known."""
        filters = tuple(one.filter for one in interests if one.filter is not None)
        return cls(
            tuple(one.number for one in interests if one.filter is not None),
            filters,
            not any(one.conditions for one in filters),
        )


class FilterTexts:
    """The filters of all sinks of a broker, each once. ``by_type``: sorted, by the type's name."""

    def __init__(self) -> None:
        self.by_type: dict[str, tuple[str, ...]] = {}
        self._uses: Counter[str] = Counter()

    def add(self, asked: Interest) -> None:
        """Another subscription asks so."""
        self._uses[asked.text] += 1
        if self._uses[asked.text] == 1:
            texts = self.by_type.get(asked.type_name, ())
            place = bisect(texts, asked.text)
            self.by_type[asked.type_name] = (*texts[:place], asked.text, *texts[place:])

    def remove(self, ended: Interest) -> None:
        """One that asks so has ended."""
        self._uses[ended.text] -= 1
        if not self._uses[ended.text]:
            del self._uses[ended.text]
            texts = self.by_type.pop(ended.type_name)
            place = bisect(texts, ended.text)
            if len(texts) > 1:
                self.by_type[ended.type_name] = (*texts[: place - 1], *texts[place:])


class Interests:
    """The subscriptions of one sink; one to all types stands for its parts."""

    def __init__(self) -> None:
        self._by_number: dict[int, dict[str, Interest]] = {}  # by type
        self.of_all: set[int] = set()
        """The numbers of subscriptions to all types."""
        self._by_type: dict[str, dict[int, Interest]] = {}
        self._wanted: dict[str, TypeSubscriptions] = {}  # made when it is first needed
        self.work = 0
        """The work that an event is to all of them (Interest)."""

    @classmethod
    def of(cls, interests: Iterable[Interest]) -> Interests:
        """Make it of these subscriptions."""
        made = cls()
        for one in interests:
            made.add(one)
        return made

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Interest]:
        return itertools.chain.from_iterable(map(dict.values, self._by_number.values()))

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the subscriptions."""
        return list(self._by_number)

    def asked(self, number: int) -> str:
        """The text that a subscription was asked for by."""
        return EVERY_TYPE if number in self.of_all else self._only(number).asked

    def text(self, number: int) -> str:
        """The filter of a subscription."""
        return EVERY_TYPE if number in self.of_all else self._only(number).text

    def _only(self, number: int) -> Interest:
        (one,) = self._by_number[number].values()
        return one

    def types_of(self, number: int) -> Set[str]:
        """The types that a subscription asks for, by name."""
        return self._by_number[number].keys()

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    @property
    def type_names(self) -> Sequence[str]:
        """The types that are subscribed to, known or not."""
        return list(self._by_type)

    def to(self, type_name: str) -> Iterable[Interest]:
        """The subscriptions to a type."""
        return self._by_type.get(type_name, {}).values()

    def add(self, added: Interest) -> None:
        """Add or replace a subscription, or a part of one to all types."""
        parts = self._by_number.setdefault(added.number, {})
        if added.text == EVERY_TYPE:
            self.of_all.add(added.number)
            return
        before = parts.get(added.type_name)
        self.work += added.work - (0 if before is None else before.work)
        parts[added.type_name] = added
        self._by_type.setdefault(added.type_name, {})[added.number] = added
        self._wanted.pop(added.type_name, None)

    def remove(self, number: int) -> Iterable[Interest]:
        """End a subscription; gives it, or its parts."""
        removed = self._by_number.pop(number).values()
        self.of_all.discard(number)
        for one in removed:
            same = self._by_type[one.type_name]
            del same[number]
            self.work -= one.work
            if not same:
                del self._by_type[one.type_name]
            self._wanted.pop(one.type_name, None)
        return removed

    def patterns(self, batch: EventBatch) -> list[Pattern]:
        """For each set of subscriptions that some events match: these events."""
        wanted = self._wanted.get(batch.type.name)
        if wanted is None:
            if batch.type.name not in self._by_type:
                return []
            wanted = self._make_wanted(batch.type.name)
        if wanted.everything:
            return [(wanted.numbers, None)] if wanted.numbers else []
        if isinstance(batch, Single):
            taking = [
                number
                for number, one in zip(wanted.numbers, wanted.filters, strict=True)
                if one.takes(batch)
            ]
            return [(tuple(taking), None)] if taking else []
        masks = [one.mask(batch) for one in wanted.filters]
        if len(batch) == 1:
            own = tuple(itertools.compress(wanted.numbers, map(bool, masks)))
            return [(own, None)] if own else []
        bits = sum(mask.astype(np.int64) << place for place, mask in enumerate(masks))
        patterns: list[Pattern] = []
        for pattern in np.unique(bits).tolist():
            if pattern:
                rows = np.flatnonzero(bits == pattern)
                own = tuple(
                    number for place, number in enumerate(wanted.numbers) if pattern >> place & 1
                )
                patterns.append((own, None if len(rows) == len(batch) else rows))
        return patterns

    def _make_wanted(self, type_name: str) -> TypeSubscriptions:
        # A part of one to all types may have come later than others with greater numbers.
        interests = sorted(self.to(type_name), key=attrgetter("number"))
        wanted = self._wanted[type_name] = TypeSubscriptions.of(interests)
        assert len(wanted.filters) <= PER_TYPE_MAX
        return wanted


def delivery_batch_of(
    batches: Sequence[EventBatch],
    patterns: Sequence[Sequence[Pattern]],
    order: Int64s | None,
    late: bool = False,
) -> DeliveryBatch | None:
    """The delivery batch of one sink, by its patterns in each batch; None for nothing."""
    if len(batches) == 1 and len(batches[0]) == 1:  # common, and in order by itself
        found = patterns[0]
        if not found:
            return None
        return DeliveryBatch(Delivery(tuple(batches), (found[0][0],), None, 0, late), 1)
    if len(batches) == 1 and len(patterns[0]) == 1:
        numbers, rows = patterns[0][0]
        if rows is not None and len(rows) == 1 and not batches[0].is_composite:
            event = single_at(batches[0], rows.item())  # many sinks get one event of a batch each
            return DeliveryBatch(Delivery((event,), (numbers,), None, 0, late), 1)
    whole = [found[0][0] for found in patterns if len(found) == 1 and found[0][1] is None]
    if len(whole) == len(batches):  # all of each
        events = sum(map(len, batches)) if order is None else len(order)
        if order is not None and strictly_rises(order):
            order = None
        return DeliveryBatch(Delivery(tuple(batches), tuple(whole), order, 0, late), events)
    parts: list[EventBatch] = []
    subscriptions: list[SubscriptionNumbers] = []
    places: list[Int64s] = []
    start = 0
    for batch, found in zip(batches, patterns, strict=True):
        for numbers, rows in found:
            parts.append(batch if rows is None else batch.take(rows))
            subscriptions.append(numbers)
            places.append(start + (np.arange(len(batch)) if rows is None else rows))
        start += len(batch)
    if not parts:
        return None
    if order is None:
        matched = order_of(places)
    else:
        ranks = np.empty(start, np.int64)
        ranks[order] = np.arange(start)
        matched = order_of([ranks[own] for own in places])
    return DeliveryBatch.of(tuple(parts), tuple(subscriptions), matched, late)
