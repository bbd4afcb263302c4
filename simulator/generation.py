"""Makes a workload (thesis 7.4): who publishes what, which rules, who subscribes, which events.

Types are ``T1``, ``T2``, ...; each is published at one broker, its home, by that broker's one
source ``s-BROKER``. Rule ``rN`` defines ``CN``: a sequence whose first written event is the last
to occur, the others within a window before the one before. Rules and types are dealt out to
classes in turn; each class has a broker as its centre.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import networkx as nx
import numpy as np

from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, Int64s, StringColumn
from simulator.recordings import Recording
from simulator.workload import Workload

ORIGIN_S = 100.0
"""When publishing begins, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """``rules``: the text; ``recordings`` and ``subscriptions`` by broker."""

    rules: str
    recordings: tuple[tuple[str, Recording], ...]
    subscriptions: Mapping[str, tuple[str, ...]]
    horizon_s: float


def generate(workload: Workload, graph: nx.Graph, seed: int, warm_up_s: float = 0.0) -> Generated:
    """The workload on a network whose edges have ``delay_s``. ValueError: its part is empty.

    What is made is a function of the workload, the network and the seed. Each part draws from a
    generator of its own: other subscriptions leave the events as they are.
    """
    return _Generator(workload, graph, seed).generated(warm_up_s)


def horizon_s(workload: Workload, seed: int, warm_up_s: float = 0.0) -> float:
    """For how many seconds sources publish on any network, its parts (``part``) taken together."""
    return _Generator(workload, nx.empty_graph(1), seed).horizon(warm_up_s)[0]


def sources_of(workload: Workload, graph: nx.Graph, seed: int) -> list[str]:
    """The names of the sources that ``generate`` makes, in order."""
    homes = set(_Generator(workload, graph, seed).homes())
    return [_source_at(broker) for broker in graph if broker in homes]


def _source_at(broker: str) -> str:
    return f"s-{broker}"


