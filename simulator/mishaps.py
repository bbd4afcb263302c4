"""Faults that are drawn from the seed: the table ``[faults]``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import msgspec

from simulator.faults import KINDS, Fault, alike, place_of

Link: TypeAlias = tuple[str, str]
Bounds: TypeAlias = tuple[float, float]

BOUNDS: Mapping[str, Bounds] = {
    "loss": (0.05, 0.2),
    "repeats": (0.05, 0.3),
    "reordering": (0.001, 0.05),
    "delay": (0.05, 1.0),
    "slow": (2.0, 50.0),
    "skew": (-1.0, 1.0),
    "restart": (0.0005, 0.05),
    "backup": (1.0, 60.0),
}
"""Between what values lie, where the table does not say. The other kinds have none."""


class Mishaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Mishaps to draw: how many of which kind. Raises ValueError naming what makes no sense.

    Faults begin at random instants of ``span_s``, in seconds after the first event's time:
    ``count`` of them, or one ``every_s`` seconds in the mean (Poisson). Each is of one of
    ``kinds``, lasts ``for_s``, strikes ``places`` places at once, and has a value within those of
    ``values`` for its kind. ``links``, ``brokers`` and ``sources``: among which it strikes; all,
    where there are none.
    """

    span_s: Bounds
    count: int | None = None
    every_s: float | None = None
    kinds: tuple[str, ...] = ("loss", "repeats", "reordering", "delay", "slow")
    for_s: Bounds = (0.1, 10.0)
    places: tuple[int, int] = (1, 1)
    values: dict[str, Bounds] = {}
    links: tuple[Link, ...] = ()
    brokers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _rising("span_s", self.span_s)
        if (self.count is None) == (self.every_s is None):
            raise ValueError("expected either count or every_s")
        if self.count is not None and self.count < 0:
            raise ValueError(f"count: at least 0, not {self.count}")
        if self.every_s is not None and self.every_s <= 0:
            raise ValueError(f"every_s must be positive, not {self.every_s}")
        begin, end = self.span_s
        count = self.count or 0 if self.every_s is None else (end - begin) / self.every_s
        if count > FAULTS_MAX:
            name = "count" if self.every_s is None else "every_s"
            raise ValueError(f"{name}: at most {FAULTS_MAX:,} faults, not {count:,.0f}")
        _rising("for_s", self.for_s)
        if self.for_s[0] < INSTANT_S:
            raise ValueError(f"for_s: at least {INSTANT_S}, not {self.for_s[0]}")
        _rising("places", self.places)
        if self.places[0] < 1:
            raise ValueError(f"places: at least 1, not {self.places[0]}")
        self._check_kinds()

    def _check_kinds(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise ValueError(f"kinds: expected some of {', '.join(KINDS)}, found {kind!r}")
        if len(self.kinds) == 0 or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"kinds: expected different ones, found {list(self.kinds)}")
        for kind, bounds in self.values.items():
            if kind not in BOUNDS:
                raise ValueError(f"values: expected some of {', '.join(BOUNDS)}, found {kind!r}")
            _rising(f"values.{kind}", bounds)
            for value in bounds:
                try:
                    Fault(kind, 0.0, value=value)
                except ValueError as error:
                    raise ValueError(f"values.{kind}: {error}") from None
        struck = {KINDS[kind].where for kind in self.kinds}
        for where in ("links", "brokers", "sources"):
            if getattr(self, where) and where not in struck:
                raise ValueError(f"{where}: no fault of these kinds is on {where}")


FAULTS_MAX = 10_000
"""How many there can be: in the mean, with every_s."""
INSTANT_S = 0.001
"""Moments are whole milliseconds, so a fault does not end in the instant in which one begins."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Objects that mishaps can strike."""

    links: Sequence[Link]
    brokers: Sequence[str]
    sources: Sequence[str]


def draw(
    table: Mishaps, targets: Targets, others: Iterable[Fault], random: Random
) -> tuple[Fault, ...]:
    """The faults, in the order in which they begin, beside ``others``. ValueError: what the table
    names is not there.

    The faults are a function of the table, the network, its sources, ``others`` and the seed; the
    generator is their own, so all else in a run stays as it is. Faults of one kind in one place do
    not overlap, ``others`` included. A fault that finds no free place is left out.
    """
    return tuple(_Drawing(table, targets, random, others).faults())


class _Drawing:
    def __init__(
        self, table: Mishaps, targets: Targets, random: Random, others: Iterable[Fault]
    ) -> None:
        self._table = table
        self._random = random
        self._among = {
            where: _among(where, getattr(table, where), getattr(targets, where))
            for where in dict.fromkeys(KINDS[kind].where for kind in table.kinds)
        }
        self._taken = list(others)

    def faults(self) -> Iterator[Fault]:
        table, random = self._table, self._random
        for at_s in self._moments():
            for_s = round(random.uniform(*table.for_s), 3)
            free = {kind: self._free(kind, at_s, at_s + for_s) for kind in table.kinds}
            able = [kind for kind, places in free.items() if places]
            if able:
                kind = random.choice(able)
                fault = self._fault(kind, at_s, for_s, free[kind])
                self._taken.append(fault)
                yield fault

    def _moments(self) -> list[float]:
        table, random = self._table, self._random
        begin, end = table.span_s
        if table.count is not None:
            found = [random.uniform(begin, end) for _ in range(table.count)]
        else:
            assert table.every_s is not None
            found, moment = [], begin + random.expovariate(1 / table.every_s)
            while moment <= end:
                found.append(moment)
                moment += random.expovariate(1 / table.every_s)
        return sorted(round(moment, 3) for moment in found)

    def _free(self, kind: str, begin: float, end: float) -> list[Any]:
        """The places that no fault of that kind, or one alike, strikes in that time."""
        busy = [
            fault.places
            for fault in self._taken
            if alike(fault.kind, kind) and fault.at_s <= end and begin <= fault.end_s
        ]
        if frozenset() in busy:  # one is everywhere
            return []
        among = self._among[KINDS[kind].where]
        return [one for one in among if not any(place_of(one) in places for places in busy)]

    def _fault(self, kind: str, at_s: float, for_s: float, free: Sequence[Any]) -> Fault:
        table, random = self._table, self._random
        count = min(random.randint(*table.places), len(free))
        where: dict[str, Any] = {KINDS[kind].where: tuple(random.sample(free, count))}
        bounds = table.values.get(kind) or BOUNDS.get(kind)
        value = None if bounds is None else round(random.uniform(*bounds), 6)
        return Fault(kind, at_s, for_s, value=value, **where)


def _among(where: str, named: Sequence[Any], there: Sequence[Any]) -> Sequence[Any]:
    known = {place_of(one) for one in there}
    for one in named:
        if place_of(one) not in known:
            is_link = where == "links"
            what = f"link between {' and '.join(one)}" if is_link else f"{where[:-1]} {one!r}"
            raise ValueError(f"{where}: there is no {what}")
    if not there:
        raise ValueError(f"kinds: there are no {where} to strike")
    return named or there


def _rising(name: str, bounds: tuple[float, float]) -> None:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{name}: expected two that rise, not {bounds[0]}, {bounds[1]}")
