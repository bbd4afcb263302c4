"""The workloads of the thesis's chapters 5 and 6: rules as text, and events that can be made for
any instants.

What the thesis does not say is fixed here and told in the experiments' settings: how many types
there are, and how fast events follow each other where it gives no rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from matcher.model import (
    AnyArray,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    StringColumn,
)

TYPES = 10
"""Event types of the synthetic workloads of chapter 5, and kinds of fire."""
THRESHOLDS = 100
WHOLE = 2_000
"""The last events of a warm-up, of which none is left out."""
WINDOW_MS = (14_000, 16_000)
"""Windows of the default scenario of chapter 5: uniform between these."""
VALUES = 50_000
"""Values of an attribute in the default scenario of chapter 6."""

Columns = Callable[[int, Int64s], tuple[Column, ...]]


@dataclass(frozen=True, slots=True)
class Events:
    """A stream of events without times: ``kinds`` int64[n], places in ``types``; ``columns`` gives
    the attributes of the events at some places, which are all of one kind.
    """

    types: tuple[EventType, ...]
    kinds: Int64s
    columns: Columns

    def __len__(self) -> int:
        return len(self.kinds)

    def batches(self, places: Int64s, times: Int64s) -> list[EventBatch]:
        """The events at ascending places, with times in microseconds, one batch a type."""
        kinds = self.kinds[places]
        return [
            self._batch(kind, places[kinds == kind], times[kinds == kind])
            for kind in np.unique(kinds).tolist()
        ]

    def _batch(self, kind: int, places: Int64s, times: Int64s) -> EventBatch:
        ids = EventIds(StringColumn.constant("generator", len(places)), places)
        return EventBatch(self.types[kind], times, ids, self.columns(kind, places))


@dataclass(frozen=True, slots=True)
class Workload:
    """Rules, and events for them: ``events(count, rng)``.

    ``ends``: kinds that are terminators and nothing else, so that windows may be filled without
    them: no rule keeps what it found.
    """

    rules: str
    events: Callable[[int, np.random.Generator], Events]
    ends: tuple[int, ...] = ()


# --- chapter 5, synthetic ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sequences:
    """The default scenario of 5.8.2, and what it changes.

    Each (rule, state) asks for a type and a value; a predicate is asked for by so many of them
    that an event is relevant to ``triggered`` (rule, state) pairs. A rule has ``sequences``
    chains of ``states`` that share their last event, the terminator.
    """

    policy: str = "last"
    rules: int = 1_000
    states: int = 2
    sequences: int = 1
    triggered: int = 10
    window: float = 1.0
    """Windows as multiples of the default ones."""
    consuming: bool = False

    def smaller(self, times: int) -> Sequences:
        """So many times fewer rules, of which an event meets so many times fewer."""
        return replace(self, rules=self.rules // times, triggered=max(self.triggered // times, 1))

    def workload(self, rng: np.random.Generator) -> Workload:
        """Rules drawn at random, and events that are relevant to ``triggered`` of them each."""
        slots = 1 + self.sequences * (self.states - 1)
        predicates = max(self.rules * slots // self.triggered, TYPES)
        values = -(-predicates // TYPES)
        pairs = np.resize(np.arange(predicates), self.rules * slots)
        rng.shuffle(pairs)
        lines = [f"event T{number}(a: int, b: float)" for number in range(TYPES)]
        for number, chosen in enumerate(pairs.reshape(self.rules, slots).tolist()):
            lines.append(self._rule(number, [divmod(pair, values) for pair in chosen], rng))
        types = tuple(EventType.of(f"T{number}", a="int", b="float") for number in range(TYPES))

        def events(count: int, chance: np.random.Generator) -> Events:
            drawn = chance.integers(0, predicates, count)
            kinds, value = drawn // values, drawn % values
            return Events(
                types, kinds, lambda _, places: (value[places], places.astype(np.float64))
            )

        return Workload("\n".join(lines), events)

    def _rule(self, number: int, predicates: list[list[int]], rng: np.random.Generator) -> str:
        (kind, value), *others = predicates
        body = f"T{kind}(a = {value}) as s"
        for place, (kind, value) in enumerate(others):
            chain, state = divmod(place, self.states - 1)
            anchor = f"s{chain}_{state - 1}" if state else "s"
            window = int(self.window * rng.integers(WINDOW_MS[0], WINDOW_MS[1] + 1))
            name = f"s{chain}_{state}"
            body += (
                f" and {self.policy} T{kind}(a = {value}) as {name} within {window} ms"
                f" from {anchor}"
            )
        consumed = f" consuming s0_{self.states - 2}" if self.consuming else ""
        head = f"rule r{number}: define C{number % TYPES}(b: float) from "
        return f"{head}{body} where b = s.b{consumed}"


def filtering(rules: int) -> Callable[[np.random.Generator], Workload]:
    """Figure 5.10: each rule selects by a value and gives it; one rule for an event."""

    def workload(_: np.random.Generator) -> Workload:
        lines = ["event T(a: int)"]
        lines.extend(
            f"rule r{number}: define C(a: int) from T(a = {number}) as t where a = t.a"
            for number in range(rules)
        )

        def events(count: int, chance: np.random.Generator) -> Events:
            value = chance.integers(0, rules, count)
            kinds = np.zeros(count, np.int64)
            return Events((EventType.of("T", a="int"),), kinds, lambda _, at: (value[at],))

        return Workload("\n".join(lines), events)

    return workload


# --- chapter 5, fires ----------------------------------------------------------------------------

R1 = (
    "Smoke{k}(area = $a) and each Temp{k}(area = $a, value > {v}) within {w} from Smoke{k}"
    " where area = $a, t = Temp{k}.value"
)
R3 = R1.replace("each", "last")
R7 = (
    "Smoke{k}(area = $a) and {v} < $t = Avg(Temp{k}(area = $a).value within {w} from Smoke{k})"
    " where area = $a, t = $t"
)
R8 = (
    "Temp{k}(area = $a, value > {v}) and not Smoke{k}(area = $a) within {w} from Temp{k}"
    " where area = $a, t = Temp{k}.value"
)
"""R8's ``Rain`` is called Smoke here: the streams are the same."""