class _Generator:
    def __init__(self, workload: Workload, graph: nx.Graph, seed: int) -> None:
        self._workload = workload
        self._graph = graph
        self._seed = seed
        self._brokers = list(graph)
        self._types = [
            EventType.of(f"T{number}", value="int", key="int")
            for number in range(1, workload.types + 1)
        ]
        centres = self._random("centres")
        self._near = [
            self._by_distance(centres.choice(self._brokers)) for _ in range(workload.classes)
        ]
        """By class: all brokers, the nearest to its centre first."""

    def generated(self, warm_up_s: float) -> Generated:
        horizon_s, known = self.horizon(warm_up_s)
        return Generated(
            "\n".join(self._rules()),
            tuple(self._recordings(horizon_s, known)),
            self._subscriptions(),
            horizon_s,
        )

    def _random(self, name: str) -> Random:
        return Random(f"{self._seed}/workload {name}")

    def _class_of(self, number: int) -> int:
        return number % self._workload.classes

    # --- places ---

    def _by_distance(self, centre: str) -> list[str]:
        lengths = nx.single_source_dijkstra_path_length(self._graph, centre, weight="delay_s")
        return sorted(self._brokers, key=lambda name: (lengths[name], name))

    def homes(self) -> list[str]:
        """Where each type is published."""
        random, locality = self._random("homes"), self._workload.publisher_locality
        return [
            random.choice(_nearest(self._near[self._class_of(number)], locality))
            for number in range(len(self._types))
        ]

    def _subscriptions(self) -> dict[str, tuple[str, ...]]:
        workload, found = self._workload, {}
        if not workload.subscriptions:
            return {}
        ranks = [{name: rank for rank, name in enumerate(near)} for near in self._near]
        for broker in self._brokers:
            random = self._random(f"sink {broker}")
            rules = random.sample(range(workload.rules), workload.rules)
            if workload.sink_locality:  # whose centres are near; else as they were drawn
                rules.sort(key=lambda rule: ranks[self._class_of(rule)][broker])
            choice = _nearest(rules, workload.sink_locality, workload.subscriptions)
            chosen = sorted(random.sample(choice, workload.subscriptions))
            found[broker] = tuple(f"C{rule + 1}()" for rule in chosen)
        return found

    # --- rules ---

    def _rules(self) -> Iterator[str]:
        for schema in self._types:
            yield f"event {schema}"
        for number in range(self._workload.rules):
            yield self._rule(number, self._random(f"rule {number}"))

    def _rule(self, number: int, random: Random) -> str:
        workload = self._workload
        own = list(range(self._class_of(number), workload.types, workload.classes))
        drawn = random.sample(own, len(own))
        types, other = drawn[: workload.length], drawn[workload.length % len(drawn)]
        windows = [self._window(random) for _ in types]
        policies = random.choices(
            list(workload.selection), list(workload.selection.values()), k=len(types)
        )
        joined, negated, counted = (
            random.random() < share
            for share in (workload.parameters, workload.negations, workload.aggregates)
        )
        clauses = []
        for place, type_ in enumerate(types):
            conditions = [f"value = {value}" for value in self._value(random)]
            conditions += [f"key = e{place - 1}.key"] if joined and place else []
            event = f"T{type_ + 1}({', '.join(conditions)}) as e{place}"
            if place:
                event = f"{policies[place]} {event} within {windows[place]} from e{place - 1}"
            clauses.append(event)
        if negated:
            between = "between e1 and e0" if len(types) > 1 else f"within {windows[0]} from e0"
            clauses.append(f"not T{other + 1}() {between}")
        count = f"Count(T{other + 1}() within {windows[0]} from e0)" if counted else "0"
        return (
            f"rule r{number + 1}: define C{number + 1}(key: int, count: int)\n"
            f"from {' and '.join(clauses)}\n"
            f"where key = e0.key, count = {count}"
        )

    def _value(self, random: Random) -> list[int]:
        """The value that an event of a rule must have, if there are several."""
        value = random.randrange(self._workload.values)
        return [value] if self._workload.values > 1 else []

    def _window(self, random: Random) -> str:
        spread = self._workload.window_spread * random.uniform(-1, 1)
        return f"{max(1, round(self._workload.window_s * (1 + spread) * 1e3))} ms"

    # --- events ---

    def _rates(self) -> list[float]:
        """Events a second of each type."""
        least, greatest = self._workload.rates
        last = max(self._workload.types - 1, 1)
        numbers = range(self._workload.types)
        match self._workload.law:
            case "exponential":
                rates = [greatest * (least / greatest) ** (number / last) for number in numbers]
            case "zipf":
                rates = [max(least, greatest / (number + 1)) for number in numbers]
            case "even":
                rates = [greatest + (least - greatest) * number / last for number in numbers]
        self._random("rates").shuffle(rates)
        return rates

    def horizon(self, warm_up_s: float) -> tuple[float, Mapping[int, Int64s]]:
        """How long sources publish, and when the rarest type occurs if that decides."""
        count = self._workload.rarest_count
        if count is None:
            assert self._workload.horizon_s is not None
            return self._workload.horizon_s, {}
        rates = self._rates()
        rarest = min(range(len(rates)), key=rates.__getitem__)
        rate, rng = rates[rarest], self._rng(f"events {rarest}")
        before = rng.uniform(0, warm_up_s, rng.poisson(rate * warm_up_s))
        after = warm_up_s + rng.exponential(1 / rate, count).cumsum()
        return float(after[-1]) + 1e-3, {rarest: _instants(np.concatenate([before, after]))}

    def _recordings(
        self, horizon_s: float, known: Mapping[int, Int64s]
    ) -> Iterator[tuple[str, Recording]]:
        homes, rates = self.homes(), self._rates()
        for broker in self._brokers:
            own = [number for number, home in enumerate(homes) if home == broker]
            if own:
                times = [
                    known[number] if number in known else self._times(number, rates, horizon_s)
                    for number in own
                ]
                yield broker, self._recording(broker, own, times, horizon_s)

    def _times(self, number: int, rates: Sequence[float], horizon_s: float) -> Int64s:
        rng = self._rng(f"events {number}")
        return _instants(rng.uniform(0, horizon_s, rng.poisson(rates[number] * horizon_s)))

    def _recording(
        self, broker: str, own: Sequence[int], times: Sequence[Int64s], horizon_s: float
    ) -> Recording:
        """One source's events, numbered in their order."""
        name, counts = _source_at(broker), [len(one) for one in times]
        sequence = np.empty(sum(counts), np.int64)
        sequence[np.argsort(np.concatenate(times), kind="stable")] = np.arange(sum(counts)) + 1
        batches = (
            self._batch(name, number, moments, numbers)
            for number, moments, numbers in zip(
                own, times, np.split(sequence, np.cumsum(counts)[:-1]), strict=True
            )
        )
        span = self._span(horizon_s)
        parts = (_between(batch, *span) for batch in batches)
        declared = tuple(self._types[number] for number in own)
        return Recording(name, tuple(part for part in parts if len(part)), declared, span)

    def _span(self, horizon_s: float) -> tuple[int, int]:
        """From when to when sources publish, in us since the epoch."""
        begin, end = self._workload.part or (0.0, horizon_s)
        if begin >= horizon_s:
            raise ValueError(f"part: begins at {begin:g} s, and all is over at {horizon_s:g} s")
        begin_us, end_us = (
            round((ORIGIN_S + one) * MICROSECONDS) for one in (begin, min(end, horizon_s))
        )
        return begin_us, end_us

    def _batch(self, name: str, number: int, times: Int64s, sequence: Int64s) -> EventBatch:
        rng, count = self._rng(f"values {number}"), len(times)
        columns = tuple(
            rng.integers(0, bound, count) for bound in (self._workload.values, self._workload.keys)
        )
        ids = EventIds(StringColumn.constant(name, count), sequence)
        return EventBatch(self._types[number], times, ids, columns)

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng(self._random(name).getrandbits(64))


def _instants(seconds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Int64s:
    """In order, in us since the epoch."""
    return np.sort(np.rint((ORIGIN_S + seconds) * MICROSECONDS).astype(np.int64))


def _between(batch: EventBatch, begin: int, end: int) -> EventBatch:
    """The events of a batch in order of time from ``begin`` to ``end``, both in us and included."""
    first, last = np.searchsorted(batch.time, (begin, end + 1))
    return batch if last - first == len(batch) else batch.take(np.arange(first, last))


def _nearest(items: Sequence, locality: float, least: int = 1) -> Sequence:  # type: ignore[type-arg]
    """The items among which to choose: all without locality, the first of them with a locality of
    1.
    """
    return items[: max(least, math.ceil((1 - locality) * len(items)))]
