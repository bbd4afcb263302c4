"""Events that are kept for the page while somebody looks at them: a subscriber in its process."""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from broker.client.address import Address
from broker.client.subscriber import AsyncSubscriber
from broker.errors import BrokerError, RefusedError
from broker.monitoring.rows import bounded, row, unknown
from matcher.model import EventBatch
from matcher.spelling import quoted
from routing.wire.extent import extent_of

EVENTS_MAX = 50_000
BYTES_MAX = 64 << 20
KEPT_S = 300.0
SAMPLE_MAX = 50
IDLE_S = 30.0
AGAIN_S = 2.0
"""Seconds until a subscriber that has failed is tried again."""
FORBIDDEN = "not-allowed"
"""A refusal that stays, as a rule; it is asked again when the page has been open for long."""
CONNECT_S = 3.0
TYPES_MAX = 20
ALL = "*"
"""The filter of all events; composite ones among them are left out, having subscribers of their
own."""
TURNING = 5
"""Places that go round at least, while there is any type that does not come."""
TURN_S = 10.0
"""Seconds for which a type that does not come has its place."""
CAUSES_MAX = 200
"""Events of one history that are told."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A batch that has come; ``first`` is the number of its first event, counted from 1, ``size``
    its bytes, about.
    """

    first: int
    at: float
    batch: EventBatch
    size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest events of those beyond a number, how many there were, and the last number."""

    events: Sequence[dict[str, Any]]
    count: int
    last: int


class Tap:
    """The events of the broker at ``address``, as far as ``user`` may have them.

    Whoever looks holds nobody up: the subscriber takes what it is given at once, and where its
    queue is full the broker drops the oldest events (``drop-oldest``), which are counted and told.
    ``EVENTS_MAX`` events of the last ``KEPT_S`` seconds are kept, as far as they take no more than
    ``BYTES_MAX``.
    """

    def __init__(self, address: Address, user: str = "") -> None:
        self._address = address
        self._name = f"page/{user}/{os.getpid()}" if user else f"page-{os.getpid()}"
        self._kept: deque[Kept] = deque()
        self._events = self._bytes = 0
        self.last = 0
        """The number of the newest event."""
        self.dropped = 0
        """Events that its full queue at the broker has dropped."""
        self.problem = ""
        """The reason why nothing comes, if there is one."""
        self._asked_at = self._whole_at = float("-inf")
        self._composite: Mapping[str, float | None] = {}
        """The rates of composite types, None where they are not known."""
        self._places: list[str] = []
        """The types that have a place, until ``_turn_at``."""
        self._turn_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    # --- who looks ---

    def look(self, composite: Mapping[str, float | None], whole: bool) -> None:
        """Keep on taking composite events, of these types with their rates, and all others
        (``whole``). The subscription ends ``IDLE_S`` after the last look: in a network a
        subscription has rules evaluated that nobody else may have asked for.
        """
        self._asked_at = time.monotonic()
        if whole:
            self._whole_at = self._asked_at
        if composite.keys() != self._composite.keys():
            self._turn_at = float("-inf")
        self._composite = composite
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Take no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def is_whole(self) -> bool:
        """Whether all events are taken."""
        return time.monotonic() - self._whole_at < IDLE_S

    # --- what has come ---

    @property
    def batches(self) -> list[EventBatch]:
        """All that is kept."""
        return [one.batch for one in self._kept]

    @property
    def facts(self) -> dict[str, Any]:
        """Figures of what is kept."""
        oldest = time.monotonic() - self._kept[0].at if self._kept else 0.0
        counts: Counter[str] = Counter()
        for one in self._kept:
            counts[one.batch.type.name] += len(one.batch)
        return {
            "events": self._events,
            "seconds": round(oldest, 1),
            "dropped": self.dropped,
            "whole": self.is_whole,
            "problem": self.problem,
            "types_left_out": max(0, len(self._composite) - TYPES_MAX),
            "types": dict(counts.most_common(100)),
        }

    def sample(self, after: int, types: Collection[str]) -> Sample:
        """The newest events of ``types`` beyond the number ``after``; of composite ones, where no
        type is given. Of those that come in a second ``SAMPLE_MAX`` at most are given: at 10,000
        events a second a page is sent 50, and ``10,000``.
        """
        count, shown = 0, list[dict[str, Any]]()
        for one in reversed(self._kept):
            beyond = one.first + len(one.batch) - 1 - after
            if beyond <= 0:
                break
            if one.batch.type.name not in types if types else not one.batch.is_composite:
                continue
            here = min(beyond, len(one.batch))
            count += here
            newest = range(len(one.batch) - 1, len(one.batch) - 1 - here, -1)
            shown += [row(one.batch.event(place)) for place in newest[: SAMPLE_MAX - len(shown)]]
        return Sample([*bounded(shown)][::-1], count, self.last)

    def history(self, name: str) -> list[dict[str, Any]]:
        """The event ``source#id`` and all that has caused it, as far as they are kept; a cause that
        is not has no time.
        """
        kept = self._by_name()
        found: dict[str, dict[str, Any]] = {}
        wanted = [name]
        while wanted and len(found) < CAUSES_MAX:
            for one in wanted:
                batch, place = kept.get(one, (None, 0))
                found[one] = unknown(one) if batch is None else row(batch.event(place))
            causes = (cause for one in wanted for cause in found[one]["cause"])
            wanted = [one for one in dict.fromkeys(causes) if one not in found][:CAUSES_MAX]
        return list(bounded(found.values()))

    def _by_name(self) -> Mapping[str, tuple[EventBatch, int]]:
        """The batches and places of all that is kept, for as many steps as a history has."""
        found: dict[str, tuple[EventBatch, int]] = {}
        for one in self._kept:
            ids = one.batch.ids
            for place, pair in enumerate(zip(ids.source.tolist(), ids.printed(), strict=True)):
                found["#".join(pair)] = one.batch, place
        return found

    # --- taking ---

    async def _follow(self) -> None:
        """Have a subscriber for each filter that is wanted, until nobody looks. What one subscriber
        is given is in order of time over all types, so each composite type has one of its own,
        ``TYPES_MAX`` at most: a rule that waits for events that nobody publishes would else hold up
        all the others on the page.
        """
        takers: dict[str, asyncio.Task[None]] = {}
        try:
            while time.monotonic() - self._asked_at < IDLE_S:
                wanted = self._wanted
                for text in [one for one in takers if one not in wanted]:
                    takers.pop(text).cancel()
                for text in wanted:
                    if text not in takers or takers[text].done():
                        takers[text] = asyncio.create_task(self._take(text))
                await asyncio.sleep(0.2)
        finally:
            for one in takers.values():
                one.cancel()
            await asyncio.gather(*takers.values(), return_exceptions=True)
            self._kept.clear()
            self._events = self._bytes = 0

    @property
    def _wanted(self) -> list[str]:
        now = time.monotonic()
        if now >= self._turn_at:
            self._turn_at = now + TURN_S
            self._places = placed(self._composite, self._places)
        return [*(f"{quoted(name)}()" for name in self._places), *([ALL] if self.is_whole else [])]

    async def _take(self, text: str) -> None:
        """Take events until it is cancelled, or fails."""
        try:
            subscriber = AsyncSubscriber(
                self._address,
                text,
                name=f"{self._name}/{text}",
                when_full="drop-oldest",
                connect_timeout_s=CONNECT_S,
            )
            async with subscriber:
                self.problem = ""
                dropped = 0
                while True:
                    delivery = await subscriber.receive_delivery()
                    self.dropped += subscriber.dropped - dropped
                    dropped = subscriber.dropped
                    self._keep(
                        one for one in delivery.batches if one.is_composite is not (text == ALL)
                    )
        except (BrokerError, TimeoutError) as error:
            self.problem = str(error)
            is_forbidden = isinstance(error, RefusedError) and error.code == FORBIDDEN
            await asyncio.sleep(KEPT_S if is_forbidden else AGAIN_S)

    def _keep(self, batches: Iterable[EventBatch]) -> None:
        now = time.monotonic()
        for batch in batches:
            self._kept.append(Kept(self.last + 1, now, batch, extent_of((batch,))))
            self.last += len(batch)
            self._events += len(batch)
            self._bytes += self._kept[-1].size
        while self._kept and (self._is_full or now - self._kept[0].at > KEPT_S):
            gone = self._kept.popleft()
            self._events -= len(gone.batch)
            self._bytes -= gone.size

    @property
    def _is_full(self) -> bool:
        return self._events > EVENTS_MAX or self._bytes > BYTES_MAX


def placed(rates: Mapping[str, float | None], before: Sequence[str]) -> list[str]:
    """The types that are taken next, after those ``before``. A type that has come lately keeps its
    place; the other places go round, ``TURN_S`` for each type, since rules of a network are idle
    until somebody asks for what they make. Of 505 types of which 3 come, these 3 are there, and 17
    others at a time.
    """
    coming = sorted((name for name in rates if rates[name]), key=lambda name: -(rates[name] or 0))
    kept = coming[: TYPES_MAX if len(coming) == len(rates) else TYPES_MAX - TURNING]
    others = sorted(rates.keys() - {*kept})
    last = max((name for name in before if name in others), default="")
    start = bisect_right(others, last) if len(others) > TYPES_MAX - len(kept) else 0
    return [*kept, *(others[start:] + others[:start])[: TYPES_MAX - len(kept)]]
