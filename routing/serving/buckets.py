"""Rates at which users may publish, kept by token buckets."""

from __future__ import annotations

import math

from routing.messages import Rights

CREDIT_MAX = 2**31 - 1
"""The most credit that anybody has."""


class TokenBucket:
    """Events that may be published, so many a second.

    A bucket holds the events of one second, or of one heartbeat where that is longer, and one for
    all sources of a user. Who publishes faster gets no credit until its time has come; no event is
    dropped. It may be overdrawn by the credit that is under way: 100 events/s, and 300 events at
    once, are followed by two seconds without credit.
    """

    def __init__(self, rate: int, span_s: float, now: float) -> None:
        self.rate = rate
        self.size = math.ceil(rate * max(1.0, span_s))
        self._tokens = float(self.size)
        self._filled_at = now

    def spend(self, events: int, now: float) -> None:
        """Events have come."""
        self._fill(now)
        self._tokens -= events

    def is_empty(self, now: float) -> bool:
        """Whether nothing may come now."""
        self._fill(now)
        return self._tokens <= 0

    def _fill(self, now: float) -> None:
        self._tokens = min(float(self.size), self._tokens + self.rate * (now - self._filled_at))
        self._filled_at = now


def credit_of(rights: Rights, bucket: TokenBucket | None) -> int:
    """The most credit that a source of a user has."""
    most = rights.limits.batch_events_max or CREDIT_MAX
    return most if bucket is None else min(most, bucket.size)


class Buckets:
    """The buckets of users, by name."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._buckets: dict[str, TokenBucket] = {}

    def of(self, rights: Rights, now: float) -> TokenBucket | None:
        """The bucket of a user; None for one who may publish as fast as can be."""
        rate = rights.limits.events_per_second_max
        if rate is None:
            self._buckets.pop(rights.user, None)
            return None
        bucket = self._buckets.get(rights.user)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[rights.user] = TokenBucket(rate, self._span_s, now)
        return bucket