def fires(
    form: str, smoke: float, window: str, *, rules: int = 1_000, lowest: int = 0
) -> Callable[[np.random.Generator], Workload]:
    """Ten kinds of fire from one form of rule, each with a share of the thresholds.

    ``smoke`` is the share of Smoke events; ``lowest`` is added to all temperatures, so that R7,
    whose thresholds are averages, is always satisfied.
    """
    levels = max(rules // TYPES, 1)

    def workload(_: np.random.Generator) -> Workload:
        kind_of_t = "float" if "Avg" in form else "int"
        lines = []
        for kind in range(TYPES):
            lines.append(f"event Smoke{kind}(area: string)")
            lines.append(f"event Temp{kind}(area: string, value: int)")
            lines.extend(
                f"rule r{kind}_{level}: define Fire{kind}(area: string, t: {kind_of_t}) from "
                + form.format(k=kind, v=level * THRESHOLDS // levels, w=window)
                for level in range(levels)
            )

        def events(count: int, chance: np.random.Generator) -> Events:
            kinds = chance.integers(0, TYPES, count) * 2 + (chance.random(count) >= smoke)
            value = chance.integers(1, THRESHOLDS + 1, count) + lowest
            types = []
            for kind in range(TYPES):
                types.append(EventType.of(f"Smoke{kind}", area="string"))
                types.append(EventType.of(f"Temp{kind}", area="string", value="int"))

            def columns(kind: int, places: Int64s) -> tuple[Column, ...]:
                area = StringColumn.constant("hall", len(places))
                return (area, value[places]) if kind % 2 else (area,)

            return Events(tuple(types), kinds, columns)

        return Workload("\n".join(lines), events)

    return workload


# --- chapter 6 -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Joined:
    """R10 of chapter 6 and what it changes: states joined by a value, and aggregates beside them.

    Windows are in ticks, microseconds here. ``groups`` > 1 gives each rule one of so many sets of
    types, so that an event is relevant to one rule in ``groups``. With ``accepted`` the rule has
    an aggregate that about this share of its sequences passes, and no parameter between states.
    """

    policy: str = "last"
    states: int = 3
    window: int = 100_000
    values: int = VALUES
    aggregates: int = 1
    rules: int = 1
    groups: int = 1
    accepted: float | None = None

    def workload(self, _: np.random.Generator) -> Workload:
        """The rules, and events of all types with the same probability."""
        names = [
            f"S{group}_{state}" for group in range(self.groups) for state in range(self.states)
        ]
        types = tuple(EventType.of(name, x="int", att="int", value="int") for name in names)
        lines = [f"event {name}(x: int, att: int, value: int)" for name in names]
        lines.extend(self._rule(number) for number in range(self.rules))

        def events(count: int, chance: np.random.Generator) -> Events:
            kinds = chance.integers(0, len(types), count)
            drawn = [chance.integers(1, self.values + 1, count) for _ in range(3)]
            return Events(types, kinds, lambda _, at: tuple(column[at] for column in drawn))

        return Workload("\n".join(lines), events, tuple(range(0, len(types), self.states)))

    def _rule(self, number: int) -> str:
        group = number % self.groups
        states = [f"S{group}_{state}" for state in range(self.states)]
        # Rules of one group differ in their windows, so that none is another's double.
        window = self.window + number // self.groups
        joined = "()" if self.accepted is not None else "(att = $x)"
        body = states[0] + joined
        for anchor, state in pairwise(states):
            body += f" and {self.policy} {state}{joined} within {window} us from {anchor}"
        sums = []
        for place in range(self.aggregates):
            attribute = ("value", "att", "x")[place]
            body += (
                f" and $s{place} = Sum({states[-1]}(att = $x).{attribute}"
                f" within {window} us from {states[1]})"
            )
            sums.append(f"$s{place}")
        if self.accepted is not None:
            body += (
                f" and {self._threshold()} > Max({states[-1]}().value within"
                f" {self._filter_window()} us from {states[0]})"
            )
        total = " + ".join(sums) or "0"
        key = "$x" if self.accepted is None else f"{states[0]}.att"
        head = f"rule r{number}: define CE(att: int, total: int) from "
        return f"{head}{body} where att = {key}, total = {total}"

    def _filter_window(self) -> int:
        """The aggregate is a maximum over some ten events."""
        return 10 * self.states * self.groups

    def _threshold(self) -> int:
        """Of ten uniform values the greatest lies below this with the probability asked for."""
        assert self.accepted is not None
        return max(int(self.values * self.accepted ** (1 / 10)) + 1, 1)


def filling(events: Events, ends: tuple[int, ...], warm_up: int, size: int) -> Iterator[Int64s]:
    """The places of ``warm_up`` events in chunks, without those of ``ends`` until WHOLE events
    before they are over.
    """
    for places in in_chunks(warm_up, size):
        if places[-1] < warm_up - WHOLE:
            places = places[~np.isin(events.kinds[places], ends)]
        if len(places):
            yield places


def in_chunks(count: int, size: int) -> Iterator[AnyArray]:
    """The places 0 to count - 1, in runs."""
    for first in range(0, count, size):
        yield np.arange(first, min(first + size, count))
