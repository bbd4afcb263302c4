"""Stream operators on a GPU beside the processor (docs/operators.md, after Rodrigo 2015).

The workload is made like the dissertation's: a football match, whose ball and players say where
they are, one event each 86 us; of ten events one is of the ball. Positions are metres of the field,
and times picoseconds, as ints. The queries are those of its evaluation: the filter of the ball's
sensors; the join of ball and players at one place, the ball later by less than a second (there a
millisecond: here that would find next to nothing); averages, here of ints, by sensor; and a mix of
the three.

For each: events a second end to end on the processor and on the device, with a batch under way
while the next is copied; for one batch the copy in, the kernels and the copy out apart, waiting
behind each, so that they come to more than end to end; and the join's kernel alone, launched again
and again. Both compute the same: each part compares what came out first.

Elapsed time, the least of some runs. A part that fails costs its own figures. Without a GPU it says
so and measures nothing; under numba's simulator sizes are tiny, which runs the code.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import Row, attempted
from matcher.gpu.device import NoDevice, device
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine import make
from studies.device import moved_operators
from studies.operators import Aggregate, Chain, DevicePlace, Filter, Join, Length, Stream
from studies.operators.operator import Operator
from studies.operators.places import HOST, WIDE, DeviceTurn, Place, Turn, Words

SEED = 39
POSITION = EventType.of(
    "Position", sid="string", ts="int", x="int", y="int", z="int", v="int", a="int"
)
BALL, PLAYER = (EventType(name, POSITION.attributes) for name in ("Ball", "Player"))
BALLS = ("4", "8", "10", "12")
PLAYERS = tuple(str(number) for number in range(13, 45))
GAP_US = 86
BATCHES = (64, 2_048, 65_536)
WINDOWS = (200, 10_000, 100_000)
QUERIES = (1, 10, 50)
PLANS = (1, 2, 5)
IS_BALL = " or ".join(f'sid = "{one}"' for one in BALLS)
JOINED = "a.x = b.x and a.y = b.y and a.ts > b.ts and a.ts - b.ts < 1000000000000"
NEAR = (
    "(a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) < 9 "
    "and a.ts > b.ts and a.ts - b.ts < 10000000000"
)
"""A condition that no index serves: three metres, ten milliseconds."""
AS_RULE = "x = a.x and y = a.y and a.ts > ts and a.ts - ts < 1000000000000"
SELECTED = {
    "player": "b.sid",
    "ball": "a.sid",
    "since": "b.ts",
    "ts": "a.ts",
    "x": "b.x",
    "y": "b.y",
}
MINUTE = 60 * 10**12
HALVES = ((0, 45), (60, 105))
IN_HALF = " or ".join(f"ts >= {a * MINUTE} and ts < {b * MINUTE}" for a, b in HALVES)
IN_PLAY = f"({IS_BALL}) and ({IN_HALF})"
"""Events of the ball in either half."""
MEANS = 10_000
"""Events of the window of the mix's averages."""
AGGREGATED = {"mean": "Avg(Position().v)", "most": "Max(Position().v)"}
AGAIN = {"flag", "append", "append_values", "oldest", "arrange", "span", "pair", "select"}
"""Kernels that may be launched again, to the same effect."""
TIMES = 10
SCAN = "scan"
COPIES = ("copy in", "copy out")


