"""Workloads to be generated, as the thesis's study describes them (7.4): the table ``[workload]``.

The words of the study, and the keys here: primitive events of ``types`` types, whose ``rates`` lie
between bounds; ``rules`` that are sequences of ``length`` events with windows of ``window_s``
each; ``subscriptions`` for each broker's sinks. Filtering by content is by ``values``: each rule
takes events of one value of so many. Locality is of events (``classes`` of rules that share types
with no other class), of publishers and of sinks. ``generation`` makes it all from a seed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

POLICIES = ("last", "first", "each")
COUNT_MAX = 10**9
"""Beyond all that can be run, for whatever is counted, and for events a second."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A workload to draw: events, rules and subscriptions. Raises ValueError.

    ``rates``: events a second of the rarest and of the most frequent type; ``law``: how those of
    the others lie between, ``exponential`` (each the same factor above the one before), ``zipf``
    (the n-th most frequent has the greatest rate divided by n, or the least one) or ``even``.
    Each type's events come at random instants (Poisson). ``keys``: how many values the attribute
    has that parameters are equal on. ``window_spread``: windows are uniform in ``window_s`` times
    1 - spread to 1 + spread. ``selection``: the shares of last, first and each. ``parameters``,
    ``negations``, ``aggregates``: the shares of the rules that have one.

    ``publisher_locality``, ``sink_locality``: from 0, where brokers are chosen among all, to 1,
    where they are the ones nearest to their class's centre. Sources publish for ``horizon_s``
    seconds, or until the rarest type has occurred ``rarest_count`` times after the warm-up. Of all
    that, ``part`` takes what lies between two of those seconds: the same events, under the same
    ids. So a run of a day may be made in parts, each with a warm-up as long as its rules reach.
    """

    types: int = 120
    rates: tuple[float, float] = (0.001, 10.0)
    law: Literal["exponential", "zipf", "even"] = "exponential"
    values: int = 1
    keys: int = 1
    rules: int = 100
    length: int = 3
    window_s: float = 60.0
    window_spread: float = 0.0
    selection: dict[str, float] = msgspec.field(default_factory=lambda: {"last": 1.0})
    parameters: float = 0.0
    negations: float = 0.0
    aggregates: float = 0.0
    subscriptions: int = 10
    classes: int = 1
    publisher_locality: float = 0.0
    sink_locality: float = 0.0
    horizon_s: float | None = None
    rarest_count: int | None = None
    part: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("types", "values", "keys", "length", "classes"):
            _within(name, getattr(self, name), 1)
        for name in ("rules", "subscriptions"):
            _within(name, getattr(self, name), 0)
        for name in (
            "window_spread",
            "parameters",
            "negations",
            "aggregates",
            "publisher_locality",
            "sink_locality",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a share from 0 to 1, not {getattr(self, name)}")
        least, greatest = self.rates
        if not 0 < least <= greatest <= COUNT_MAX:
            expected = f"expected two that rise, above 0, up to {COUNT_MAX:,}"
            raise ValueError(f"rates: {expected}, not {least}, {greatest}")
        if self.window_s <= 0:
            raise ValueError(f"window_s must be positive, not {self.window_s}")
        if self.classes * self.length > self.types:
            raise ValueError(
                f"types: {self.classes} classes of rules of {self.length} events need "
                f"{self.classes * self.length}, not {self.types}"
            )
        if self.subscriptions > self.rules:
            raise ValueError(f"subscriptions: there are no {self.subscriptions} rules")
        self._check_selection()
        self._check_horizon()

    def _check_selection(self) -> None:
        for policy, share in self.selection.items():
            if policy not in POLICIES or share < 0:
                expected = f"shares of {', '.join(POLICIES)}"
                raise ValueError(f"selection: expected {expected}, found {policy} = {share}")
        if not sum(self.selection.values()) > 0:
            raise ValueError("selection: all shares are 0")

    def _check_horizon(self) -> None:
        if (self.horizon_s is None) == (self.rarest_count is None):
            raise ValueError("expected either horizon_s or rarest_count")
        if self.horizon_s is not None and self.horizon_s <= 0:
            raise ValueError(f"horizon_s must be positive, not {self.horizon_s}")
        if self.rarest_count is not None:
            _within("rarest_count", self.rarest_count, 1)
        if self.part is not None and not 0 <= self.part[0] < self.part[1]:
            raise ValueError(f"part: expected two seconds that rise, from 0 on, not {self.part}")


def _within(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name}: at least {least}, not {value}")
    if value > COUNT_MAX:
        raise ValueError(f"{name}: at most {COUNT_MAX:,}, not {value:,}")