def run(quick: bool) -> Iterator[Row]:
    """The figures; see the page's head."""
    try:
        on = device()
    except NoDevice as error:
        print(f"benchmarks: nothing to measure: {error}", file=sys.stderr)
        return
    sizes = Sizes()
    if on.simulated:
        sizes = Sizes((4,), (8,), (2,), (1,), pairs=64, repeats=1, events=8)
    elif quick:
        sizes = Sizes((2_048,), (200, 10_000), (1, 10), pairs=10**8, repeats=2, events=2**16)
    place = DevicePlace(on)
    parts: dict[str, Callable[[], Iterator[Row]]] = {}
    for batch in sizes.batches:
        parts[f"filter, batches of {batch:,}"] = partial(filters, place, sizes, batch)
    parts["filter, many queries"] = partial(many_filters, place, sizes)
    for window in sizes.windows:
        for batch in sizes.batches:
            name = f"join, windows of {window:,}, batches of {batch:,}"
            parts[name] = partial(joins, place, sizes, window, batch)
        name = f"join, windows of {window:,}, as a rule"
        parts[name] = partial(as_rule, sizes, window)
    near, middle = sizes.windows[-2:][0], sizes.batches[len(sizes.batches) // 2]
    name = f"join by distance, windows of {near:,}, batches of {middle:,}"
    parts[name] = partial(joins, place, sizes, near, middle, NEAR, "join by distance")
    parts["join, many queries"] = partial(many_joins, place, sizes)
    parts["mix of queries"] = partial(mixes, place, sizes)
    for window in sizes.windows[-2:]:
        name = f"aggregate, window of {window:,}"
        parts[name] = partial(aggregates, place, sizes, window)
    for name, part in parts.items():
        yield from attempted(f"operators/{name}", part)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Batches, windows and queries that are measured."""

    batches: Sequence[int] = BATCHES
    windows: Sequence[int] = WINDOWS
    queries: Sequence[int] = QUERIES
    plans: Sequence[int] = PLANS
    pairs: int = 3 * 10**8
    """Pairs of a join that the processor looks at for a figure, at most."""
    repeats: int = 3
    events: int = 2**18
    """Events of a figure, at most."""


def positions(type_: EventType, sensors: Sequence[str], count: int, begin: int) -> EventBatch:
    """Events of sensors from number ``begin`` on, one each GAP_US."""
    rng = np.random.default_rng([SEED, begin, len(sensors)])
    numbers = np.arange(begin, begin + count)
    sids = StringColumn(rng.integers(0, len(sensors), count).astype(np.int32), tuple(sensors))
    times = numbers * GAP_US
    ints = [rng.integers(0, most, count) for most in (105, 68, 40, 30_000, 10_000)]
    ids = EventIds(StringColumn.constant("field", count), numbers)
    return EventBatch(type_, times, ids, (sids, times * 1_000_000, *ints))


def whole_stream(count: int, begin: int) -> EventBatch:
    """Events of all sensors, of which the ball's make a tenth."""
    return positions(POSITION, (*BALLS, *PLAYERS), count, begin)


def both_streams(count: int, begin: int) -> tuple[EventBatch, EventBatch]:
    """As many events of ball and players, in one order of time."""
    balls = max(count // 10, 1)
    ball = positions(BALL, BALLS, balls, begin)
    players = positions(PLAYER, PLAYERS, count - balls, begin)
    return (
        _at(ball, begin * GAP_US + np.arange(balls) * (GAP_US * count) // balls),
        _at(
            players, begin * GAP_US + np.arange(count - balls) * (GAP_US * count) // (count - balls)
        ),
    )


def _at(batch: EventBatch, times: Any) -> EventBatch:
    sid, _, *rest = batch.columns
    return EventBatch(batch.type, times, batch.ids, (sid, times * 1_000_000, *rest))


# --- parts ---------------------------------------------------------------------------------------


def filters(place: DevicePlace, sizes: Sizes, batch: int) -> Iterator[Row]:
    """One filter."""
    many = max(3, min(200, sizes.events // batch))
    batches = [whole_stream(batch, number * batch) for number in range(many)]
    yield from compared(
        f"operators/filter, batches of {batch:,}",
        lambda on: Filter(POSITION, IS_BALL, device=on),
        place,
        batches,
        batches[:many],
        batch,
        sizes,
    )


def many_filters(place: DevicePlace, sizes: Sizes) -> Iterator[Row]:
    """Several filters over one stream, each brought its own words."""
    batch = sizes.batches[len(sizes.batches) // 2]
    batches = [whole_stream(batch, number * batch) for number in range(8)]
    for queries in sizes.queries:

        def of(on: Place, queries: int = queries) -> list[Operator[Any, Any]]:
            return [Filter(POSITION, f"({IS_BALL}) and v > {n}", device=on) for n in range(queries)]

        yield from several(f"operators/filter, {queries} queries", of, place, batches, batch, sizes)


def joins(
    place: DevicePlace, sizes: Sizes, window: int, batch: int, on: str = JOINED, name: str = "join"
) -> Iterator[Row]:
    """One join of both streams, in windows that are full."""
    most = sizes.pairs if on == JOINED else sizes.pairs // 20
    few = max(2, min(8, most // (2 * batch * window)))
    cut = max(min(batch, most // (2 * window)), 2)
    many = max(3, min(64, sizes.events // batch))
    begin = 2 * window
    batches = [both_streams(batch, begin + number * batch) for number in range(many)]
    smaller = [both_streams(cut, begin + number * cut) for number in range(few)]

    def of(at: Place) -> Join:
        return full(join_of(at, window, on), window)

    yield from compared(
        f"operators/{name}, windows of {window:,}, batches of {batch:,}",
        of,
        place,
        batches,
        smaller,
        batch,
        sizes,
        cut,
        pairs=batch * window,
    )


def join_of(at: Place, window: int, on: str = JOINED) -> Join:
    """The dissertation's join, or one with another condition."""
    return Join(
        Stream(BALL, "a", Length(window)),
        Stream(PLAYER, "b", Length(window)),
        on,
        SELECTED,
        device=at,
    )


def full(join: Join, window: int) -> Join:
    """The join with as many events in its windows as these hold."""
    for type_, sensors in ((BALL, BALLS), (PLAYER, PLAYERS)):
        events = positions(type_, sensors, window, 0)
        events = _at(events, np.arange(window))
        pair = (events, None) if type_ is BALL else (None, events)
        join._order.latest = 0  # these windows are of no one stream
        join.enter(pair)
    return join


def as_rule(sizes: Sizes, window: int) -> Iterator[Row]:
    """The same by the engine, which has an index of what is compared for equality."""
    batch = sizes.batches[len(sizes.batches) // 2]
    reach = window * GAP_US * 10 // 9  # of ten events nine are players
    values = ", ".join(f"{name} = {text}" for name, text in SELECTED.items())
    rule = (
        f"define Joined({', '.join(SELECTED)}) from Ball() as a and each Player({AS_RULE}) as b "
        f"within {max(reach // 1000, 1)} ms from a where {values}"
    )
    engine = make("cdp")
    engine.deploy(load(rule, known={"Ball": BALL, "Player": PLAYER}))
    before = positions(PLAYER, PLAYERS, window, 0)
    engine.push(_at(before, GAP_US * window + reach * np.arange(window) // window - reach))
    some = [both_streams(batch, window + number * batch) for number in range(5)]
    least = float("inf")
    for number, (balls, players) in enumerate(some):
        begun = time.perf_counter()
        engine.push(balls)
        engine.push(players)
        found = engine.advance((window + (number + 1) * batch) * GAP_US)
        len(found)
        least = min(least, time.perf_counter() - begun)
    note = f"balls alone look for players, in batches of {batch:,}"
    name = f"operators/join, windows of {window:,}, as a rule"
    yield Row(f"{name}, cpu", batch / least, "events/s", note=note)


def many_joins(place: DevicePlace, sizes: Sizes) -> Iterator[Row]:
    """Several joins of the same streams, in windows as published."""
    batch, window = sizes.batches[len(sizes.batches) // 2], sizes.windows[0]
    batches = [both_streams(batch, 2 * window + number * batch) for number in range(4)]
    for queries in sizes.queries:

        def of(on: Place, queries: int = queries) -> list[Operator[Any, Any]]:
            return [join_of(on, window) for _ in range(queries)]

        yield from several(f"operators/join, {queries} queries", of, place, batches, batch, sizes)


def aggregates(place: DevicePlace, sizes: Sizes, window: int) -> Iterator[Row]:
    """An average and a maximum by sensor."""
    batch = sizes.batches[len(sizes.batches) // 2]
    many = max(3, min(16, sizes.events // batch))
    before = whole_stream(window, 0)
    batches = [whole_stream(batch, window + number * batch) for number in range(many)]

    def of(on: Place) -> Aggregate:
        made = Aggregate(POSITION, Length(window), AGGREGATED, by=("sid",), device=on)
        for start in range(0, window, batch):
            made.push(before.take(slice(start, start + batch)))
        return made

    name = f"operators/aggregate, window of {window:,}, batches of {batch:,}"
    yield from compared(name, of, place, batches, batches, batch, sizes)


def mixes(place: DevicePlace, sizes: Sizes) -> Iterator[Row]:
    """The dissertation's mix: plans of a filter, a join, and an average over a filtered window. The
    device takes the joins; the processor does the others meanwhile, on one thread.
    """
    batch, window = sizes.batches[len(sizes.batches) // 2], sizes.windows[0]
    begins = [2 * window + number * batch for number in range(4)]
    both = [both_streams(batch, begin) for begin in begins]
    whole = [whole_stream(batch, begin) for begin in begins]
    for plans in sizes.plans:
        on_cpu, on_gpu = (
            min(mixed(on, plans, window, both, whole) for _ in range(sizes.repeats + 1))
            for on in (HOST, place)
        )
        rates = [len(whole) * batch / spent for spent, _ in (on_cpu, on_gpu)]
        name = f"operators/mix, {plans} plans"
        yield Row(f"{name}, gpu end to end", rates[1], "events/s", "cpu", rates[0])
        yield Row(f"{name}, joins on the processor", 100 * on_cpu[1] / on_cpu[0], "%")


def mixed(
    on: Place, plans: int, window: int, both: Sequence[Any], whole: Sequence[Any]
) -> tuple[float, float]:
    """Seconds of some plans of the mix over all batches, and how many of those joins took."""
    joins = [join_of(on, window) for _ in range(plans)]
    others: list[Filter | Chain] = []
    for _ in range(plans):
        mean = Aggregate(POSITION, Length(MEANS), {"mean": "Avg(Position().v)"}, device=HOST)
        others.append(Filter(POSITION, IN_PLAY, device=HOST))
        others.append(Chain(Filter(POSITION, IN_PLAY, device=HOST), mean))
    clock, joined = time.perf_counter, 0.0
    begun = clock()
    for pair, batch in zip(both, whole, strict=True):
        started = clock()
        for join in joins:
            join._begin(pair)
        joined += clock() - started
        for other in others:
            other.push(batch)
        started = clock()
        for join in joins:
            join._end(lambda work: work.result())
        joined += clock() - started
    return clock() - begun, joined


# --- measuring -----------------------------------------------------------------------------------


def compared(
    name: str,
    of: Callable[[Place], Operator[Any, Any]],
    place: DevicePlace,
    batches: Sequence[Any],
    smaller: Sequence[Any],
    batch: int,
    sizes: Sizes,
    cut: int | None = None,
    pairs: int = 0,
) -> Iterator[Row]:
    """Both places over batches, those of the processor perhaps fewer and smaller; and phases."""
    expected, found = of(HOST).push(smaller[0]), of(place).push(smaller[0])
    assert_same(expected, found)
    on_cpu = rate(of, HOST, smaller, cut or batch, sizes)
    note = "" if cut in (None, batch) else f"in batches of {cut:,}"
    yield Row(f"{name}, cpu", on_cpu, "events/s", note=note)
    on_gpu = rate(of, place, batches, batch, sizes)
    yield Row(f"{name}, gpu end to end", on_gpu, "events/s", "cpu", on_cpu)
    yield from phases(name, of, place, batches, batch, pairs)


def several(
    name: str,
    of: Callable[[Place], list[Operator[Any, Any]]],
    place: DevicePlace,
    batches: Sequence[Any],
    batch: int,
    sizes: Sizes,
) -> Iterator[Row]:
    """Queries over one stream: on the device all of them are under way at a time."""
    rates = []
    for on in (HOST, place):
        least = float("inf")
        for _ in range(sizes.repeats + 1):  # the first warms up
            operators = of(on)
            begun = time.perf_counter()
            for one in batches:
                for operator in operators:
                    operator._begin(one)
                for operator in operators:
                    operator._end(lambda work: work.result())
            least = min(least, time.perf_counter() - begun)
        rates.append(len(batches) * batch / least)
    yield Row(f"{name}, gpu end to end", rates[1], "events/s", "cpu", rates[0])


def rate(
    of: Callable[[Place], Operator[Any, Any]],
    on: Place,
    batches: Sequence[Any],
    batch: int,
    sizes: Sizes,
) -> float:
    """Events a second, with a batch under way while the next is brought over."""
    least = float("inf")
    for _ in range(sizes.repeats):
        operator = of(on)
        for _ in operator.stream(batches[:1]):
            pass
        rest = batches[1:]
        begun = time.perf_counter()
        for _ in operator.stream(rest):
            pass
        least = min(least, (time.perf_counter() - begun) / (len(rest) * batch))
    return 1 / least


def assert_same(expected: EventBatch, found: EventBatch) -> None:
    """Both places have found the same."""
    assert len(expected) == len(found), (len(expected), len(found))
    assert np.array_equal(expected.time, found.time)
    assert expected.lists() == found.lists()


class TimedPlace(DevicePlace):
    """A device on which each copy and kernel is waited for, and timed."""

    def __init__(self, on: Any) -> None:
        super().__init__(on)
        self.spent: dict[str, float] = defaultdict(float)
        self.words_moved: dict[str, int] = defaultdict(int)
        self.moved: dict[str, int] = defaultdict(int)
        """Bytes by kernel (:mod:`studies.device.moved_operators`)."""

    def turn(self) -> Turn:
        return TimedTurn(self)


class TimedTurn(DeviceTurn):
    """See TimedPlace."""

    place: TimedPlace

    def _timed(self, what: str, action: Callable[[], Any], times: int = 1) -> Any:
        self.lane.wait()
        begun = time.perf_counter()
        for _ in range(times):
            result = action()
        self.lane.wait()
        self.place.spent[what] += (time.perf_counter() - begun) / times
        return result

    def send(self, name: str, size: int) -> Words:
        self.place.words_moved["copy in"] += size
        return self._timed("copy in", lambda: super(TimedTurn, self).send(name, size))

    def run(self, kernel: str, threads: int, *arguments: Words | int) -> None:
        if not threads:
            return
        times = TIMES if kernel in AGAIN and not self.place.simulated else 1
        launch = partial(super().run, kernel, threads, *arguments)
        self._timed(kernel, launch, times)
        self.place.moved[kernel] += moved_operators.moved(self.place, kernel, threads, arguments)

    def scan(self, name: str, counts: Words, size: int) -> None:
        self._timed(SCAN, partial(super().scan, name, counts, size))
        self.place.moved[SCAN] += moved_operators.moved_by_scan(size, wide=size >= WIDE)

    def ask(self, name: str, words: Words, begin: int, size: int) -> None:
        self.place.words_moved["copy out"] += size
        self._timed("copy out", partial(super().ask, name, words, begin, size))


def phases(
    name: str,
    of: Callable[[Place], Operator[Any, Any]],
    place: DevicePlace,
    batches: Sequence[Any],
    batch: int,
    pairs: int,
) -> Iterator[Row]:
    """Copy in, kernels and copy out of one batch, by waiting behind each. Each kernel by
    itself, with the bytes that it moves at least.
    """
    # numba may have no CUDA where there is no device
    from studies.device.bandwidth import bytes_a_second, of_kernel, share

    timed = TimedPlace(place.on)
    operator = of(timed)
    for one in batches[:2]:  # on either lane
        operator.push(one)
    timed.spent.clear()
    timed.words_moved.clear()
    timed.moved.clear()
    operator.push(batches[2])
    spent, moved = timed.spent, timed.moved
    kernels = {what: seconds for what, seconds in spent.items() if what not in COPIES}
    for what in COPIES:
        copied = 8 * timed.words_moved[what]
        note = f"{copied:,} bytes, {copied / max(spent[what], 1e-9) / 1e9:.2f} GB/s"
        yield Row(f"{name}, {what}", spent[what] * 1e6, "us", note=note)
    listed = sorted(kernels.items(), key=lambda one: -one[1])
    note = ", ".join(f"{what} {seconds * 1e6:.0f}" for what, seconds in listed)
    bandwidth, whole = bytes_a_second(place.on), sum(kernels.values())
    note = f"{note}; {share(sum(moved.values()), whole, bandwidth)}"
    yield Row(f"{name}, kernels", whole * 1e6, "us", note=note)
    if pairs and "pair" in kernels:
        yield Row(f"{name}, kernel pair", pairs / kernels["pair"] * 1e-9, "10^9 pairs/s")
    for what, seconds in listed:
        line = f"operator kernels/{name.removeprefix('operators/')}/{what}"
        yield from of_kernel(line, seconds, moved[what], bandwidth)
